"""The small parts of the clients of servers."""

import errno
import io
import json
import logging
import os
import random
import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from yomi.engine.cli import engines
from yomi.engine.cli.engines import account_options
from yomi.engine.cli.parser import CliError
from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.cgos.codec import Setup
from yomi.engine.go.cgos.game import CgosGame
from yomi.engine.go.points import square
from yomi.engine.registry import GO
from yomi.engine.servers.connection import (
    FIRST_PAUSE,
    JITTER,
    MAX_PAUSE,
    MAX_PAUSE_IN_GAME,
    Backoff,
    Connection,
    ConnectionLostError,
    Lag,
)
from yomi.engine.servers.runner import Reporter
from yomi.engine.servers.settings import (
    STARS,
    Password,
    PasswordError,
    SettingsError,
    forget_environment,
    from_environment,
    from_file,
    from_keyring,
    read_settings,
)
from yomi.system import IS_WINDOWS

FILE = """\
records = "games"

[servers.home]
protocol = "cgos"
host = "127.0.0.1"
port = 6809
size = 9

[servers.gate]
protocol = "csa"
host = "localhost"
port = 4081
game_name = "floodgate-300-10F"
keepalive = 40

[accounts.one]
server = "home"
user = "yomi-1"
password_env = "YOMI_TEST_PASSWORD"
games = 3
engine.visits = 400
engine.net = "none"

[accounts.two]
server = "gate"
user = "yomi_2"
password_file = "secret"
command = "engine --option 'a b'"
usi_options = { Threads = 2, USI_Ponder = true }
"""


def test_pauses_grow_and_stay_within_a_minute() -> None:
    for seed in range(20):
        backoff = Backoff(random.Random(seed))
        pauses = [backoff.next() for _ in range(40)]
        assert FIRST_PAUSE * (1 - JITTER) <= pauses[0] <= FIRST_PAUSE * (1 + JITTER)
        assert max(pauses) <= MAX_PAUSE * (1 + JITTER) < 60
        assert min(pauses[8:]) >= MAX_PAUSE * (1 - JITTER)
        backoff.reset()
        assert backoff.next() <= FIRST_PAUSE * (1 + JITTER)
        assert max(backoff.next(in_game=True) for _ in range(40)) <= MAX_PAUSE_IN_GAME * (1 + JITTER)
    assert len({Backoff(random.Random(seed)).next() for seed in range(20)}) == 20


def test_lag_follows_the_longest_of_late() -> None:
    lag = Lag()
    assert lag.expected == 0.0
    for seconds in (0.1, 0.5, 0.1, -0.2):
        lag.note(seconds)
    assert 0.4 < lag.expected <= 0.5
    assert 0.0 < lag.mean < 0.2
    for _ in range(100):
        lag.note(0.1)
    assert lag.expected == pytest.approx(0.1)


def test_passwords_hide_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    password = Password("geheim1")
    assert password.reveal() == "geheim1"
    assert "geheim1" not in f"{password!r} {password} {[password]}"
    assert password.hide("Error: geheim1?") == f"Error: {STARS}?"
    monkeypatch.setenv("YOMI_TEST_PASSWORD", "geheim2")
    assert from_environment("YOMI_TEST_PASSWORD").reveal() == "geheim2"
    forget_environment(["YOMI_TEST_PASSWORD"])
    assert "YOMI_TEST_PASSWORD" not in os.environ
    path = tmp_path / "secret"
    path.write_text("geheim3\nmore\n")
    path.chmod(0o600)
    assert from_file(path).reveal() == "geheim3"


def test_passwords_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(PasswordError, match="NO_SUCH_VARIABLE is not set"):
        from_environment("NO_SUCH_VARIABLE")
    path = tmp_path / "secret"
    with pytest.raises(PasswordError, match="cannot read"):
        from_file(path)
    path.write_text("geheim4\n")
    if not IS_WINDOWS:  # which has no modes
        path.chmod(0o640)
        with pytest.raises(PasswordError, match="mode 0640: expected 0600") as error:
            from_file(path)
        assert "geheim4" not in str(error.value)
        path.chmod(0o600)
    for text in ("", "two geheim5\n", "\n"):
        path.write_text(text)
        with pytest.raises(PasswordError, match="empty or holds blanks") as error:
            from_file(path)
        assert "geheim" not in str(error.value)


