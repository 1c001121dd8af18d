"""`yomi dataset play shogi`: games of a USI engine with itself, several side by side, as hcpe files.

    played.json                     how the positions were made
    games-000000-000131.hcpe        the positions of the games of these numbers, without those of earlier ones

Games are numbered, and their positions are written in the order of these numbers: what is in the files does not depend
on how many engines play at a time (where an engine plays the same again). A file appears when it is complete; a run
that was killed goes on with the game behind the last one that is in a file. One that ends for another reason writes the
games that it has.

The engine evaluates every position in which it chooses a move, so that each of these makes a training position: with
its evaluation, its move, and the game's result. Games begin with an opening and random moves; some later moves are
random, too, and positions in which one was played have no label and are left out.
"""

from __future__ import annotations

import itertools
import json
import math
import queue
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from yomi.engine.clients.client import RESIGN
from yomi.engine.clients.limits import EngineLimits, GameClock
from yomi.engine.clients.process import EngineError
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.clients.usi import CENTIPAWNS, UsiClient
from yomi.engine.clock import TimeSettings
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.datasets.making import Log
from yomi.engine.matches.games import Adjudicator
from yomi.engine.play import play_game
from yomi.engine.players.request import Decision
from yomi.engine.shogi.datasets.rows import MARKS, records_of
from yomi.engine.shogi.game import IllegalMove, ShogiGame
from yomi.engine.shogi.notation import NotationError, format_usi, parse_usi
from yomi.engine.shogi.records.hcpe import HCPE_DTYPE, MAX_SCORE, RESULTS, pack
from yomi.engine.shogi.records.record import GameRecord, RecordError
from yomi.engine.shogi.referee import ShogiReferee
from yomi.engine.shogi.sfen import format_sfen
from yomi.nets.errors import NetworkError
from yomi.nets.files import remove_drafts, write_atomically
from yomi.nets.text import parse_json

SHOWN_PLIES = 8
"""Moves before a position that the engine is shown, enough for it to see a repetition. Fairy-Stockfish takes 15 µs for
each: after 120 plies the whole game would cost as much as 400 nodes."""
MANIFEST = "played.json"
FORMAT = 1
FAILURES = 3
"""Games of an engine, one after the other, that fail until the run ends. A single one is left out."""

BARREN_GAMES = 100
"""Games one after the other without a new position until the run ends: nothing else would end it."""


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
    """How it ended, as `yomi.engine.play` names it."""
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
    side = _Side(engine, options, number)
    game = side.begin(openings)
    ended = play_game(game, {BLACK: side, WHITE: side}, side.referee)
    return PlayedPositions(number, ended.winner, ended.ending, len(game.moves), side.rows)


class _Side:
    """Both sides of a game."""

    def __init__(self, engine: UsiClient, options: ShogiPlayOptions, number: int) -> None:
        self.engine, self.options = engine, options
        self.rng = random.Random(f"{options.seed} {number}")
        lost = 1.0 / (1.0 + math.exp(options.resign_score / CENTIPAWNS))
        self.referee = Adjudicator(ShogiReferee(), lost, options.resign_moves)
        self.clocks = {color: GameClock(TimeSettings(), 0.0) for color in (BLACK, WHITE)}
        self.rows: list[tuple[bytes, int, int]] = []
        self.sfens: list[str] = []
        """Of the positions before each move."""

    def begin(self, openings: Sequence[GameRecord]) -> ShogiGame:
        """Return a game after moves of an opening, and random ones."""
        opening = self.rng.choice(openings) if openings else GameRecord()
        game = ShogiGame(format_sfen(opening.initial), max_moves=self.options.max_moves)
        for recorded in opening.moves[: self.rng.randint(0, len(opening.moves))]:
            self.sfens.append(game.sfen())
            try:
                game.play(recorded.move)
            except IllegalMove as error:
                raise RecordError(f"an opening: {error}") from None
        self.engine.new_game()
        for _ in range(self.rng.randint(1, self.options.opening_moves) if self.options.opening_moves else 0):
            if not game.is_over:
                self.sfens.append(game.sfen())
                game.play(self.rng.choice(game.legal_moves()))
        return game

    def choose(self, game: ShogiGame) -> Decision:
        """Return a random move, or the engine's, whose position is kept if it said what it thinks of it."""
        if game.can_declare:
            return Decision(None, win=True)
        self.sfens.append(game.sfen())
        if self.rng.random() < self.options.random_moves:
            return Decision(self.rng.choice(game.legal_moves()))
        color = game.side_to_move
        first = max(len(game.moves) - SHOWN_PLIES, 0)
        moves = [format_usi(move) for _, move in game.moves[first:]]
        answer = self.engine.choose(self.sfens[first], moves, color, self.clocks)
        if answer.move == RESIGN:
            return Decision(None, resign=True)
        try:
            move = parse_usi(answer.move)
            game.check(move)
        except (NotationError, IllegalMove) as error:
            raise EngineError(f"{error} in {self.sfens[-1]}") from None
        self.referee.add_evaluation(color, answer.evaluation)
        if answer.evaluation is not None and answer.evaluation.score is not None:
            score = round(min(max(answer.evaluation.score, -MAX_SCORE), MAX_SCORE))
            self.rows.append((pack(game.placement), score, move))
        return Decision(move)


