"""`yomi dataset play shogi`: games of a USI engine against itself, as hcpe files.

    played.json                     settings of the positions
    games-000000-000131.hcpe        new positions of the games with these numbers

The content does not depend on the number of engines (if an engine repeats its play). A killed run continues after the
last game in a file; a run that ends for another reason writes its finished games.
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
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from yomi.engine.clients.client import RESIGN, EngineError
from yomi.engine.clients.spec import EngineLimits, EngineSpec
from yomi.engine.clients.usi import UsiClient
from yomi.engine.clock import UNLIMITED
from yomi.engine.clusters.actors import ClusterError, ClusterOptions
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.datasets.making import Log
from yomi.engine.matches.games import Adjudicator
from yomi.engine.play import play_game
from yomi.engine.players.request import Decision
from yomi.engine.records import CENTIPAWNS
from yomi.engine.shogi.datasets.rows import MARKS, records_of
from yomi.engine.shogi.game import ShogiGame, ShogiReferee
from yomi.engine.shogi.notation import NotationError, format_usi, parse_usi
from yomi.engine.shogi.placement import format_sfen
from yomi.engine.shogi.records.packed import HCPE_DTYPE, pack, pack_game
from yomi.engine.shogi.records.record import GameRecord, RecordError
from yomi.errors import IllegalMove
from yomi.nets.errors import NetworkError
from yomi.nets.files import remove_drafts, write_atomically
from yomi.nets.text import parse_json

# Moves sent with a position, enough to detect a repetition. Fairy-Stockfish takes 15 µs a move: after 120 plies the
# whole game would cost as much as 400 nodes.
SENT_PLIES = 8
MANIFEST = "played.json"
FORMAT = 1
FAILURES = 3  # consecutive failed games of an engine that end the run; other failed games are left out

MAX_STALE_GAMES = 100  # consecutive games without a new position that end the run; nothing else would end it


@dataclass(frozen=True)
class ShogiPlayOptions:
    """Settings that determine the positions; stored with them."""

    engine: str  # command line with settings
    nodes: int  # of each move
    openings: str = ""  # name of the file and its digest
    opening_moves: int = 8  # random moves after the opening: 1 to this number, 0 for none
    random_moves: float = 0.02  # share of later moves drawn from all legal moves
    resign_score: int = 3000  # centipawns beyond which a side counts as lost
    resign_moves: int = 3  # consecutive moves of each side with this score that end the game
    max_moves: int = 320  # a game is drawn after this many moves, its opening included
    shard_rows: int = 16384  # positions that complete a file, those of the current game included
    seed: int = 1


@dataclass(frozen=True, slots=True)
class PlayedPositions:
    number: int  # of the game
    winner: int  # BLACK, WHITE or DRAW
    ending: str  # an ending of yomi.engine.play
    plies: int
    rows: Sequence[tuple[bytes, int, int]]  # packed board, centipawns for the side to move, move


def play_positions(
    engine: UsiClient, options: ShogiPlayOptions, openings: Sequence[GameRecord], number: int
) -> PlayedPositions:
    """Play one game. Its number and the seed determine opening and random moves.

    One of the openings is played up to a random ply; none: the usual position. Raises EngineError if the engine fails
    or plays an illegal move, RecordError for a bad opening.
    """
    side = _BothSides(engine, options, number)
    game = side.begin(openings)
    ended = play_game(game, {BLACK: side, WHITE: side}, side.referee)
    return PlayedPositions(number, ended.winner, ended.ending, len(game.moves), side.rows)


class _BothSides:
    def __init__(self, engine: UsiClient, options: ShogiPlayOptions, number: int) -> None:
        self.engine, self.options = engine, options
        # A game can be repeated alone, whatever was played before it.
        self.rng = random.Random(f"{options.seed} {number}")
        # The adjudicator thinks in winrates.
        lost = 1.0 / (1.0 + math.exp(options.resign_score / CENTIPAWNS))
        self.referee = Adjudicator(ShogiReferee(), lost, options.resign_moves)
        self.rows: list[tuple[bytes, int, int]] = []
        self.sfens: list[str] = []  # SFEN before each move

    def begin(self, openings: Sequence[GameRecord]) -> ShogiGame:
        """Return a game after moves of an opening and random moves."""
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
        """Return a random move or the engine's. Keep the position if the engine evaluated it."""
        if game.can_declare:
            return Decision(None, win=True)
        self.sfens.append(game.sfen())
        if self.rng.random() < self.options.random_moves:  # a position without a label
            return Decision(self.rng.choice(game.legal_moves()))
        color = game.side_to_move
        first = max(len(game.moves) - SENT_PLIES, 0)
        moves = [format_usi(move) for _, move in game.moves[first:]]
        answer = self.engine.choose(self.sfens[first], moves, color, UNLIMITED)
        if answer.move == RESIGN:
            return Decision(None, resign=True)
        try:
            move = parse_usi(answer.move)
            game.check(move)
        except (NotationError, IllegalMove) as error:
            raise EngineError(f"{error} in {self.sfens[-1]}") from None
        self.referee.add_evaluation(color, answer.evaluation)
        if answer.evaluation is not None and answer.evaluation.score is not None:
            self.rows.append((pack(game.placement), round(answer.evaluation.score), move))
        return Decision(move)


