"""Past games that self-play searches anew: what stays, what is new, and where they do not count."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yomi.engine.cli.main import main
from yomi.engine.go.record_files import load_records
from yomi.engine.learning.journal import Event
from yomi.engine.learning.loop import Tally
from yomi.engine.learning.page import status_text
from yomi.engine.learning.rows import rows_of
from yomi.engine.learning.selfplay import FinishedGame, SelfPlay
from yomi.engine.learning.settings import LearnSettings
from yomi.engine.learning.spool import SelfPlayGame
from yomi.engine.learning.store import Store
from yomi.engine.learning.workers import SelfPlayWorker, Task
from yomi.engine.options import Options
from yomi.engine.registry import GAMES, GO
from yomi.nets.errors import NetworkError
from yomi.settings import make_settings

SETTINGS = make_settings(
    LearnSettings,
    {"visits": 12, "cheap_visits": 4, "full_share": 0.5, "games": 4, "forks": 0.2, "surprise": 0.0, "reanalyze": 0.5},
)
BEFORE = Options(size=5, evaluator="uniform", workers=1, seed=1)
AFTER = replace(BEFORE, evaluator="rollouts")
GAMES_BEFORE = 6


@contextmanager
def selfplay(game: str, before: Options, settings: LearnSettings) -> Iterator[SelfPlay[Any]]:
    made = SelfPlay(GAMES[game], before, settings, 1)
    try:
        yield made
    finally:
        made.close()


def finished_by(made: SelfPlay[Any], count: int, *, reanalyzed: bool) -> list[FinishedGame[Any]]:
    """Play until so many games have ended that are, or are not, earlier ones."""
    found: list[FinishedGame[Any]] = []
    while len(found) < count:
        found += [each for each in made.play() if isinstance(each, FinishedGame) and each.reanalyzed == reanalyzed]
    return found


def searched(finished: FinishedGame[Any]) -> list[bool]:
    return [ply.found is not None for ply in finished.plies]


def check_anew(anew: FinishedGame[Any], origin: FinishedGame[Any]) -> None:
    """See that a game has moves and result of its origin, and that what is learned of it is new."""
    assert (anew.ended, anew.first, anew.outcome) == (origin.ended, origin.first, origin.outcome)
    assert searched(anew) == searched(origin)
    assert anew.resigned_wrongly is None
    for ply, before in zip(anew.plies, origin.plies, strict=True):
        assert ply.position == before.position
        if ply.full_search:
            assert ply.found is not None
            assert ply.found.target.sum() == pytest.approx(1.0)
        elif ply.found is not None and before.found is not None:
            assert (ply.found.value, ply.found.visits) == (before.found.value, before.found.visits)


def test_moves_and_result_stay_and_a_share_of_the_positions_is_searched_anew() -> None:
    settings = replace(SETTINGS, resign=0.4)
    with selfplay("go", BEFORE, settings) as made:
        origins = finished_by(made, GAMES_BEFORE, reanalyzed=False)
        assert not made._earlier  # the same network would find the same
        made.use(AFTER)
        known = len(made._earlier)
        assert known == len(origins)
        games = finished_by(made, GAMES_BEFORE, reanalyzed=True)
        assert any(each.ended.ending == "resignation" for each in games)
        for anew in games:
            (origin,) = (each for each in origins if each.game.moves == anew.game.moves)
            check_anew(anew, origin)
        assert {ply.full_search for each in games for ply in each.plies if ply.found is not None} == {True, False}
        assert len(made._earlier) == known  # what is searched anew is no game of its own


def test_shogi_after_an_opening() -> None:
    before = replace(Options.for_game("shogi"), evaluator="uniform", workers=1, max_moves=12)
    with selfplay("shogi", before, replace(SETTINGS, games=2)) as made:
        origins = finished_by(made, 2, reanalyzed=False)
        made.use(replace(before, evaluator="material"))
        (anew, *_) = finished_by(made, 1, reanalyzed=True)
        check_anew(anew, next(each for each in origins if each.game.moves == anew.game.moves))
        assert b"net reanalyzing" in made.learnable.record(anew, "net")


def deliver(tally: Tally | None, count: int) -> list[SelfPlayGame]:
    """Return games of a worker; the later ones are in part earlier ones searched anew."""
    workers, games = SelfPlayWorker(GO, SETTINGS, 1), list[SelfPlayGame]()
    try:
        for task in (Task(BEFORE, "old", {}), Task(AFTER, "new", {})):
            workers.use(task)
            end = len(games) + count
            while len(games) < end:
                for delivery in workers.take(1.0):
                    games += delivery.games
                    if tally is not None:
                        tally.add(delivery)
    finally:
        workers.close()
    return games


def test_their_rows_are_learned_but_they_are_no_games_that_were_played(tmp_path: Path) -> None:
    learnable = GO.learnable(BEFORE)
    store = Store(tmp_path, asdict(SETTINGS), frozenset(), learnable.features, learnable.suffix)
    tally = Tally()
    games = deliver(tally, 10)
    for each in games:
        store.add(each)
    kept = [each for each in games if not each.reanalyzed]
    assert len(games) > len(kept) > 10
    leads = Store(tmp_path / "other", asdict(SETTINGS), frozenset(), learnable.features, learnable.suffix)
    for each in kept:
        leads.add(each)
    assert store.leads == leads.leads
    tally.write(store)
    event: Event = store.journal.read()[-1]
    assert (event["games"], event["reanalyzed"]) == (len(kept), len(games) - len(kept))
    assert event["rows"] == store.rows == sum(len(each.rows["value"]) for each in games)
    assert event["moves"] == sum(each.moves for each in kept)
    assert event["black"] + event["white"] + event["drawn"] == len(kept)
    assert f"{len(games) - len(kept)} games reanalyzed" in status_text(tmp_path)
    store.close()
    leads.close()
    again = Store(tmp_path, asdict(SETTINGS), frozenset(), learnable.features, learnable.suffix)
    assert [each.reanalyzed for each in again.games] == [each.reanalyzed for each in games]
    again.close_shards()
    again.close()
    assert main(["dataset", "check", str(tmp_path / "rows")]) == 0
    (record,) = (tmp_path / "games").iterdir()
    names = [each.black for each in load_records(record)]
    assert names.count("new reanalyzing") == sum(each.reanalyzed and len(each.rows["value"]) > 0 for each in games)


@pytest.mark.parametrize("name", ["regularised", "variance_aware"])
def test_the_searches_of_the_documentation_play(name: str, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/how-to/learning.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(# searches\.py: .*?)```", text, re.DOTALL)
    (tmp_path / "searches.py").write_text(script)
    settings = replace(SETTINGS, search=f"{tmp_path / 'searches.py'}:{name}", visits=20, full_share=1.0)
    with selfplay("go", AFTER, settings) as made:
        (game, *_) = finished_by(made, 1, reanalyzed=False)
        rows = rows_of(game, made.learnable, 0.0, made.rng)
    found = [ply.found for ply in game.plies if ply.found is not None]
    assert len(found) > 5
    assert all(each.target.sum() == pytest.approx(1.0) for each in found)
    open_ones = [each for each in found if len(each.moves) > 2]
    assert any(each.visits == 20 for each in open_ones)
    assert max(each.surprise for each in found) > 0.0
    assert len(rows["value"]) == len(found)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"mine": np.zeros(2)}, "column 'mine' found, expected a name that begins with own_"),
        ({"own_mine": np.zeros(10**6)}, "column own_mine of shape (1000000,) found, expected"),
    ],
)
def test_targets_that_are_no_columns_are_refused(column: dict[str, Any], message: str) -> None:
    with selfplay("go", BEFORE, SETTINGS) as made:
        (game, *_) = finished_by(made, 1, reanalyzed=False)
        rows = rows_of(game, made.learnable, 0.0, made.rng, lambda *found: {"own_x": np.ones(len(found[2]))})
        assert rows["own_x"].dtype == np.float16
        assert len(rows["own_x"]) == len(rows["value"])
        with pytest.raises(NetworkError, match=re.escape(message)):
            rows_of(game, made.learnable, 0.0, made.rng, lambda *_: column)


def test_the_same_seed_searches_the_same_games_anew() -> None:
    first, second = deliver(None, 8), deliver(None, 8)
    assert any(each.reanalyzed for each in first)
    assert [(each.record, each.reanalyzed) for each in first] == [(each.record, each.reanalyzed) for each in second]
