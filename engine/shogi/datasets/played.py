"""One game of shogi that a USI engine plays with itself, and the positions of it.

The engine evaluates every position in which it chooses a move, so that each of these makes a training position: with
its evaluation, its move, and the game's result. Games begin with an opening and random moves; some later moves are
random, too, and positions in which one was played have no label and are left out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.clients.answers import EngineMove
from engine.clients.limits import GameClock
from engine.clients.process import EngineError
from engine.clients.usi import CENTIPAWNS, UsiClient
from engine.clock import TimeSettings
from engine.color import BLACK, WHITE, opponent
from engine.matches.adjudicate import Adjudicator
from engine.shogi.datasets.rows import MARKS
from engine.shogi.game import IllegalMove, ShogiGame
from engine.shogi.notation import NotationError, format_usi, parse_usi
from engine.shogi.records.hcpe import HCPE_DTYPE, MAX_SCORE, RESULTS, pack
from engine.shogi.records.record import GameRecord, RecordError
from engine.shogi.sfen import format_sfen

SHOWN_PLIES = 8
"""Moves before a position that the engine is shown, enough for it to see a repetition. Fairy-Stockfish takes 15 µs for
each: after 120 plies the whole game would cost as much as 400 nodes."""


@dataclass(frozen=True)
class ShogiPlayOptions:
    """What decides the positions; kept beside them."""

    engine: str
    """Its command line, with the settings after it."""
    nodes: int
    """Of each move."""
    openings: str = ""
    """Name of the file and its digest."""
    opening_moves: int = 8
    """Random moves after the opening: from 1 to so many, 0 for none."""
    random_moves: float = 0.02
    """Share of the later moves that are drawn from all legal ones."""
    resign_score: int = 3000
    """Centipawns beyond which a side counts as lost."""
    resign_moves: int = 3
    """Moves of each side, one after the other, for which it must be so until the game is broken off."""
    max_moves: int = 320
    """Moves after which a game is drawn, those of its opening included."""
    shard_rows: int = 16384
    """Positions after which a file is complete, those of the game under way included."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class PlayedPositions:
    """The positions of one game."""

    number: int
    """Of the game."""
    winner: int
    """BLACK, WHITE or DRAW."""
    ending: str
    """A name of CSA's, ADJUDICATION for a game that was broken off."""
    plies: int
    rows: Sequence[tuple[bytes, int, int]]
    """Packed board, centipawns for the side to move, move."""

    def records(self, chosen: Sequence[int]) -> bytes:
        """Return some rows as hcpe, with the game's mark in the byte that has no other use."""
        data = np.zeros(len(chosen), HCPE_DTYPE)
        rows = [self.rows[index] for index in chosen]
        data["hcp"] = np.frombuffer(b"".join(packed for packed, _, _ in rows), np.uint8).reshape(-1, 32)
        data["score"] = [score for _, score, _ in rows]
        data["move"] = [move for _, _, move in rows]
        data["result"], data["mark"] = RESULTS[self.winner], 1 + self.number % MARKS
        return data.tobytes()


def play_positions(
    engine: UsiClient, options: ShogiPlayOptions, openings: Sequence[GameRecord], number: int
) -> PlayedPositions:
    """Play the game of a number, which decides with the seed alone how it begins and where moves are random.

    Args:
        engine: plays both sides.
        options: of the set.
        openings: to begin with, up to a random ply of one of them; none for the usual position.
        number: of the game.

    Raises:
        EngineError: the engine fails, or plays what it may not.
        RecordError: an opening has a move that the rules forbid.
    """
    return _Game(engine, options, openings, number).play()


class _Game:
    """A game while it is played."""

    def __init__(
        self, engine: UsiClient, options: ShogiPlayOptions, openings: Sequence[GameRecord], number: int
    ) -> None:
        self.engine, self.options, self.number = engine, options, number
        self.rng = random.Random(f"{options.seed} {number}")
        lost = 1.0 / (1.0 + math.exp(options.resign_score / CENTIPAWNS))
        self.adjudicator = Adjudicator(lost, options.resign_moves)
        self.clocks = {color: GameClock(TimeSettings(), 0.0) for color in (BLACK, WHITE)}
        self.rows: list[tuple[bytes, int, int]] = []
        opening = self.rng.choice(openings) if openings else GameRecord()
        self.game = ShogiGame(format_sfen(opening.initial), max_moves=options.max_moves)
        self.sfens = [self.game.sfen()]
        """Of all positions so far."""
        for recorded in opening.moves[: self.rng.randint(0, len(opening.moves))]:
            try:
                self._play(recorded.move)
            except IllegalMove as error:
                raise RecordError(f"an opening: {error}") from None

    def play(self) -> PlayedPositions:
        """Play it."""
        self.engine.new_game()
        for _ in range(self.rng.randint(1, self.options.opening_moves) if self.options.opening_moves else 0):
            if not self.game.is_over:
                self._play_any()
        winner, ending = self._play_on()
        return PlayedPositions(self.number, winner, ending, len(self.game.moves), self.rows)

    def _play_on(self) -> tuple[int, str]:
        """Play to the end, and return winner and ending."""
        game = self.game
        while (outcome := game.outcome()) is None:
            color = game.side_to_move
            if game.can_declare:
                return color, "KACHI"
            if self.rng.random() < self.options.random_moves:
                self._play_any()
                continue
            first = max(len(game.moves) - SHOWN_PLIES, 0)
            moves = [format_usi(move) for _, move in game.moves[first:]]
            answer = self.engine.go(self.sfens[first], moves, color, self.clocks)
            if answer.move == "resign":
                return opponent(color), "TORYO"
            self._play_answer(answer)
            if loser := self.adjudicator.loser(color, answer.evaluation):
                return opponent(loser), "ADJUDICATION"
        return outcome.winner, outcome.ending

    def _play_answer(self, answer: EngineMove) -> None:
        """Play the engine's move, and keep the position if it said what it thinks of it."""
        try:
            move = parse_usi(answer.move)
            placement = self.game.placement
            self._play(move)
        except (NotationError, IllegalMove) as error:
            raise EngineError(f"{error} in {self.sfens[-1]}") from None
        if answer.evaluation is not None and answer.evaluation.score is not None:
            score = round(min(max(answer.evaluation.score, -MAX_SCORE), MAX_SCORE))
            self.rows.append((pack(placement), score, move))

    def _play_any(self) -> None:
        self._play(self.rng.choice(self.game.legal_moves()))

    def _play(self, move: int) -> None:
        self.game.play(move)
        self.sfens.append(self.game.sfen())
