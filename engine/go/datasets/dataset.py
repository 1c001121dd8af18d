"""`yomi dataset make` for Go: from game records to a folder of shards.

Three steps. Games are read into a table and chosen; positions are chosen, shuffled over all games and cut into shards;
each shard is written by itself, every position replayed from its game. The steps depend on the options and the seed
alone, so that a run which was killed goes on with the first shard that is missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK
from yomi.engine.datasets.making import GO_SUFFIXES, Columns, Log, held_out, plan_shards, readable_files, write_missing
from yomi.engine.go.datasets.games import GameTable, read_games, thinned, trusted, without_duplicates
from yomi.engine.go.datasets.rows import PLY_DTYPE, Row, RowWriter, Teacher, blank_columns
from yomi.engine.go.datasets.scores import KomiScorer
from yomi.engine.go.datasets.teacher import LABELS_VERSION
from yomi.engine.go.rules import Rules
from yomi.engine.records import LeftOut
from yomi.native.datasets.replay import write_keys
from yomi.native.go.board import POSITION_DTYPE
from yomi.native.go.rules import MAX_HISTORY
from yomi.nets.data.shards import Dataset, Manifest, begin_dataset
from yomi.nets.errors import NetworkError

CHUNK, SEARCH_CHUNK = 64, 4
"""Positions that a thread writes at once; those for each of which there are searches."""
UNIQUES = ("none", "move", "position")


@dataclass(frozen=True)
class GoDataOptions:
    """What decides the content of a data set; kept in its manifest."""

    features: str = "katago-v7"
    rules: str = "chinese"
    """Rules of records that name none."""
    positions: int = 0
    """Positions of each game, spread evenly; 0 for all."""
    unique: str = "move"
    """Which duplicates are left out: of a position, of a position with its move, or none."""
    test_share: float = 0.03
    """Share of the games that is held out."""
    min_moves: int = 20
    handicap: bool = False
    """Whether handicap games are used."""
    sizes: tuple[int, ...] = ()
    """Board sizes that are used; all for none."""
    trust: str = "all"
    rollouts: int = 500
    narrow: float = 3.0
    """Points: a counted result by more is believed without rollouts."""
    believed_only: bool = False
    """Leave games out whose result is not believed; otherwise they have no value."""
    black_wins: float = 0.0
    """Share of games that Black has won to which White's wins are thinned; 0 to leave them."""
    limit: int = 0
    """Positions of the whole set, 0 for all."""
    shard_rows: int = 16384
    seed: int = 1
    teacher: str = ""
    """Name of the teacher's file and its digest."""
    visits: int = 1
    scores: str = ""
    """What labels points by moving komi, `rollouts` or a network's file and its digest, and its stages."""
    precision: str = ""
    """Of the networks that label; empty where none does."""
    labels_version: int = LABELS_VERSION


def make_go_dataset(
    paths: Sequence[Path],
    folder: Path,
    options: GoDataOptions,
    teacher: Teacher | None,
    log: Log,
    scorer: KomiScorer | None = None,
) -> Dataset:
    """Make a data set, or go on with it, and return it.

    Args:
        paths: records.
        folder: of the set.
        options: what decides its content.
        teacher: labels in place of moves and results.
        log: for lines of progress.
        scorer: labels points in place of results and teacher.

    Raises:
        NetworkError: a source or an option cannot be used, or the folder holds another data set.
        OSError: the folder cannot be written.
    """
    if options.unique not in UNIQUES:
        raise NetworkError(f"unique = {options.unique!r} found, expected one of {', '.join(UNIQUES)}")
    left_out = LeftOut(log)
    files, sources = readable_files(paths, GO_SUFFIXES, left_out)
    manifest = Manifest(options.features, dataclasses.asdict(options), sources)
    # As it reads back: JSON has lists alone. Sets without such labels know nothing of them.
    kept = {**manifest.options, "sizes": list(options.sizes)}
    if not options.scores:
        del kept["scores"]
    if not options.precision:
        del kept["precision"], kept["labels_version"]
    manifest = dataclasses.replace(manifest, options=kept)
    if manifest.features.game != "go":
        raise NetworkError(f"feature set {options.features} of {manifest.features.game} found, expected one of Go")
    dataset = begin_dataset(folder, manifest)
    rules = Rules.parse(options.rules)

    def progress(read: int, refused: int) -> None:
        log(f"{read} games read, {refused} refused")

    table, refused = read_games(files, folder / "games", rules, progress, left_out)
    left_out.report(len(files))
    for reason, count in refused.most_common(3):
        log(f"refused {count} times: {reason}")
    table, believed = choose_games(table, options)
    log(f"{len(table.games)} games used, {believed.sum()} with a result that is believed")
    writer = RowWriter(table, manifest.features, believed)
    plies = choose_positions(table, options)
    held = held_out(len(table.games), options.test_share, options.seed)[plies["game"]]  # games are held out whole
    planned = plan_shards(plies, held, table.games["size"][plies["game"]], options.shard_rows)

    def columns(pool: ThreadPoolExecutor, plies: npt.NDArray[np.void], size: int) -> Columns:
        return shard_columns(pool, writer, plies, size, teacher, scorer)

    return write_missing(dataset, planned, columns, log)


