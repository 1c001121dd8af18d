"""`yomi dataset play`: positions of Go from games that a network's policy plays with itself, labelled on the way.

What the network says of a position is both where the next move is drawn from and the label, so that every evaluation
makes a position; or a search with it labels those that are kept, which is slower and teaches more. Games differ in
rules, komi and temperature, and a few moves are drawn from all legal ones: positions that a good player never lets come
up are what a network has to judge in a search.

Every shard plays games of its own, decided by the seed and its number alone: a run that was killed goes on with the
first shard that is missing, and held-out shards share no game with the others.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK
from yomi.engine.datasets.making import Columns, Log
from yomi.engine.go.datasets.rows import blank_columns
from yomi.engine.go.datasets.teacher import LABELS_VERSION, TOP_MOVES, NetworkTeacher, write_outputs
from yomi.engine.go.game import GoGame
from yomi.engine.go.networks.katago import raw_outputs
from yomi.engine.go.rules import Rules
from yomi.native.datasets.parallel_games import encode_games, play_games
from yomi.native.go.board import MAX_AREA, POSITION_DTYPE
from yomi.native.go.planes import GLOBALS, PLANES, symmetry_table
from yomi.native.go.rules import MAX_HISTORY
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.nets.data.shards import (
    Dataset,
    Manifest,
    begin_dataset,
    open_dataset,
    shard_name,
    write_shard,
)
from yomi.nets.errors import NetworkError
from yomi.nets.katago.outputs import RawOutputs, has_no_result, post_process

if TYPE_CHECKING:
    from yomi.nets.katago.outputs import Outputs

GAMES = 128
"""Games that are played side by side: few enough that a shard sees them end, and others begin."""
RULES = {"tromp-taylor": 0.35, "chinese": 0.25, "japanese": 0.2, "aga": 0.1, "new-zealand": 0.1}
"""Rule sets, and their shares of the games."""
FAIR_KOMI = {"AREA": 7.0, "TERRITORY": 6.0}
KOMI_SPREAD, WIDE_KOMI_SHARE = 1.0, 0.2
"""Standard deviation of the komi in points; a share of the games spreads it by half of the board's side."""
LEAST_PASS = 0.3
"""Share of the policy from which a pass may be drawn: games do not end by chance."""
DECIDED, LEAVE_DECIDED = 0.98, 0.05
"""Win minus loss from which a game is decided, and the chance at each move that it is broken off then."""
BARREN_POSITIONS = 10_000
"""Positions one after the other that had come up before until the run ends: nothing else would end it."""

RAW_NAMES = tuple(field.name for field in dataclasses.fields(RawOutputs))


@dataclass(frozen=True)
class PlayOptions:
    """What decides the content of a data set; kept in its manifest."""

    size: int
    """N of the board."""
    positions: int
    """Of the whole set, rounded up to whole shards."""
    kept: float = 0.25
    """Share of the positions of a game that is kept."""
    visits: int = 1
    """Of the search that labels each position; 1 for what the network says alone."""
    temperatures: tuple[float, float] = (0.6, 1.3)
    """Of the policy; each game has its own, between these."""
    random_moves: float = 0.03
    """Share of the moves that are drawn from all legal ones."""
    test_share: float = 0.03
    """Share of the shards that is held out, at least one."""
    shard_rows: int = 16384
    seed: int = 1
    teacher: str = ""
    """Name of the teacher's file and its digest."""
    precision: str = "auto"
    """Of the teacher."""
    labels_version: int = LABELS_VERSION
    features: str = "katago-v7"


def play_go_dataset(folder: Path, options: PlayOptions, teacher: NetworkTeacher, log: Log) -> Dataset:
    """Make a data set, or go on with it, and return it.

    Raises:
        NetworkError: the network cannot be used, the folder holds another data set, or a shard cannot be filled.
        OSError: the folder cannot be written.
    """
    record = dataclasses.asdict(options) | {"temperatures": list(options.temperatures)}
    dataset = begin_dataset(folder, Manifest(options.features, record, (options.teacher,)))
    there = {shard.path.name for shard in dataset.shards}
    names = shard_names(options)
    missing = [number for number, (_, name) in enumerate(names) if name not in there]
    teacher.evaluator(options.size)

    def make(number: int) -> None:
        split, name = names[number]
        columns = _Table(options, teacher, number).fill()
        write_shard(folder, name, split, options.size, columns)
        log(f"{name}: {options.shard_rows} positions; {len(names)} shards in all")

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for _ in pool.map(make, missing):
            pass
    return open_dataset(folder)