def play_shogi_positions(
    folder: Path,
    options: ShogiPlayOptions,
    positions: int,
    spec: EngineSpec,
    openings: Sequence[GameRecord],
    processes: int,
    log: Log,
) -> int:
    """Play until there are so many different positions in the folder, and return how many there are.

    Args:
        folder: of the files; made where it does not exist.
        options: of the set; the same as before where some of it is there.
        positions: of the whole set, at least; those of the last game are all there.
        spec: the engine.
        openings: to begin with; may be empty.
        processes: engines that play at the same time.
        log: for lines of progress.

    Raises:
        NetworkError: the folder holds other positions, or a file that is broken, or games bring nothing new.
        EngineError: the engine does not start, or fails again and again.
        RecordError: an opening cannot be played.
        OSError: the folder cannot be written.
    """
    files = _Files(folder, options)
    if files.total:
        log(f"{files.total} positions of {files.next_game} games are there")
    if files.total < positions:
        crew = _Crew(options, spec, openings, files.next_game, log)
        begin, before = time.monotonic(), files.total
        try:
            for played in crew.run(processes):
                if files.add(played) or files.total >= positions:
                    rate = (files.total - before) / (time.monotonic() - begin)
                    log(f"{files.write()}: {files.total} positions in all, {rate:.0f}/s")
                if files.total >= positions:
                    break
        except (KeyboardInterrupt, EngineError, RecordError, NetworkError):
            files.write()
            raise
        finally:
            crew.close()
    return files.total


