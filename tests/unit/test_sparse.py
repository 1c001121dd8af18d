"""Sparse networks: the forward pass against plain numpy, their file, and play with them."""

from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from yomi.engine.cli.main import main
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.network import FileEvaluator, open_network
from yomi.engine.options import Options
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.networks import FORMATS
from yomi.engine.shogi.notation import format_usi, parse_usi
from yomi.engine.shogi.players.setup import make_queue, search_settings, spec_for
from yomi.native.sparse import network as kernels
from yomi.native.sparse.network import (
    BYTE_ONE,
    ONE,
    SQUARED_BITS,
    first_layer,
    make_scratch,
    move_logits,
    network_of,
    value_logit,
)
from yomi.native.sparse.shogi import (
    FIRST_NEAR,
    INPUTS,
    MOVE_ROWS,
    PARTS,
    SCRATCH_DTYPE,
    find_move_rows,
    find_rows,
    find_threats,
)
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import VALUE
from yomi.native.tree.buffers import make_batch
from yomi.nets import sparse as layout
from yomi.nets.errors import NetworkError
from yomi.nets.load import NetworkKind, open_file
from yomi.nets.metadata import NetworkInfo
from yomi.nets.sparse import HIDDEN, LAST, MAX_HEADER, read_sparse, write_sparse

Tensors = dict[str, npt.NDArray[np.generic]]
SHIPPED = Path(str(resources.files("yomi.nets.models") / "yomi-shogi-sparse.safetensors"))
LINE = "7g7f 3c3d 2g2f 8c8d 2f2e 8d8e 6i7h 4a3b 2e2d 2c2d 2h2d P*2c 2d2f 8e8f 8g8f 8b8f P*8g 8f8b"


def random_tensors(seed: int, value: int = 256, policy: int = 128) -> Tensors:
    """Return a network of random numbers of about the size that trained ones have."""
    rng = np.random.default_rng(seed)

    def bytes_(size: float, *shape: int) -> npt.NDArray[np.int8]:
        return np.round(rng.normal(0.0, size, shape)).clip(-127, 127).astype(np.int8)

    def shorts(size: float, *shape: int) -> npt.NDArray[np.int16]:
        return np.round(rng.normal(0.0, size, shape)).astype(np.int16)

    def floats(size: float, *shape: int) -> npt.NDArray[np.float32]:
        return rng.normal(0.0, size, shape).astype(np.float32)

    return {
        "rows": bytes_(0.1 * ONE, INPUTS, value + policy),
        "bias": shorts(0.3 * ONE, value + policy),
        "direct": floats(0.05, INPUTS),
        "hidden": shorts(400.0, HIDDEN, value),
        "hidden_bias": floats(0.3, HIDDEN),
        "last": floats(0.5, HIDDEN, LAST),
        "last_bias": floats(0.3, LAST),
        "out": floats(0.5, LAST + 1),
        "moves": bytes_(16.0, MOVE_ROWS, policy),
        "move_bias": floats(0.5, MOVE_ROWS),
        "scales": np.array([1.0 / (4096.0 * 4000.0), 1.0 / (4096.0 * 160.0)], np.float32),
    }


def info(game: str = "shogi", features: str = "shogi-board") -> NetworkInfo:
    """Return the record of such a network."""
    return NetworkInfo(game, 9, features, "random", "", "", 0, 27, 0)


def written(folder: Path, tensors: Tensors) -> Path:
    """Write a network's file."""
    path = folder / "random.sparse"
    path.write_bytes(write_sparse(tensors, info()))
    return path


def plain(tensors: Tensors, active: list[int], moves: list[list[int]]) -> tuple[float, list[float]]:
    """Return the value's logit and those of moves, from the definition, in wide integers and floats."""
    wide = {
        name: tensor.astype(np.float64 if tensor.dtype == np.float32 else np.int64) for name, tensor in tensors.items()
    }
    sums = wide["bias"] + wide["rows"][active].sum(0)
    units = np.clip(sums, 0, ONE) ** 2 * (1 << SQUARED_BITS) // ONE**2
    value = tensors["hidden"].shape[1]
    hidden = np.clip(wide["hidden"] @ units[:value] * wide["scales"][0] + wide["hidden_bias"], 0.0, 1.0) ** 2
    last = np.clip(hidden @ wide["last"] + wide["last_bias"], 0.0, 1.0) ** 2
    logit = last @ wide["out"][:LAST] + wide["out"][LAST] + wide["direct"][active].sum()
    narrow = (units[value:] - (units[value:] >> 8) + 8) >> 4
    assert narrow.max() <= BYTE_ONE
    assert np.abs(narrow - units[value:] * (BYTE_ONE / (1 << SQUARED_BITS))).max() < 0.6
    scale = wide["scales"][1] * (1 << SQUARED_BITS) / BYTE_ONE
    logits = [narrow @ wide["moves"][rows].sum(0) * scale + wide["move_bias"][rows].sum() for rows in moves]
    return float(logit), [float(each) for each in logits]


