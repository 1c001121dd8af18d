"""Converts game records to rows of numbers, chooses games and results, and writes positions as columns of a data set.

The rows of games are cached in parts beside the data set.
"""

import hashlib
import itertools
import logging
import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, WHITE
from yomi.engine.datasets.making import sgf_texts
from yomi.engine.datasets.shards import Columns
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import handicap_stones
from yomi.engine.go.record_files import each_record
from yomi.engine.go.rules import GUESS, Rules
from yomi.engine.go.scoring import read_result
from yomi.engine.go.sgf import GameRecord, SgfError
from yomi.engine.play import RESIGNATION
from yomi.engine.records import LeftOut
from yomi.errors import one_line
from yomi.native.datasets.go_games import COLOR_SHIFT, GAME_DTYPE, POINT_MASK, black_wins, replay
from yomi.native.go.aya import AYA_SCRATCH_DTYPE, VALUE_PLANES, write_aya
from yomi.native.go.board import POSITION_DTYPE
from yomi.native.go.outputs import write_stones
from yomi.native.go.planes import policy_index, write_planes
from yomi.native.go.rules import MAX_HISTORY
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.nets.arrays import read_npz
from yomi.nets.data.columns import COLUMNS
from yomi.nets.data.shards import widths
from yomi.nets.errors import NetworkError
from yomi.nets.files import atomic_writer, remove_drafts, source_digest
from yomi.nets.metadata import FeatureSet
from yomi.processes import CONTEXT

_log = logging.getLogger("yomi.datasets")

READER = 3  # Version of the reader. Parts of other versions are read again.
PART_GAMES = 4096
PIECE_GAMES = 256  # Games that a process reads at once. Up to this many are read without extra processes.
ROLLOUT_SHARE = 0.6  # share of the rollouts from the last position that must confirm a result (as in Aya)
MAX_HANDICAP = 255  # maximum stones that a row can store
RULE_FIELDS = ("ko_rule", "scoring", "tax", "suicide", "friendly_pass")


@dataclass(frozen=True)
class GameTable:
    games: npt.NDArray[np.void]  # GAME_DTYPE[n]
    codes: npt.NDArray[np.uint16]  # stones and moves of all games, one after the other

    def moves(self, index: int) -> npt.NDArray[np.uint16]:
        """Return the codes of one game, set-up stones first."""
        game = self.games[index]
        start = int(game["start"])
        return self.codes[start : start + int(game["stones"]) + int(game["moves"])]

    def only(self, keep: npt.NDArray[np.bool_]) -> "GameTable":
        """Return a table of the games in the mask `keep`; it shares the codes."""
        return GameTable(self.games[keep], self.codes)


def game_row(record: GameRecord, rules: Rules | None) -> tuple[npt.NDArray[np.void], list[int]]:
    """Return a game as a row (with start 0) and its codes, up to the first move off the board. Raises SgfError."""
    has_fault = any(node.fault for node in record.line())
    game: GoGame = record.game(rules=rules, override_rules=record.rules is None, cut=has_fault)
    row = np.zeros(1, GAME_DTYPE)
    row["stones"], row["moves"], row["size"] = len(game.setup), len(game.moves), game.board.side
    row["side"], row["komi"] = game.initial_side, float(game.position["komi"])
    for name in RULE_FIELDS:
        row[name] = game.position[name]
    winner, ending, row["margin"] = read_result(record.result)
    row["winner"], row["resigned"] = -1 if winner is None else winner, ending == RESIGNATION
    handicap = max(record.handicap, handicap_stones(game.setup, game.moves))
    if handicap > MAX_HANDICAP:
        raise SgfError(f"a handicap of {handicap}: expected at most {MAX_HANDICAP} stones")
    row["handicap"] = handicap
    return row, [color << COLOR_SHIFT | point for color, point in (*game.setup, *game.moves)]