class _Files:
    """The files of a folder, and the games that are not in one yet."""

    def __init__(self, folder: Path, options: ShogiPlayOptions) -> None:
        self.folder, self.options = folder, options
        folder.mkdir(parents=True, exist_ok=True)
        self._compare()
        self.total = 0
        """Positions, those that are not in a file yet included."""
        self._seen: set[int] = set()
        """Hashes of them."""
        self.next_game = 0
        self._first_game = 0
        """Of the file that comes next."""
        self._last_game = -1
        """The last that was played to its end: failures behind it are tried again."""
        self._barren = 0
        """Games since the last new position."""
        self._parts: list[bytes] = []
        self._endings = Counter[str]()
        remove_drafts(folder)
        for path in sorted(folder.glob("games-*.hcpe")):
            self._read(path)

    def add(self, played: PlayedPositions | None) -> bool:
        """Take the next game, None for one that failed, and return whether there is enough for a file.

        Raises:
            NetworkError: games have brought nothing new for too long.
        """
        self.next_game += 1
        if played is not None:
            self._last_game = self.next_game - 1
            chosen = [index for index, row in enumerate(played.rows) if self._is_new(row[0])]
            self._barren = 0 if chosen else self._barren + 1
            if self._barren == BARREN_GAMES:
                raise NetworkError(f"{BARREN_GAMES} games without a new position found, expected more random moves")
            self._parts.append(played.records(chosen))
            self._endings[{BLACK: "Black", WHITE: "White", DRAW: "drawn"}[played.winner]] += 1
            self._endings[played.ending] += 1
        return sum(map(len, self._parts)) >= self.options.shard_rows * HCPE_DTYPE.itemsize

    def write(self) -> str:
        """Write the games that are in no file yet, and return what they were."""
        data = b"".join(self._parts)
        games = self._last_game + 1 - self._first_game
        text = ", ".join(f"{count} {name}" for name, count in self._endings.most_common())
        if data:
            path = self.folder / f"games-{self._first_game:06d}-{self._last_game:06d}.hcpe"
            write_atomically(path, data, sync=True)
        self._first_game = self._last_game + 1
        self._parts.clear()
        self._endings.clear()
        return f"{games} games ({text})"

    def _is_new(self, packed: bytes) -> bool:
        """Whether a position has not come up before; it has from now on."""
        key = hash(packed)
        if key in self._seen:
            return False
        self._seen.add(key)
        self.total += 1
        return True

    def _read(self, path: Path) -> None:
        """Take over a file of an earlier run."""
        found = re.fullmatch(r"games-(\d{6,})-(\d{6,})\.hcpe", path.name)
        if found is None or int(found[1]) < self.next_game:
            raise NetworkError(f"{path}: expected games-FIRST-LAST.hcpe, no game twice")
        for packed in records_of(path, HCPE_DTYPE)["hcp"]:
            self._is_new(packed.tobytes())
        self._last_game = int(found[2])
        self.next_game = self._first_game = self._last_game + 1

    def _compare(self) -> None:
        """Write how the positions are made, or see that those of the folder are made in the same way."""
        path = self.folder / MANIFEST
        wanted = {"yomi-played": FORMAT, **asdict(self.options)}
        if not path.exists():
            write_atomically(path, (json.dumps(wanted, indent=1) + "\n").encode(), sync=True)
            return
        try:
            found = parse_json(path.read_bytes())
        except ValueError as error:
            raise NetworkError(f"{path}: broken JSON ({error})") from None
        for name, value in wanted.items():
            if not isinstance(found, dict) or found.get(name) != value:
                was = found.get(name) if isinstance(found, dict) else found
                raise NetworkError(f"{path}: {name} {was!r} found, expected {value!r}, or a new folder")


Done = tuple[int, PlayedPositions | BaseException | None]
"""Number of a game, and its positions; None where it failed, or what ends the run."""


class _Crew:
    """Engines that play at the same time, each in a thread with one game after the other."""

    def __init__(
        self, options: ShogiPlayOptions, spec: EngineSpec, openings: Sequence[GameRecord], first_game: int, log: Log
    ) -> None:
        self.options, self.openings, self.log = options, openings, log
        self.spec = replace(spec, limits=spec.limits.over(EngineLimits(nodes=options.nodes)))
        self._first_game = first_game
        self._numbers = itertools.count(first_game)
        self._done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._clients: dict[int, UsiClient] = {}
        """By thread."""
        self._threads: list[threading.Thread] = []

    def run(self, processes: int) -> Iterator[PlayedPositions | None]:
        """Start the engines and yield their games by their numbers, without an end.

        Raises:
            EngineError: an engine does not start, or fails again and again.
            RecordError: an opening cannot be played.
        """
        for index in range(processes):
            self._threads.append(threading.Thread(target=self._work, args=(index,), name=f"engine {index}"))
            self._threads[-1].start()
        waiting: dict[int, PlayedPositions | None] = {}
        for number in itertools.count(self._first_game):
            while number not in waiting:
                which, what = self._done.get()
                if isinstance(what, BaseException):
                    raise what
                waiting[which] = what
            yield waiting.pop(number)

    def close(self) -> None:
        """End the engines; games under way are lost."""
        self._stopped.set()
        for client in list(self._clients.values()):
            client.process.kill()
        for thread in self._threads:
            thread.join()

    def _work(self, index: int) -> None:
        """Play one game after the other."""
        failures = 0
        try:
            while not self._stopped.is_set():
                if index not in self._clients:
                    self._clients[index] = UsiClient(self.spec)
                    continue  # meanwhile it may be over
                number = next(self._numbers)
                try:
                    played = play_positions(self._clients[index], self.options, self.openings, number)
                    failures = 0
                    self._done.put((number, played))
                except EngineError as error:
                    failures += 1
                    if failures == FAILURES or self._stopped.is_set():
                        raise
                    self.log(f"game {number} left out: {error}")
                    self._clients.pop(index).close()
                    self._done.put((number, None))
        except BaseException as error:
            self._done.put((-1, error))
        finally:
            if index in self._clients:
                self._clients[index].close()
