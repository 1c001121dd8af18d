"""The folder of a run: everything that must outlive the process, in forms that a person can read.

    settings.json    what was asked for; a run goes on with the same only
    state.json       how far it has come: the one file that is written over, whole or not at all
    journal.jsonl    what happened, in order
    rows/            the rows, a data set of nets.data.shards that only grows
    games/           the records of the games, a file for each shard of rows
    pending-09.rows  games that have ended and are not yet enough for a shard
    networks/        the networks, by the digest of their content
    train/           the checkpoint of the training

Whatever is killed at whatever moment, the next start finds each finished game in exactly one place.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import json
import math
import os
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from engine.learning.errors import LearningError
from engine.learning.journal import Journal
from engine.learning.rows import write_games
from nets.data.shards import Arrays, Dataset, Manifest, Shard, begin_dataset, open_dataset
from nets.files import is_held_alone, naming, remove_drafts, write_atomically

P = ParamSpec("P")
T = TypeVar("T")

FORMAT = 1
DIGITS = 16
"""Of a digest in a network's name."""
WORD = 8
"""Bytes of a number in a spool."""
EVERY = 10
"""Generations: of the networks one in so many stays."""
LEAD_GAMES = 200
"""Games over which the mean of what games end with forgets."""


@dataclass(frozen=True, slots=True)
class Played:
    """A finished game as the run keeps it."""

    rows: Arrays
    """Columns; `game` is set when they are written."""
    record: bytes
    winner: int
    """BLACK, WHITE or DRAW."""
    margin: float
    """Black's points without komi; NaN where there are none."""
    moves: int
    size: int
    """Of the board's side."""
    network: str
    """Digest of the network that ended it; rollouts before there is one."""
    reanalyzed: bool = False
    """Whether it is an earlier game that this network has searched anew: there are rows and a record of both."""

    def to_bytes(self) -> bytes:
        """Return it as it is kept until a shard is full, and as workers send it."""
        stream = io.BytesIO()
        facts = {name: getattr(self, name) for name in ("winner", "margin", "moves", "size", "network", "reanalyzed")}
        record = np.frombuffer(self.record, np.uint8)
        arrays: dict[str, Any] = {f"row_{name}": column for name, column in self.rows.items()}
        np.savez(stream, facts=np.array(json.dumps(facts)), record=record, **arrays)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Played:
        """Return what `to_bytes` has written."""
        with np.load(io.BytesIO(content)) as arrays:
            facts = json.loads(str(arrays["facts"]))
            rows = {name.removeprefix("row_"): arrays[name] for name in arrays.files if name.startswith("row_")}
            return cls(rows, arrays["record"].tobytes(), **facts)


@dataclass(frozen=True, slots=True)
class State:
    """How far a run has come."""

    generation: int = 0
    """Networks trained so far."""
    network: str = ""
    """Digest of the best; empty before the first."""
    trained_rows: int = 0
    """Rows that there were when it was trained."""
    steps: int = 0
    """Of training up to the last network."""
    planned_rows: int = 0
    """Rows that there were when the training that is under way was planned; 0 if none is."""
    planned_shard: int = 0
    """Number of the newest shard at that time: later ones are not for it."""
    planned_steps: int = 0
    """Of training up to the network that it makes."""
    leads: Mapping[str, float] = field(default_factory=dict)
    """By board size: points that games end with on average for Black, komi not counted; forgets slowly."""
    seconds: float = 0.0
    """That the run has taken so far."""


class Spool:
    """Games on boards of one size that have ended, kept until they are enough for a shard."""

    def __init__(self, path: Path, latest: int) -> None:
        """Read what is there, without the end of one that a kill has cut short.

        Args:
            path: of the file.
            latest: number of the newest shard of this size, 0 if there is none. Where games are kept under another
                number, they have become it.
        """
        self.path, self.games = path, list[Played]()
        self._head = latest.to_bytes(WORD, "little")
        content = path.read_bytes() if path.exists() else b""
        self._end = WORD
        if content[:WORD] != self._head:
            write_atomically(path, self._head)
            return
        while (end := self._end + WORD + int.from_bytes(content[self._end : self._end + WORD], "little")) <= len(
            content
        ):
            if end == self._end + WORD:
                break
            self.games.append(Played.from_bytes(content[self._end + WORD : end]))
            self._end = end

    @property
    def rows(self) -> int:
        """Rows of all its games."""
        return sum(len(each.rows["value"]) for each in self.games)

    def add(self, played: Played) -> None:
        """Append a game; what a full disk leaves of one is written over by the next."""
        content = played.to_bytes()
        with naming(self.path), self.path.open("r+b") as file:
            file.truncate(self._end)
            file.seek(self._end)
            file.write(len(content).to_bytes(WORD, "little") + content)
        self._end += WORD + len(content)
        self.games.append(played)


