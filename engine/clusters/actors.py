"""Actors on a Ray cluster, for `yomi learn` and for the units of other commands (`engine/clusters/units.py`).

The machines share no files. Networks and results travel through Ray's object store.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import hashlib
import importlib
import logging
import math
import os
import pickle
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from yomi import __version__, language
from yomi.engine.machine import usable_cores
from yomi.engine.options import Options
from yomi.errors import LineError
from yomi.nets import models
from yomi.nets.files import default_cache_dir, write_atomically
from yomi.nets.onnx_file import data_files

LOCAL, AUTO = "local", "auto"
GATHER_SECONDS = 0.25  # minimum working time per call: a call costs milliseconds
FAILURES = 3  # losses per actor, on average, that end a run without results
RESTART_SECONDS = 5.0  # between two starts of an actor, so that a broken one does not keep its machine busy
BEGIN, LOST = "begin", "lost"  # names of answers of actors that are no method's
HEAD_SECONDS = 10.0  # time without an answer after which the cluster's head counts as lost
RECONNECT_SECONDS = 86_400  # after which Ray silently ends a process without a head; yomi reports the loss long before
STORE_BYTES = 2**29  # object store of a local cluster; it holds a few networks and deliveries
CACHED_NETWORKS = 8  # networks in the cache of a node
AUTH_MODE, AUTH_TOKEN, AUTH_TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
OPEN = "disabled"
EXPECTED = (
    "expected a running cluster that this machine is a node of, and its token in RAY_AUTH_TOKEN or "
    "~/.ray/auth_token (--insecure if it has none)"
)
SECURED_FROM = (2, 52)  # first version of Ray with tokens
DIGITS = 16  # of the digest of a network
VALUES = ".ini"  # ends the name of the file with the options that a network recommends, beside it
MODELS_DIR = Path(models.__file__).parent

OnLoss: TypeAlias = Callable[[int, str], None]  # gets the number of a lost actor, and the reason
Places: TypeAlias = Mapping[str, str]  # path of a network on a node, by its path on the command's machine


def sent_networks(players: Iterable[Options]) -> tuple[str, ...]:
    """Return the network files that the players' options name, each once."""
    files = (file for options in players for file in _networks(options).values())
    return tuple(dict.fromkeys(file for file in files if Path(file).is_file()))


def moved(options: Options, places: Places) -> Options:
    """Return options in which networks have the paths of the node's copies."""
    return options.with_values({name: places[file] for name, file in _networks(options).items() if file in places})


def _networks(options: Options) -> dict[str, str]:
    files = {"net": options.net, "value_net": options.value_net, "human_net": options.human_net}
    return {name: file for name, file in files.items() if file is not None}


class ClusterError(LineError):
    """A cluster cannot be used, or the connection is lost."""


@dataclass(frozen=True)
class ClusterOptions:
    # local starts a cluster, auto uses the cluster of this machine; otherwise HOST:PORT of a head.
    address: str
    actors: int | None = None  # None: as many as the cluster has room for
    cpus: float = 1.0  # per actor
    gpus: float = 0.0  # per actor; an actor without a share sees no GPU
    insecure: bool = False  # accept a cluster that runs anyone's code


