"""How compiling shows its progress."""

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until
from yomi.engine.cli.main import main
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.options import Options, Value
from yomi.engine.registry import GAMES
from yomi.native import precompile
from yomi.native.kernel_groups import NAMES
from yomi.native.precompile import Display, Progress, Waiting
from yomi.nets.models import FOR_ALPHA_BETA, default_network, network_of_levels
from yomi.time_left import TimeLeft, duration


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(precompile, "time", clock)
    return clock


def test_the_time_left_follows_the_speed_of_the_machine(clock: Clock) -> None:
    progress = Progress({"a": 20.0, "b": 10.0, "c": 10.0}, 2)
    progress.begin("a")
    progress.begin("b")
    clock.now = 10.0
    assert progress.left() is None  # nothing is measured yet
    clock.now = 20.0
    progress.finish("b")  # 10 s took 20 s: from now on, all takes twice as long
    progress.begin("c")
    assert progress.left() == 2 * 10.0
    progress.finish("a")
    progress.finish("c")
    assert progress.left() == 0.0


def test_a_group_that_takes_longer_than_expected_shows_a_slow_machine(clock: Clock) -> None:
    progress = Progress({"a": 20.0, "b": 10.0, "c": 10.0}, 1)
    progress.begin("c")
    clock.now = 10.0
    progress.finish("c")
    progress.begin("a")
    clock.now = 210.0
    assert progress.left() == pytest.approx((1.0 + 10.0) * 10)


def test_reports_of_the_time_left_grow_at_most_once_in_a_row() -> None:
    """The figures of a busy machine: 20 s, 41 s, 61 s, 3 min."""
    left = TimeLeft()
    assert [left.report(seconds) for seconds in (None, 20, 41, 61, 180, 170, 175, 160)] == [
        None, 20, 41, None, None, 170, 175, 160,
    ]  # fmt: skip


def test_a_process_stays_with_its_package() -> None:
    waiting = Waiting(["tree-gather", "tree", "forward", "go-planes", "go-rules"])
    assert [waiting.take(None), waiting.take(None)] == ["tree-gather", "forward"]
    assert waiting.take("tree-gather") == "tree"  # though go-planes takes longer
    assert waiting.take("forward") == "go-planes"
    assert waiting.take("tree") == "go-rules"  # better than to wait
    assert waiting.take("go-rules") is None


def test_lines_come_every_15_seconds(clock: Clock) -> None:
    lines: list[str] = []
    display, progress = Display(lines.append), Progress({"a": 30.0, "b": 20.0}, 1)
    progress.begin("b")
    for second in range(40):
        clock.now = float(second)
        if second == 20:
            progress.finish("b")
            progress.begin("a")
        display.show(progress)
    assert lines == ["compiling: 0%", "compiling: 40%, about 20 s left"]
    assert display.close() == 39.0