def _alone(method: Callable[P, T]) -> Callable[P, T]:
    """Let one thread at a time change a store."""

    @functools.wraps(method)
    def called(*args: P.args, **more: P.kwargs) -> T:
        store: Any = args[0]
        with store._changing:
            return method(*args, **more)

    return called


class Store:
    """The folder of one run, used by one process: by the thread that plays and the one that trains at once."""

    SETTINGS = "settings.json"

    def __init__(
        self, folder: Path, asked: Mapping[str, Any], live: frozenset[str], features: str, suffix: str
    ) -> None:
        """Begin a run, or go on with one.

        Args:
            folder: of the run; made if it is not there.
            asked: all settings, by name.
            live: names of those that may differ from what the run began with.
            features: the feature set of the rows.
            suffix: of the records.

        Raises:
            LearningError: the folder holds something else, or a run with other settings; what differs is said.
            NetworkError: a shard is broken.
            OSError: it cannot be written.
        """
        self.folder, self._suffix = folder, suffix
        self._changing = threading.RLock()
        """Held while state, rows or networks change."""
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / ".lock").open("ab")
        if not is_held_alone(self._lock.fileno()):
            self._lock.close()
            raise LearningError(f"{folder}: another process learns there, expected that it ends first, or a new folder")
        try:
            self._open(asked, live, features)
        except BaseException:
            self._lock.close()
            raise

    def _open(self, asked: Mapping[str, Any], live: frozenset[str], features: str) -> None:
        """Read what is there."""
        folder = self.folder
        self._agree(asked, live)
        for name in ("games", "networks"):
            (folder / name).mkdir(exist_ok=True)
            remove_drafts(folder / name)
        remove_drafts(folder)
        self.asked = dict(asked)
        self.journal = Journal(folder / "journal.jsonl")
        self.dataset: Dataset = begin_dataset(folder / "rows", Manifest(features))
        self.state = self._read_state()
        self._spools: dict[int, Spool] = {}
        for path in sorted(folder.glob("pending-*.rows")):
            self._spool(int(path.stem.removeprefix("pending-")))

    def close(self) -> None:
        """Let another process have the folder."""
        self._lock.close()

    # -- rows ------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Rows of all games that have ended."""
        return self.dataset.rows("train") + sum(spool.rows for spool in self._spools.values())

    @property
    def games(self) -> list[Played]:
        """Games that have ended and are in no shard yet."""
        return [game for spool in self._spools.values() for game in spool.games]

    @property
    def newest_shard(self) -> int:
        """Number of the newest shard; 0 if there is none."""
        return max((_number(shard) for shard in self.dataset.shards), default=0)

    @property
    def leads(self) -> dict[int, float]:
        """Points that games end with on average for Black, komi not counted, by board size."""
        return {int(size): lead for size, lead in self.state.leads.items()}

    def planned(self) -> Dataset:
        """Return the rows of the training that is under way."""
        shards = tuple(each for each in self.dataset.shards if _number(each) <= self.state.planned_shard)
        return dataclasses.replace(self.dataset, shards=shards)

    @_alone
    def add(self, played: Played) -> None:
        """Keep a game that has ended.

        Raises:
            OSError: it cannot be written; it is not kept.
        """
        self._spool(played.size).add(played)
        if not math.isnan(played.margin) and not played.reanalyzed:
            before = self.state.leads.get(str(played.size), 0.0)
            lead = before + (played.margin - before) / LEAD_GAMES
            self.state = dataclasses.replace(self.state, leads={**self.state.leads, str(played.size): lead})

    @_alone
    def close_shards(self) -> None:
        """Make shards of the games that are in none yet, with their records beside them.

        Raises:
            OSError: one cannot be written; the games stay where they are.
        """
        for size, spool in list(self._spools.items()):
            if not spool.rows:
                continue
            number = 1 + self.newest_shard
            games = [(each.rows, each.record) for each in spool.games if len(each.rows["value"])]
            write_games(self.folder / "rows", self.folder / "games", number, size, self._suffix, games)
            self.dataset = open_dataset(self.folder / "rows")
            self._spools[size] = Spool(spool.path, number)

    def _spool(self, size: int) -> Spool:
        if size not in self._spools:
            latest = max((_number(shard) for shard in self.dataset.shards if shard.size == size), default=0)
            self._spools[size] = Spool(self.folder / f"pending-{size:02d}.rows", latest)
        return self._spools[size]

    @_alone
    def tidy(self, bytes_kept: float, rows_kept: int) -> None:
        """Remove the oldest rows with their records, and networks but every EVERYth and the newest.

        Args:
            bytes_kept: of rows and records.
            rows_kept: of the window, which stay however many bytes they are.
        """
        total = rows = 0
        for shard in sorted(self.dataset.shards, key=_number, reverse=True):
            record = self.folder / "games" / f"{shard.path.name.removeprefix('train-')}{self._suffix}"
            total += sum(path.stat().st_size for path in (*shard.path.iterdir(), record) if path.exists())
            rows += shard.rows
            if total > bytes_kept and rows > rows_kept:
                dropped = shard.path.with_name(f".{shard.path.name}.part")  # a kill leaves no part of a shard
                os.rename(shard.path, dropped)
                shutil.rmtree(dropped)
                record.unlink(missing_ok=True)
        self.dataset = open_dataset(self.folder / "rows")
        promoted = self.networks()
        kept = {*list(promoted.values())[-EVERY:], *(name for number, name in promoted.items() if number % EVERY == 0)}
        for path in (self.folder / "networks").iterdir():
            if path.name.split(".")[0] not in kept | {self.state.network}:
                path.unlink()

    # -- networks --------------------------------------------------------------------------------------------------

    def network(self, name: str) -> Path:
        """Return the file of a network.

        Raises:
            LearningError: it is not there, or its content is not what its name says.
        """
        for path in (self.folder / "networks").glob(f"{name}.*"):
            if digest_of(path) == name:
                return path
            raise LearningError(f"{path}: its content is not that of its name (cut short?), expected it as it was made")
        raise LearningError(f"{self.folder}/networks: no network {name} found, expected it there")

    def networks(self) -> dict[int, str]:
        """Return the networks that were promoted and are still there, by generation."""
        there = {path.name.split(".")[0] for path in (self.folder / "networks").iterdir()}
        promoted = (each for each in self.journal.read() if each["event"] == "promotion")
        return {each["generation"]: each["network"] for each in promoted if each["network"] in there}

    def keep_network(self, path: Path) -> str:
        """Move a network's file among the networks; return its name."""
        name = digest_of(path)
        ending = "".join(path.suffixes)
        os.replace(path, self.folder / "networks" / f"{name}{ending}")
        return name

    # -- state -----------------------------------------------------------------------------------------------------

    @_alone
    def update(self, **changes: Any) -> None:
        """Change the state, on the disk before anything else happens."""
        self.state = dataclasses.replace(self.state, **changes)
        content = json.dumps(dataclasses.asdict(self.state), indent=1)
        write_atomically(self.folder / "state.json", f"{content}\n".encode(), sync=True)

    @_alone
    def pass_time(self, seconds: float) -> None:
        """Note how long the run has taken so far, with the next change of the state on the disk."""
        self.state = dataclasses.replace(self.state, seconds=seconds)

    def _read_state(self) -> State:
        path = self.folder / "state.json"
        if not path.exists():
            return State()
        try:
            return State(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise LearningError(f"{path}: {error}: expected the state of a run") from None

    def _agree(self, asked: Mapping[str, Any], live: frozenset[str]) -> None:
        """Begin with settings, or see that the run that is here has the same."""
        path = self.folder / self.SETTINGS
        wanted = json.loads(json.dumps({"format": FORMAT, **asked}))
        if not path.exists():
            if any(not each.name.startswith(".") for each in self.folder.iterdir()):
                raise LearningError(f"{self.folder}: files that are no run found, expected an empty folder or a run's")
            write_atomically(path, (json.dumps(wanted, indent=1) + "\n").encode(), sync=True)
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise LearningError(f"{path}: broken JSON ({error}), expected the settings of a run") from None
        if found.get("format") != FORMAT:
            raise LearningError(
                f"{path}: format {found.get('format')!r} found, expected {FORMAT} (another version's run)"
            )
        differing = [
            f"{name} {found.get(name)!r} where {wanted.get(name)!r} was asked for"
            for name in dict.fromkeys((*found, *wanted))
            if found.get(name) != wanted.get(name) and name not in live
        ]
        if differing:
            raise LearningError(f"{self.folder}: a run with {'; '.join(differing)}: expected the same, or a new folder")
        if found != wanted:
            write_atomically(path, (json.dumps(wanted, indent=1) + "\n").encode(), sync=True)


def _number(shard: Shard) -> int:
    return int(shard.path.name.rpartition("-")[2])


def digest_of(path: Path) -> str:
    """Return the name of a network: the beginning of its content's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]