def judged(evaluator: FileEvaluator, game: ShogiGame) -> tuple[float, list[float]]:
    """Return the value of a position, and the logits of its legal moves."""
    batch, legal = make_batch(evaluator.spec, 1, Inputs.POSITIONS), game.legal_moves()
    batch.positions[0] = game.position
    batch.move_count[0], batch.moves[0, : len(legal)] = len(legal), legal
    batch.indices[0, : len(legal)] = range(len(legal))
    evaluator.evaluate(batch, 1)
    return float(batch.values[0, VALUE]), batch.logits[0, : len(legal)].tolist()


def rows_of(game: ShogiGame, seen: np.void) -> tuple[list[int], list[list[int]]]:
    """Return the rows of a position and those of its legal moves."""
    active = seen["rows"][: find_rows(game.position, seen)].tolist()
    find_threats(game.position, seen)
    moves = []
    for move in game.legal_moves():
        find_move_rows(game.position, seen, np.uint16(move), 0)
        moves.append(seen["move_rows"][:PARTS].tolist())
    return active, moves


def middle_game() -> ShogiGame:
    """Return a game with pieces in hand."""
    game = ShogiGame()
    for word in LINE.split():
        game.play(parse_usi(word))
    return game


@pytest.mark.slow
@pytest.mark.parametrize(("value", "policy"), [(128, 128), (384, 256)])
def test_the_forward_pass_is_that_of_plain_numbers(value: int, policy: int) -> None:
    tensors = random_tensors(1, value, policy)
    network = network_of(tensors)
    scratch, seen = make_scratch(network, 593), np.zeros(1, SCRATCH_DTYPE)[0]
    game = middle_game()
    active, moves = rows_of(game, seen)
    first_layer(network, seen["rows"], len(active), scratch)
    logit, logits = plain(tensors, active, moves)
    assert value_logit(network, seen["rows"], len(active), scratch) == pytest.approx(logit, abs=1e-4)
    move_logits(network, np.array(moves, np.uint16).ravel(), len(moves[0]), len(moves), scratch)
    found = scratch.logits[: len(moves)]
    assert found == pytest.approx(logits, abs=1e-4)
    assert len(set(np.round(found, 3))) > len(found) // 2


def test_a_batch_is_evaluated(tmp_path: Path) -> None:
    evaluator = open_network(FORMATS, written(tmp_path, random_tensors(2)), 9).load(precision="auto")
    game = middle_game()
    value, found = judged(evaluator, game)
    tensors = random_tensors(2)
    seen = np.zeros(1, SCRATCH_DTYPE)[0]
    logit, logits = plain(tensors, *rows_of(game, seen))
    assert value == pytest.approx(np.tanh(logit / 2.0), abs=1e-4)
    assert found == pytest.approx(logits, abs=1e-4)


def test_colors_and_sides_are_alike(tmp_path: Path) -> None:
    """The same position for White, and in the mirror with kings off the middle, gets the same value."""
    black = ShogiGame("ln1gk1snl/1r1s3b1/p1ppppppp/9/1p7/9/P1PPPPPPP/1B1K3R1/LNSG1GSNL b P 1")
    white = ShogiGame("lnsg1gsnl/1r3k1b1/ppppppp1p/9/7P1/9/PPPPPPP1P/1B3S1R1/LNS1KG1NL w p 1")
    mirrored = ShogiGame("lns1kg1nl/1b3s1r1/ppppppp1p/9/7p1/9/PPPPPPP1P/1R3K1B1/LNSG1GSNL b P 1")
    evaluator = open_network(FORMATS, written(tmp_path, random_tensors(3)), 9).load(precision="auto")
    batch = make_batch(evaluator.spec, 3, Inputs.POSITIONS)
    for row, game in enumerate((black, white, mirrored)):
        batch.positions[row] = game.position
    evaluator.evaluate(batch, 3)
    found = batch.values[:, VALUE]
    assert found == pytest.approx(np.full(3, found[0]), abs=1e-6)
    assert found[0] != 0.0


def test_files_from_before_rows_were_added_play_as_they_did(tmp_path: Path) -> None:
    """The last rows of the first layer count nothing where a file has none."""
    tensors = random_tensors(2)
    for name in ("rows", "direct"):
        tensors[name][FIRST_NEAR:] = 0
    whole = open_network(FORMATS, written(tmp_path, tensors), 9).load(precision="auto")
    before = judged(whole, middle_game())
    shorter = {**tensors, **{name: tensors[name][:FIRST_NEAR] for name in ("rows", "direct")}}
    assert judged(open_network(FORMATS, written(tmp_path, shorter), 9).load(precision="auto"), middle_game()) == before


