"""`bench choices`: measures how good engines' moves are in positions of games. A stronger engine evaluates them.

A match yields one bit a game. This benchmark measures for each move how much winrate it gives away, in a small part of
a match's time. All answers are kept in a file: the same command resumes, and another engine can be compared on the same
positions.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

import numpy as np

from yomi.engine.clients.client import RESIGN, WIN, EngineClient, EngineError
from yomi.engine.clock import UNLIMITED, TimeSettings
from yomi.engine.color import DRAW
from yomi.engine.matches.schedule import record_files
from yomi.engine.play import G
from yomi.errors import LineError, fault_of, reraised
from yomi.nets.files import append_lines
from yomi.nets.text import parse_json

if TYPE_CHECKING:
    from yomi.engine.clients.spec import EngineSpec
    from yomi.engine.matches.games import MatchGame

# Maps (engine, position, move) to the evaluating engine's winrate for the side to move after that move (empty: of the
# position itself), and (engine, position, CHOICE) to the engine's move.
Said: TypeAlias = dict[tuple[str, str, str], Any]
CHOICE = "choice"
# Seconds to wait for an engine's start.
START_TIMEOUT = 300.0


class ChoicesError(LineError):
    """A file or an engine cannot be used. The message is one line."""


class Sayings:
    """Answers of engines, which are appended to a file of JSON lines."""

    def __init__(self, path: Path | None) -> None:
        """Read the stored answers if the file exists. Without a `path`, answers are not stored.

        Raises:
            ChoicesError: a line of the file is malformed.
        """
        self._said: Said = {}
        if path is not None and path.exists():
            for number, line in enumerate(path.read_bytes().splitlines(), 1):
                try:
                    engine, position, move, value = parse_json(line)
                    self._said[engine, position, move] = value
                except (ValueError, TypeError):
                    raise ChoicesError(f"{path}, line {number}: expected what `bench choices` has written") from None
        self._path = path

    def of(self, key: tuple[str, str, str], ask: Callable[[], Any]) -> Any:
        """Return the stored answer for a key. If there is none, call `ask` and store its result."""
        if key not in self._said:
            self._said[key] = ask()
            if self._path is not None:
                append_lines(self._path, json.dumps([*key, self._said[key]]) + "\n")
        return self._said[key]


class Asked(Generic[G]):
    """An engine that answers questions about one position after another. It starts with the first question."""

    turns = 0  # that the engine searches before it chooses, as in a game

    def __init__(self, spec: EngineSpec, kind: MatchGame[G], rules: dict[str, Any], sayings: Sayings) -> None:
        known = hashlib.sha256(json.dumps([asdict(spec), rules], sort_keys=True).encode()).hexdigest()
        self.name = f"{spec.name} {known[:16]}"
        self._spec, self._kind, self._sayings = spec, kind, sayings
        self._referee = kind.referee(rules, None)
        self._client: EngineClient | None = None

    def choice(self, position: str, game: G) -> str:
        """Return the move that the engine chooses.

        Raises:
            ChoicesError: the engine fails, or its move is not legal.
        """
        key = f"{CHOICE} after {self.turns} turns" if self.turns else CHOICE
        move = str(self._sayings.of((self.name, position, key), lambda: self._ask(game, self.turns)[0]))
        with reraised(ValueError, ChoicesError, f"player {self._spec.name}: "):
            played = self._kind.decide(game, move).move
        return move.lower() if played is None else self._kind.format_move(game, played)

    def winrate(self, position: str, game: G, move: str = "") -> float:
        """Return the engine's winrate for the side to move, in [0, 1], or the result if the game has ended.

        Args:
            position: the text of the game's position.
            game: the position.
            move: a legal move that is made first; empty for none.

        Raises:
            ChoicesError: the engine fails, or reports no winrate.
        """

        def ask() -> float:
            if move.lower() == RESIGN:
                return 0.0
            if not move:
                return self._opinion(game)
            played = self._kind.read_answer(game, move).move
            if played is None:  # a declaration of the win
                return 1.0
            after = game.copy()
            after.push(played)
            ended = self._referee.judge(after)
            if ended is not None:
                return 0.5 if ended.winner == DRAW else float(ended.winner == game.side_to_move)
            return 1.0 - self._opinion(after)

        return float(self._sayings.of((self.name, position, move), ask))

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _opinion(self, game: G) -> float:
        winrate = self._ask(game)[1]
        if winrate is None:
            raise ChoicesError(f"--judge {self._spec.name}: expected an engine that reports winrates")
        return winrate

    def _ask(self, game: G, turns: int = 0) -> tuple[str, float | None]:
        """Return the engine's move and winrate (None if it reports no winrate)."""
        moves = [self._kind.format_move(game, move) for _, move in game.moves]
        color = game.side_to_move
        with reraised(EngineError, ChoicesError, f"player {self._spec.name}: "):
            if self._client is None:
                self._client = self._kind.client(self._spec, timeout=START_TIMEOUT)
            self._kind.set_up(self._client, game, TimeSettings())
            start = self._kind.start_of(game)
            for end in range(len(moves) % 2, len(moves), 2)[-turns:] if turns else ():
                self._client.search(start, moves[:end], color, UNLIMITED)
            answer = self._client.choose(start, moves, color, UNLIMITED)
        if answer.move.lower() == RESIGN:
            return answer.move, 0.0
        if answer.move == WIN:
            return answer.move, 1.0
        return answer.move, None if answer.evaluation is None else answer.evaluation.winrate


