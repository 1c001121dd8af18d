"""`yomi dataset make` for Go: from game records to a folder of shards.

Games are read and chosen, then positions are chosen, shuffled over all games and split into shards. Each shard replays
its positions from their games. All steps depend only on options and seed, so a killed run continues with the first
missing shard.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from yomi.engine.clusters.actors import Places
from yomi.engine.color import BLACK
from yomi.engine.datasets.making import (
    GO_SUFFIXES,
    MAKE,
    announce_kernels,
    find_files,
    held_out,
    plan_shards,
    readable_files,
)
from yomi.engine.datasets.settings import SHARD_ROWS, filled
from yomi.engine.datasets.shards import Columns, Log, ShardMaker, ShardWork, make_shards
from yomi.engine.default_network import check_network, network_path
from yomi.engine.go.datasets.games import (
    PLY_DTYPE,
    GameTable,
    Row,
    RowWriter,
    blank_columns,
    read_games,
    thinned,
    trusted,
    without_duplicates,
)
from yomi.engine.go.datasets.teacher import STAGES, KomiScorer, NetworkTeacher, make_teacher, parse_stages
from yomi.engine.go.rules import GUESS, Rules
from yomi.engine.go.settings import GoDataOptions, MakeGoSettings
from yomi.engine.records import LeftOut
from yomi.native.datasets.go_games import write_keys
from yomi.native.go.board import POSITION_DTYPE
from yomi.native.go.rules import MAX_HISTORY
from yomi.nets.data.shards import Dataset, Manifest, begin_dataset
from yomi.nets.errors import NetworkError
from yomi.nets.files import name_with_digest
from yomi.nets.metadata import FeatureSet
from yomi.settings import OptionError

CHUNK, SEARCH_CHUNK = 64, 4  # positions that a thread writes at once, without and with a search for each
# Rows of a shard if searches label the points. A killed run loses its unfinished shard, so a shard should be minutes of
# work.
SCORED_ROWS = 256


def make_dataset(paths: Sequence[Path], folder: Path, settings: MakeGoSettings, work: ShardWork, log: Log) -> Dataset:
    """See Game.make_dataset."""
    from yomi.engine.go.descriptor import GAME

    find_files(paths, GO_SUFFIXES)
    path = None if settings.teacher is None else network_path(settings.teacher, "go")
    if path is not None:
        check_network(path, "go")
    announce_kernels(GAME, log)
    with contextlib.ExitStack() as networks:
        scorer, scored = _make_scorer(settings, networks)
        teacher = None
        if path is not None:
            teacher = networks.enter_context(contextlib.closing(make_teacher(settings, path, settings.visits)))
        has_network = teacher is not None or (scorer is not None and scorer.teacher is not None)
        options = filled(
            GoDataOptions,
            settings,
            shard_rows=settings.shard_rows or (SCORED_ROWS if scorer is not None else SHARD_ROWS),
            teacher=name_with_digest(path) if path is not None else "",
            scores=scored,
            precision=settings.precision if has_network else "",
        )
        return make_go_dataset(paths, folder, options, teacher, log, scorer, work)


def _make_scorer(settings: MakeGoSettings, networks: contextlib.ExitStack) -> tuple[KomiScorer | None, str]:
    """Return the scorer that labels points, and its description for the manifest; (None, "") without one."""
    if settings.score_search is None:
        if settings.score_stages is not None:
            raise OptionError("--score-stages without --score-search: expected both")
        return None, ""
    text = settings.score_stages or STAGES
    stages = parse_stages(text)
    if settings.score_search == "rollouts":
        return KomiScorer(None, stages, settings.seed), f"rollouts {text}"
    path = network_path(settings.score_search, "go")
    check_network(path, "go")
    teacher = networks.enter_context(contextlib.closing(make_teacher(settings, path, 1)))
    return KomiScorer(teacher, stages, settings.seed), f"{name_with_digest(path)} {text}"


def make_go_dataset(
    paths: Sequence[Path],
    folder: Path,
    options: GoDataOptions,
    teacher: NetworkTeacher | None,
    log: Log,
    scorer: KomiScorer | None = None,
    work: ShardWork = MAKE,
) -> Dataset:
    """Make or continue a data set from the records in `paths`, and return it.

    A teacher replaces moves and results as the source of labels. A scorer replaces results and teacher for the points.

    Raises:
        NetworkError: a source or option cannot be used, or the folder contains another data set.
        OSError: the folder cannot be written.
    """
    left_out = LeftOut(log)
    files, sources = readable_files(paths, GO_SUFFIXES, left_out)
    manifest = Manifest(options.features, dataclasses.asdict(options), sources)
    # The form that JSON reads back. Sets without these labels omit the options.
    kept = {**manifest.options, "sizes": list(options.sizes)}
    if not options.scores:
        del kept["scores"]
    if not options.precision:
        del kept["precision"], kept["labels_version"]
    manifest = dataclasses.replace(manifest, options=kept)
    if manifest.features.game != "go":
        raise NetworkError(f"feature set {options.features} of {manifest.features.game} found, expected one of Go")
    dataset = begin_dataset(folder, manifest)
    rules = None if options.rules == GUESS else Rules.parse(options.rules)

    def progress(read: int, refused: int) -> None:
        log(f"{read} games read, {refused} refused")

    table, refused = read_games(files, folder / "games", rules, progress, left_out)
    left_out.report(len(files))
    for reason, count in refused.most_common(3):
        log(f"refused {count} times: {reason}")
    table, believed = choose_games(table, options)
    log(f"{len(table.games)} games used, {believed.sum()} with a result that is believed")
    plies = choose_positions(table, options)
    held = held_out(len(table.games), options.test_share, options.seed)[plies["game"]]  # games are held out whole
    planned = plan_shards(plies, held, table.games["size"][plies["game"]], options.shard_rows)

    def payload(number: int) -> tuple[npt.NDArray[np.void], int]:
        _, size, _, plies = planned[number]
        return plies, size

    maker = GoShards(table, manifest.features, believed, teacher, scorer)
    return make_shards(dataset, [shard[:3] for shard in planned], maker, payload, log, work)


@dataclass
class GoShards(ShardMaker):
    """Makes shards from games. The payload of a shard is its positions, PLY_DTYPE[n], and the board size."""

    table: GameTable
    features: FeatureSet
    believed: npt.NDArray[np.bool_]
    teacher: NetworkTeacher | None = None
    scorer: KomiScorer | None = None

    @functools.cached_property
    def _writer(self) -> RowWriter:
        return RowWriter(self.table, self.features, self.believed)

    @property
    def _teachers(self) -> list[NetworkTeacher]:
        found = (self.teacher, None if self.scorer is None else self.scorer.teacher)
        return [teacher for teacher in found if teacher is not None]

    @property
    def networks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(teacher.path) for teacher in self._teachers))

    def move(self, places: Places) -> None:
        for teacher in self._teachers:
            teacher.path = Path(places[str(teacher.path)])

    def columns(self, payload: tuple[npt.NDArray[np.void], int], threads: int) -> Columns:
        with ThreadPoolExecutor(threads) as pool:
            return shard_columns(pool, self._writer, *payload, self.teacher, self.scorer)

    def close(self) -> None:
        for teacher in self._teachers:
            teacher.close()


def choose_games(table: GameTable, options: GoDataOptions) -> tuple[GameTable, npt.NDArray[np.bool_]]:
    """Return the games that the options choose, and a mask of the games with a trusted result.

    Raises NetworkError if no game is left.
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
    """Return the chosen positions of all games, shuffled: PLY_DTYPE[n].

    One position is drawn from each of n equal parts of a game. Any eight neighbors have different symmetries (as in
    Aya), so that similar positions look different.
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
    """Return a hash of each position; with `with_move`, of the position and the move played there."""
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
    teacher: NetworkTeacher | None,
    scorer: KomiScorer | None = None,
) -> Columns:
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
    """Convert a teacher's labels from the side to move to Black, in the rows that store Black's values."""
    for index, row in enumerate(rows, first):
        if writer.sign(row) > 0.0 and row.position["side_to_move"] != BLACK:
            for name in ("value", "lead", "score_mean", "ownership"):
                columns[name][index] = -columns[name][index]