def read_games(
    paths: Sequence[Path],
    folder: Path,
    rules: Rules | None,
    progress: Callable[[int, int], None],
    left_out: LeftOut,
) -> tuple[GameTable, Counter[str]]:
    """Read all games of the files, using the parts cached in `folder`.

    Many games are read by one process for each core.

    `rules` apply to records without known rules; None guesses their rules. `progress` receives the numbers of games
    read and refused. `left_out` collects unreadable files and refused games.

    Returns:
        The table, and the number of refused records by reason.

    Raises:
        NetworkError: no usable game was found.
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_drafts(folder)
    refused: Counter[str] = Counter()
    tables: list[GameTable] = []
    # Spawned: a process that has threads, numba's for one, cannot be forked safely.
    with ProcessPoolExecutor(mp_context=CONTEXT, initializer=_begin_reader) as pool:
        for path in paths:
            try:
                for table, reasons in _parts(pool, path, folder, rules):
                    tables.append(table)
                    refused += reasons
                    if reasons:
                        (reason, _), *_ = reasons.most_common(1)
                        left_out.add(path, f"{reasons.total()} games, such as: {reason}")
                    progress(sum(len(table.games) for table in tables), refused.total())
            except NetworkError as error:
                left_out.add(path, error)
    if not any(len(table.games) for table in tables):
        reason = refused.most_common(1)[0][0] if refused else "empty files"
        raise NetworkError(f"{paths[0]}: 0 usable games found ({reason}), expected at least one")
    return _joined(tables), refused


def _parts(
    pool: ProcessPoolExecutor, path: Path, folder: Path, rules: Rules | None
) -> Iterator[tuple[GameTable, Counter[str]]]:
    """Yield the games of a file in parts. A part comes from the cache, or is read and cached."""
    named = GUESS if rules is None else rules.to_json()
    key = hashlib.sha256(f"{READER} {source_digest(path)} {named}".encode()).hexdigest()[:12]
    texts = sgf_texts(path)
    for number in itertools.count():
        part = folder / f"{key}-{number:05d}.npz"
        kept = _load_part(part) if part.exists() else None
        if kept is not None:
            table, reasons, count = kept
            next(itertools.islice(texts, count, count), None)  # skip the games of the part
        else:
            chunk = list(itertools.islice(texts, PART_GAMES))
            if not chunk:
                return
            table, reasons = _read_chunk(pool, chunk, rules)
            _save_part(part, table, reasons, len(chunk))
        yield table, reasons


def _begin_reader() -> None:
    """Set up a reader process: it exits with its parent, and ignores Ctrl-C, which the parent handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _read_chunk(
    pool: ProcessPoolExecutor, texts: Sequence[bytes], rules: Rules | None
) -> tuple[GameTable, Counter[str]]:
    """Read games; if they are many, by the processes of the pool."""
    if len(texts) <= PIECE_GAMES:
        return _read_piece(texts, rules)
    pieces = [texts[begin : begin + PIECE_GAMES] for begin in range(0, len(texts), PIECE_GAMES)]
    read = list(pool.map(_read_piece, pieces, itertools.repeat(rules)))
    return _joined([table for table, _ in read]), sum((reasons for _, reasons in read), Counter())


def _read_piece(texts: Sequence[bytes], rules: Rules | None) -> tuple[GameTable, Counter[str]]:
    rows, codes, refused = [], [], Counter[str]()
    position = 0
    for text in texts:
        for found in each_record(text):
            try:
                if isinstance(found, SgfError):
                    raise found
                row, game_codes = game_row(found, rules)
            except SgfError as error:
                refused[error.note.text[:60]] += 1
                continue
            row["start"] = position
            position += len(game_codes)
            rows.append(row)
            codes.append(np.array(game_codes, np.uint16))
    games = np.concatenate(rows) if rows else np.zeros(0, GAME_DTYPE)
    return GameTable(games, np.concatenate(codes) if codes else np.zeros(0, np.uint16)), refused


def _save_part(path: Path, table: GameTable, refused: Counter[str], count: int) -> None:
    reasons = np.array(list(refused.elements()), np.str_)
    games = np.zeros(len(table.games), GAME_DTYPE)
    for name in GAME_DTYPE.names or ():  # a copy of whole elements would contain random bytes between the fields
        games[name] = table.games[name]
    with atomic_writer(path) as stream:
        np.savez(stream, games=games.view(np.uint8), codes=table.codes, refused=reasons, count=count)


