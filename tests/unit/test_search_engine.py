"""The option `search_engine`: searches by name, and the search in a file that docs/explanation/search.md shows."""

import re
from pathlib import Path

import pytest

from yomi.engine.clock import Clock
from yomi.engine.color import BLACK, WHITE
from yomi.engine.options import OptionError, Options
from yomi.engine.players.request import LoadingError, Request
from yomi.engine.search.search import Search
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.players.player import ShogiPlayer

DOCS = Path(__file__).parents[2] / "docs"
MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1"


def options_of(engine: str) -> Options:
    values = {"evaluator": "material", "memory": 2**20, "workers": 1, "root_mate_search": 0, "search_engine": engine}
    return Options.for_game("shogi").with_values(values)


@pytest.fixture
def one_ply(tmp_path: Path) -> str:
    found = re.search(r"```python\n(.*?)```", (DOCS / "explanation/search.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    path = tmp_path / "one_ply.py"
    path.write_text(found[1], encoding="utf-8")
    return f"{path}:OnePly"


def test_a_search_in_a_file_plays(one_ply: str) -> None:
    player = ShogiPlayer(options_of(one_ply))
    try:
        game = ShogiGame(MATE_IN_ONE)
        decision = player.decide(Request(game))
        assert (decision.move, decision.report.moves[0].winrate) == (parse_usi("G*5b"), 1.0)
        assert decision.report.visits == len(decision.report.moves) == len(game.searched_moves())
        allowed = game.searched_moves()[2:4]
        clocks = {color: Clock.of(0.0, 0.2) for color in (BLACK, WHITE)}
        assert player.decide(Request(game, clocks=clocks, allow=allowed)).move in allowed
    finally:
        player.close()


def test_searches_by_name() -> None:
    player = ShogiPlayer(options_of("tree"))
    assert isinstance(player.search, Search)
    player.close()
    with pytest.raises(LoadingError, match="no NNUE evaluation, expected one for search_engine alphabeta"):
        ShogiPlayer(options_of("alphabeta"))
    with pytest.raises(OptionError, match=r"expected auto, tree, alphabeta or FILE\.py:NAME, found 'minimax'"):
        options_of("minimax")
