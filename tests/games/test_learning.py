"""The learning loop on a game that it does not know: Othello on 4×4, from nothing."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.games.examples import example, othello
from yomi.engine.board_game.descriptor import FileGame
from yomi.engine.learning.loop import Goal, Loop
from yomi.engine.learning.settings import LearnSettings, training_tables
from yomi.engine.learning.store import Store
from yomi.engine.learning.workers import SelfPlayWorker
from yomi.engine.matches.duel import LearningMatch, play_match
from yomi.engine.options import Options
from yomi.settings import make_settings

pytest.importorskip("torch", reason="needs PyTorch (extra train)")

GAME, VISITS, GAMES = othello(4), 16, 60
SETTINGS = make_settings(
    LearnSettings,
    {
        "search": "gumbel",
        "visits": 16,
        "full_share": 1.0,
        "games": 16,
        "rows": 400,
        "window": 1600,
        "batch": 64,
        "learning_rate": 5e-3,
        "ladder": 0,
    },
)
TABLES = {"training": {"decay": 0.9, "warmup": 5}}


def options(game: FileGame) -> Options:
    made = Options.for_game(game.name)
    for name, value in {"precision": "fp32", "device": "cpu"}.items():
        made.set(name, value)
    return made


def learn(
    folder: Path, generations: int, game: FileGame = GAME, settings: LearnSettings = SETTINGS
) -> tuple[Store, list[str]]:
    """Learn in turns; return the run and its networks, the untrained one first."""
    from yomi.nets.training.generations import Generations

    learnable = game.learnable(options(game))
    network = {**learnable.network, "blocks": 1, "channels": 16}
    store = Store(folder, asdict(settings), frozenset(), learnable.features, learnable.suffix)
    tables = training_tables(settings, network, TABLES, threads=1)
    loop = Loop(
        game,
        options(game),
        settings,
        store,
        SelfPlayWorker(game, settings, settings.seed),
        lambda: Generations(folder / "train", tables, settings.window),
        lambda text: None,
        beside=False,
    )
    loop.run(Goal(generations=generations))
    return store, [event["network"] for event in store.journal.read() if event["event"] == "promotion"]


def share(game: FileGame, store: Store, network: str, other: str = "") -> float:
    """Return the points for a game of a network against another network, or a search without one, as many visits."""
    second = {"net": str(store.network(other)), "evaluator": "onnx"} if other else {"evaluator": "uniform"}
    first = replace(options(game), net=str(store.network(network)), evaluator="onnx")
    players = first, options(game).with_values(second)
    return play_match(game, LearningMatch(players, GAMES, VISITS, 1, 0.0)).share


def test_it_is_learned_and_each_time_the_same(tmp_path: Path) -> None:
    store, networks = learn(tmp_path / "once", 6)
    _, again = learn(tmp_path / "again", 3)
    assert len(set(networks)) == 7
    assert again == networks[:4]
    before, after = (share(GAME, store, networks[number]) for number in (0, -1))
    assert after > max(0.65, before + 0.15)  # 0.72 and 0.53 where it was written


@pytest.mark.slow
@pytest.mark.parametrize("name", ["connect_four.py:GAME", "hex.py:FIVE", "minishogi.py:GAME"])
def test_the_last_network_beats_the_first(name: str, tmp_path: Path) -> None:
    store, networks = learn(tmp_path, 8, example(name), replace(SETTINGS, rows=500, window=3000))
    assert share(example(name), store, networks[-1], networks[0]) > 0.6