class Cluster:
    """The connection to a cluster. A process can have one only."""

    def __init__(self, options: ClusterOptions) -> None:
        """Start a cluster, or connect to one.

        Raises:
            ClusterError: there is no cluster, or it is not secured.
        """
        self.options = options
        must_be_secure = not options.insecure and AUTH_MODE not in os.environ
        os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", str(RECONNECT_SECONDS))
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault(AUTH_MODE, OPEN if options.insecure else "token")
        if must_be_secure and options.address == LOCAL and not {AUTH_TOKEN, AUTH_TOKEN_PATH} & set(os.environ):
            os.environ[AUTH_TOKEN] = secrets.token_hex(32)
        if options.address == LOCAL:  # Ray then listens on 127.0.0.1, as it does by default on macOS and Windows
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        self.ray: Any = importlib.import_module("ray")  # reads the environment
        version = self.ray.__version__
        if must_be_secure and tuple(int(part) for part in version.split(".")[:2]) < SECURED_FROM:
            raise ClusterError(f"Ray {version} has no authentication: install Ray 2.52 or newer, or add --insecure")
        self._connect()
        if must_be_secure and options.address != LOCAL:
            self._check_secured()
        context = self.ray.get_runtime_context()
        host, _, port = context.gcs_address.rpartition(":")
        if options.address == LOCAL and host.strip("[]") not in ("127.0.0.1", "::1"):
            self.close()
            raise ClusterError(f"--cluster {LOCAL}: Ray listens on {host}, expected 127.0.0.1 (Ray 2.52 or newer)")
        own = next(node for node in self.ray.nodes() if node["NodeID"] == context.get_node_id())
        self._needed = {
            "its head": (host.strip("[]"), int(port)),
            "this machine's node": (own["NodeManagerAddress"], own["NodeManagerPort"]),
        }
        self._missed: float | None = None
        self._checked = time.monotonic()
        self._parcels: dict[str, Parcel] = {}
        self._lock = threading.Lock()

    @functools.cached_property
    def actors(self) -> int:
        """Number of actors that the options set; otherwise as many as the cluster has room for now."""
        if self.options.actors is not None:
            return self.options.actors
        needs = {"CPU": self.options.cpus, "GPU": self.options.gpus}
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        room = sum(min(int(node.get(key, 0.0) / need) for key, need in needs.items() if need) for node in nodes)
        return max(1, room)

    def check(self) -> None:
        """Check, about once a second, that the cluster can be reached, since calls to a lost cluster never return.

        Raises:
            ClusterError: it has been lost for HEAD_SECONDS.
        """
        now = time.monotonic()
        if now - self._checked < 1.0:
            return
        self._checked = now
        lost = self._find_lost()
        self._missed = (self._missed or now) if lost else None
        if self._missed is not None and now - self._missed >= HEAD_SECONDS:
            raise ClusterError(
                f"cluster {self.options.address}: {lost}; all finished work is kept: run the command again when "
                "there is a cluster"
            )

    def wait(self) -> None:
        """Wait until the cluster can be reached. Ray ends a process that stores an object while it cannot.

        Raises:
            ClusterError: it has been lost for HEAD_SECONDS.
        """
        while self._find_lost():
            self.check()
            time.sleep(0.2)

    def _find_lost(self) -> str:
        for name, place in self._needed.items():
            try:
                socket.create_connection(place, timeout=2.0).close()
            except OSError as error:
                return f"{name} is lost ({error.strerror or error})"
        return ""

    def put(self, content: bytes) -> Any:
        """Store an object in the cluster and return its reference. Raises ClusterError if the cluster is lost."""
        self.wait()
        return self.ray.put(content)

    def parcel(self, path: str) -> Parcel:
        """Store a network, unless it has been stored already. Thread-safe.

        Raises:
            ClusterError: the cluster is lost, or the weights are in other files.
            OSError: the file cannot be read.
        """
        with self._lock:
            if path not in self._parcels:
                self._parcels[path] = self._packed(Path(path))
                for old in list(self._parcels)[:-CACHED_NETWORKS]:
                    del self._parcels[old]
            return self._parcels[path]

    def _packed(self, path: Path) -> Parcel:
        if path.parent == MODELS_DIR:
            return Parcel("", path.name, [])
        if data_files(path):
            raise ClusterError(f"{path}: weights in other files found, expected one file for --cluster")
        files = _files(path)
        return Parcel(_digest(files), path.name, [self.put(pickle.dumps(files))])

    def close(self) -> None:
        """Disconnect. The actors end; a local cluster ends, too."""
        self.ray.shutdown()

    def _connect(self) -> None:
        options, own = self.options, dict[str, Any]()
        if options.address == LOCAL:
            processors = max(usable_cores(), math.ceil((options.actors or 0) * options.cpus))
            own = {"num_cpus": processors, "include_dashboard": False, "object_store_memory": STORE_BYTES}
        elif options.address != AUTO:
            _reach(options.address)
        try:
            self.ray.init(address=options.address, log_to_driver=False, logging_level=logging.ERROR, **own)
        except (self.ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, OSError) as error:
            why = (str(error).strip().splitlines() or [type(error).__name__])[0]
            if type(error).__name__ == "AuthenticationError":  # Ray 2.52 or newer; its own message is very long
                why = "no token found, or another one than the cluster's"
            hint = "" if options.address == LOCAL else f"; {EXPECTED}"
            raise ClusterError(f"--cluster {options.address}: {why}{hint}") from None
        # Ending raylets print dozens of lines, whatever log_to_driver is. `Actors` reports a loss in one.
        self.ray._private.worker.print_to_stdstream = lambda *_, **__: None

    def _check_secured(self) -> None:
        # A cluster without authentication silently accepts our token.

        def read_mode() -> str:
            import os

            return os.environ.get("RAY_AUTH_MODE", "")

        mode = self.ray.get(self.ray.remote(read_mode).options(num_cpus=0).remote())
        if mode.lower() in ("", OPEN):
            self.close()
            raise ClusterError(
                f"--cluster {self.options.address}: it runs anyone's code, expected a cluster whose nodes were "
                "started with RAY_AUTH_MODE=token, or --insecure"
            )


