"""`yomi dataset play`: positions from games that a network's policy plays against itself.

Every evaluation gives the next move and a label. With visits, searches label the kept positions, which is slower and
teaches more. Games differ in rules, komi and temperature, and a few moves are random, because searches meet positions
that good players avoid.

Seed and number determine the games of a shard. A killed run continues with the first missing shard, and held-out shards
share no game with others.
"""

import contextlib
import dataclasses
import functools
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from yomi.engine.clusters.actors import Places
from yomi.engine.color import BLACK
from yomi.engine.datasets.making import announce_kernels
from yomi.engine.datasets.settings import filled
from yomi.engine.datasets.shards import Columns, Log, ShardMaker, ShardWork, make_shards
from yomi.engine.default_network import check_network, network_path
from yomi.engine.go.datasets.games import blank_columns
from yomi.engine.go.datasets.teacher import TOP_MOVES, NetworkTeacher, make_teacher, write_outputs
from yomi.engine.go.game import GoGame
from yomi.engine.go.networks import raw_outputs
from yomi.engine.go.points import square
from yomi.engine.go.rules import Rules
from yomi.engine.go.settings import PlayGoDataSettings, PlayOptions
from yomi.native.datasets.go_games import encode_games, play_games
from yomi.native.go.board import MAX_AREA, POSITION_DTYPE
from yomi.native.go.planes import GLOBALS, PLANES, symmetry_table
from yomi.native.go.rules import MAX_HISTORY
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.nets.data.shards import Dataset, Manifest, begin_dataset, shard_name
from yomi.nets.errors import NetworkError
from yomi.nets.files import name_with_digest
from yomi.nets.katago.outputs import Outputs, RawOutputs, has_no_result, post_process

GAMES = 128  # Concurrent games. They are few, so that games end and new ones begin within a shard.
# Share of the games by rule set.
RULES = {"tromp-taylor": 0.35, "chinese": 0.25, "japanese": 0.2, "aga": 0.1, "new-zealand": 0.1}
FAIR_KOMI = {"AREA": 7.0, "TERRITORY": 6.0}
# Standard deviation of the komi (points), and the share of games in which it is half of the board's side instead.
KOMI_SPREAD, WIDE_KOMI_SHARE = 1.0, 0.2
MIN_PASS = 0.3  # policy below which a pass is not drawn, so that games do not end by chance
# abs(win - loss) from which a game is decided, and the chance at each later move to stop it.
DECIDED, LEAVE_DECIDED = 0.98, 0.05
BARREN_POSITIONS = 10_000  # the run ends after this many repeated positions in a row

RAW_NAMES = tuple(field.name for field in dataclasses.fields(RawOutputs))


def play_dataset(folder: Path, settings: PlayGoDataSettings, work: ShardWork, log: Log) -> Dataset:
    """See Game.play_dataset."""
    from yomi.engine.go.descriptor import GAME

    path = network_path(settings.teacher, "go")
    check_network(path, "go")
    announce_kernels(GAME, log)
    with contextlib.closing(make_teacher(settings, path, settings.visits)) as teacher:
        options = filled(PlayOptions, settings, teacher=name_with_digest(path))
        return play_go_dataset(folder, options, teacher, log, work)


def play_go_dataset(folder: Path, options: PlayOptions, teacher: NetworkTeacher, log: Log, work: ShardWork) -> Dataset:
    """Make or continue a data set, and return it.

    Raises:
        NetworkError: the network cannot be used, the folder contains another data set, or a shard cannot be filled.
        OSError: the folder cannot be written.
    """
    record = dataclasses.asdict(options) | {"temperatures": list(options.temperatures)}
    dataset = begin_dataset(folder, Manifest(options.features, record, (options.teacher,)))
    planned = [(split, options.size, name) for split, name in shard_names(options)]
    if work.cluster is None:
        teacher.evaluator(options.size)  # reports a network that cannot be used before threads start
    at_once = os.cpu_count() or 1
    return make_shards(
        dataset, planned, PlayedShards(options, teacher), lambda number: number, log, work, at_once=at_once
    )