def read_games(
    path: Path, kind: MatchGame[Any], rules: dict[str, Any]
) -> Iterator[tuple[Any, Callable[[int | None], str]]]:
    """Yield each record of a file or folder, with a function that returns an opening for matches.

    The opening consists of the record's first moves; the function gets their number (None: all).

    Raises:
        ChoicesError: a file cannot be read.
    """
    for file in record_files(path, kind.suffixes):
        try:
            for record in kind.load_records(file):
                yield record, functools.partial(kind.opening_of, record, rules=rules)
        except ValueError as error:
            raise ChoicesError(fault_of(file, error)) from None


def read_positions(path: Path, kind: MatchGame[Any], rules: dict[str, Any], begin: int, step: int) -> Iterator[str]:
    """Yield each position of some games once, as an opening for matches. Positions after `begin` moves come first.

    Args:
        path: a record, or a folder of records.
        kind: the game.
        rules: the value of `kind.rules(...)`.
        begin: number of moves before the first position of a game.
        step: number of moves between two positions.

    Raises:
        ChoicesError: a file cannot be read.
    """
    lines = []
    for _, opening in read_games(path, kind, rules):
        plies = range(begin, len(kind.begin(rules, opening(None)).moves), step)
        lines.append([opening(ply) for ply in plies])
    seen = set()
    for ply in range(max(map(len, lines), default=0)):
        for line in lines:
            if ply < len(line) and line[ply] not in seen:
                seen.add(line[ply])
                yield line[ply]


def run(
    specs: Sequence[EngineSpec],
    judge: EngineSpec,
    kind: MatchGame[Any],
    rules: dict[str, Any],
    positions: Sequence[str],
    balance: float,
    turns: int,
    path: Path | None,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Ask all engines about all positions. Return a row for each engine.

    Args:
        specs: the engines. The others are compared with the first.
        judge: the engine that evaluates the moves.
        kind: the game.
        rules: the value of `kind.rules(...)`.
        positions: openings for matches.
        balance: minimum winrate of both sides, by the evaluating engine; other positions are skipped.
        turns: number of its own turns before a position that each engine searches first, as in a game.
        path: the file of answers; None keeps nothing.
        say: receives lines about the progress.

    Raises:
        ChoicesError: the file has another form, an engine fails, or no position is left.
    """
    with contextlib.ExitStack() as stack:
        sayings = Sayings(path)
        judging = stack.enter_context(contextlib.closing(Asked(judge, kind, rules, sayings)))
        players = [stack.enter_context(contextlib.closing(Asked(spec, kind, rules, sayings))) for spec in specs]
        for player in players:
            player.turns = turns
        worth: list[list[float]] = [[] for _ in players]
        differs = [0] * len(players)
        for number, position in enumerate(positions, 1):
            game = kind.begin(rules, position)
            winrate = judging.winrate(position, game)
            if not balance <= winrate <= 1.0 - balance:
                continue
            moves = [player.choice(position, game) for player in players]
            values = dict.fromkeys(moves, winrate)
            if len(values) > 1:
                values = {move: judging.winrate(position, game, move) for move in values}
            for index, move in enumerate(moves):
                worth[index].append(values[move] - values[moves[0]])
                differs[index] += move != moves[0]
            if number % 100 == 0 and worth[0]:
                shown = ", ".join("{:+.0f} ± {:.0f}".format(*_gained(values)) for values in worth)
                say(f"{number} positions, {len(worth[0])} of them even: {shown}")
    if not worth[0]:
        raise ChoicesError(f"none of {len(positions)} positions is even, expected more, or a smaller --balance")
    return [
        {
            "player": spec.name,
            "positions": len(gained),
            "differs": share / len(gained),
            "gained_per_10000": _gained(gained)[0],
            "standard_error": _gained(gained)[1],
        }
        for spec, gained, share in zip(specs, worth, differs, strict=True)
    ]


def _gained(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean gain and its standard error, in 1/10,000 of winrate."""
    return 1e4 * float(np.mean(values)), 1e4 * float(np.std(values, ddof=len(values) > 1)) / math.sqrt(len(values))
