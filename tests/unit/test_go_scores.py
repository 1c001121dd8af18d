"""Points of positions of Go by moving komi: where a winrate crosses one half, and the labels of a data set."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.naive.katago_networks import RandomNetworks
from yomi.engine.cli.main import main
from yomi.engine.evaluators.devices import CPU
from yomi.engine.go.datasets.dataset import GoDataOptions, make_go_dataset
from yomi.engine.go.datasets.games import Row
from yomi.engine.go.datasets.teacher import STAGES, KomiScorer, NetworkTeacher, crossing, fair_komi, parse_stages
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.sgf import to_sgf
from yomi.native.go.board import PASS
from yomi.nets.data.shards import check_shard, open_dataset
from yomi.nets.errors import NetworkError
from yomi.nets.katago.write import write_network

QUICK = ((10, 100), (4, 200), (2, 400))


class Curve:
    """Black's winrate as a curve around a fair komi."""

    def __init__(self, fair: float, spread: float = 8.0) -> None:
        self.fair, self.spread = fair, spread
        self.asked: list[tuple[int, float]] = []

    def __call__(self, playouts: int, komi: float) -> float:
        self.asked.append((playouts, komi))
        return 1.0 / (1.0 + math.exp((komi - self.fair) / self.spread))


def walled(columns: int) -> GoGame:
    """Return a board of 7×7 on which a wall gives Black so many columns."""
    game = GoGame(square(7), PRESETS["chinese"])
    for row in range(1, 8):
        game.play(1, row * 8 + columns)
        game.play(2, row * 8 + columns + 1)
    return game


def row_of(game: GoGame) -> Row:
    return Row(game.position, game.history, None, len(game.moves))


@pytest.mark.parametrize("fair", [-300.0, -12.3, 0.0, 6.6, 7.1, 88.8])
def test_komi_moves_until_it_is_fair(fair: float) -> None:
    curve = Curve(fair)
    found = fair_komi(curve, parse_stages(STAGES), 361)
    assert found == pytest.approx(fair, abs=0.05)
    assert all(komi % 1 == 0.5 for _, komi in curve.asked)
    assert [playouts for playouts, _ in curve.asked] == sorted(playouts for playouts, _ in curve.asked)
    # Each stage begins at the half point below what the one before has found, and ends where it has crossed.
    for (points, playouts), most in zip(parse_stages(STAGES), (40, 4, 4), strict=True):
        komis = [komi for asked, komi in curve.asked if asked == playouts]
        assert 2 <= len(komis) <= most
        assert set(np.abs(np.diff(komis))) == {points}
        assert (komis[-1] > fair) != (komis[-2] > fair)


def test_crossings_at_the_edges() -> None:
    assert crossing(lambda komi: 0.5, 6.5, 10, 49) == 6.5
    assert crossing(lambda komi: 1.0, 6.5, 10, 49) == 49.0
    assert crossing(lambda komi: 0.0, 6.5, 10, 49) == -49.0
    assert crossing(lambda komi: float(komi < 20.0), 6.5, 10, 49) == 21.5


def test_stages_are_read() -> None:
    assert parse_stages(STAGES) == ((10, 2000), (4, 20000), (2, 50000))
    for text in ("", "10", "10:", "0:5", "10:20,", "4:1e3"):
        with pytest.raises(NetworkError, match="expected POINTS:PLAYOUTS"):
            parse_stages(text)


@pytest.mark.parametrize("columns", [3, 5])
def test_rollouts_find_the_points(columns: int) -> None:
    game = walled(columns)
    scorer = KomiScorer(None, QUICK, 1)
    before = game.position.copy()
    assert scorer.black_lead(row_of(game)) == pytest.approx(7 * (2 * columns - 7), abs=1.5)
    assert game.position == before
    game.play(1, PASS)
    assert scorer.black_lead(row_of(game)) == pytest.approx(7 * (2 * columns - 7), abs=1.5)


def test_a_network_judges(tmp_path: Path) -> None:
    path = tmp_path / "net.bin"
    path.write_bytes(write_network(RandomNetworks(8, seed=2).network(["ordinary"])))
    teacher = NetworkTeacher(path, 1, CPU, "fp32", 1)
    try:
        found = KomiScorer(teacher, ((10, 8),), 1).black_lead(row_of(walled(4)))
    finally:
        teacher.close()
    assert abs(found) <= 49.0


