"""Start yomi's modules in a fraction of the time: processes forked from one that has imported yomi.

`prepared("yomi", "gtp")` is the command line of a process that does what `python -m yomi gtp` does. Otherwise each of
hundreds of tests would import for two seconds of processor time. Tests of starts, imports and extras use `fresh`. So
does a test that kills a process and looks at its files at once: a prepared process ends a moment after its client,
with the end of its streams. With YOMI_FRESH=1 all processes are fresh.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import json
import logging
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
CLIENT = Path(__file__).with_name("prepared_client.py")
# Commands import these after they have started.
IMPORTED = (
    *("yomi.engine.cli.engines", "yomi.engine.cli.games", "yomi.engine.go.analysis.session"),
    *("yomi.engine.go.gtp.board", "yomi.engine.go.gtp.maps", "yomi.engine.go.gtp.moves"),
    *("yomi.engine.learning.selfplay", "yomi.engine.matches.match"),
    *("yomi.engine.shogi.usi.commands", "yomi.engine.shogi.usi.turn"),
)


def load() -> None:
    """Import modules, and load the kernels that both games use."""
    for name in IMPORTED:
        import_module(name)
    import yomi

    options: dict[str, Any] = {"memory": "32M", "workers": 1, "seed": 1}
    for engine in (
        yomi.Engine("go", size=5, evaluator="rollouts", **options),
        yomi.Engine("shogi", evaluator="material", **options),
        yomi.Engine("shogi", **options),
    ):
        with engine:
            engine.play(engine.new_game(), yomi.Limit(visits=20))
    logging.getLogger("yomi").handlers.clear()  # the library has silenced it


# Python, numba and compiled code read these when they start: other values need a fresh process.
AT_START = ("PYTHON", "NUMBA_", "YOMI_CACHE_DIR", "YOMI_CHECKED", "OMP_", "OPENBLAS_", "LD_", "MALLOC_", "GLIBC_")
HEEDED = ("PYTHONPATH", "PYTHONIOENCODING")


def fresh(module: str, *words: str) -> list[str]:
    """Return the command line of a new interpreter."""
    return [sys.executable, "-m", module, *words]


def prepared(module: str, *words: str) -> list[str]:
    """Return the command line of a prepared process. Its folder and environment are those of the start."""
    if sys.platform != "linux" or os.environ.get("YOMI_FRESH") or _settings(os.environ) != _SETTINGS:
        return fresh(module, *words)
    return [sys.executable, "-S", "-E", str(CLIENT), _address(), module, *words]


def _settings(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    names = (name for name in sorted(environment) if name.startswith(AT_START) and name not in HEEDED)
    return tuple((name, environment[name]) for name in names)


_SETTINGS = _settings(os.environ)


@functools.cache
def _address() -> str:
    """Start the server of this process and return the path of its socket."""
    folder = tempfile.TemporaryDirectory()
    path = f"{folder.name}/socket"
    command = fresh("tests.process.prepared", path)
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == b"listening\n"

    def end() -> None:
        server.communicate()  # ends with its input
        folder.cleanup()

    atexit.register(end)
    return path


def serve(path: str) -> dict[str, Any]:
    """Fork for each request. Return the request in each child."""
    events = selectors.DefaultSelector()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(100)
        print("listening", flush=True)
        load()
        gc.collect()
        gc.freeze()  # a collection would copy the memory that children share
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and then this process
        events.register(sys.stdin, selectors.EVENT_READ)
        events.register(listener, selectors.EVENT_READ)
        children: dict[int, tuple[int, socket.socket]] = {}  # by the descriptor of the process
        while True:
            for key, _ in events.select():
                if key.fileobj is listener:
                    client, _ = listener.accept()
                    message, given, _, _ = socket.recv_fds(client, 1 << 20, 3)
                    request: dict[str, Any] = json.loads(message)
                    is_able = _settings(request["environment"]) == _settings(os.environ)
                    client.send(b"prepared" if is_able else b"fresh")
                    pid = os.fork() if is_able else -1
                    if pid == 0:
                        for descriptor, (_, other) in children.items():
                            os.close(descriptor)
                            other.close()
                        client.close()
                        events.close()
                        _set_streams(given)
                        return request
                    for descriptor in given:
                        os.close(descriptor)
                    if not is_able:
                        client.close()
                        continue
                    descriptor = os.pidfd_open(pid)
                    children[descriptor] = pid, client
                    events.register(descriptor, selectors.EVENT_READ)
                    events.register(client, selectors.EVENT_READ, descriptor)
                elif key.fileobj is sys.stdin:
                    for pid, _ in children.values():
                        os.kill(pid, signal.SIGKILL)
                    sys.exit()
                elif key.data is None:  # a child has ended
                    descriptor = key.fd
                    pid, client = children.pop(descriptor)
                    _, status = os.waitpid(pid, 0)
                    with contextlib.suppress(OSError):  # the client was killed
                        client.send(str(os.waitstatus_to_exitcode(status)).encode())
                    events.unregister(descriptor)
                    os.close(descriptor)
                    with contextlib.suppress(KeyError):
                        events.unregister(client)
                    client.close()
                elif key.data in children:  # a signal for a child, or the end of its client by SIGKILL
                    pid, client = children[key.data]
                    signals = client.recv(100)
                    for number in signals or [signal.SIGKILL]:
                        os.kill(pid, number)
                    if not signals:
                        events.unregister(client)


def _set_streams(given: list[int]) -> None:
    for target, descriptor in enumerate(given):
        os.dup2(descriptor, target)
        os.close(descriptor)


def run(request: dict[str, Any]) -> NoReturn:
    """Run a module in the child as `python -m` does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    named = os.environ.get("PYTHONIOENCODING")
    for descriptor, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        old = getattr(sys, name)
        stream: Any = os.fdopen(descriptor, mode, encoding=named or old.encoding, newline="\n", closefd=False)
        errors = "strict" if named and name != "stderr" else old.errors
        stream.reconfigure(errors=errors, line_buffering=name == "stderr" or os.isatty(descriptor))
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.path[:1] = [request["folder"], *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = request["words"]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    run(serve(sys.argv[1]))
