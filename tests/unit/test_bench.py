"""Benchmarks of both games: their positions, command lines, and short runs."""

import contextlib
import itertools
import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.fakes.evaluators import ScriptedEvaluator
from tests.process.match_process import scripted
from yomi.bench import cli, handoff, measure, nps, parts, selfplay
from yomi.bench.nps import SUMMARIES, close_rivals, column, open_rivals, percent, visits_of
from yomi.engine.cli.main import main
from yomi.engine.cli.parser import CliError
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.go.networks import RolloutEvaluator
from yomi.engine.go.players import setup as go_setup
from yomi.engine.go.players.setup import go_positions, go_subject
from yomi.engine.learning.workers import Delivery
from yomi.engine.options import Options
from yomi.engine.registry import GAMES, GO
from yomi.engine.search.types import SearchSettings
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.networks import MaterialEvaluator
from yomi.engine.shogi.players import setup as shogi_setup
from yomi.engine.shogi.players.setup import shogi_positions, shogi_subject
from yomi.native.go.planes import policy_index
from yomi.native.shogi.spec import shogi_spec
from yomi.native.spec import Inputs
from yomi.native.tree.buffers import make_batch


def test_positions_go_on() -> None:
    games = shogi_positions()
    assert len({game.sfen() for game in games}) == len(games) >= 5
    assert all(game.outcome() is None for game in games)
    assert not games[0].moves
    for size in (5, 9, 13, 19):
        assert not any(game.is_over for game in go_positions(size))


def test_subjects() -> None:
    assert (go_subject(9).name, go_subject(9).spec.name) == ("9x9", "go")
    subject = shogi_subject(shogi_spec(1, 1), 3)
    assert subject.spec.planes_shape == (45, 9, 9)
    assert {(int(game.position["form"]), int(game.position["mate_depth"])) for game in subject.games} == {(1, 3)}


def test_a_simulated_gpu_computes_one_batch_at_a_time() -> None:
    rows = handoff.run([go_subject(5), shogi_subject()], 4, 1.0, 1, 2, 0.05)
    assert {row["game"] for row in rows} == {"5x5", "shogi"}
    for row in rows:
        assert 0.0 < row["share"] <= 1.05, "no more batches than one each millisecond"
        assert 1.0 <= row["rows_per_batch"] <= 4.0


