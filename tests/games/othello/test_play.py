"""Othello as the engine plays it: the contract of players, the solver, networks, self-play, a match, a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.test_players import *  # noqa: F403
from tests.games.othello import naive
from tests.games.othello.descriptor import GAME
from tests.games.othello.game import MOVES, OthelloGame
from tests.games.othello.kernels import PASS, SIZES
from tests.games.othello.network import FORMATS
from yomi.engine.cli import main
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.evaluators.network import open_network
from yomi.engine.matches.report import report
from yomi.engine.matches.results import GameResult
from yomi.engine.matches.schedule import draw_openings, pairs_of, schedule
from yomi.engine.play import SCORE, FirstMoves, play_game
from yomi.engine.players.request import Request
from yomi.engine.registry import GAMES
from yomi.nets.errors import NetworkError


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_small_endgames_are_solved(size: int, make: Any) -> None:
    player, rng = make("bare", size=size, visits=4000), np.random.default_rng(size)
    found: list[int] = []
    while len(found) < 12:
        game = OthelloGame(size)
        while not game.is_over and str(game).count(".") > 6:
            game.push(int(rng.choice(game.legal_moves())))
        if len(game.legal_moves()) < 2:  # nothing to search
            continue
        best, scores = naive.solve(tuple(str(game).split()), "XO"[game.side_to_move - 1])
        decision = player.decide(Request(game))
        assert decision.report.proven == np.sign(best)
        assert np.sign(scores[decision.move]) == np.sign(best)
        found.append(np.sign(best))
    assert {-1, 1} <= set(found)


def test_what_needs_no_search(make: Any) -> None:
    player, rest = make(visits=None, seconds=600.0), "\n......" * 5
    assert player.decide(Request(OthelloGame(6, f"XO....{rest}", WHITE))).move == PASS
    assert player.decide(Request(OthelloGame(6, f"X.O...{rest}", WHITE))).move is None


@pytest.mark.parametrize("size", SIZES)
def test_backends_agree(size: int, networks: dict[Any, Path]) -> None:
    planes = np.random.default_rng(4).integers(0, 2, (6, 2, size, size)).astype(np.float32)
    ours, theirs = (
        open_network(FORMATS, networks[size], size).load(backend=backend).run(planes, np.zeros((6, 0), np.float32))
        for backend in ("native", "onnx")
    )
    assert max(np.abs(first - second).max() for first, second in zip(ours, theirs, strict=True)) < 1e-4
    assert np.ptp(ours[1]) > 0.01
    with pytest.raises(NetworkError, match=f"made for boards of size {size}"):
        open_network(FORMATS, networks[size], SIZES[SIZES.index(size) - 1])


@pytest.mark.parametrize("size", SIZES)
def test_self_play_repeats_itself(kind: str, size: int, make: Any, networks: dict[Any, Path]) -> None:
    played, net = [], {"net": str(networks[size])} if kind == "network" else {}
    for _ in range(2):
        player = make(kind, size=size, visits=30, temperature=1.0, root_noise=0.25, resign=False, **net)
        game, side = GAME.new_game(player.options), player
        ended = play_game(game, {BLACK: side, WHITE: side}, GAME.referee(player))
        winner = BLACK if game.score > 0 else WHITE if game.score < 0 else DRAW
        assert (ended.winner, ended.ending, ended.detail) == (winner, SCORE, f"{game.score:+d}")
        played.append(game.moves[: size * size // 2 - 2])  # later, a proof ends a search whenever the player looks
    assert played[0] == played[1]


def test_a_match_from_paired_openings(make: Any) -> None:
    players = {"strong": make("bare", visits=400), "weak": make(visits=2, seed=2)}
    side = make("bare", visits=4, temperature=1.0, seed=3)

    def draw() -> str:
        game = OthelloGame(6)
        play_game(game, {BLACK: side, WHITE: side}, FirstMoves(6))
        return GAME.format_opening(game)

    names, openings, results = list(players), draw_openings(draw, 4), []
    for pairing in schedule(pairs_of(2), 8, len(openings)):
        game = OthelloGame(6)
        for text in openings[pairing.opening].split():
            game.push(MOVES.index(text))
        black, white = names[pairing.black], names[pairing.white]
        sides = {color: players[name] for color, name in ((BLACK, black), (WHITE, white))}
        ended = play_game(game, sides, GAME.referee(players[black]))
        results.append(GameResult(pairing.number, black, white, ended.winner, ended.ending))
    rows = report(results).rows
    assert [(row.player, row.score.games) for row in rows] == [("strong", 8), ("weak", 8)]
    assert rows[0].score.points >= 6


def test_the_command_plays_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GAMES, GAME.name, GAME)
    flags = "--size 6 --evaluator rollouts --visits 20 --workers 1 --memory 16M --games 2 --seed 1"
    assert main.main(["selfplay", GAME.name, *flags.split(), "--out", str(tmp_path)]) == 0
    for number in (1, 2):
        moves, result = (tmp_path / f"game-{number:05d}.txt").read_text().splitlines()
        game = OthelloGame(6)
        for text in moves.split():
            game.push(MOVES.index(text))
        assert game.is_over
        assert result.split()[1:] == [SCORE, f"{game.score:+d}"]