def _reach(address: str) -> None:
    # Ray itself needs long and prints many lines to report an address without a server.
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise ClusterError(f"--cluster {address}: expected {AUTO}, {LOCAL}, or HOST:PORT of a cluster's head")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
    except OSError as error:
        raise ClusterError(
            f"--cluster {address}: {error.strerror or error}, expected the head of a Ray cluster"
        ) from None


@dataclass(frozen=True)
class Parcel:
    """A network in the cluster's object store."""

    digest: str  # of its files; empty for a network that comes with yomi, which every node has
    name: str  # of its file
    # A reference to its files by name, pickled. It is in a list so that Ray does not fetch it for nodes with the files.
    content: list[Any]

    def unpack(self) -> str:
        """Copy the network to the node if it is missing there. Return the path of the copy."""
        if not self.digest:
            return str(MODELS_DIR / self.name)
        folder = default_cache_dir() / "cluster"
        path = folder / self.digest / self.name
        if _digest(_files(path)) == self.digest:
            os.utime(path.parent)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            for name, content in pickle.loads(importlib.import_module("ray").get(self.content[0])).items():
                write_atomically(path.parent / name, content)
            with contextlib.suppress(FileNotFoundError):  # another actor of the node was faster
                found = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
                for old in found[CACHED_NETWORKS:]:
                    shutil.rmtree(old)
        return str(path)


def _files(path: Path) -> dict[str, bytes]:
    """Return the contents of a network's files by name: the network, and its recommended options if they exist."""
    found = (path, path.with_name(f"{path.name}{VALUES}"))
    return {file.name: file.read_bytes() for file in found if file.exists()}


def _digest(files: Mapping[str, bytes]) -> str:
    return hashlib.sha256(b"".join(files.values())).hexdigest()[:DIGITS]


def _actor_class(folder: str) -> type:
    # Ray puts the command's folder first on the import path of all workers, but it may contain anyone's modules (see
    # yomi.children). Only an inner class travels without a module, so that nothing is imported before.

    class Actor:
        def __init__(self) -> None:
            import sys

            if folder in sys.path:
                sys.path.remove(folder)  # once: a checkout stays, by PYTHONPATH
            from yomi.engine.clusters.actors import Remote

            self._remote = Remote()

        def begin(self, *arguments: Any) -> None:
            self._remote.begin(*arguments)

        def call(self, *arguments: Any) -> bytes:
            return self._remote.call(*arguments)

    return Actor


class Remote:
    # Makes an object of this package on a node, and calls the methods of it, all in one thread.

    def begin(self, version: str, made: bytes, parcels: Mapping[str, Parcel], gpus: float, japanese: bool) -> None:
        # Slow on a node that has not compiled the kernels yet.
        if version != __version__:
            raise ClusterError(f"yomi {__version__} found on the node, expected {version} as on the command's machine")
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray leaves it as it is, and all actors would share the first
        language.choose(language.JAPANESE if japanese else language.ENGLISH)  # the texts of files
        make, arguments = pickle.loads(made)
        self._made = make({path: parcel.unpack() for path, parcel in parcels.items()}, *arguments)

    def call(self, name: str, *arguments: Any) -> bytes:
        # Pickled, because arrays from Ray's store would keep its memory occupied.
        return pickle.dumps(getattr(self._made, name)(*arguments))


@dataclass(frozen=True)
class Recipe:
    """How an actor makes its object: `make(places, *arguments)`. It is pickled and sent with the arguments."""

    make: Callable[..., Any]
    arguments: tuple[Any, ...]
    networks: tuple[str, ...] = ()  # files that the nodes need copies of; `places` has the copies


@dataclass(frozen=True)
class Answer:
    """An actor's answer to a call: the value that it returned, or the news that the actor is lost."""

    actor: int
    name: str  # of the method; BEGIN: the actor is ready; LOST: it is lost
    value: Any  # if lost: the reason, on one line
    fault: Exception | None = None  # of the actor's own code, if that is the reason