def test_the_tree_is_measured_for_both_games() -> None:
    rows = parts.tree([go_subject(5), shogi_subject()], 300, [1])
    assert [(row["game"], row["inputs"]) for row in rows] == [
        ("5x5", "nothing"),
        ("5x5", "numbers"),
        ("5x5", "bits"),
        ("shogi", "nothing"),
        ("shogi", "numbers"),
        ("shogi", "bits"),
    ]
    assert all(row["playouts_per_second"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tree", "--sizes", "25"], "--sizes: expected an integer from 2 to 19, found 25"),
        (["rollouts", "--sizes", "0"], "--sizes: expected an integer from 2 to 19, found 0"),
        (["tree", "--workers", "0"], "--workers: expected an integer from 1 to 1000000000, found 0"),
        (["nets", "--workers", "-1"], "--workers: expected an integer from 1 to 1000000000, found -1"),
    ],
)
def test_numbers_that_cannot_be(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("benchmark", ["nps", "evaluator"])
def test_shogi_from_the_command_line(
    benchmark: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("yomi.native.precompile.compile_names", lambda names, report: None)
    path = tmp_path / "rows.json"
    words = [benchmark, "shogi", "--for", "0.02", "--workers", "1", "--json", str(path)]
    words += ["--memory", "16M"] if benchmark == "nps" else []
    assert main(["bench", *words, "--evaluator", "material"]) == 0
    rows = json.loads(path.read_text())["results"]
    assert len(rows) == (10 if benchmark == "nps" else 6)
    assert "per_second" in capsys.readouterr().out


@pytest.mark.parametrize(("game", "size"), [("go", 13), ("shogi", 9)])
@pytest.mark.parametrize("benchmark", ["nps", "evaluator"])
def test_the_search_is_as_it_was_tuned(
    benchmark: str, game: str, size: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, used = Options(workers=7), []

    def tuned(options: Options, game: str, size: int) -> Options:
        used.append((game, size))
        return found

    def run(options: Options, *_: Any) -> Any:
        used.append(options)
        return ([], []) if benchmark == "nps" else []

    monkeypatch.setattr("yomi.native.precompile.compile_names", lambda names, report: None)
    monkeypatch.setattr(cli, "tuned", tuned)
    monkeypatch.setattr(*((nps, "run") if benchmark == "nps" else (parts, "evaluator")), run)
    words = [benchmark, game, "--evaluator", "uniform"]
    assert main(["bench", *words, *(["--size", str(size)] if game == "go" else [])]) == 0
    assert used == [(game, size), found]
    assert "(no results)" in capsys.readouterr().out


def batch_of(evaluator: Any, subject: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a batch of nine rows of the last position, as it was evaluated alone."""
    made = []

    def note(*args: Any, **how: Any) -> Any:
        made.append(make_batch(*args, **how))
        return made[-1]

    monkeypatch.setattr(measure, "make_batch", note)
    assert measure.evaluator_rate(InlineQueue(evaluator), subject, subject.games[-1], 9, 1, 0.01) > 0
    return made[0]


@pytest.mark.parametrize("game", ["go", "shogi"])
def test_the_evaluator_alone_computes_priors(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = go_subject(9) if game == "go" else shogi_subject()
    evaluator = RolloutEvaluator(seed=1) if game == "go" else MaterialEvaluator()
    batch = batch_of(evaluator, subject, monkeypatch)
    legal = subject.games[-1].legal_moves()  # type: ignore[attr-defined]
    for row in range(9):
        assert batch.moves[row, : batch.move_count[row]].tolist() == legal
        places = batch.indices[row, : len(legal)]
        assert len(set(places.tolist())) == len(legal)
        assert np.count_nonzero(batch.logits[row]) == np.count_nonzero(batch.logits[row, places]) > len(legal) / 2


@pytest.mark.parametrize("evaluator", [UniformEvaluator(), ScriptedEvaluator()])  # with calls, and without
def test_something_is_counted_in_no_time(evaluator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(work: Any, threads: int, seconds: float) -> float:
        stop = threading.Event()
        stop.set()
        return float(sum(work(stop)))

    monkeypatch.setattr(measure, "run_threads", run)
    subject = go_subject(5)
    assert measure.evaluator_rate(InlineQueue(evaluator), subject, subject.games[0], 4, 1, 1.0) == 4.0


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [Inputs.NUMBERS, Inputs.BITS])
def test_moves_stand_under_the_symmetry_of_the_planes(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(UniformEvaluator(inputs=inputs), go_subject(9), monkeypatch)
    assert batch.symmetry.tolist() == [*range(8), 0]
    for row in range(9):
        moves, indices = (array[row, : batch.move_count[row]] for array in (batch.moves, batch.indices))
        assert indices.tolist() == [policy_index(9, 9, int(move), int(batch.symmetry[row])) for move in moves]


@pytest.mark.parametrize(
    ("batch_size", "symmetry", "sizes"),
    [
        (1, "random", [1, 2, 4, 8, 16, 32]),
        (48, "random", [1, 2, 4, 8, 16, 32, 48]),
        (128, "random", [1, 2, 4, 8, 16, 32, 64, 128]),
        (3, "average", [1, 2, 4, 8, 16, 32]),
    ],
)
def test_batches_of_the_search_are_tried(batch_size: int, symmetry: str, sizes: list[int]) -> None:
    settings = SearchSettings(symmetry=symmetry)
    assert measure.batch_sizes(InlineQueue(UniformEvaluator(batch_size)), settings) == sizes


def test_the_evaluator_alone_has_as_many_batches_as_in_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []

    def rate(queue: Any, subject: Any, game: Any, rows: int, threads: int, seconds: float, in_flight: int = 1) -> float:
        asked.append((rows, threads, in_flight))
        return float(rows)

    monkeypatch.setattr(measure, "evaluator_rate", rate)
    monkeypatch.setattr(nps, "evaluator_rate", rate)
    options = Options(evaluator="uniform", size=5, workers=2, batch_size=64, batches_in_flight=3, memory=2**24)
    rows, _ = nps.run(options, 0.02, GO)
    assert {each[1:] for each in asked} == {(2, 3)}
    assert asked[-1][0] == 64
    assert rows[0]["evaluator_per_second"] == 64.0


@pytest.mark.slow
@pytest.mark.parametrize("game", ["go", "shogi"])
def test_nps_against_other_engines(
    game: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("yomi.native.precompile.compile_names", lambda names, report: None)
    path = tmp_path / "rates.csv"
    words = ["nps", game, "--for", "0.1", "--workers", "1", "--memory", "16M", "--evaluator", "uniform"]
    words += ["--size", "5"] if game == "go" else []
    rival = scripted("gtp" if game == "go" else "usi", "fine", name="other")
    assert main(["bench", *words, "--against", rival, "--against", rival, "--csv", str(path)]) == 0
    text = capsys.readouterr().out
    kind = "descended" if game == "go" else "own count"
    assert f"other ({kind})" in text
    assert f"other-2 ({kind})" in text
    assert "yomi descended/other" in text
    assert re.search(r"^median  [0-9.]+% \(", text, re.MULTILINE)
    lines = path.read_text().splitlines()
    assert lines[0] == "position,engine,per_second"
    assert len(lines) == 1 + 5 * (1 if game == "go" else 6)
    assert float(lines[-1].split(",")[2]) > 10  # 1,000 nodes in 0.1 s, or as long as a busy machine takes


def test_files_that_cannot_be_written_are_refused_before_the_measurement(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for flag, file, why in (
        ("--csv", tmp_path, f"{tmp_path}: Is a directory"),
        ("--json", tmp_path / "missing" / "rows.json", f"{tmp_path / 'missing'}: No such file or directory"),
    ):
        assert main(["bench", "nps", "--evaluator", "uniform", flag, str(file)]) == 2
        assert capsys.readouterr() == ("", f"yomi: error: {why}\n")


@pytest.mark.slow
@pytest.mark.parametrize("lost", [("json",), ("csv",), ("plot",), ("json", "csv", "plot")])
def test_a_file_that_cannot_be_written_loses_no_other(
    lost: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("yomi.native.precompile.compile_names", lambda names, report: None)
    for name in ("check_file", "plot_check"):  # the folder goes during the measurement
        monkeypatch.setattr(cli, name, lambda path: None)
    names = {"json": "rows.json", "csv": "rates.csv", "plot": "rates.png"}
    paths = {kind: (tmp_path / "missing" if kind in lost else tmp_path) / name for kind, name in names.items()}
    words = ["nps", "--size", "5", "--for", "0.02", "--workers", "1", "--memory", "16M", "--evaluator", "uniform"]
    assert main(["bench", *words, *(word for kind, path in paths.items() for word in (f"--{kind}", str(path)))]) == 2
    assert [kind for kind, path in paths.items() if not path.exists()] == list(lost)
    error = capsys.readouterr().err.splitlines()[-1]  # after the rates
    assert error.startswith("yomi: error: ")
    assert all(str(paths[kind]) in error for kind in lost)


class Closable:
    """An evaluation queue, or another engine, that notes its end."""

    name, counting = "other", "own count"

    def __init__(self) -> None:
        self.evaluator = UniformEvaluator()
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def too_much(*_: Any) -> Any:
    raise MemoryError


@pytest.mark.parametrize("game", ["go", "shogi"])
@pytest.mark.parametrize("fails", ["settings", "rivals", "search"])
def test_what_was_started_is_closed_where_setting_up_fails(
    fails: str, game: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, rival, setup = Closable(), Closable(), go_setup if game == "go" else shogi_setup
    monkeypatch.setattr(setup, "make_queue", lambda *_, **how: queue)
    expected: type[Exception] = MemoryError
    if fails == "rivals":
        expected = CliError
    else:
        monkeypatch.setattr(nps, "open_rivals", lambda *_: [rival])
        monkeypatch.setattr(*((setup, "search_settings") if fails == "settings" else (nps, "Search")), too_much)
    with pytest.raises(expected):
        nps.run(Options(size=5, evaluator="uniform"), 0.02, GAMES[game], ["no such engine"])
    assert queue.is_closed == rival.is_closed == (fails != "rivals")


def test_shogi_by_time_is_measured_in_nodes_of_alpha_beta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shogi_setup, "shogi_positions", lambda: [ShogiGame(), ShogiGame()])
    options = Options.for_game("shogi").with_values({"device": "cpu", "workers": 1, "memory": 2**20})
    rows, _ = nps.run(options, 0.05, GAMES["shogi"])
    assert [row["position"] for row in rows] == ["1", "2", *SUMMARIES]
    assert all(row["moves_per_second"] > 1000 for row in rows)
    assert "evaluator_per_second" not in rows[0]


def test_no_rival_is_called_yomi() -> None:
    rivals = open_rivals([scripted("gtp", "fine", name="yomi"), scripted("gtp", "fine", name="yomi-2")], "go")
    close_rivals(rivals)
    assert [column(rival) for rival in rivals] == ["yomi-2 (descended)", "yomi-2-2 (descended)"]


def test_ratios_are_written_as_in_the_fields_tables() -> None:
    assert [percent(ratio) for ratio in (0.2394, 0.0032, 2.1797)] == [
        "23.94% (1/4.2)",
        "0.32% (1/312)",
        "217.97% (2.2)",
    ]


def test_visits_in_the_lines_of_an_analysis() -> None:
    assert visits_of("info move D4 visits 7 order 0 info move C3 visits 5 order 1") == 12
    assert visits_of("info move D4 visits 7 order 0 rootInfo winrate 0.5 visits 9") == 9
    assert visits_of("= ") is None


def test_an_engine_that_cannot_be_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("yomi.native.precompile.compile_names", lambda names, report: None)
    words = ["nps", "--size", "5", "--for", "0.02", "--workers", "1", "--evaluator", "uniform"]
    assert main(["bench", *words, "--against", scripted("gtp", "dead")]) == 2
    assert "--against dead: exited with status 1; stderr: no such network" in capsys.readouterr().err
    assert main(["bench", *words, "--against", f"{scripted('gtp', 'fine')} visits=7"]) == 2  # its own limits hold
    assert "--against fine: scripted fine  knows no command for visits" in capsys.readouterr().err


def test_a_plot_without_matplotlib(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["bench", "nps", "--plot", str(tmp_path / "x.png")]) == 2
    assert "a picture needs matplotlib, which is not installed: " in capsys.readouterr().err


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_networks_for_shogi_without_onnx(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("yomi.native.precompile.compile_names", lambda names, report: None)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["bench", "nets", "--sizes", "1x4", "--for", "0.1"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"yomi: error: this benchmark needs {package}, which is not installed: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("benchmark", ["perft", "mate"])
def test_without_cshogi_nothing_is_compared(
    benchmark: str,
    is_there: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("yomi.native.precompile.compile_names", lambda names, report: None)
    if not is_there:
        monkeypatch.setitem(sys.modules, "cshogi", None)
    problems = tmp_path / "problems.sfen"
    problems.write_text("4k4/9/4P4/9/9/9/9/9/4K4 b G 1\n")
    words = ["perft", "--depth", "2"] if benchmark == "perft" else ["mate", str(problems)]
    assert main(["bench", *words, "--json", str(tmp_path / "rows.json")]) == 0
    row = json.loads((tmp_path / "rows.json").read_text())["results"][-1]
    own = {"depth": 2, "leaves": 900} if benchmark == "perft" else {"problems": 1, "solved": 1, "plies": 1.0}
    assert own.items() <= row.items()
    compared = [value for name, value in row.items() if name.startswith("cshogi") or name == "ratio"]
    assert [value is not None for value in compared] == [is_there] * len(compared)
    assert ("pip install cshogi" in capsys.readouterr().err) is not is_there


@pytest.mark.parametrize("game", ["go", "shogi"])
@pytest.mark.parametrize(
    ("benchmark", "offered", "left_out"),
    [
        ("nps", "net evaluator device precision workers memory cache-size c-puct policy-temperature", "root-noise"),
        ("evaluator", "net evaluator device devices backend precision workers batch-size", "memory c-puct"),
        ("precision", "net device backend precision", "evaluator workers memory c-puct"),
    ],
)
def test_only_options_that_matter_are_offered(
    benchmark: str, offered: str, left_out: str, game: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["bench", benchmark, game, "--help-all"])
    flags = set(re.findall(r"^  --(?:\[no-\])?([a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    flags |= {"size"} if game == "shogi" else set()
    assert {*offered.split(), "size", "json", "config"} <= flags
    assert "game" not in flags
    play = "visits seconds lag ponder resign-threshold temperature-moves cleanup own-book max-moves komi multipv"
    assert not flags & {*left_out.split(), *play.split()}


def test_the_game_of_a_benchmark_may_follow_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def check(args: Any) -> None:
        found.append(args.game)
        raise CliError("enough")

    monkeypatch.setattr(cli, "_check_devices", check)
    assert main(["bench", "nps", "--for", "1", "shogi"]) == 2
    assert found == ["shogi"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nps chess", "invalid choice: 'chess'"),
        ("nps shogi --komi 7", "unrecognized arguments: --komi"),
        ("nps --net yomi-shogi-6x64 --komi 7", "unrecognized arguments: --komi"),
        ("nps --game shogi", "unrecognized arguments: --game shogi"),
        ("choices go --judge yomi:visits=1 --positions x", "no PLAYER after the game"),
        ("nps --entering-king 27", "unrecognized arguments: --entering-king"),
        ("tree --mate-depth 2", "invalid choice: 2"),
    ],
)
def test_wrong_command_lines(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_threads_count_until_time_is_up() -> None:
    ended = []

    def work(stop: threading.Event) -> Iterator[int]:
        yield 10**9  # only says that it is ready
        yield 40
        stop.wait()
        yield 60
        ended.append(threading.get_ident())

    rate = measure.run_threads(work, 2, 0.1)
    assert len(ended) == 2
    assert 0.0 < rate <= 200 / 0.1


@pytest.mark.parametrize("prepared", [False, True])
def test_a_thread_that_fails_ends_the_counting(prepared: bool) -> None:
    turns = itertools.count()

    def work(stop: threading.Event) -> Iterator[int]:
        fails = next(turns) == 1
        if fails and not prepared:
            raise OSError("lost")
        yield 0
        if fails:
            raise OSError("lost")
        while not stop.wait(0.01):
            yield 1

    with pytest.raises(OSError, match="lost"):
        measure.run_threads(work, 2, 600.0)


def test_self_play_ends_when_time_is_up(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A clock of our own: `take` and the evaluator need the time that they may take, starting a process needs 2 s."""
    clock = [0.0]

    class Processes:
        def __init__(self, *_: object) -> None:
            clock[0] += 2.0

        def use(self, task: object) -> None: ...

        def close(self) -> None: ...

        def take(self, seconds: float) -> list[Delivery]:
            clock[0] += seconds
            return [Delivery([], 50)]

    def rate(*arguments: Any) -> float:
        clock[0] += arguments[-1]
        return 1000.0

    monkeypatch.setattr(selfplay, "process_workers", Processes)
    monkeypatch.setattr(selfplay, "evaluator_rate", rate)
    monkeypatch.setattr(selfplay, "batch_sizes", lambda *_: [8, 32])
    monkeypatch.setattr(selfplay, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    subject, settings = SimpleNamespace(games=[None]), SimpleNamespace(workers=1)
    game: Any = SimpleNamespace(benchmark_setup=lambda options: contextlib.nullcontext((subject, None, settings)))
    options = Options(evaluator="uniform", size=5, workers=1)
    for seconds, measured in ((60.0, [8, 16, 32, 64]), (8.0, [8, 16])):
        clock[0] = 0.0
        assert [row["games"] for row in selfplay.run(options, seconds, game)] == measured
        assert clock[0] <= seconds + 2.0
        told = capsys.readouterr().err
        assert all(f"self-play: {games} games side by side" in told for games in measured)
        assert ("no time was left for 32 and 64 games" in told) == (len(measured) == 2)
    clock[0] = 0.0
    with pytest.raises(CliError, match="--for 1: the processes have not played in this time"):
        selfplay.run(options, 1.0, game)