def play_shogi_positions(
    folder: Path,
    options: ShogiPlayOptions,
    positions: int,
    spec: EngineSpec,
    openings: Sequence[GameRecord],
    processes: int,
    log: Log,
    cluster: ClusterOptions | None = None,
) -> int:
    """Play until the folder contains enough different positions; return their number.

    `processes` engines play here, or the actors of a cluster.

    The options must not change when a run is continued. The last game is kept whole. Raises NetworkError for other
    positions or a broken file in the folder, or games without new positions; EngineError, RecordError, OSError.
    """
    files = _Files(folder, options)
    if files.total:
        log(f"{files.total} positions of {files.next_game} games are there")
    if files.total < positions:
        begin, before = time.monotonic(), files.total
        spec = replace(spec, limits=spec.limits.over(EngineLimits(nodes=options.nodes)))
        if cluster is None:
            games = _EnginePool(options, spec, openings, files.next_game, log).run(processes)
        else:
            from yomi.engine.shogi.datasets.played_units import games_on_cluster

            games = games_on_cluster(cluster, options, spec, openings, files.next_game, log)
        try:
            for played in games:
                if files.add(played) or files.total >= positions:
                    rate = (files.total - before) / (time.monotonic() - begin)
                    log(f"{files.write()}: {files.total} positions in all, {rate:.0f}/s")
                if files.total >= positions:
                    break
        except (KeyboardInterrupt, ClusterError, EngineError, RecordError, NetworkError):
            files.write()
            raise
        finally:
            games.close()
    return files.total


class _Files:
    """The files of a folder, and the games that are not written yet."""

    def __init__(self, folder: Path, options: ShogiPlayOptions) -> None:
        self.folder, self.options = folder, options
        folder.mkdir(parents=True, exist_ok=True)
        self._compare()
        self.total = 0  # positions, unwritten ones included
        self._seen: set[int] = set()  # hashes of all positions
        self.next_game = 0
        self._first_game = 0  # first game of the next file
        self._last_game = -1  # last finished game; later failures are tried again
        self._stale_games = 0  # games since the last new position
        self._parts: list[bytes] = []
        self._endings = Counter[str]()
        remove_drafts(folder)
        for path in sorted(folder.glob("games-*.hcpe")):
            self._read(path)

    def add(self, played: PlayedPositions | None) -> bool:
        """Add the next game (None: failed), and return whether a file is complete."""
        self.next_game += 1
        if played is not None:
            self._last_game = self.next_game - 1
            chosen = [row for row in played.rows if self._is_new(row[0])]
            self._stale_games = 0 if chosen else self._stale_games + 1
            if self._stale_games == MAX_STALE_GAMES:
                raise NetworkError(f"{MAX_STALE_GAMES} games without a new position found, expected more random moves")
            self._parts.append(pack_game(chosen, played.winner, 1 + played.number % MARKS))
            self._endings[{BLACK: "Black", WHITE: "White", DRAW: "drawn"}[played.winner]] += 1
            self._endings[played.ending] += 1
        return sum(map(len, self._parts)) >= self.options.shard_rows * HCPE_DTYPE.itemsize

    def write(self) -> str:
        """Write the unwritten games, and return a description of them."""
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
        """Return whether a position is new, and remember it."""
        # 8 bytes instead of 32 for each of millions of positions; a collision costs one position.
        key = hash(packed)
        if key in self._seen:
            return False
        self._seen.add(key)
        self.total += 1
        return True

    def _read(self, path: Path) -> None:
        found = re.fullmatch(r"games-(\d{6,})-(\d{6,})\.hcpe", path.name)
        if found is None or int(found[1]) < self.next_game:
            raise NetworkError(f"{path}: expected games-FIRST-LAST.hcpe, no game twice")
        for packed in records_of(path, HCPE_DTYPE)["hcp"]:
            self._is_new(packed.tobytes())
        self._last_game = int(found[2])
        self.next_game = self._first_game = self._last_game + 1

    def _compare(self) -> None:
        """Write the settings, or compare them with those of the folder."""
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


# Number and positions of a game (None: failed), or the error that ends the run.
Done = tuple[int, PlayedPositions | BaseException | None]


class _EnginePool:
    def __init__(
        self, options: ShogiPlayOptions, spec: EngineSpec, openings: Sequence[GameRecord], first_game: int, log: Log
    ) -> None:
        self.options, self.openings, self.log, self.spec = options, openings, log, spec
        self._first_game = first_game
        self._numbers = itertools.count(first_game)
        self._done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._clients: dict[int, UsiClient] = {}  # by thread
        self._threads: list[threading.Thread] = []

    def run(self, processes: int) -> Generator[PlayedPositions | None, None, None]:
        """Start the engines and yield their games in order, without an end. The engines end with the generator."""
        try:
            for index in range(processes):
                self._threads.append(threading.Thread(target=self._work, args=(index,), name=f"engine {index}"))
                self._threads[-1].start()
            # Games end in any order, and files need them in order.
            waiting: dict[int, PlayedPositions | None] = {}
            for number in itertools.count(self._first_game):
                while number not in waiting:
                    which, what = self._done.get()
                    if isinstance(what, BaseException):
                        raise what
                    waiting[which] = what
                yield waiting.pop(number)
        finally:
            self.close()

    def close(self) -> None:
        """End the engines. Unfinished games are lost."""
        self._stopped.set()
        for client in list(self._clients.values()):
            # A thread may wait for its engine, which would play on.
            client.process.kill()
        for thread in self._threads:
            thread.join()

    def _work(self, index: int) -> None:
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