@pytest.mark.parametrize("judge", ["rollouts", "network"])
def test_labels_do_not_depend_on_those_before(judge: str, tmp_path: Path) -> None:
    path = tmp_path / "net.bin"
    path.write_bytes(write_network(RandomNetworks(8, seed=1).network(["ordinary"])))
    teacher = NetworkTeacher(path, 1, CPU, "fp32", 1) if judge == "network" else None
    scorer = KomiScorer(teacher, ((10, 50),), 1)
    rows = [row_of(walled(columns)) for columns in (3, 4)]
    found = [scorer.black_lead(row) for row in rows]
    assert [scorer.black_lead(row) for row in reversed(rows)] == found[::-1]
    if teacher is not None:
        teacher.close()


@pytest.fixture
def records(tmp_path: Path) -> Path:
    folder = tmp_path / "games"
    folder.mkdir()
    for columns in (3, 5):
        (folder / f"{columns}.sgf").write_text(to_sgf(walled(columns), result="B+R"))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("features", ["katago-v7", "aya-50"])
def test_labels_of_a_set(records: Path, tmp_path: Path, features: str) -> None:
    options = GoDataOptions(
        features=features, positions=1, min_moves=5, test_share=0.5, shard_rows=1, seed=4, scores="rollouts"
    )
    scorer = KomiScorer(None, QUICK, 1)

    def make(scores: GoDataOptions = options) -> Path:
        folder = tmp_path / "set"
        make_go_dataset([records], folder, scores, None, lambda text: None, scorer)
        return folder

    dataset = open_dataset(make())
    assert len(dataset.shards) == 2
    for shard in dataset.shards:
        check_shard(shard, dataset.manifest.features, 50)
        columns = shard.open()
        # For the side to move, or for Black; without komi it is what the position is worth to it.
        lead = float(columns["lead"][0] - columns["komi"][0])
        assert columns["score_mean"][0] == columns["lead"][0]
        assert columns["value"][0] in (-1.0, 1.0)
        assert 0.5 < abs(lead) < 30.0
        assert abs(float(columns["komi"][0])) == pytest.approx(7.0, abs=0.6)
    lost, kept = (shard.path for shard in dataset.shards)
    before = (kept / "lead.npy").stat().st_mtime_ns
    shutil.rmtree(lost)
    make()
    assert (lost / "lead.npy").exists()
    assert (kept / "lead.npy").stat().st_mtime_ns == before
    with pytest.raises(NetworkError, match="options"):
        make(GoDataOptions(**{**vars(options), "scores": ""}))


def test_signs(records: Path) -> None:
    """Black leads by 21 points: White is behind by as much, komi aside."""
    scorer = KomiScorer(None, QUICK, 1)
    row = row_of(walled(5))
    columns = {name: np.zeros(2, np.float16) for name in ("lead", "score_mean")}
    scorer.label(row, 1.0, columns, 0)
    scorer.label(row, -1.0, columns, 1)
    komi = float(row.position["komi"])
    assert columns["lead"].tolist() == pytest.approx([21.0 - komi, komi - 21.0], abs=1.5)


def test_the_command(records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["dataset", "make", str(records), "--min-moves", "5", "--positions", "2", "--out", str(tmp_path / "set")]
    assert main([*words, "--score-search", "rollouts", "--score-stages", "10:20,2:40"]) == 0
    assert "rollouts 10:20,2:40" in capsys.readouterr().out
    cases = {
        ("--score-stages", "10:20"): "--score-stages without --score-search",
        ("--score-search", "rollouts", "--score-stages", "10"): "expected POINTS:PLAYOUTS",
        ("--score-search", str(tmp_path / "none.bin")): "none.bin",
        ("--score-search", "rollouts", "--features", "dlshogi-62-57"): "--positions is an option for Go: remove it",
    }
    for more, message in cases.items():
        assert main([*words, *more]) == 2
        assert message in capsys.readouterr().err