def choose_games(table: GameTable, options: GoDataOptions) -> tuple[GameTable, npt.NDArray[np.bool_]]:
    """Return the games that are used, and whose results are believed.

    Raises:
        NetworkError: none are left.
    """
    games = table.games
    keep = (games["moves"] >= options.min_moves) & without_duplicates(table)
    if not options.handicap:
        keep &= games["handicap"] == 0
    if options.sizes:
        keep &= np.isin(games["size"], options.sizes)
    table = table.only(keep)
    believed = trusted(table, options.trust, options.rollouts, options.narrow, options.seed)
    keep = believed.copy() if options.believed_only else np.ones(len(believed), np.bool_)
    if options.black_wins:
        keep &= thinned(table, believed, options.black_wins, options.seed)
    if not keep.any():
        raise NetworkError(f"0 of {len(games)} games left, expected some: see the options that choose games")
    return table.only(keep), believed[keep]


def choose_positions(table: GameTable, options: GoDataOptions) -> npt.NDArray[np.void]:
    """Return the positions of all games that are used, shuffled: PLY_DTYPE[n].

    With a number of positions a game, one is drawn from each of so many equal parts of it. The first and the ninth
    have the same symmetry, which differs from those between them (Aya): what looks alike lies far apart.
    """
    rng = np.random.default_rng([options.seed, 1])
    chosen = []
    for index, game in enumerate(table.games):
        moves = int(game["moves"])
        count = options.positions or moves
        plies = np.arange(moves)
        symmetry = np.full(moves, -1)
        if count < moves:
            edges = np.linspace(0, moves, count + 1).astype(np.int64)
            plies = rng.integers(edges[:-1], edges[1:])
        if options.positions:
            symmetry = rng.permutation(8)[np.arange(len(plies)) % 8]
        part = np.zeros(len(plies), PLY_DTYPE)
        part["game"], part["ply"], part["symmetry"] = index, plies, symmetry[: len(plies)]
        chosen.append(part)
    found = rng.permutation(np.concatenate(chosen))
    if options.unique != "none":
        _, first = np.unique(position_keys(table, found, options.unique == "move"), return_index=True)
        found = found[np.sort(first)]
    return found[: options.limit] if options.limit else found


def position_keys(table: GameTable, plies: npt.NDArray[np.void], with_move: bool) -> npt.NDArray[np.uint64]:
    """Return a hash for each position, with the move that was played in it if asked."""
    pos, history = np.zeros(1, POSITION_DTYPE)[0], np.zeros(MAX_HISTORY, np.uint64)
    keys = np.zeros(len(plies), np.uint64)
    order = np.argsort(plies["game"], kind="stable")
    games, starts = np.unique(plies["game"][order], return_index=True)
    for index, rows in zip(games, np.split(order, starts[1:]), strict=True):
        found = np.zeros(int(table.games[index]["moves"]), np.uint64)
        write_keys(pos, history, table.games[index], table.codes, with_move, found)
        keys[rows] = found[plies["ply"][rows]]
    return keys


def shard_columns(
    pool: ThreadPoolExecutor,
    writer: RowWriter,
    plies: npt.NDArray[np.void],
    size: int,
    teacher: Teacher | None,
    scorer: KomiScorer | None = None,
) -> Columns:
    """Return the columns of one shard."""
    count = len(plies)
    moves = 1 if teacher is None else teacher.top_moves
    columns = blank_columns(writer.features, size, count, moves, judged=teacher is not None)
    if (plies["symmetry"] >= 0).all():
        columns["symmetry"] = plies["symmetry"].copy()

    step = CHUNK if scorer is None else SEARCH_CHUNK

    def write(first: int) -> None:
        part = plies[first : first + step]
        rows = writer.replayed(part)
        writer.write_features(rows, size, columns, first)
        if teacher is None:
            writer.write_results(rows, part, columns, first)
        else:
            teacher.label(rows, columns, first)
            _turn_to_black(writer, rows, columns, first)
        if scorer is not None:
            for index, row in enumerate(rows, first):
                scorer.label(row, writer.sign(row), columns, index)

    for _ in pool.map(write, range(0, count, step)):
        pass
    return columns


def _turn_to_black(writer: RowWriter, rows: Sequence[Row], columns: Columns, first: int) -> None:
    """Turn a teacher's labels, which are for the side to move, where the columns are Black's."""
    for index, row in enumerate(rows, first):
        if writer.sign(row) > 0.0 and row.position["side_to_move"] != BLACK:
            for name in ("value", "lead", "score_mean", "ownership"):
                columns[name][index] = -columns[name][index]