def test_a_terminal_gets_a_bar_that_never_goes_back(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, terminal = list[str](), Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    display, progress = Display(lines.append), Progress({"a": 20.0, "b": 20.0}, 1)
    progress.begin("a")
    shown = []
    for second in range(0, 40, 4):
        clock.now = float(second)
        if second == 20:
            progress.finish("a")
            progress.begin("b")
        display.show(progress)
        shown.append(display._bar.n)
    assert shown == sorted(shown)
    assert shown[-1] == 50
    assert "left" in terminal.getvalue()
    assert "%" in terminal.getvalue()
    display.close()
    assert terminal.getvalue().endswith("\r")  # the bar is gone
    assert not lines


def test_times_are_short() -> None:
    assert [duration(seconds) for seconds in (0.0, 40.4, 89.0, 150.0, 5400.0)] == [
        "1 s",
        "40 s",
        "1 min",
        "2 min",
        "1.5 h",
    ]


@pytest.fixture
def fake_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Compile nothing, but report and mark the groups as compiling processes do; return the cache."""
    script = (
        "import sys; from yomi.native import precompile; "
        "precompile.GROUPS = {name: precompile.GROUPS[name].__class__(lambda: None, group.packages, 1.0) "
        "for name, group in precompile.GROUPS.items()}; precompile.main(sys.argv[1:])"
    )
    popen = subprocess.Popen

    def start(command: list[str], **how: Any) -> subprocess.Popen[bytes]:
        return popen([sys.executable, "-c", script, *command[command.index("yomi.native.precompile") + 1 :]], **how)

    monkeypatch.setattr(precompile, "CACHE_DIRECTORY", tmp_path / "kernels")
    (tmp_path / "kernels").mkdir(mode=0o700)
    monkeypatch.setattr(precompile, "_background", [])  # an earlier test may have begun the one background process
    monkeypatch.setattr(subprocess, "Popen", start)
    yield tmp_path / "kernels"
    for process in precompile._background:
        with process:  # closes its stdin, which ends it
            pass


def test_lines_elsewhere_are_two_if_it_is_quick(fake_compiler: Path) -> None:
    lines: list[str] = []
    precompile.compile_names(["go"], lines.append)
    assert len(lines) == 2
    assert lines[0].startswith("compiling the engine for go. This happens again after an update")
    assert lines[1].startswith("compiled in ")
    precompile.compile_names(["go"], lines.append)
    assert len(lines) == 2
    assert not precompile.is_compiled("go-more")


@pytest.mark.slow
@pytest.mark.parametrize(("words", "games"), [("go", ["go"]), ("all", ["go", "shogi"]), ("", ["go", "shogi"])])
def test_setup_compiles_a_game(
    words: str, games: list[str], fake_compiler: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["setup", *words.split()]) == 0
    groups = {group for game in games for part in ("", "-more", "-learning") for group in NAMES[game + part]}
    assert {path.name.rpartition("-")[0] for path in fake_compiler.glob("*.complete")} == groups
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 2
    assert captured.out.endswith("ready to play\n")
    assert main(["setup", *words.split()]) == 0
    assert capsys.readouterr() == (captured.out.replace("ready to play", "everything is compiled"), "")


@pytest.mark.slow
def test_what_the_first_game_does_not_need_is_compiled_in_the_background(fake_compiler: Path) -> None:
    lines: list[str] = []
    GO.compile(lines.append, everything=False)
    assert precompile.is_compiled("go")
    wait_until(lambda: precompile.is_compiled("go-more"))
    assert len(lines) == 2
    (process,) = precompile._background
    assert process.wait(300.0) == 0


@pytest.mark.parametrize(
    ("game", "changes", "names"),
    [
        ("go", {}, ["go"]),
        ("go", {"net": "fast"}, ["go"]),
        ("go", {"net": str(network_of_levels("go"))}, ["go"]),  # as a level sets it
        ("go", {"evaluator": "rollouts"}, ["go", "go-more"]),
        ("go", {"net": "other.bin.gz"}, ["go", "go-more"]),
        ("shogi", {}, ["shogi-alphabeta"]),
        (
            "shogi",
            {"net": str(default_network("shogi").with_name(FOR_ALPHA_BETA["shogi"]))},
            ["shogi-alphabeta"],
        ),  # as a review sets it
        ("shogi", {"visits": 10}, ["shogi"]),
        ("shogi", {"net": "yomi-shogi-6x64"}, ["shogi", "shogi-more"]),  # its forward pass is no first kernel of shogi
    ],
)
def test_a_bundled_network_waits_only_for_its_own_kernels(
    game: str, changes: dict[str, Value], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[str] = []
    monkeypatch.setattr(precompile, "compile_names", lambda names, _: waited.extend(names))
    monkeypatch.setattr(precompile, "compile_later", lambda names: None)
    GAMES[game].prepare(Options.for_game(game).with_values({"device": "cpu", **changes}), print)
    assert waited == names


def test_games_are_named_without_the_parts_of_their_kernels(fake_compiler: Path) -> None:
    lines: list[str] = []
    precompile.compile_names(["go", "go-more", "shogi-learning"], lines.append)
    assert lines[0].startswith("compiling the engine for go and shogi. This happens again")


def test_setup_knows_its_games(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "chess"]) == 2
    assert "invalid choice: 'chess'" in capsys.readouterr().err