def test_the_keyring_is_asked_or_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(PasswordError, match="pip install keyring"):
        from_keyring("floodgate", "yomi")
    ring, errors = types.ModuleType("keyring"), types.ModuleType("keyring.errors")
    entries = {("floodgate", "yomi"): "geheim6"}
    ring.get_password = lambda service, user: entries.get((service, user))  # type: ignore[attr-defined]
    errors.KeyringError = RuntimeError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", ring)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    assert from_keyring("floodgate", "yomi").reveal() == "geheim6"
    with pytest.raises(PasswordError, match="no password of nobody for floodgate"):
        from_keyring("floodgate", "nobody")


def test_settings(tmp_path: Path) -> None:
    path = tmp_path / "servers.toml"
    path.write_text(FILE)
    found = read_settings(path, "cgos")
    assert [account.name for account in found.accounts] == ["one"]
    one = found.accounts[0]
    assert (one.server.port, one.server.size, one.games, one.user) == (6809, 9, 3, "yomi-1")
    assert one.options == {"visits": 400, "net": None}
    assert found.records == tmp_path / "games"
    for protocol in ("cgos", "csa"):  # engines inherit nobody's password
        assert read_settings(path, protocol).password_variables == ("YOMI_TEST_PASSWORD",)
    two = read_settings(path, "csa").accounts[0]
    assert two.command == ("engine", "--option", "a b")
    assert two.usi_options == {"Threads": "2", "USI_Ponder": "true"}
    assert (two.server.game_name, two.server.keepalive) == ("floodgate-300-10F", 40)
    assert two.password_source == str(tmp_path / "secret")


def test_paths_are_seen_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(command: str, net: str = "none") -> tuple[tuple[str, ...], object]:
        text = FILE.replace("engine --option 'a b'", command).replace('"none"', f'"{net}"')
        (tmp_path / "servers.toml").write_text(text)
        two, one = (read_settings(Path("servers.toml"), protocol).accounts[0] for protocol in ("csa", "cgos"))
        return two.command, one.options["net"]

    monkeypatch.chdir(tmp_path)
    home = tmp_path / "anna"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))  # on Windows
    net, other = str(Path("nets/a.onnx")), str(tmp_path / "other.onnx")  # on Windows with backslashes
    assert written("./engine books/a", "nets/a.onnx") == ((str(tmp_path / "engine"), "books/a"), net)
    assert written("~/engine -x", "~/a.onnx") == ((str(home / "engine"), "-x"), str(home / "a.onnx"))
    assert written("engine", Path(other).as_posix()) == (("engine",), other)
    monkeypatch.chdir("/")
    assert read_settings(tmp_path / "servers.toml", "cgos").accounts[0].options["net"] == other
    (tmp_path / "servers.toml").write_text(FILE.replace('"none"', '"a.onnx"'))
    assert read_settings(tmp_path / "servers.toml", "cgos").accounts[0].options["net"] == str(tmp_path / "a.onnx")


def test_an_account_names_a_bundled_network_and_a_level(tmp_path: Path) -> None:
    path = tmp_path / "servers.toml"
    path.write_text(FILE.replace('"none"', '"fast"'))
    (account,) = read_settings(path, "cgos").accounts
    assert account_options(account, GO).net == "fast"
    (tmp_path / "fast").touch()
    assert read_settings(path, "cgos").accounts[0].options["net"] == str(tmp_path / "fast")
    path.write_text(FILE.replace('engine.net = "none"', "engine.level = 3"))
    (account,) = read_settings(path, "cgos").accounts
    options = account_options(account, GO)
    assert (options.level, options.visits) == (3, 400)  # the account names the visits
    assert options.people_prior > 0.0
    assert Path(str(options.net)).name == "yomi-go-b6c96.bin.gz"


def test_the_command_cleans_up_unless_the_user_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "servers.toml"
    path.write_text(FILE)
    (account,) = read_settings(path, "cgos").accounts
    assert account_options(account, GO, cleanup=True).cleanup
    monkeypatch.setattr(engines, "user_values", lambda game: {"cleanup": False, "size": 13})
    options = account_options(account, GO, cleanup=True)
    assert (options.cleanup, options.size) == (False, 9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('net = "none"', 'net = "a.gz"', "line 22: accounts.one.engine.net {file}: no such file; expected"),
    ],
)
def test_options_of_an_account_that_are_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "servers.toml"
    path.write_text(FILE.replace(old, new))
    (account,) = read_settings(path, "cgos").accounts
    with pytest.raises(CliError) as error:
        account_options(account, GO)
    assert str(error.value).startswith(f"{path}, {message.format(file=tmp_path / 'a.gz')}")
    assert "--" not in str(error.value)


