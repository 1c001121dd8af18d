"""The folder of a run: everything that outlives the process, in readable files.

    settings.json    the settings; a run continues only with the same ones
    state.json       the progress: the only file that is overwritten, atomically
    journal.jsonl    the events, in order
    rows/            the rows, a growing data set of yomi.nets.data.shards
    games/           the records of the games, one file per shard of rows
    pending-09.rows  finished games that do not fill a shard yet
    networks/        the networks, named by the digest of their content
    train/           the checkpoint of the training

After a kill at any moment, the next start finds each finished game in exactly one place. After a power cut, the games
of the last seconds in `pending-09.rows` may be lost. The next start renames damaged files to `.NAME.damaged`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
import os
import re
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yomi.engine.learning.journal import Journal, LearningError
from yomi.engine.learning.page import LOCK
from yomi.engine.learning.rows import write_games
from yomi.engine.learning.spool import SelfPlayGame, Spool
from yomi.nets.data.batches import newest, window_rows
from yomi.nets.data.shards import (
    Dataset,
    Manifest,
    begin_dataset,
    check_content,
    check_shard,
    open_dataset,
    read_shard,
)
from yomi.nets.errors import NetworkError
from yomi.nets.files import naming, remove_drafts, sync_file, sync_folder, write_atomically
from yomi.nets.user_files import is_in_file
from yomi.system import lock_file, read_bytes, replace

_log = logging.getLogger("yomi.learning")

FORMAT = 1
DIGITS = 16  # of the digest in a network's name
NETWORK_INTERVAL = 10  # every network of such a generation is kept
LEAD_GAMES = 200  # time constant of the mean score, in games


@dataclass(frozen=True, slots=True)
class State:
    """The state of a run's progress, which its file stores."""

    generation: int = 0  # networks trained so far
    network: str = ""  # digest of the best network; empty before the first
    trained_rows: int = 0  # total rows when its training was planned
    steps: int = 0  # training steps up to the last network
    planned_rows: int = 0  # total rows when the current training was planned; 0 if there is none
    planned_shard: int = 0  # newest shard at that time: the training leaves out later ones
    planned_steps: int = 0  # training steps up to its end
    # Black's mean score without komi by board size, an exponential mean
    leads: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0  # running time
    dropped_rows: int = 0  # rows of shards that were removed to save space or because of damage

    @classmethod
    def from_json(cls, text: str) -> State:
        """Parse the text of a state file.

        Raises:
            ValueError: the text is no state.
        """
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError(f"{type(found).__name__} found, expected an object")
        known = {field.name: field for field in dataclasses.fields(cls)}
        for name, value in found.items():
            if name not in known:
                raise ValueError(f"field {name!r} found, expected {', '.join(known)}")
            if name == "network":
                if not isinstance(value, str) or not re.fullmatch(rf"([0-9a-f]{{{DIGITS}}})?", value):
                    raise ValueError(f"network {value!r} found, expected {DIGITS} hexadecimal digits")
            elif name == "leads":
                if not isinstance(value, dict) or not all(
                    re.fullmatch("[0-9]{1,3}", key) and _is_number(value[key]) for key in value
                ):
                    raise ValueError(f"leads {value!r} found, expected numbers by board size")
            elif not _is_number(value) or value < 0 or (name != "seconds" and not isinstance(value, int)):
                kind = "number" if name == "seconds" else "whole number"
                raise ValueError(f"{name} {value!r} found, expected a {kind} of at least 0")
        return cls(**found)


NOTHING_PLANNED = {"planned_rows": 0, "planned_shard": 0, "planned_steps": 0}  # changes of the state


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18