def test_values_of_one_network_and_moves_of_another_are_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / f"{name}.safetensors" for name in ("values", "moves", "both")]
    for path, tensors in zip(paths, (random_tensors(2, 384, 128), random_tensors(3, 128, 256)), strict=False):
        path.write_bytes(write_sparse(tensors, info()))
    assert main(["net", "join", str(paths[0]), str(paths[1]), "--out", str(paths[2])]) == 0
    values, moves, both = (
        judged(open_network(FORMATS, path, 9).load(precision="auto"), middle_game()) for path in paths
    )
    assert both == (values[0], moves[1])
    assert values[0] != moves[0]
    shorter = random_tensors(3)
    shorter["move_bias"], shorter["moves"] = shorter["move_bias"][:-1], shorter["moves"][:-1]
    paths[1].write_bytes(write_sparse(shorter, info()))
    assert main(["net", "join", str(paths[0]), str(paths[1]), "--out", str(paths[2])]) == 2
    assert f"moves.safetensors: {INPUTS} rows and {MOVE_ROWS - 1} of moves found, expected" in capsys.readouterr().err


def test_it_plays(tmp_path: Path) -> None:
    options = Options()
    options.set("net", str(written(tmp_path, random_tensors(4))))
    queue = make_queue(options)
    search = Search(spec_for(queue.evaluator), queue, search_settings(options, queue))
    game = middle_game()
    search.set_position(game)
    search.run(Limits(visits=300))
    report = search.report()
    assert report.visits >= 300
    assert format_usi(report.moves[0].move) in {format_usi(move) for move in game.legal_moves()}
    queue.close()


def test_the_network_that_comes_with_yomi_knows_the_first_moves() -> None:
    evaluator = open_network(FORMATS, SHIPPED, 9).load(precision="auto")
    game = ShogiGame()
    value, logits = judged(evaluator, game)
    assert abs(value) < 0.2
    assert format_usi(game.legal_moves()[int(np.argmax(logits))]) in ("7g7f", "2g2f")


def test_files_and_kernels_mean_the_same() -> None:
    assert (layout.HIDDEN, layout.LAST, layout.WIDTH_STEP) == (kernels.HIDDEN, kernels.LAST, kernels.WIDTH_STEP)
    assert (layout.ONE, layout.SQUARED_ONE) == (kernels.ONE, 1 << kernels.SQUARED_BITS)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    tensors = random_tensors(5)
    path = written(tmp_path, tensors)
    file = open_file(path)
    assert file.kind is NetworkKind.SPARSE
    assert file.game == "shogi"
    read = read_sparse(path)
    assert all((read[name] == tensor).all() for name, tensor in tensors.items())


def _with_header(content: bytes, old: str, new: str) -> bytes:
    """Return a file with another text in its header."""
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].replace(old.encode(), new.encode(), 1)
    assert header != content[8 : 8 + length]
    return len(header).to_bytes(8, "little") + header + content[8 + length :]


def test_broken_files_are_refused(tmp_path: Path) -> None:
    whole = write_sparse(random_tensors(6), info())
    length = int.from_bytes(whole[:8], "little")
    for name, content, message in (
        ("short", whole[:-1], "expected all of it"),
        ("header", whole[: 8 + length // 2], rf"a header of {length} bytes in a file of {8 + length // 2} found"),
        ("deep", b"\xa0\x86\x01" + bytes(5) + b'{"a":' + b"[" * 99_995, "nested too deep"),
        ("number", _with_header(whole, '"__metadata__":', '"x":1e999,"__metadata__":'), "the number inf found"),
        ("wraps", _with_header(whole, f'"shape":[{INPUTS}]', '"shape":[4294967296,4294967296]'), "expected all of it"),
        ("text", _with_header(whole, f'"shape":[{INPUTS}]', f'"shape":["{INPUTS}"]'), "with its place"),
        ("json", whole[:8] + b"{" * length + whole[8 + length :], "a broken header"),
        ("type", whole.replace(b'"I16"', b'"I64"', 1), "expected I8, I16, F32"),
        (
            "name",
            whole.replace(b'"direct"', b'"indirect"', 1)[:8] + whole[8:].replace(b'"direct"', b'"zirect"', 1),
            "tensors",
        ),
        ("long", (MAX_HEADER + 1).to_bytes(8, "little") + whole[8:], "expected a KataGo network"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(NetworkError, match=message):
            open_network(FORMATS, path, 9).load()


def test_tensors_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    tensors = random_tensors(7)
    for name, wrong, message in (
        ("bias", tensors["bias"][:-1], "bias"),
        ("direct", np.full(INPUTS, np.nan, np.float32), "not finite"),
        ("moves", tensors["moves"][:, :64].copy(), "rows"),
    ):
        with pytest.raises(NetworkError, match=message):
            write_sparse({**tensors, name: wrong}, info())
    other = {**tensors, "moves": tensors["moves"][:-1].copy(), "move_bias": tensors["move_bias"][:-1].copy()}
    with pytest.raises(NetworkError, match="rows and"):
        open_network(FORMATS, written(tmp_path, other), 9).load()


def test_only_processors_compute_them(tmp_path: Path) -> None:
    path = written(tmp_path, random_tensors(8))
    with pytest.raises(EvaluatorError, match="expected int16"):
        open_network(FORMATS, path, 9).load(precision="fp32")
    with pytest.raises(EvaluatorError, match="expected cpu and native"):
        open_network(FORMATS, path, 9).load(backend="onnx", precision="auto")
