"""Play by an NNUE evaluation: its options, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.naive.nnue import file_of, random_tensors
from yomi.engine.cli.main import main
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.kernel_evaluators import KernelEvaluator
from yomi.engine.evaluators.network import open_network
from yomi.engine.go.networks import FORMATS as GO_FORMATS
from yomi.engine.options import Options
from yomi.engine.players.request import Request
from yomi.engine.search.alphabeta import AlphaBetaSearch
from yomi.engine.search.types import Limits
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.networks import FORMATS
from yomi.engine.shogi.players.player import ShogiPlayer
from yomi.engine.shogi.players.setup import benchmark_setup, make_queue, network_defaults
from yomi.nets.errors import NetworkError
from yomi.nets.nnue import FEATURES, Architecture


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> str:
    architecture = Architecture(next(row for row in FEATURES if row.name == "K-P"), 128, (8, 32))
    path = tmp_path_factory.mktemp("eval") / "nn.bin"
    path.write_bytes(file_of(architecture, random_tensors(architecture, 3)))
    return str(path)


def test_fv_scale_comes_from_the_file_beside_the_network(net: str) -> None:
    beside = Path(net).with_name("nn.bin.ini")
    beside.write_text("FV_SCALE=20\n", encoding="utf-8")
    assert network_defaults(Options(net=net)) == {"fv_scale": 20}
    beside.unlink()


def test_what_cannot_be_is_refused(net: str, tmp_path: Path) -> None:
    refused = "nn.bin: an NNUE evaluation found, expected a network with a policy to search a tree"
    with pytest.raises(NetworkError, match=refused), benchmark_setup(Options(net=net)):
        pass
    with pytest.raises(EvaluatorError, match="backend onnx found for an NNUE evaluation, expected cpu and native"):
        make_queue(Options(net=net, backend="onnx"))
    with pytest.raises(NetworkError, match="a network for shogi found, expected"):
        open_network(GO_FORMATS, net, 9)
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
    mate = ShogiGame("7nl/5+P1k1/6ppp/9/9/9/9/9/4K4 b 2G2r2b2g4s3n3l14p 1")
    for options.root_mate_search in (0, 3):
        found = player.decide(Request(mate, limits=Limits(visits=3000))).report.moves[0]
        assert (found.mate, len(found.pv)) == (3, 3), "the line contains the whole mate"
    # A search by depth ends after it.
    assert player.decide(Request(ShogiGame(), limits=Limits(depth=3))).report.depth == 3
    player.close()


def test_it_computes_in_integers(net: str) -> None:
    evaluator = open_network(FORMATS, net, 9).load(precision="auto")
    assert isinstance(evaluator, KernelEvaluator)
    assert evaluator.precision == "int8"
    assert evaluator.is_exact


def test_net_info_tells_the_architecture(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["net", "info", net])
    assert "K-P 128x2-8-32" in capsys.readouterr().out


def test_only_go_has_a_network_of_values(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["usi", "--value-net", net]) == 2
    expected = "only Go uses --value-net: search an NNUE evaluation (nn.bin) with --net FILE"
    assert expected in capsys.readouterr().err