@dataclass(frozen=True)
class PlayedShards(ShardMaker):
    """Makes shards of games of a network against itself. The payload is the shard's number."""

    options: PlayOptions
    teacher: NetworkTeacher

    @property
    def networks(self) -> tuple[str, ...]:
        return (str(self.teacher.path),)

    def move(self, places: Places) -> None:
        self.teacher.path = Path(places[str(self.teacher.path)])

    def columns(self, payload: int, threads: int) -> Columns:
        return _ShardGames(self.options, self.teacher, payload).fill()

    def close(self) -> None:
        self.teacher.close()


def shard_names(options: PlayOptions) -> list[tuple[str, str]]:
    """Return (split, name) of each shard, held-out shards first."""
    count = -(-options.positions // options.shard_rows)
    held = min(count - 1, max(1, round(count * options.test_share))) if options.test_share > 0.0 else 0
    splits = ["test"] * held + ["train"] * (count - held)
    return [(split, shard_name(split, options.size, number)) for number, split in enumerate(splits)]


class _ShardGames:
    """The concurrent games of one shard."""

    def __init__(self, options: PlayOptions, teacher: NetworkTeacher, number: int) -> None:
        size = options.size
        self.options = options
        self.teacher = teacher
        self.evaluator = teacher.evaluator(size)
        self.rng = np.random.default_rng([options.seed, size, number])
        self.positions = np.zeros(GAMES, POSITION_DTYPE)
        self.histories = np.zeros((GAMES, MAX_HISTORY), np.uint64)
        self.temperatures = np.ones(GAMES, np.float32)
        self.no_result = np.zeros(GAMES, np.bool_)
        self.over = np.ones(GAMES, np.bool_)
        self.scratch = np.zeros(1, SCRATCH_DTYPE)[0]
        self.moves = np.zeros(MAX_AREA + 1, np.uint16)
        self.planes = np.zeros((GAMES, PLANES, size, size), np.float32)
        self.extras = np.zeros((GAMES, GLOBALS), np.float32)
        self.legal = np.zeros((GAMES, size * size + 1), np.bool_)
        # By symmetry: the point that is seen at each place.
        tables = [symmetry_table(size, size, symmetry) for symmetry in range(8)]
        self.points_seen = np.argsort(np.array(tables), axis=1)
        self.seen: set[int] = set()
        self.barren = 0  # number of repeated positions since the last new one

    def fill(self) -> Columns:
        """Play games until the shard is full. Return its columns with the rows in random order."""
        options = self.options
        features = Manifest(options.features).features
        columns = blank_columns(features, options.size, options.shard_rows, TOP_MOVES, judged=True)
        filled = 0
        while filled < options.shard_rows:
            self._begin_games()
            symmetries = self.rng.integers(0, 8, GAMES)
            chosen = self._choose()[: options.shard_rows - filled]
            if options.visits > 1:
                symmetries[chosen] = 0  # a search labels the board without a symmetry
            self._encode(self._marked(), symmetries)
            outputs = post_process(self._evaluate(), self.legal, self.no_result, self.evaluator.info)
            if self.evaluator.info.prefer_pass_alive_under_suicide_rules:
                self._encode(self.positions, symmetries)  # store the planes without this network's flags
            self._write(chosen, outputs, columns, filled)
            if options.visits > 1:
                for row, game in enumerate(chosen.tolist(), filled):
                    self.teacher.search(self.positions[game], self.histories[game], columns, row)
            filled += len(chosen)
            self._play(outputs, symmetries)
        order = self.rng.permutation(options.shard_rows)
        return {name: column[order] for name, column in columns.items()}

    def _marked(self) -> npt.NDArray[np.void]:
        """Return copies of the positions with the flags that the network reads."""
        shown = self.positions.copy()
        for name, value in self.evaluator.spec.position_flags:
            shown[name] = value
        return shown

    def _encode(self, positions: npt.NDArray[np.void], symmetries: npt.NDArray[np.int64]) -> None:
        """Encode all positions as inputs of the network, and find their legal moves."""
        encode_games(
            positions, self.histories, symmetries, self.scratch, self.moves, self.planes, self.extras, self.legal
        )

    def _begin_games(self) -> None:
        options, rng = self.options, self.rng
        names, shares = list(RULES), list(RULES.values())
        for index in np.flatnonzero(self.over).tolist():
            rules = Rules.parse(str(rng.choice(names, p=shares)))
            spread = options.size / 2 if rng.random() < WIDE_KOMI_SHARE else KOMI_SPREAD
            komi = round(2.0 * rng.normal(FAIR_KOMI[rules.scoring], spread)) / 2.0
            game = GoGame(square(options.size), rules, komi)
            self.positions[index] = game.position
            self.histories[index] = game.history
            self.temperatures[index] = rng.uniform(*options.temperatures)
            self.no_result[index] = has_no_result(rules.ko, rules.scoring)

    def _evaluate(self) -> RawOutputs:
        step = self.evaluator.batch_size
        parts = []
        for first in range(0, GAMES, step):
            part = slice(first, first + step)
            run = functools.partial(raw_outputs, self.evaluator, self.planes[part], self.extras[part])
            parts.append(self.teacher.on_device(run))
        return RawOutputs(*(np.concatenate([getattr(part, name) for part in parts]) for name in RAW_NAMES))

    def _choose(self) -> npt.NDArray[np.int64]:
        """Return the indices of games whose current positions are kept: a share of the positions that are new."""
        chosen = []
        for index in np.flatnonzero(self.rng.random(GAMES) < self.options.kept).tolist():
            pos = self.positions[index]
            key = int(pos["hash"]) ^ int(pos["side_to_move"])
            if key not in self.seen:
                self.seen.add(key)
                self.barren = 0
                chosen.append(index)
                continue
            self.barren += 1
            if self.barren == BARREN_POSITIONS:
                raise NetworkError(
                    f"{len(self.seen)} different positions on {self.options.size}x{self.options.size} found, "
                    f"expected {self.options.shard_rows}: shards of fewer, or a larger board"
                )
        return np.array(chosen, np.int64)

    def _write(self, chosen: npt.NDArray[np.int64], outputs: Outputs, columns: Columns, first: int) -> None:
        """Write positions and labels, mirrored or turned as they were evaluated. That is a valid position, too."""
        rows = slice(first, first + len(chosen))
        planes = self.planes.reshape(GAMES, -1)[chosen]
        columns["planes"][rows] = np.packbits(planes != 0.0, axis=1)
        columns["globals"][rows] = self.extras[chosen]
        signs = np.where(self.positions["side_to_move"][chosen] == BLACK, -1.0, 1.0)
        columns["komi"][rows] = signs * self.positions["komi"][chosen]
        write_outputs(outputs.only(chosen), columns, rows)

    def _play(self, outputs: Outputs, symmetries: npt.NDArray[np.int64]) -> None:
        """Draw and play a move in each game."""
        rng, area = self.rng, self.options.size**2
        policy = outputs.policy.astype(np.float64) ** (1.0 / self.temperatures[:, None])
        policy[outputs.policy[:, area] < MIN_PASS, area] = 0.0
        any_move = rng.random(GAMES) < self.options.random_moves
        policy[any_move] = self.legal[any_move]
        policy[any_move, area] = 0.0
        policy[policy.sum(1) == 0.0, area] = 1.0  # only a pass is legal
        sums = np.cumsum(policy, axis=1)
        drawn = (sums > rng.random((GAMES, 1)) * sums[:, -1:]).argmax(1)
        points = self.points_seen[symmetries, drawn]
        play_games(self.positions, self.histories, points, 3 * area, self.over)
        decided = np.abs(outputs.win - outputs.loss) > DECIDED
        self.over |= decided & (rng.random(GAMES) < LEAVE_DECIDED)