class Store:
    """The folder of one run. Only one process may open it. Thread-safe."""

    SETTINGS = "settings.json"

    def __init__(
        self, folder: Path, asked: Mapping[str, Any], live: frozenset[str], features: str, suffix: str
    ) -> None:
        """Create a run, or continue it. Only the settings `live` may differ from those of its start.

        Raises:
            LearningError: the folder contains something else, or a run with other settings, or its settings or state
                are damaged, or another process uses it.
            NetworkError: the rows have another feature set.
            OSError: the folder cannot be written.
        """
        self.folder, self._suffix = folder, suffix
        self._mutex = threading.RLock()  # held while state, rows or networks change
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / LOCK).open("ab")
        with naming(folder / LOCK):
            if not _lock_soon(self._lock.fileno()):
                self._lock.close()
                raise LearningError(f"{folder}: another process uses this run: end it first, or use a new folder")
        try:
            self._open(asked, live, features)
        except BaseException:
            self._lock.close()
            raise

    def _open(self, asked: Mapping[str, Any], live: frozenset[str], features: str) -> None:
        folder = self.folder
        self._check_settings(asked, live)
        for name in ("games", "networks"):
            (folder / name).mkdir(exist_ok=True)
            remove_drafts(folder / name)
        remove_drafts(folder)
        self.asked = dict(asked)
        self.journal = Journal(folder / "journal.jsonl")
        self.journal.mend()
        self.state = self._read_state()
        self._open_rows(features)
        self._check_networks()
        sync_folder(folder)
        self._spools: dict[int, Spool] = {}
        for path in sorted(folder.glob("pending-*.rows")):
            if (size := path.stem.removeprefix("pending-")).isdecimal():
                self._spool(int(size))

    def _open_rows(self, features: str) -> None:
        # Only the shards of the next window are read completely: older ones are never read again.
        folder = self.folder / "rows"
        folder.mkdir(exist_ok=True)
        manifest = folder / "manifest.json"
        try:
            fields = set(json.loads(Manifest("").to_json()))
            if manifest.exists() and not fields <= set(json.loads(manifest.read_bytes())):
                raise ValueError("fields are missing")
        except (ValueError, TypeError, RecursionError) as error:
            _log.warning("%s: damaged (%s), written again", manifest, error)
            manifest.unlink()
        for path in sorted(folder.glob("train-*")):
            try:
                read_shard(path)
            except NetworkError as error:
                _set_aside(path, str(error))
        self.dataset: Dataset = begin_dataset(folder, Manifest(features))
        known = self.dataset.manifest.features
        window = window_rows(max(1, self.dataset.rows("train")), max(1, int(self.asked.get("window", 1))))
        lost = 0
        for shard in newest(self.dataset.shards, window):
            try:
                check_shard(shard, known, known.policy_size(shard.size))
                check_content(shard)
            except NetworkError as error:
                _set_aside(shard.path, str(error))
                lost += shard.rows
        if lost:
            self.dataset = open_dataset(folder)
            self.update(dropped_rows=self.state.dropped_rows + lost)
        if self.state.planned_rows and not self.planned().rows("train"):
            _log.warning("%s: no shard of the planned training is left, the training is planned again", folder)
            self.update(**NOTHING_PLANNED)

    def _check_networks(self) -> None:
        """Set aside damaged networks. If the best network is missing, use the network promoted before it."""
        folder = self.folder / "networks"
        for path in sorted(folder.glob("[!.]*")):
            if digest_of(path) != path.name.split(".")[0]:
                _set_aside(path, "content and name do not match (truncated?)")
        missing = self.state.network
        if missing and not any(folder.glob(f"{missing}.*")):
            network = next(reversed(self.networks().values()), "")
            instead = f"network {network}, promoted before, takes its place" if network else "training makes the next"
            _log.warning("%s: no network %s found, which state.json names: %s", folder, missing, instead)
            self.update(network=network)

    def close(self) -> None:
        """Release the lock of the folder."""
        self._lock.close()

    # -- rows ------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Total number of rows of all finished games, including rows of removed shards."""
        pending = sum(spool.rows for spool in self._spools.values())
        return self.dataset.rows("train") + self.state.dropped_rows + pending

    @property
    def games(self) -> list[SelfPlayGame]:
        """Finished games that are in no shard yet."""
        return [game for spool in self._spools.values() for game in spool.games]

    @property
    def newest_shard(self) -> int:
        """Number of the newest shard, or 0. Damaged shards count, because their records still use the number."""
        return max(self._numbers().values(), default=0)

    def _numbers(self) -> dict[int, int]:
        """Return the number of the newest shard by board size."""
        names = (SHARD_NAME.fullmatch(path.name) for path in (self.folder / "rows").iterdir())
        found = sorted((int(name["number"]), int(name["size"])) for name in names if name)
        return {size: number for number, size in found}

    @property
    def leads(self) -> dict[int, float]:
        """Black's mean score without komi, by board size."""
        return {int(size): lead for size, lead in self.state.leads.items()}

    def planned(self) -> Dataset:
        """Return the rows of the current training."""
        shards = tuple(shard for shard in self.dataset.shards if shard.number <= self.state.planned_shard)
        return dataclasses.replace(self.dataset, shards=shards)

    def add(self, played: SelfPlayGame) -> None:
        """Store a finished game.

        Raises:
            OSError: the game cannot be written. It is not stored.
        """
        with self._mutex:
            self._spool(played.size).add(played)
            if not math.isnan(played.margin) and not played.reanalyzed:
                before = self.state.leads.get(str(played.size), 0.0)
                lead = before + (played.margin - before) / LEAD_GAMES
                self.state = dataclasses.replace(self.state, leads={**self.state.leads, str(played.size): lead})

    def close_shards(self) -> None:
        """Write the games of the spools as shards, with their records.

        Raises:
            OSError: a shard cannot be written. Its games stay in the spool.
        """
        with self._mutex:
            for size, spool in list(self._spools.items()):
                if not spool.rows:
                    continue
                number = 1 + self.newest_shard
                games = [(game.rows, game.record) for game in spool.games if len(game.rows["value"])]
                write_games(self.folder / "rows", self.folder / "games", number, size, self._suffix, games)
                self.dataset = open_dataset(self.folder / "rows")
                self._spools[size] = Spool(spool.path, number)

    def _spool(self, size: int) -> Spool:
        if size not in self._spools:
            self._spools[size] = Spool(self.folder / f"pending-{size:02d}.rows", self._numbers().get(size, 0))
        return self._spools[size]

    def tidy(self, bytes_kept: float, rows_kept: int) -> None:
        """Remove the oldest rows with their records until at most `bytes_kept` are left, but keep at least `rows_kept`
        rows.

        Also removes networks, except the newest and every NETWORK_INTERVALth.
        """
        with self._mutex:
            total = rows = removed = 0
            for shard in sorted(self.dataset.shards, key=lambda shard: shard.number, reverse=True):
                record = self.folder / "games" / f"{shard.path.name.removeprefix('train-')}{self._suffix}"
                total += sum(path.stat().st_size for path in (*shard.path.iterdir(), record) if path.exists())
                rows += shard.rows
                if total > bytes_kept and rows > rows_kept:
                    dropped = shard.path.with_name(f".{shard.path.name}.part")  # a kill leaves no part of a shard
                    try:
                        os.rename(shard.path, dropped)
                    except PermissionError:  # Windows: training has mapped the shard; the next `tidy` drops it
                        break
                    shutil.rmtree(dropped)
                    record.unlink(missing_ok=True)
                    removed += shard.rows
            self.update(dropped_rows=self.state.dropped_rows + removed)
            self.dataset = open_dataset(self.folder / "rows")
            promoted = self.networks()
            kept = {
                *list(promoted.values())[-NETWORK_INTERVAL:],
                *(name for number, name in promoted.items() if number % NETWORK_INTERVAL == 0),
            }
            for path in (self.folder / "networks").glob("[!.]*"):
                if path.name.split(".")[0] not in kept | {self.state.network}:
                    path.unlink()

    # -- networks --------------------------------------------------------------------------------------------------

    def network(self, name: str) -> Path:
        """Return the file of a network.

        Raises:
            LearningError: it is missing or damaged.
        """
        for path in (self.folder / "networks").glob(f"{name}.*"):
            if digest_of(path) == name:
                return path
            raise LearningError(f"{path}: content and name do not match (truncated?), restore the file from a copy")
        raise LearningError(f"{self.folder}/networks: no network {name} found, restore its file from a copy")

    def networks(self) -> dict[int, str]:
        """Return the names of the promoted networks that still exist, by generation, the newest last."""
        there = {path.name.split(".")[0] for path in (self.folder / "networks").iterdir()}
        promoted = (event for event in self.journal.read() if event["event"] == "promotion")
        return {event["generation"]: event["network"] for event in promoted if event["network"] in there}

    def keep_network(self, path: Path) -> str:
        """Move a network's file into the folder of networks, flush it to the disk, and return its name."""
        name = digest_of(path)
        ending = "".join(path.suffixes)
        sync_file(path)
        replace(path, self.folder / "networks" / f"{name}{ending}")
        sync_folder(self.folder / "networks")
        return name

    # -- state -----------------------------------------------------------------------------------------------------

    def update(self, **changes: Any) -> None:
        """Change fields of the state, and write its file."""
        with self._mutex:
            # A power cut can leave files without content, or with zeros. Therefore everything that state.json names is
            # flushed to the disk before it.
            self.journal.sync()
            self.state = dataclasses.replace(self.state, **changes)
            content = json.dumps(dataclasses.asdict(self.state), indent=1)
            write_atomically(self.folder / "state.json", f"{content}\n".encode(), sync=True)

    def pass_time(self, seconds: float) -> None:
        """Set the running time. The next `update` writes it."""
        with self._mutex:
            self.state = dataclasses.replace(self.state, seconds=seconds)

    def _read_state(self) -> State:
        path = self.folder / "state.json"
        if not path.exists():
            return State()
        try:
            return State.from_json(read_bytes(path).decode())
        except (ValueError, RecursionError) as error:
            raise LearningError(f"{path}: {error}: restore it from a copy, or use a new folder") from None

    def _check_settings(self, asked: Mapping[str, Any], live: frozenset[str]) -> None:
        # Write the settings of a new run, or compare them with the settings of the existing run.
        path = self.folder / self.SETTINGS
        wanted = json.loads(json.dumps({"format": FORMAT, **asked}))
        if not path.exists():
            if any(not path.name.startswith(".") for path in self.folder.iterdir()):
                raise LearningError(f"{self.folder}: files found that are not a run, expected an empty folder or a run")
            write_atomically(path, (json.dumps(wanted, indent=1) + "\n").encode(), sync=True)
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(found, dict):
                raise ValueError(f"{type(found).__name__} found, expected an object")
        except (ValueError, RecursionError) as error:
            why = f"damaged ({error}), expected the settings of a run"
            raise LearningError(f"{path}: {why}: restore it from a copy, or use a new folder") from None
        if found.get("format") != FORMAT:
            raise LearningError(
                f"{path}: format {found.get('format')!r} found, expected {FORMAT} (another version's run)"
            )
        # A run of an earlier version lacks settings that are empty by default. Files are compared by their content.
        was, now = _without_folders(found), _without_folders(wanted)
        differing = [
            f"{name} {found.get(name)!r} (now {wanted.get(name)!r})"
            for name in dict.fromkeys((*found, *wanted))
            if was.get(name, "") != now.get(name, "") and name not in live
        ]
        if differing:
            raise LearningError(
                f"{self.folder}: a run with {', '.join(differing)} found: use the same settings, or a new folder"
            )
        if found != wanted:
            write_atomically(path, (json.dumps(wanted, indent=1) + "\n").encode(), sync=True)