def _load_part(path: Path) -> tuple[GameTable, Counter[str], int] | None:
    """Return a cached part, or None (with a warning) if it is damaged."""
    try:
        with path.open("rb") as stream:
            part = read_npz(stream)
        table = GameTable(part["games"].view(GAME_DTYPE), part["codes"])
        count, refused = int(part["count"]), Counter(part["refused"].tolist())
        ends = table.games["start"].astype(np.int64) + table.games["stones"] + table.games["moves"]
        least = min(table.games[name].min(initial=0) for name in ("start", "stones", "moves"))
        if (
            part["codes"].dtype != np.uint16
            or not 0 < count <= PART_GAMES
            or least < 0
            or (ends > len(table.codes)).any()
        ):
            raise NetworkError("games beyond its end found")
    except (NetworkError, OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("%s is damaged (%s): its games are read again", path, one_line(str(error)))
        return None
    return table, refused, count


def _joined(tables: Sequence[GameTable]) -> GameTable:
    games = []
    position = 0
    for table in tables:
        moved = table.games.copy()
        moved["start"] += position
        position += len(table.codes)
        games.append(moved)
    return GameTable(np.concatenate(games), np.concatenate([table.codes for table in tables]))


# -- which games are used ------------------------------------------------------------------------------------------


def without_duplicates(table: GameTable) -> npt.NDArray[np.bool_]:
    """Return a mask that keeps only the first of several games with the same moves."""
    seen: set[bytes] = set()
    keep = np.zeros(len(table.games), np.bool_)
    for index in range(len(table.games)):
        digest = hashlib.blake2b(table.moves(index).tobytes(), digest_size=16).digest()
        keep[index] = digest not in seen
        seen.add(digest)
    return keep


def trusted(table: GameTable, trust: str, rollouts: int, narrow: float, seed: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the games whose results can be trusted, by the method `trust`.

    "all" accepts every known result, and "resigned" accepts resignations only. "rollouts" accepts resignations and
    results by more than `narrow` points. It accepts a closer result if most of `rollouts` random games from the last
    position have the same winner.
    """
    games = table.games
    known: npt.NDArray[np.bool_] = games["winner"] >= 0
    resigned = games["resigned"] != 0
    if trust == "all":
        return known
    if trust == "resigned":
        return np.asarray(known & resigned, np.bool_)
    wide = resigned | (np.nan_to_num(games["margin"]) > narrow)
    confirmed: npt.NDArray[np.bool_] = known & wide
    rng = np.array([seed | 1], np.uint64)
    spare, history = np.zeros(2, POSITION_DTYPE), np.zeros(MAX_HISTORY, np.uint64)
    for index in np.flatnonzero(known & ~wide):
        replay(spare[0], history, games[index], table.codes, int(games[index]["moves"]))
        share = black_wins(spare[0], spare[1], rng, rollouts) / rollouts
        winner = int(games[index]["winner"])
        confirmed[index] = (share if winner == BLACK else 1.0 - share) >= ROLLOUT_SHARE and winner != 0
    return confirmed


def thinned(table: GameTable, believed: npt.NDArray[np.bool_], black_wins: float, seed: int) -> npt.NDArray[np.bool_]:
    """Return a mask that drops wins of White until Black has won the share `black_wins` of the decided games."""
    black = believed & (table.games["winner"] == BLACK)
    white = np.flatnonzero(believed & (table.games["winner"] == WHITE))
    wanted = round(black.sum() * (1.0 - black_wins) / black_wins)
    keep = np.ones(len(table.games), np.bool_)
    if wanted < len(white):
        keep[np.random.default_rng(seed).permutation(white)[wanted:]] = False
    return keep


# A position in a table: game, number of moves, and symmetry or -1.
PLY_DTYPE = np.dtype([("game", np.int64), ("ply", np.int32), ("symmetry", np.int8)])


@dataclass(frozen=True)
class Row:
    position: Any
    history: Any
    game: Any  # GAME_DTYPE
    ply: int


def blank_columns(features: FeatureSet, size: int, rows: int, moves: int, *, judged: bool) -> Columns:
    """Return the columns of an empty shard for `rows` positions on boards of `size` × `size` points.

    `moves` is the maximum number of moves in a policy target. `judged` adds the columns that only a teacher can fill.
    """
    width = widths(features, size)
    shapes: dict[str, tuple[int, ...]] = {"planes": (width["planes"],), "value": (), "komi": ()}
    shapes |= {name: (width[name],) for name in ("levels", "globals") if width[name]}
    shapes |= {"policy_moves": (moves,), "policy_weights": (moves,), "lead": (), "score_mean": ()}
    shapes |= {"score_stdev": (), "ownership": (width["ownership"],)} if judged else {"progress": ()}
    return {name: _blank(name, (rows, *shape)) for name, shape in shapes.items()}


def _blank(name: str, shape: tuple[int, ...]) -> npt.NDArray[np.generic]:
    kind = COLUMNS[name]
    return np.full(shape, kind.unknown, kind.dtype)


class Scratch(threading.local):
    """Scratch memory of each thread."""

    def __init__(self) -> None:
        self.go = np.zeros(1, SCRATCH_DTYPE)[0]
        self.aya = np.zeros(1, AYA_SCRATCH_DTYPE)[0]


class RowWriter:
    """Writes positions from a table of games as rows of one feature set."""

    def __init__(self, table: GameTable, features: FeatureSet, believed: npt.NDArray[np.bool_]) -> None:
        """Use the results of the games in the mask `believed`. Other results stay unknown."""
        self.table = table
        self.features = features
        self.believed = believed
        self._scratch = Scratch()

    def replayed(self, plies: npt.NDArray[np.void]) -> list[Row]:
        """Replay games to the positions of PLY_DTYPE[n], and return them."""
        positions = np.zeros(len(plies), POSITION_DTYPE)
        rows = []
        for position, entry in zip(positions, plies, strict=True):
            history = np.zeros(MAX_HISTORY, np.uint64)
            game = self.table.games[entry["game"]]
            replay(position, history, game, self.table.codes, int(entry["ply"]))
            rows.append(Row(position, history, game, int(entry["ply"])))
        return rows

    def write_features(self, rows: list[Row], size: int, columns: Columns, first: int) -> None:
        features = self.features
        planes = np.zeros((len(rows), features.planes, size, size), np.float32)
        globals_ = np.zeros((len(rows), features.globals), np.float32)
        for row, target, numbers in zip(rows, planes, globals_, strict=True):
            if features.name == "katago-v7":
                write_planes(row.position, row.history, 0, self._scratch.go, target, numbers)
            elif features.name.startswith("aya"):
                write_aya(row.position, row.history, 0, self._scratch.aya, target, numbers)
            else:
                write_stones(row.position, row.history, 0, self._scratch.aya, target, numbers)
        part = slice(first, first + len(rows))
        bits = planes[:, : features.bits].reshape(len(rows), -1) != 0.0
        columns["planes"][part] = np.packbits(bits, axis=1)
        if features.levels:
            columns["levels"][part] = planes[:, features.bits :].reshape(len(rows), -1)
        if features.globals:
            columns["globals"][part] = globals_
        columns["komi"][part] = [-self.sign(row) * float(row.position["komi"]) for row in rows]

    def write_results(self, rows: list[Row], plies: npt.NDArray[np.void], columns: Columns, first: int) -> None:
        """Write the move played and the labels from the game's result."""
        for index, (row, entry) in enumerate(zip(rows, plies, strict=True), first):
            game = row.game
            columns["progress"][index] = row.ply / int(game["moves"])
            if row.ply < int(game["moves"]):
                code = int(self.table.codes[int(game["start"]) + int(game["stones"]) + row.ply])
                columns["policy_moves"][index, 0] = policy_index(
                    int(game["size"]), int(game["size"]), code & POINT_MASK, 0
                )
                columns["policy_weights"][index, 0] = 1.0
                assert code >> COLOR_SHIFT == row.position["side_to_move"]
            if self.believed[entry["game"]]:
                sign = self.sign(row)
                winner = int(game["winner"])
                columns["value"][index] = 0.0 if winner == 0 else sign if winner == BLACK else -sign
                if np.isfinite(game["margin"]):
                    margin = float(game["margin"]) * (sign if winner == BLACK else -sign)
                    columns["lead"][index] = columns["score_mean"][index] = margin

    def sign(self, row: Row) -> float:
        """Return 1 if the row stores Black's values, or -1 if it stores White's."""
        own = self.features.bits != VALUE_PLANES and row.position["side_to_move"] != BLACK
        return -1.0 if own else 1.0