def shard_names(options: PlayOptions) -> list[tuple[str, str]]:
    """Return split and name of each shard, those that are held out first."""
    count = -(-options.positions // options.shard_rows)
    held = min(count - 1, max(1, round(count * options.test_share))) if options.test_share > 0.0 else 0
    splits = ["test"] * held + ["train"] * (count - held)
    return [(split, shard_name(split, options.size, number)) for number, split in enumerate(splits)]


class _Table:
    """The games of one shard, side by side."""

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
        tables = [symmetry_table(size, symmetry) for symmetry in range(8)]
        self.points_seen = np.argsort(np.array(tables), axis=1)
        self.seen: set[int] = set()
        self.barren = 0
        """Positions since the last new one."""

    def fill(self) -> Columns:
        """Play until the shard is full, and return its columns in a random order.

        Raises:
            NetworkError: there are not so many different positions.
        """
        options = self.options
        features = Manifest(options.features).features
        columns = blank_columns(features, options.size, options.shard_rows, TOP_MOVES, judged=True)
        filled = 0
        while filled < options.shard_rows:
            self._begin_games()
            symmetries = self.rng.integers(0, 8, GAMES)
            chosen = self._choose()[: options.shard_rows - filled]
            if options.visits > 1:
                symmetries[chosen] = 0  # a search labels the board as it stands
            self._show(self._marked(), symmetries)
            outputs = post_process(self._evaluate(), self.legal, self.no_result, self.evaluator.info)
            if self.evaluator.info.prefer_pass_alive_under_suicide_rules:
                self._show(self.positions, symmetries)  # what is stored is what other networks see
            self._write(chosen, outputs, columns, filled)
            if options.visits > 1:
                for row, game in enumerate(chosen.tolist(), filled):
                    self.teacher.search(self.positions[game], self.histories[game], columns, row)
            filled += len(chosen)
            self._play(outputs, symmetries)
        order = self.rng.permutation(options.shard_rows)
        return {name: column[order] for name, column in columns.items()}

    def _marked(self) -> npt.NDArray[np.void]:
        """Return the positions as the network is to be shown them."""
        shown = self.positions.copy()
        for name, value in self.evaluator.spec.position_flags:
            shown[name] = value
        return shown

    def _show(self, positions: npt.NDArray[np.void], symmetries: npt.NDArray[np.int64]) -> None:
        """Write what a network sees of all games, and what is legal there."""
        encode_games(
            positions, self.histories, symmetries, self.scratch, self.moves, self.planes, self.extras, self.legal
        )

    def _begin_games(self) -> None:
        """Begin a new game wherever one is over."""
        options, rng = self.options, self.rng
        names, shares = list(RULES), list(RULES.values())
        for index in np.flatnonzero(self.over).tolist():
            rules = Rules.parse(str(rng.choice(names, p=shares)))
            spread = options.size / 2 if rng.random() < WIDE_KOMI_SHARE else KOMI_SPREAD
            komi = round(2.0 * rng.normal(FAIR_KOMI[rules.scoring], spread)) / 2.0
            game = GoGame(options.size, rules, komi)
            self.positions[index] = game.position
            self.histories[index] = game.history
            self.temperatures[index] = rng.uniform(*options.temperatures)
            self.no_result[index] = has_no_result(rules.ko, rules.scoring)

    def _evaluate(self) -> RawOutputs:
        """Return what the network says of all games."""
        step = self.evaluator.batch_size
        parts = []
        for first in range(0, GAMES, step):
            part = slice(first, first + step)
            run = functools.partial(raw_outputs, self.evaluator, self.planes[part], self.extras[part])
            parts.append(self.teacher.on_device(run))
        return RawOutputs(*(np.concatenate([getattr(part, name) for part in parts]) for name in RAW_NAMES))

    def _choose(self) -> npt.NDArray[np.int64]:
        """Return games whose positions are kept: a share of those that did not come up before."""
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
        """Write positions and labels under the symmetry that the network saw: what is seen so is a board, too."""
        rows = slice(first, first + len(chosen))
        planes = self.planes.reshape(GAMES, -1)[chosen]
        columns["planes"][rows] = np.packbits(planes != 0.0, axis=1)
        columns["globals"][rows] = self.extras[chosen]
        signs = np.where(self.positions["side_to_move"][chosen] == BLACK, -1.0, 1.0)
        columns["komi"][rows] = signs * self.positions["komi"][chosen]
        write_outputs(outputs.only(chosen), columns, rows)

    def _play(self, outputs: Outputs, symmetries: npt.NDArray[np.int64]) -> None:
        """Draw a move in each game and play it."""
        rng, area = self.rng, self.options.size**2
        policy = outputs.policy.astype(np.float64) ** (1.0 / self.temperatures[:, None])
        policy[outputs.policy[:, area] < LEAST_PASS, area] = 0.0
        any_move = rng.random(GAMES) < self.options.random_moves
        policy[any_move] = self.legal[any_move]
        policy[any_move, area] = 0.0
        policy[policy.sum(1) == 0.0, area] = 1.0  # nothing but a pass is legal
        sums = np.cumsum(policy, axis=1)
        drawn = (sums > rng.random((GAMES, 1)) * sums[:, -1:]).argmax(1)
        points = self.points_seen[symmetries, drawn]
        play_games(self.positions, self.histories, points, 3 * area, self.over)
        decided = np.abs(outputs.win - outputs.loss) > DECIDED
        self.over |= decided & (rng.random(GAMES) < LEAVE_DECIDED)