# Windows finds no user unknown: every home lies beside its own.
UNKNOWN_HOMES = [
    ('"games"', '"~nobody-4711/a"', "line 1: records: found '~nobody-4711/a', expected a path (no such"),
    ('"secret"', '"~nobody-4711/a"', "accounts.two.password_file: found '~nobody-4711/a', expected a path"),
    ('net = "none"', 'net = "~nobody-4711/a"', "accounts.one.engine.net: found '~nobody-4711/a', expected a path"),
    ("engine --option", "~nobody-4711/a --option", "accounts.two.command: found \"~nobody-4711/a --option 'a b'\""),
]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("port = 6809", "port = 68090", "line 6: servers.home.port: found 68090, expected an integer from 1 to 65535"),
        ("port = 6809", "prot = 1", "line 6: servers.home.prot: unknown key, expected one of protocol, host, port"),
        ('protocol = "cgos"', "", "line 3: servers.home: protocol is missing, expected cgos or csa"),
        ('server = "home"', 'server = "hom"', "line 17: accounts.one.server: found 'hom', expected one of the servers"),
        ('password_env = "YOMI_TEST_PASSWORD"', "", "line 16: accounts.one: found no password, expected one of"),
        ('user = "yomi-1"', 'password = "geheim7"', "accounts.one.password: no password belongs here"),
        ('user = "yomi-1"', 'user = "yomi 1"', "accounts.one.user: found 'yomi 1', expected a name"),
        ("engine.visits = 400", "engine.vistis = 4", "accounts.one.engine.vistis: unknown option 'vistis'"),
        ("engine.visits = 400", "engine.multipv = 5", "accounts.one.engine.multipv: unknown option 'multipv'"),
        (
            "command = \"engine --option 'a b'\"\nusi_options = { Threads = 2, USI_Ponder = true }",
            'engine.rules = "japanese"',
            "accounts.two.engine.rules: unknown option 'rules'",
        ),
        (
            "engine.visits = 400",
            "engine.visits = 0",
            "line 21: accounts.one.engine.visits: visits: expected an integer",
        ),
        ("engine.visits = 400", "engine.komi = 0", "line 21: accounts.one.engine.komi: the server decides it"),
        ("games = 3", "games = true", "line 20: accounts.one.games: found True, expected an integer"),
        ("[accounts.one]", "[account.one]", "line 16: account: unknown key, expected one of records"),
        *(UNKNOWN_HOMES if not IS_WINDOWS else []),
        ("size = 9", "size = ", "is not a TOML file"),
        ("engine.visits = 400", 'command = "gnugo"', "either engine (options of yomi) or command"),
        (
            "--option 'a b'",
            "--option 'a b",
            'line 28: accounts.two.command: found "engine --option \'a b", expected a command line (no closing quota',
        ),
    ],
)
def test_settings_that_are_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "servers.toml"
    assert old in FILE
    path.write_text(FILE.replace(old, new))
    with pytest.raises(SettingsError) as error:
        read_settings(path, "cgos")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert "geheim" not in str(error.value)


def test_settings_without_an_account(tmp_path: Path) -> None:
    path = tmp_path / "servers.toml"
    with pytest.raises(SettingsError, match="cannot read"):
        read_settings(path, "cgos")
    path.write_text(FILE.split("[accounts.two]")[0])
    with pytest.raises(SettingsError, match='no account on a server with protocol = "csa"'):
        read_settings(path, "csa")


def test_records_are_complete_at_every_moment(tmp_path: Path) -> None:
    setup = Setup("a/b:c d", square(9), 7.0, 60.0, {BLACK: "../one", WHITE: "two"}, {BLACK: "", WHITE: ""}, ())
    game = CgosGame(setup, BLACK, tmp_path / "new")
    assert game.path.name[8:] == "-a_b_c_d-two-.._one.sgf"
    game.save()
    game.play(BLACK, "e5")
    game.save()
    assert ";B[ee]" in game.path.read_text()
    assert list((tmp_path / "new").iterdir()) == [game.path]


