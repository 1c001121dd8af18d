"""`yomi cgos` and `yomi floodgate` as processes, with other engines behind them, against servers on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.game_servers import CgosServer, CsaServer, FakeServer
from tests.process.engine_process import PATIENCE, ROOT
from tests.process.prepared import fresh, prepared
from yomi.engine.go.record_files import load_record
from yomi.engine.shogi.records.files import load_records

pytestmark = pytest.mark.slow

PASSWORD = "geheim-4711"
OTHER_PASSWORD = "verborgen-12"
"""Of an account on a server of the other protocol."""
GO_ENGINE = f"{sys.executable} -m tests.process.fake_engine 0.02"
SHOGI_ENGINE = f"{sys.executable} -m tests.process.fake_usi_engine 0.02"


class Process:
    """A client's process with its file of settings."""

    def __init__(
        self, folder: Path, server: FakeServer, *flags: str, engine: str = "", games: int = 0, start: Any = prepared
    ) -> None:
        is_go = isinstance(server, CgosServer)
        protocol, other = ("cgos", "csa") if is_go else ("csa", "cgos")
        self.folder = folder
        self.server = server
        self.settings = folder / "servers.toml"
        self.settings.write_text(
            f'[servers.home]\nprotocol = "{protocol}"\nhost = "127.0.0.1"\nport = {server.port}\n'
            f'[servers.other]\nprotocol = "{other}"\nhost = "127.0.0.1"\nport = 1\n'
            f'[accounts.other]\nserver = "other"\nuser = "yomi-2"\npassword_env = "YOMI_TEST_OTHER"\n'
            f'[accounts.one]\nserver = "home"\nuser = "yomi-1"\npassword_env = "YOMI_TEST_PASSWORD"\n'
            f'games = {games}\ncommand = "{engine or (GO_ENGINE if is_go else SHOGI_ENGINE)}"\n'
        )
        words = ("--events", str(folder / "events"), "--log-file", str(folder / "log"), "--log-level", "debug", *flags)
        self.process = subprocess.Popen(
            start("yomi", "cgos" if is_go else "floodgate", str(self.settings), *words),
            cwd=ROOT,
            env=os.environ | {"YOMI_TEST_PASSWORD": PASSWORD, "YOMI_TEST_OTHER": OTHER_PASSWORD},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def interrupt_twice(self) -> None:
        """Send the second Ctrl-C when the first was taken: two that wait become one."""
        self.process.send_signal(signal.SIGINT)
        self.server.wait(lambda: '"finish"' in (self.folder / "events").read_text())
        self.process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the status and all that was written."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out + err

    def everything(self) -> str:
        """Return the text of all files that it has written."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and path != self.settings]
        return "".join(path.read_text(errors="replace") for path in files)


@pytest.fixture(params=[CgosServer, CsaServer], ids=["cgos", "csa"])
def server(request: pytest.FixtureRequest) -> Iterator[FakeServer]:
    server = request.param(password=PASSWORD, games=100, plies=9, is_strict=False)
    yield server
    server.close()


def test_games_with_another_engine(server: FakeServer, tmp_path: Path) -> None:
    status, text = Process(tmp_path, server, games=2).end()
    assert status == 0, text
    assert server.errors == []
    assert len(server.results) == 2
    paths = sorted((tmp_path / "games" / "one").iterdir())
    if isinstance(server, CgosServer):
        assert [sum(node.move is not None for node in load_record(path).line()) for path in paths] == [9, 9]
        assert json.loads(server.analyses[0])["moves"]
    else:
        assert [len(load_records(path)[0].moves) for path in paths] == [9, 9]
        assert re.fullmatch(r"'\* -?[0-9]+( [+-][0-9]{4}[A-Z]{2})*", server.comments[0])
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert [event["event"] for event in events].count("over") == 2


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks at processes through /proc")
def test_the_password_is_nowhere_to_be_seen(server: FakeServer, tmp_path: Path) -> None:
    """Neither in files, nor in what is printed, nor in the list of processes; the engine does not even inherit it."""
    server.plies = 10_000
    client = Process(tmp_path, server, start=fresh)
    server.wait(lambda: len(server.moves) > 4, 60.0)  # type: ignore[attr-defined]
    assert PASSWORD in " ".join(server.received)
    ours, children = client.process.pid, []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if f"PPid:\t{ours}\n" in status.read_text():
                children.append(status.parent)
        except OSError:  # it has just ended
            continue
    assert len(children) == 1
    shown = [(path / "cmdline").read_bytes() for path in [Path(f"/proc/{ours}"), *children]]
    shown += [(path / "environ").read_bytes() for path in children]
    server.password = "changed"  # the server says what it was sent, and that it is wrong
    server.cut()
    server.wait(lambda: "refused" in (tmp_path / "events").read_text(), 60.0)
    client.interrupt_twice()
    _, text = client.end()
    assert PASSWORD.encode() not in b"".join(shown)
    assert OTHER_PASSWORD.encode() not in b"".join(shown)
    assert PASSWORD not in text
    assert PASSWORD not in client.everything()
    assert "********" in (tmp_path / "log").read_text()


def test_a_second_ctrl_c_leaves_at_once_and_takes_the_engine_with_it(server: FakeServer, tmp_path: Path) -> None:
    server.plies = 10_000
    client = Process(tmp_path, server)
    server.wait(lambda: len(server.moves) > 4, 60.0)  # type: ignore[attr-defined]
    client.interrupt_twice()
    status, text = client.end()
    assert status == 0, text
    assert "left during a game" in text
    assert len(list((tmp_path / "games" / "one").iterdir())) == 1


def test_an_engine_that_does_not_start(server: FakeServer, tmp_path: Path) -> None:
    status, text = Process(tmp_path, server, engine="/no/such/engine").end()
    assert status == 1
    assert "error: one: /no/such/engine: cannot be started" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--account", "two"], "--account two: expected one of one"),
        (
            ["--games", "0"],
            "argument --games: expected an integer of at least 1, or none, found 0 (see yomi cgos --help)",
        ),
        (["--log-file", "/no/such/folder/log"], "--log-file /no/such/folder/log: No such file or directory"),
        (["--events", "/no/such/folder/events"], "/no/such/folder/events: No such file or directory"),
    ],
)
def test_mistakes_on_the_command_line(tmp_path: Path, flags: list[str], message: str) -> None:
    server = CgosServer(games=0)
    status, text = Process(tmp_path, server, *flags).end()
    server.close()
    assert (status, text) == (2, f"yomi: error: {message}\n")
