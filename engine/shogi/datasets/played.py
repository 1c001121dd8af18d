"""`yomi dataset play shogi`: games of a USI engine against itself, as hcpe files.

    played.json                     settings of the positions
    games-000000-000131.hcpe        new positions of the games with these numbers

The content does not depend on the number of engines (if an engine repeats its play). A killed run continues after the
last game in a file; a run that ends for another reason writes its finished games.
"""

import itertools
import json
import math
import os
import queue
import random
import re
import time
from collections import Counter, deque
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from yomi.engine.clients.client import RESIGN, EngineError
from yomi.engine.clients.spec import EngineLimits, EngineSpec, SpecError, is_own, parse_spec
from yomi.engine.clients.usi import UsiClient
from yomi.engine.clock import UNLIMITED
from yomi.engine.clusters.actors import ClusterError, ClusterOptions, Places, Recipe
from yomi.engine.clusters.units import IN_ORDER, UnitPool, UnitWorker
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.datasets.settings import filled
from yomi.engine.datasets.shards import Log, ShardWork
from yomi.engine.matches.games import Adjudicator
from yomi.engine.matches.remote import placed
from yomi.engine.play import play_game
from yomi.engine.players.request import Decision
from yomi.engine.records import CENTIPAWNS
from yomi.engine.shogi.datasets.rows import MARKS, records_of
from yomi.engine.shogi.game import ShogiGame, ShogiReferee
from yomi.engine.shogi.notation import NotationError, format_usi, parse_usi
from yomi.engine.shogi.placement import format_sfen
from yomi.engine.shogi.records.files import load_records
from yomi.engine.shogi.records.packed import HCPE_DTYPE, pack, pack_game
from yomi.engine.shogi.records.record import GameRecord, RecordError
from yomi.engine.shogi.settings import PlayShogiDataSettings, ShogiPlayOptions
from yomi.errors import IllegalMove, reraised
from yomi.nets.errors import NetworkError
from yomi.nets.files import name_with_digest, remove_drafts, write_atomically
from yomi.nets.text import first_difference, parse_json
from yomi.settings import OptionError

# Moves sent with a position, enough to detect a repetition. Fairy-Stockfish takes 15 µs a move: after 120 plies the
# whole game would take the time of 400 nodes.
SENT_PLIES = 8
MANIFEST = "played.json"
FORMAT = 1
FAILURES = 3  # consecutive failed games of an engine that end the run; other failed games are left out
MAX_STALE_GAMES = 100  # consecutive games without a new position that end the run; nothing else would end it


def play_dataset(folder: Path, settings: PlayShogiDataSettings, work: ShardWork, log: Log) -> str:
    """See Game.play_dataset."""
    from yomi.engine.shogi.descriptor import GAME

    path = Path(settings.openings) if settings.openings else None
    engine = reraised(EngineError, OptionError, f"--engine {settings.engine}: ")
    with engine, reraised((SpecError, RecordError), OptionError):
        spec = parse_spec(settings.engine, GAME.name, GAME.protocol)
        openings = load_records(path) if path else []
        GAME.compile(log)
        options = filled(ShogiPlayOptions, settings, openings=name_with_digest(path) if path else "")
        processes = settings.processes or os.cpu_count() or 1
        total = play_shogi_positions(folder, options, settings.positions, spec, openings, processes, log, work.cluster)
    return f"{total} positions in {folder}"


@dataclass(frozen=True, slots=True)
class PlayedPositions:
    number: int  # of the game
    winner: int  # BLACK, WHITE or DRAW
    ending: str  # an ending of yomi.engine.play
    plies: int
    rows: Sequence[tuple[bytes, int, int]]  # packed board, centipawns for the side to move, move


# The games of a run in order, without an end, each with its positions or why the engine failed.
Games: TypeAlias = Generator[PlayedPositions | str, None, None]