def test_the_record_of_another_game_with_the_same_id_stays(tmp_path: Path) -> None:
    """A server that was started again gives its ids again. A game that has not ended continues in its file."""
    setup = Setup("1", square(9), 7.0, 60.0, {BLACK: "one", WHITE: "two"}, {BLACK: "", WHITE: ""}, ())
    first = CgosGame(setup, BLACK, tmp_path)
    first.save()
    assert CgosGame(setup, BLACK, tmp_path).path == first.path
    first.result = "B+1.5"
    first.save()
    for name in ("-1-two-one-2.sgf", "-1-two-one-3.sgf"):
        game = CgosGame(setup, BLACK, tmp_path)
        assert game.path.name[8:] == name
        game.play(BLACK, "e5")
        game.save()
        played = replace(setup, moves=(("e5", 60.0),))
        assert CgosGame(played, BLACK, tmp_path).path == game.path
        game.result = "W+R"
        game.save()
    assert "B+1.5" in first.path.read_text()


def test_events_are_lines_of_json_and_lines_for_people(tmp_path: Path) -> None:
    terminal = io.StringIO()
    reporter = Reporter(tmp_path / "events", terminal)
    reporter.event("one", "game", "a game", ply=3)
    reporter.event("one", "move", ply=4)
    reporter.status("one", "not shown: no terminal")
    reporter.close()
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert [(event["event"], event["ply"]) for event in events] == [("game", 3), ("move", 4)]
    assert terminal.getvalue().endswith(" one: a game\n")
    assert terminal.getvalue().count("\n") == 1


def test_the_status_line_stays_below_the_events() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    reporter = Reporter(None, terminal)
    reporter.status("one", "move 3")
    reporter.event("one", "over", "won")
    assert terminal.getvalue().split("\r\x1b[K")[-1].splitlines()[1] == "one: move 3"


class Broken(io.StringIO):
    """A terminal that takes a few texts and no more."""

    def __init__(self, texts: int) -> None:
        super().__init__()
        self.texts = texts

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.texts -= 1
        if self.texts < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().write(text)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no file that is always full")
def test_a_full_disk_is_told_once_and_people_still_read(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "yomi.servers")
    terminal = io.StringIO()
    reporter = Reporter(Path("/dev/full"), terminal)
    for ply in range(3):
        reporter.event("one", "move", f"move {ply}", ply=ply)
    reporter.close()
    assert [record.message for record in caplog.records] == [
        f"cannot write events to {Path('/dev/full')}: No space left on device; games continue without"
    ]
    assert "move 2" in terminal.getvalue()


def test_a_terminal_that_is_gone_is_told_once_and_programs_still_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "yomi.servers")
    reporter = Reporter(tmp_path / "events", Broken(2))
    reporter.status("one", "move 3")
    for text in ("won", "lost", "drawn"):
        reporter.event("one", "over", text)
        reporter.status("one", "waiting")
    reporter.close()
    assert [record.message for record in caplog.records] == [
        "cannot write to the terminal: Input/output error; games continue without"
    ]
    assert (tmp_path / "events").read_text().count("\n") == 3


def test_a_program_without_stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    reporter = Reporter(tmp_path / "events")
    reporter.event("one", "over", "won")
    reporter.close()
    assert (tmp_path / "events").read_text().count("\n") == 1


def test_a_connection_carries_lines_until_the_server_closes_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = Connection.open("127.0.0.1", server.getsockname()[1])
        link, _ = server.accept()
        with link:
            link.sendall(b"one\ntw")
            assert [line.text for line in connection.read()] == ["one"]
            connection.send("three")
            assert link.recv(100) == b"three\n"
        with pytest.raises(ConnectionLostError, match="the server has closed the connection"):
            connection.read()
        connection.close()


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("127.0.0.1", "Connection refused"),
        *((host, "this is no name of a host") for host in ("a..com", "a" * 70 + ".com")),
    ],
)
def test_a_server_that_cannot_be_reached(host: str, why: str) -> None:
    with pytest.raises(ConnectionLostError, match=re.escape(f"cannot connect to {host}:1: {why}")):
        Connection.open(host, 1)


def test_names_from_servers_cannot_control_the_terminal() -> None:
    stream = io.StringIO()
    reporter = Reporter(terminal=stream)
    reporter.event("me", "game", "against \x1b[2Jevil\nname")
    assert stream.getvalue().endswith("me: against \ufffd[2Jevil\ufffdname\n")
