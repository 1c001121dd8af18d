"""Play by an NNUE evaluation: the network of the moves beside it, its options, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.naive.nnue import file_of, random_tensors
from yomi.engine.cli.main import main
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.kernel_evaluators import KernelEvaluator
from yomi.engine.evaluators.load import load
from yomi.engine.go.networks import FORMATS as GO_FORMATS
from yomi.engine.options import Options
from yomi.engine.players.request import Request
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits
from yomi.engine.shogi.alphabeta import AlphaBetaSearch
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.networks import FORMATS, WithLeafSearch
from yomi.engine.shogi.players.player import ShogiPlayer
from yomi.engine.shogi.players.setup import make_queue, network_defaults, search_settings, spec_for
from yomi.nets.errors import NetworkError
from yomi.nets.models import default_network
from yomi.nets.nnue import FEATURES, Architecture

SPARSE = str(default_network("shogi", on_processor=True))


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> str:
    architecture = Architecture(next(row for row in FEATURES if row.name == "K-P"), 128, (8, 32))
    path = tmp_path_factory.mktemp("eval") / "nn.bin"
    path.write_bytes(file_of(architecture, random_tensors(architecture, 3)))
    return str(path)


def searched(options: Options, visits: int = 30) -> list[float]:
    """Return the values that a search from the start position has at its root's moves."""
    queue = make_queue(options, for_tree=True)
    search = Search(spec_for(queue.evaluator), queue, search_settings(options, queue))
    search.set_position(ShogiGame())
    search.run(Limits(visits=visits))
    report = search.report()
    queue.close()
    return [move.winrate for move in report.moves if move.visits > 0]


def test_net_and_value_net_are_the_same_but_for_the_moves(net: str) -> None:
    alone = make_queue(Options(net=net), for_tree=True)
    assert isinstance(alone.evaluator, WithLeafSearch)
    expected = "values of nn (K-P 128x2-8-32) (100 nodes a leaf)"
    assert alone.evaluator.description.endswith(expected)
    beside = make_queue(Options(net=SPARSE, value_net=net))
    assert beside.evaluator.description == alone.evaluator.description
    half = make_queue(Options(value_net=net, device="cpu", leaf_weight=0.5, leaf_nodes=7))
    assert half.evaluator.description.endswith("50% values of nn (K-P 128x2-8-32) (7 nodes a leaf)")


def test_a_search_uses_the_values(net: str) -> None:
    common = {"workers": 1, "seed": 1, "leaf_nodes": 20}
    found = searched(Options(net=net, **common))
    assert len(found) > 1
    assert found == searched(Options(net=net, **common))
    assert found != searched(Options(net=net, fv_scale=100, **common))
    assert found != searched(Options(net=net, leaf_value_scale=2000.0, **common))
    without = searched(Options(net=SPARSE, workers=1, seed=1))
    assert found != without
    assert searched(Options(net=net, leaf_weight=0.0, **common)) == pytest.approx(without, abs=1e-6)


def test_fv_scale_comes_from_the_file_beside_the_network(net: str) -> None:
    beside = Path(net).with_name("nn.bin.ini")
    beside.write_text("FV_SCALE=20\n", encoding="utf-8")
    assert network_defaults(Options(net=net)) == {"fv_scale": 20}
    beside.unlink()


def test_what_cannot_be_is_refused(net: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="a sparse network for shogi found, expected an NNUE evaluation"):
        make_queue(Options(net=SPARSE, value_net=SPARSE))
    with pytest.raises(NetworkError, match="an NNUE evaluation found for --net, expected one for --value-net only"):
        make_queue(Options(net=net, value_net=net))
    with pytest.raises(EvaluatorError, match="evaluator material uses no network: leave out --value-net"):
        make_queue(Options(evaluator="material", value_net=net))
    with pytest.raises(EvaluatorError, match="backend onnx found for an NNUE evaluation, expected cpu and native"):
        make_queue(Options(net=net, backend="onnx"))
    with pytest.raises(NetworkError, match="a network for shogi found, expected"):
        load(GO_FORMATS, net, 9)
    broken = tmp_path / "nn.bin"
    broken.write_bytes(Path(net).read_bytes()[:-1])
    with pytest.raises(NetworkError, match="the file is cut or damaged"):
        make_queue(Options(net=str(broken)))


def test_a_player_searches_by_alpha_beta(net: str) -> None:
    options = replace(Options.for_game("shogi"), net=net, workers=1, memory=2**20, multipv=3)
    player = ShogiPlayer(options)
    assert isinstance(player.search, AlphaBetaSearch)
    decision = player.decide(Request(ShogiGame(), limits=Limits(visits=3000)))
    assert decision.move in ShogiGame().legal_moves()
    assert len(decision.report.moves) == 3
    assert decision.report.depth >= 2
    mate = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1")
    decision = player.decide(Request(mate, limits=Limits(visits=3000)))
    assert decision.report.moves[0].mate == 1
    # A search by depth ends after it.
    assert player.decide(Request(ShogiGame(), depth=3)).report.depth == 3
    player.close()


def test_by_itself_it_has_equal_priors(net: str) -> None:
    evaluator = load(FORMATS, net, 9, precision="auto")
    assert isinstance(evaluator, KernelEvaluator)
    assert evaluator.precision == "int8"
    assert evaluator.is_exact


def test_net_info_tells_the_architecture(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["net", "info", net])
    assert "K-P 128x2-8-32" in capsys.readouterr().out
