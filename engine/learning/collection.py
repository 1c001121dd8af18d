"""Rows of finished games, written to a data set that grows, with the records of the games in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Generic

import numpy as np

from yomi.engine.learning.replay import RECORDS
from yomi.engine.learning.rows import ply_of, rows_of, write_games
from yomi.engine.learning.selfplay import Finished, Ply
from yomi.engine.play import G
from yomi.nets.data.shards import Array, Manifest, begin_dataset

if TYPE_CHECKING:
    from yomi.engine.learning.learnable import Learnable
    from yomi.engine.play import Ended
    from yomi.engine.players.request import Decision

SHARD_ROWS = 512


class Collection(Generic[G]):
    """Takes the games of one series; `close` writes what is not yet enough for a shard."""

    def __init__(self, folder: Path, learnable: Learnable[G]) -> None:
        """Begin a data set, or go on with one; a shard's games are in its folder `games`.

        Raises:
            NetworkError: the folder holds a data set made in another way.
            OSError: it cannot be written.
        """
        self.folder, self.learnable = folder, learnable
        dataset = begin_dataset(folder, Manifest(learnable.features))
        (folder / RECORDS).mkdir(exist_ok=True)
        self._number = max((int(shard.path.name.rpartition("-")[2]) for shard in dataset.shards), default=0)
        self._rng = np.random.default_rng(0)  # nothing is drawn without surprise
        self._games: list[tuple[dict[str, Array], bytes]] = []
        self._first, self._plies = 0, list[Ply]()

    def begin(self, game: G) -> None:
        """Let a game begin, maybe with moves."""
        self._first, self._plies = game.ply, []

    def note(self, game: G, decision: Decision) -> None:
        """Take a decision before its move is played."""
        self._plies.append(ply_of(game.position, decision, self.learnable.spec))

    def end(self, game: G, ended: Ended, name: str) -> None:
        """Take a finished game of the players `name`, which is left out if no position was searched.

        Raises:
            OSError: a shard cannot be written; its games stay for the next time.
        """
        finished = Finished(game, ended, self.learnable.outcome(game, ended), self._first, self._plies)
        rows = rows_of(finished, self.learnable, 0.0, self._rng)
        if len(rows["value"]):
            self._games.append((rows, self.learnable.record(finished, name)))
        if sum(len(rows["value"]) for rows, _ in self._games) >= SHARD_ROWS:
            self.close()

    def close(self) -> None:
        """Write the games that are in no shard yet.

        Raises:
            OSError: they cannot be written.
        """
        if not self._games:
            return
        size = self.learnable.spec.planes_shape[-1]
        suffix = self.learnable.suffix
        write_games(self.folder, self.folder / RECORDS, self._number + 1, size, suffix, self._games)
        self._number += 1
        self._games.clear()
