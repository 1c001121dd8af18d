"""`yomi serve`: the address and token of the server, and how it ends."""

import argparse
import contextlib
import io
import secrets
import socket
import sys
import webbrowser

from yomi import language
from yomi.engine.cli.flags import add_value
from yomi.engine.cli.output import echo, say
from yomi.engine.cli.parser import CliError
from yomi.language import tr
from yomi.nets.installation import missing_line

USAGE = "yomi serve [--port N] [--host ADDRESS] [options]"
EPILOG = """\
examples:
  yomi serve
  yomi serve --net fast --port 9000
  yomi serve --host 0.0.0.0

This makes a board for Go and shogi for your browser. Play at 20 levels, with or without clocks. Take moves back, ask
for hints, be warned before mistakes, or let yomi analyse while you think. It needs the packages of the extra `web`.
Without them it prints the command that installs them.

Without --host only this machine can reach the server. `--host 0.0.0.0` is for phones and other machines of your
network: yomi prints the address with a token, also as a QR code. The connection is not encrypted.
http://ADDRESS/openapi.json describes the interface for programs.
"""
LOCAL = ("127.0.0.1", "localhost", "::1")
NAMES = frozenset(("127.0.0.1", "localhost", "[::1]"))  # of this machine in addresses of pages
PORT = 8649


def add(parser: argparse.ArgumentParser) -> None:
    add_value(parser, "--port", PORT, "N", "listen on this port; 0: any free port", low=0)
    parser.add_argument("--host", default=LOCAL[0], metavar="ADDRESS", help="listen on this address (127.0.0.1)")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument("--net", metavar="FILE", help="play with this network; games of its kind only")
    parser.add_argument("--device", metavar="DEVICE", help="compute networks on this device, such as cpu or cuda")


def run(args: argparse.Namespace) -> int:
    is_local = args.host in LOCAL
    try:
        import uvicorn

        from yomi.web.app import Protocol, make_app

        if not is_local:
            import segno  # noqa: F401  (of _show_code)
    except ModuleNotFoundError as error:
        raise CliError(missing_line(str(error.name), "yomi serve")) from None
    from yomi.web.engines import Engines

    token = "" if is_local else secrets.token_urlsafe(18)
    options = {name: value for name in ("net", "device") if (value := getattr(args, name)) is not None}
    engines = Engines(options)
    machine = socket.gethostname().lower()
    own = () if is_local else (args.host.lower(), machine, f"{machine}.local")
    app = make_app(engines, token=token, hosts=NAMES.union(own))
    with _listen(args.host, args.port) as listener:
        host, port = listener.getsockname()[:2]
        name = _own_address(host) if host in ("0.0.0.0", "::") else host
        # The part after # stays in the browser: it is in no log and no referrer.
        address = f"http://{f'[{name}]' if ':' in name else name}:{port}/" + (f"#token={token}" if token else "")
        echo(address)
        if token:
            _show_code(address)
            say(tr("warning: everybody who has this address can play here, and the connection is not encrypted"))
        say(tr("Ctrl-C ends the server"))
        language.choose(language.ENGLISH)  # the interface for programs; the page has texts of its own
        if args.open:
            webbrowser.open(address)

        class Server(uvicorn.Server):
            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                engines.end_searches()  # otherwise uvicorn cancels their requests, with a traceback
                await super().shutdown(sockets)

        config = uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
        try:
            with contextlib.suppress(KeyboardInterrupt):
                Server(config).run(sockets=[listener])
        finally:
            engines.close()
    return 0


def _own_address(host: str) -> str:
    """Return this machine's numeric address in its network, because phones cannot look up its name."""
    # Nothing is sent: connecting a datagram socket only chooses the network. The targets are for documentation.
    family, target = (socket.AF_INET6, "2001:db8::1") if ":" in host else (socket.AF_INET, "192.0.2.1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((target, 9))
        except OSError:  # no network
            return socket.gethostname()
        return str(probe.getsockname()[0])


def _show_code(address: str) -> None:
    """Print the address as a QR code for phones, if the terminal can show the characters of the picture."""
    import segno

    picture = io.StringIO()
    segno.make(address, error="l").terminal(picture, compact=True)
    if (sys.stdout.encoding or "").lower().startswith("utf"):
        echo(picture.getvalue())


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, or raise CliError. Visitors may connect from then on; the address is printed later."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = error.strerror
    except OverflowError:
        reason = tr("expected a port of at most 65535")
    raise CliError(
        tr("cannot listen on {host}, port {port}: {reason}; choose another --port", host=host, port=port, reason=reason)
    )