class ActorTable(abc.ABC):
    """Actors of one kind, by number. A lost actor is started again when there is room.

    One thread at a time may use them.
    """

    failed = "no actor of the cluster can work"  # before the reason, if no actor succeeds

    def __init__(self, recipe: Callable[[int], Recipe], count: int, on_loss: OnLoss) -> None:
        """Store the arguments. Subclasses start the actors.

        Args:
            recipe: returns the recipe of each start, counted from 0.
            count: number of actors.
            on_loss: is called with the number of each lost actor and the reason.
        """
        self.count = count
        self._recipe, self._on_loss = recipe, on_loss
        self._starts = self._failures = 0
        self._there: list[Any] = [None] * count  # None: lost, and not started again yet
        self._ready = [False] * count
        self._started = [0.0] * count

    @property
    def ready(self) -> list[int]:
        return [number for number, is_ready in enumerate(self._ready) if is_ready]

    @abc.abstractmethod
    def poll(self, seconds: float) -> list[Answer]:
        """Return the answers that have arrived. Wait up to `seconds` for the first.

        Raises:
            ClusterError: the cluster is lost, or no actor succeeds.
        """

    @abc.abstractmethod
    def call(self, number: int, name: str, *arguments: Any) -> None:
        """Call a method of a ready actor. `poll` returns its answer. An actor does its calls in their order."""

    @abc.abstractmethod
    def close(self) -> None:
        """End the actors. Unfinished work is lost."""

    def note_success(self) -> None:
        """Reset the count of losses after which the run ends."""
        self._failures = 0

    def lose(self, number: int, why: str, fault: Exception | None = None) -> Answer:
        """End an actor, which starts again later, and return its answer LOST. Raises ClusterError if all fail."""
        self._ready[number] = False
        actor, self._there[number] = self._there[number], None
        ended = self._end(number, actor)
        why = why or ended
        self._on_loss(number, why)
        self._failures += 1
        if self._failures >= FAILURES * self.count:
            raise ClusterError(f"{self.failed}: {why}")
        return Answer(number, LOST, why, fault)

    def _start_lost(self) -> None:
        for number in range(self.count):
            if self._there[number] is None and time.monotonic() - self._started[number] > RESTART_SECONDS:
                self._start(number)

    def _start(self, number: int) -> None:
        recipe = self._recipe(self._starts)
        self._there[number] = self._begin(number, recipe)
        self._starts += 1
        self._started[number] = time.monotonic()

    @abc.abstractmethod
    def _begin(self, number: int, recipe: Recipe) -> Any:
        """Request an actor and return its handle. The first answer of the actor is BEGIN."""

    @abc.abstractmethod
    def _end(self, number: int, actor: Any) -> str:
        """End an actor. Return how it ended, as far as that is known."""


class Actors(ActorTable):
    """Actors on a Ray cluster."""

    def __init__(self, cluster: Cluster, recipe: Callable[[int], Recipe], on_loss: OnLoss) -> None:
        """Request the actors. They start when there is room. `close` closes the cluster, too."""
        super().__init__(recipe, cluster.actors, on_loss)
        self._cluster, self._ray = cluster, cluster.ray
        options = cluster.options
        resources = {"num_cpus": options.cpus, "num_gpus": options.gpus}
        actor = _actor_class(os.path.abspath(os.curdir))
        self._remote = self._ray.remote(actor).options(**resources, max_restarts=0, scheduling_strategy="SPREAD")
        self._sent: tuple[bytes, Any] = b"", None  # the last recipe, and its reference
        # Pending calls in order: reference -> (number of the actor, method)
        self._calls: dict[Any, tuple[int, str]] = {}
        for number in range(self.count):
            self._start(number)

    def poll(self, seconds: float) -> list[Answer]:
        self._cluster.check()
        self._start_lost()
        if not self._calls:
            time.sleep(min(seconds, RESTART_SECONDS))
            return []
        self._ray.wait(list(self._calls), timeout=seconds)
        arrived, _ = self._ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0)
        answers: list[Answer] = []
        for reference in arrived:
            if reference not in self._calls:  # its actor has just been lost
                continue
            number, name = self._calls.pop(reference)
            try:
                value = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                answers.append(self.lose(number, *_why(error)))
                continue
            self._ready[number] = True
            answers.append(Answer(number, name, None if name == BEGIN else pickle.loads(value)))
        return answers

    def call(self, number: int, name: str, *arguments: Any) -> None:
        self._calls[self._there[number].call.remote(name, *arguments)] = number, name

    def close(self) -> None:
        self._cluster.close()

    def _begin(self, number: int, recipe: Recipe) -> Any:
        parcels = {path: self._cluster.parcel(path) for path in recipe.networks}
        made = pickle.dumps((recipe.make, recipe.arguments))
        if made != self._sent[0]:
            self._sent = made, self._cluster.put(made)
        handle = self._remote.remote()
        gpus, japanese = self._cluster.options.gpus, language.is_japanese()
        self._calls[handle.begin.remote(__version__, self._sent[1], parcels, gpus, japanese)] = number, BEGIN
        return handle

    def _end(self, number: int, actor: Any) -> str:
        self._calls = {call: (other, name) for call, (other, name) in self._calls.items() if other != number}
        self._ray.kill(actor)
        return ""


def _why(error: Exception) -> tuple[str, Exception | None]:
    """Return the reason for the loss of an actor as one line, and the error of its own code if there was one."""
    cause = getattr(error, "cause", None)
    lines = str(error if cause is None else cause).strip().splitlines() or [type(cause or error).__name__]
    if cause is not None:
        return f"{type(cause).__name__}: {lines[0]}", cause
    return lines[-1].partition(". ")[0].removesuffix("."), None