def _without_folders(settings: Any) -> Any:
    """Return settings in which names replace the paths of user files, since files and runs may be moved."""
    if isinstance(settings, dict):
        return {
            key: Path(value).name if key == "start" and isinstance(value, str) else _without_folders(value)
            for key, value in settings.items()
        }
    return os.path.basename(settings) if isinstance(settings, str) and is_in_file(settings) else settings


def _lock_soon(descriptor: int) -> bool:
    # `yomi learn status` may hold the lock for a moment, to find out whether a run is active.
    for _ in range(5):
        if lock_file(descriptor, wait=False):
            return True
        time.sleep(0.1)
    return False


# Folder of a shard, also of a damaged one that was set aside
SHARD_NAME = re.compile(r"\.?train-(?P<size>\d+)-(?P<number>\d+)(\.damaged)?")


def _set_aside(path: Path, why: str) -> None:
    """Rename a damaged file or folder so that the run ignores it, and report that."""
    aside = path.with_name(f".{path.name}.damaged")
    if aside.is_dir():
        shutil.rmtree(aside)
    replace(path, aside)
    sync_folder(path.parent)
    _log.warning("%s; left out, and renamed to %s", why if str(path) in why else f"{path}: {why}", aside.name)


def digest_of(path: Path) -> str:
    """Return the name of a network: the first DIGITS digits of its SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]
