"""`bench choices`: what the moves that engines choose are worth, judged by a stronger one, in positions of games.

A match tells of each game one bit; this tells of each move how much of the game it gives away. Two engines that choose
alike in a position cost the judge nothing, so that small differences show in a small part of a match's time. What the
judge and the engines have said stays in a file: the same command goes on, and another engine is judged on the same
positions.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from engine.clients.client import RESIGN, WIN, EngineClient
from engine.clients.limits import GameClock
from engine.clock import TimeSettings
from engine.color import opponent
from engine.matches.results import fault_of
from engine.play import G

if TYPE_CHECKING:
    from engine.clients.spec import EngineSpec
    from engine.matches.games import MatchGame

Said: TypeAlias = dict[tuple[str, str, str], Any]
"""(engine, position, move): the judge's winrate for the side to move, of the position itself where the move is empty;
(engine, position, CHOICE): what an engine chose."""
CHOICE = "choice"
START_TIMEOUT = 300.0
"""Seconds that an engine has to start."""


class PositionError(Exception):
    """No positions can be made of a file; the message is one line."""


class Sayings:
    """What engines have said, in a file of JSON lines that grows."""

    def __init__(self, path: Path | None) -> None:
        """Read a file if it is there; None keeps nothing.

        Raises:
            PositionError: a line of it is none of ours.
        """
        self._said: Said = {}
        if path is not None and path.exists():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                try:
                    engine, position, move, value = json.loads(line)
                except ValueError:
                    raise PositionError(f"{path}, line {number}: expected what `bench choices` has written") from None
                self._said[engine, position, move] = value
        self._file = None if path is None else path.open("a", encoding="utf-8")

    def of(self, key: tuple[str, str, str], ask: Callable[[], Any]) -> Any:
        """Return what was said, or ask and keep the answer."""
        if key not in self._said:
            self._said[key] = ask()
            if self._file is not None:
                self._file.write(json.dumps([*key, self._said[key]]) + "\n")
                self._file.flush()
        return self._said[key]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class Asked(Generic[G]):
    """An engine that is asked about one position after the other; it starts with the first."""

    def __init__(self, spec: EngineSpec, kind: MatchGame[G], sayings: Sayings) -> None:
        """Remember what to start."""
        self.name = f"{spec.name} {' '.join(spec.command[3:])} {spec.limits} {dict(spec.options)} {spec.commands}"
        self._spec, self._kind, self._sayings = spec, kind, sayings
        self._client: EngineClient | None = None

    def choice(self, position: str, game: G) -> str:
        """Return the move that it chooses.

        Raises:
            EngineError: it fails.
        """
        return str(self._sayings.of((self.name, position, CHOICE), lambda: self._ask(game)[0]))

    def winrate(self, position: str, game: G, move: str = "") -> float | None:
        """Return what the side to move wins by its opinion, in [0, 1], after a move of it; None if it says nothing.

        Raises:
            EngineError: it fails.
        """

        def ask() -> float | None:
            if move.lower() == RESIGN:
                return 0.0
            if move == WIN:
                return 1.0
            if not move:
                return self._ask(game)[1]
            played = self._kind.read_answer(game, move).move
            assert played is not None, "it declares no win"
            after = game.copy()
            after.push(played)
            said = self._ask(after)[1]
            return None if said is None else 1.0 - said

        found: float | None = self._sayings.of((self.name, position, move), ask)
        return found

    def close(self) -> None:
        """End it."""
        if self._client is not None:
            self._client.close()

    def _ask(self, game: G) -> tuple[str, float | None]:
        if self._client is None:
            self._client = self._kind.client(self._spec, timeout=START_TIMEOUT)
        clock = TimeSettings()
        self._kind.set_up(self._client, game, clock)
        moves = [self._kind.format_move(game, move) for _, move in game.moves]
        color, free = game.side_to_move, GameClock(clock, 0.0)
        answer = self._client.choose(self._kind.start_of(game), moves, color, {color: free, opponent(color): free})
        return answer.move, None if answer.evaluation is None else answer.evaluation.winrate


def read_positions(path: Path, kind: MatchGame[Any], rules: dict[str, Any], begin: int, step: int) -> Iterator[str]:
    """Yield positions of games as openings of a match are written, each once; the first of all games come first.

    Args:
        path: a record, or a folder of records.
        kind: the game.
        rules: as the method `rules` of `kind` returns them.
        begin: moves before the first position of a game.
        step: moves between two of them.

    Raises:
        PositionError: a file cannot be read.
    """
    files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    lines = []
    for file in files:
        try:
            for number, record in enumerate(kind.load_records(file)):
                whole = kind.begin(rules, kind.opening_of(record, None, rules))
                plies = range(begin, len(whole.moves), step)
                cut = kind.load_records(file)[number]
                lines.append([kind.opening_of(cut, ply, rules) for ply in reversed(plies)][::-1])
        except ValueError as error:
            raise PositionError(fault_of(file, error)) from None
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
    path: Path | None,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Ask all engines about all positions; return a row for each.

    Args:
        specs: the engines; the first is what the others are compared with.
        judge: the engine that judges.
        kind: the game.
        rules: as the method `rules` of `kind` returns them.
        positions: as openings of a match are written.
        balance: positions in which the judge gives a side less than this are left out.
        path: of the file with all that was said; None keeps nothing.
        say: told of the progress, line by line.

    Raises:
        PositionError: the file has something else.
        EngineError: an engine fails.
    """
    with contextlib.ExitStack() as stack:
        sayings = stack.enter_context(contextlib.closing(Sayings(path)))
        judging = stack.enter_context(contextlib.closing(Asked(judge, kind, sayings)))
        players = [stack.enter_context(contextlib.closing(Asked(spec, kind, sayings))) for spec in specs]
        worth: list[list[float]] = [[] for _ in players]
        differs = [0] * len(players)
        for number, position in enumerate(positions, 1):
            game = kind.begin(rules, position)
            winrate = judging.winrate(position, game)
            if winrate is None or not balance <= winrate <= 1.0 - balance:
                continue
            moves = [player.choice(position, game) for player in players]
            values = dict.fromkeys(moves, winrate)
            if len(values) > 1:
                values = {move: judging.winrate(position, game, move) or 0.0 for move in values}
            for index, move in enumerate(moves):
                worth[index].append(values[move] - values[moves[0]])
                differs[index] += move != moves[0]
            if number % 100 == 0:
                say(f"{number} positions, {len(worth[0])} of them even: " + ", ".join(map(_shown, worth)))
    return [
        {
            "player": spec.name,
            "positions": len(gained),
            "differs": share / max(1, len(gained)),
            "gained_per_10000": 1e4 * _mean(gained),
            "standard_error": 1e4 * _error(gained),
        }
        for spec, gained, share in zip(specs, worth, differs, strict=True)
    ]


def _shown(values: Sequence[float]) -> str:
    return f"{1e4 * _mean(values):+.0f} ± {1e4 * _error(values):.0f}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _error(values: Sequence[float]) -> float:
    mean, count = _mean(values), len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, count * (count - 1)))