def play_positions(
    engine: UsiClient, options: ShogiPlayOptions, openings: Sequence[GameRecord], number: int
) -> PlayedPositions:
    """Play one game. Its number and the seed determine opening and random moves.

    The game begins with moves of a random opening, up to a random ply, or at the usual position if there are no
    openings. Raises EngineError if the engine fails or plays an illegal move, RecordError for a bad opening.
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
        """Return a game after some moves of an opening and some random moves."""
        opening = self.rng.choice(openings) if openings else GameRecord()
        game = ShogiGame(format_sfen(opening.initial), max_moves=self.options.max_moves)
        for recorded in opening.moves[: self.rng.randint(0, len(opening.moves))]:
            self.sfens.append(game.sfen())
            with reraised(IllegalMove, RecordError, "an opening: "):
                game.play(recorded.move)
        self.engine.new_game()
        for _ in range(self.rng.randint(1, self.options.opening_moves) if self.options.opening_moves else 0):
            if not game.is_over:
                self.sfens.append(game.sfen())
                game.play(self.rng.choice(game.legal_moves()))
        return game

    def choose(self, game: ShogiGame) -> Decision:
        """Return a random move or the engine's move. Store the position if the engine evaluated it."""
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
    """Play until the folder contains enough different positions. Return their number.

    The games are played by `processes` engines on this machine, or by the actors of a cluster. The options must not
    change when a run is continued. The last game is kept whole.

    Raises NetworkError for other positions or a broken file in the folder, or games without new positions; EngineError,
    RecordError, OSError.
    """
    files = _Files(folder, options)
    if files.total:
        log(f"{files.total} positions of {files.next_game} games are there")
    if files.total < positions:
        begin, before = time.perf_counter(), files.total
        spec = replace(spec, limits=spec.limits.over(EngineLimits(nodes=options.nodes)))
        player = options, spec, openings, is_own(spec)
        if cluster is None:
            games = _games_here(files.next_game, [GamePlayer({}, *player) for _ in range(processes)])
        else:
            games = _games_there(cluster, Recipe(GamePlayer, player), files.next_game, log)
        try:
            for played in games:
                if isinstance(played, str):
                    log(f"game {files.next_game} left out: {played}")
                if files.add(played) or files.total >= positions:
                    rate = (files.total - before) / (time.perf_counter() - begin)
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

    def add(self, played: PlayedPositions | str) -> bool:
        """Add the next game, or the reason why it failed. Return whether a file is complete."""
        self.next_game += 1
        if isinstance(played, PlayedPositions):
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
        """Write the settings into a new folder, or compare them with the settings in an existing folder."""
        path = self.folder / MANIFEST
        wanted = {"yomi-played": FORMAT, **asdict(self.options)}
        if not path.exists():
            write_atomically(path, (json.dumps(wanted, indent=1) + "\n").encode(), sync=True)
            return
        try:
            found = parse_json(path.read_bytes())
        except ValueError as error:
            raise NetworkError(f"{path}: broken JSON ({error})") from None
        if found != wanted:
            name, was, now = first_difference("", found, wanted)
            raise NetworkError(f"{path}: {name} {was!r} found, expected {now!r}, or a new folder")


class GamePlayer(UnitWorker):
    """Plays games with one engine, in an actor or a thread. A unit of work is the number of a game.

    The engine starts with the first game, and again after a failure.
    """

    def __init__(
        self,
        places: Places,
        options: ShogiPlayOptions,
        spec: EngineSpec,
        openings: Sequence[GameRecord],
        is_yomi: bool,
    ) -> None:
        super().__init__()
        self._options, self._spec, self._openings = options, placed(spec, places, is_yomi), openings
        self._engine: UsiClient | None = None
        self._failures = 0
        self._is_over = False

    def work(self, number: int, payload: Any = None) -> PlayedPositions | str:
        """Return a game, or why the engine failed. Raises EngineError if it does not start, or fails repeatedly."""
        self._engine = self._engine or UsiClient(self._spec)
        if self._is_over:
            raise EngineError("the run is over")
        try:
            played = play_positions(self._engine, self._options, self._openings, number)
        except EngineError as error:
            self._failures += 1
            if self._failures == FAILURES:
                raise
            self.close()
            return str(error)
        self._failures = 0
        return played

    def kill(self) -> None:
        """End the engine at once, also while another thread waits for its move."""
        self._is_over = True
        if (engine := self._engine) is not None:
            engine.process.kill()

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
        self._engine = None


def _games_here(first: int, players: Sequence[GamePlayer]) -> Games:
    """Yield games in order from game `first` on, without an end. Each player has a thread."""
    idle = queue.SimpleQueue[GamePlayer]()
    for player in players:
        idle.put(player)

    def play(number: int) -> PlayedPositions | str:
        player = idle.get()
        try:
            return player.work(number)
        finally:
            idle.put(player)

    with ThreadPoolExecutor(len(players), "engine") as pool:
        # Games end in any order, and files need them in order.
        begun = deque(pool.submit(play, number) for number in range(first, first + IN_ORDER * len(players)))
        try:
            for number in itertools.count(first + len(begun)):
                yield begun.popleft().result()
                begun.append(pool.submit(play, number))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for player in players:
                player.kill()
            pool.shutdown()
            for player in players:
                player.close()


def _games_there(cluster: ClusterOptions, recipe: Recipe, first: int, log: Log) -> Games:
    """Yield games of a cluster's actors, like `_games_here`. Raises ClusterError."""
    with UnitPool(cluster, lambda actors: (recipe, 1), log) as pool:
        for _, played in pool.run(((number, None) for number in itertools.count(first)), in_order=True):
            yield played
