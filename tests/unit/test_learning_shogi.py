"""Shogi in the learning loop: openings, forks, two generations of a tiny network, and what is left of their games."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from yomi.engine.cli.main import main
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.learning.store import Store
from yomi.engine.options import Options
from yomi.engine.play import DECLARATION, MAX_MOVES, Ended
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.records.files import load_records, read_records
from yomi.engine.shogi.records.packed import read_hcpe3
from yomi.engine.shogi.records.record import GameRecord
from yomi.engine.shogi.selfplay import LearnableShogi
from yomi.nets.data.shards import open_dataset
from yomi.nets.files import write_atomically
from yomi.settings import OptionError

OPENINGS = """\
startpos moves 7g7f 3c3d 2g2f
sfen lnsgkgsnl/1r5b1/ppppppppp/9/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL w - 12 moves 3c3d
"""
NETWORKS = {
    "dlshogi-resnet": "blocks = 1\nchannels = 4\nhidden = 8\n",
    "sparse-shogi": 'value = 128\npolicy = 128\n[training]\noptimizer = "adamw"\n',
}
WORDS = (
    "--processes 0 --networks 2 --rows 40 --window 60 --batch 16 --passes 0.4 --at-once 6 --visits 8 --cheap-visits 3"
)
MORE = "--max-moves 24 --ladder 2 --ladder-every 2 --match-visits 3 --surprise 0 --forks 0.4 --full-share 0.5"


@pytest.fixture
def shogi() -> LearnableShogi:
    """Give shogi with the openings above and games of at most 8 moves."""
    return LearnableShogi(replace(Options.for_game("shogi"), max_moves=8), read_records(OPENINGS))


def test_games_begin_with_openings_and_begin_so_again(shogi: LearnableShogi) -> None:
    rng = np.random.default_rng(1)
    games = [shogi.new_game(rng, 0.0) for _ in range(20)]
    assert {len(game.moves) for game in games} == {3, 1}
    for game in games:
        assert game.ply == len(game.moves)
        assert game.position["mate_depth"] == 3
        opening = list(game.moves)
        game.push(parse_usi("8c8d" if game.side_to_move == WHITE else "1g1f"))
        again = shogi.restart(game)
        assert again.moves == opening
        assert shogi.restart(again).sfen() == again.sfen()


def test_games_end_by_declaration_and_by_the_limit_of_moves(shogi: LearnableShogi) -> None:
    game = shogi.new_game(np.random.default_rng(1), 0.0)
    while game.ply < 8:
        assert shogi.judge(game) is None
        game.push(game.legal_moves()[0])
    assert shogi.judge(game) == Ended(DRAW, MAX_MOVES)
    declared = read_records("KGGGGSSSS/9/NNNN5/9/9/9/9/9/4k4 b 2R2B8P 1")
    shogi = LearnableShogi(Options.for_game("shogi"), declared)
    assert shogi.judge(shogi.new_game(np.random.default_rng(1), 0.0)) == Ended(BLACK, DECLARATION)


def test_an_opening_with_an_illegal_move_is_refused() -> None:
    record = GameRecord()
    (line,) = read_records("sfen 7nk/9/7G1/9/9/9/9/9/K8 b P 1 moves P*1b")  # mates with a pawn
    with pytest.raises(OptionError, match="has an illegal move"):
        LearnableShogi(Options.for_game("shogi"), [record, line])


@pytest.fixture(scope="module", params=NETWORKS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a run of two generations."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("learn")
    (folder / "net.toml").write_text(f'[network]\nkind = "{request.param}"\n{NETWORKS[request.param]}')
    (folder / "openings.sfen").write_text(OPENINGS)
    files = ["--out", str(folder / "run"), "--network", str(folder / "net.toml")]
    files += ["--openings", str(folder / "openings.sfen")]
    assert main(["learn", "shogi", *WORDS.split(), *MORE.split(), *files]) == 0
    return folder / "run"


def test_two_generations(run: Path) -> None:
    state = json.loads((run / "state.json").read_text())
    assert (state["generation"], state["trained_rows"] >= 80) == (2, True)
    settings = json.loads((run / Store.SETTINGS).read_text())
    assert settings["openings"].startswith("openings.sfen ")
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    assert [each["against"] for each in events if each["event"] == "match"][:2] == ["uniform", "material"]
    records = [record for path in sorted((run / "games").iterdir()) for record in load_records(path)]
    assert all(record.winner is not None for record in records)
    assert all(1 <= len(record.moves) <= 24 for record in records)
    begun = {tuple(note.move for note in record.moves[:3]) for record in records}
    assert tuple(map(parse_usi, ["7g7f", "3c3d", "2g2f"])) in begun
    assert len(begun) > 1


def test_a_network_that_learns_on_is_searched_as_it_was_tuned(run: Path, tmp_path: Path) -> None:
    (last, *_) = (run / "networks").iterdir()
    if last.suffix != ".safetensors":
        pytest.skip("networks of this kind begin with none")
    start = tmp_path / "start.safetensors"
    start.write_bytes(last.read_bytes())
    Path(f"{start}.ini").write_text("C_init=60\nC_fpu_reduction=30\nEval_Coef=300\n")
    file = tmp_path / "net.toml"
    file.write_text(f'[network]\nkind = "sparse-shogi"\nstart = "{start.name}"\n[training]\noptimizer = "adamw"\n')
    words = [*WORDS.replace("--networks 2", "--networks 0").split(), "--fpu-reduction", "0.1"]
    assert main(["learn", "shogi", *words, "--out", str(tmp_path / "run"), "--network", str(file)]) == 0
    settings = json.loads((tmp_path / "run" / Store.SETTINGS).read_text())
    assert (settings["c_puct"], settings["fpu_reduction"]) == (1.2, 0.1)


def test_rows_are_what_the_records_make_of_them(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = open_dataset(run / "rows")
    assert main(["dataset", "check", str(run / "rows")]) == 0
    rows = dataset.rows("train")
    assert f"{rows} positions replayed from their records" in capsys.readouterr().out
    learned = sum(
        bool(note.counts)
        for path in (run / "games").iterdir()
        for record in load_records(path)
        for note in record.moves
    )
    assert learned == rows  # without surprise each position is written once


def test_records_become_hcpe3(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "games.hcpe3"
    assert main(["dataset", "convert", str(run / "games"), str(target)]) == 0
    records = [record for path in sorted((run / "games").iterdir()) for record in load_records(path)]
    assert capsys.readouterr().out == f"{len(records)} games written to {target}\n"
    for record, again in zip(records, read_hcpe3(target.read_bytes()), strict=True):
        assert again.winner == record.winner
        assert [note.counts for note in again.moves] == [note.counts for note in record.moves]


def test_faults_are_told(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shard, *_) = open_dataset(run / "rows").shards
    columns = {name: np.array(column) for name, column in shard.open().items()}
    board = "planes" if columns["planes"].size else "levels"
    columns[board][0, 20] ^= 1
    columns["globals"][1, 3] = 0.5
    columns["value"][2] = 0.25
    columns["policy_moves"][3, 0] = 2186  # a rook dropped on a corner
    columns["game"][4] = 999
    columns["ply"][5] = 600
    folder = tmp_path / "rows"
    for name, array in columns.items():
        (folder / shard.path.name).mkdir(parents=True, exist_ok=True)
        np.save(folder / shard.path.name / f"{name}.npy", array)
    for path in (run / "rows" / "manifest.json", shard.path / "shard.json"):
        write_atomically(folder / path.relative_to(run / "rows"), path.read_bytes())
    stem = shard.path.name.removeprefix("train-")
    assert main(["dataset", "check", str(folder)]) == 2
    assert f"expected {stem}.* in {folder / 'games'} or {tmp_path / 'games'}" in capsys.readouterr().err
    (tmp_path / "games").mkdir()
    write_atomically(tmp_path / "games" / f"{stem}.csa", (run / "games" / f"{stem}.csa").read_bytes())
    assert main(["dataset", "check", str(folder)]) == 2
    out = capsys.readouterr().out
    for text in (
        f"row 0 .*{board}",
        "row 1 .*globals 0.5 found",
        "row 2 .*value 0.25 found",
        "row 3 .*policy_moves 2186",
    ):
        assert len([line for line in out.splitlines() if re.search(text, line)]) == 1, text
    assert "game 999: 1 rows found, but the record has only" in out
    assert "row 5 after 600 moves: the game has" in out
