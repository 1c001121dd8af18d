"""Self-play and matches on a Ray cluster. Start reading at `RayWorkers.take`.

The machines share no files. Networks and games travel through Ray's object store, and a lost actor loses only its
unfinished games.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import logging
import math
import os
import pickle
import secrets
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi import __version__
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.game import Game
from yomi.engine.learning.journal import LearningError, first_line
from yomi.engine.learning.settings import SelfPlaySettings
from yomi.engine.learning.store import DIGITS, digest_of
from yomi.engine.learning.workers import FAILURES, RESTART_SECONDS, Delivery, OnLoss, SelfPlayWorker, Task
from yomi.engine.machine import usable_cores
from yomi.engine.matches.duel import SIDE_BY_SIDE, DuelScore, LearningMatch, play_match
from yomi.engine.options import Options
from yomi.nets.files import default_cache_dir, write_atomically
from yomi.nets.python_file import define_function, is_in_file, read_source

LOCAL, AUTO = "local", "auto"
DELIVERIES_AHEAD = 2  # requested deliveries per actor: it plays one while another travels
GATHER_SECONDS = 0.25  # minimum playing time per delivery: a call costs milliseconds
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


@dataclass(frozen=True)
class ClusterOptions:
    """Options of the cluster."""

    # local starts a cluster, auto uses the cluster of this machine; otherwise HOST:PORT of a head.
    address: str
    actors: int | None = None  # None: as many as fit
    cpus: float = 1.0  # per actor
    gpus: float = 0.0  # per actor; an actor without a share sees no GPU
    insecure: bool = False  # accept a cluster that runs anyone's code


class Cluster:
    """The connection to a cluster. A process can have only one."""

    def __init__(self, options: ClusterOptions) -> None:
        """Start a cluster, or connect to one.

        Raises:
            LearningError: there is no cluster, or it is not secured.
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
            raise LearningError(f"Ray {version} has no authentication: install Ray 2.52 or newer, or add --insecure")
        self._connect()
        if must_be_secure and options.address != LOCAL:
            self._check_secured()
        context = self.ray.get_runtime_context()
        host, _, port = context.gcs_address.rpartition(":")
        if options.address == LOCAL and host.strip("[]") not in ("127.0.0.1", "::1"):
            self.close()
            raise LearningError(f"--cluster {LOCAL}: Ray listens on {host}, expected 127.0.0.1 (Ray 2.52 or newer)")
        own = next(node for node in self.ray.nodes() if node["NodeID"] == context.get_node_id())
        self._needed = {
            "its head": (host.strip("[]"), int(port)),
            "this machine's node": (own["NodeManagerAddress"], own["NodeManagerPort"]),
        }
        self._missed: float | None = None
        self._checked = time.monotonic()

    @property
    def room(self) -> int:
        """Number of actors that fit now."""
        needs = {"CPU": self.options.cpus, "GPU": self.options.gpus}
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        return sum(min(int(node.get(key, 0.0) / need) for key, need in needs.items() if need) for node in nodes)

    def check(self) -> None:
        """Check about once a second that the cluster can be reached. Calls to a lost cluster never return.

        Raises:
            LearningError: it has been lost for HEAD_SECONDS.
        """
        now = time.monotonic()
        if now - self._checked < 1.0:
            return
        self._checked = now
        lost = self._find_lost()
        self._missed = (self._missed or now) if lost else None
        if self._missed is not None and now - self._missed >= HEAD_SECONDS:
            raise LearningError(
                f"cluster {self.options.address}: {lost}; all delivered games are kept: run the command again when "
                "there is a cluster"
            )

    def wait(self) -> None:
        """Wait until the cluster can be reached. Ray silently ends a process that stores an object without a head.

        Raises:
            LearningError: it has been lost for HEAD_SECONDS.
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

    def close(self) -> None:
        """Disconnect. The actors end, and so does a local cluster."""
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
            why = first_line(error)
            if type(error).__name__ == "AuthenticationError":  # Ray 2.52 or newer; its own message is very long
                why = "no token found, or another one than the cluster's"
            hint = "" if options.address == LOCAL else f"; {EXPECTED}"
            raise LearningError(f"--cluster {options.address}: {why}{hint}") from None
        # Ending raylets print dozens of lines, whatever log_to_driver is. RayWorkers reports a loss in one.
        self.ray._private.worker.print_to_stdstream = lambda *_, **__: None

    def _check_secured(self) -> None:
        # A cluster without authentication silently accepts our token.

        def read_mode() -> str:
            import os

            return os.environ.get("RAY_AUTH_MODE", "")

        mode = self.ray.get(self.ray.remote(read_mode).options(num_cpus=0).remote())
        if mode.lower() in ("", OPEN):
            self.close()
            raise LearningError(
                f"--cluster {self.options.address}: it runs anyone's code, expected a cluster whose nodes were "
                "started with RAY_AUTH_MODE=token, or --insecure"
            )


def _reach(address: str) -> None:
    # Ray itself needs long and prints many lines to report an address without a server.
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise LearningError(f"--cluster {address}: expected {AUTO}, {LOCAL}, or HOST:PORT of a cluster's head")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
    except OSError as error:
        raise LearningError(
            f"--cluster {address}: {error.strerror or error}, expected the head of a Ray cluster"
        ) from None


@dataclass(frozen=True)
class Parcel:
    """A network in the object store."""

    name: str  # digest of the content, and the file name extension
    # A reference to the bytes. It is in a list so that Ray does not fetch it for nodes that have the file.
    content: list[Any]


class ActorPlayer:
    """The object of an actor. All its methods run in one thread."""

    def __init__(
        self,
        version: str,
        game: Game[Any, Any],
        settings: SelfPlaySettings,
        sources: Mapping[str, str],
        seed: int,
        gpus: float,
    ) -> None:
        """Prepare. Slow on a node that has not compiled the game's kernels yet.

        `sources` are the texts of the Python files that the settings name by `FILE.py:NAME`, which nodes do not have.
        """
        if version != __version__:
            raise LearningError(f"yomi {__version__} found on the node, expected {version} as on the command's machine")
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray leaves it as it is, and all actors would share the first
        for name, source in sources.items():
            define_function(name, source)
        self._game = game
        game.compile(lambda line: None)
        self._worker = SelfPlayWorker(game, settings, seed)

    def use(self, task: Task, parcel: Parcel | None) -> None:
        self._worker.use(dataclasses.replace(task, options=_unpacked(task.options, parcel)))

    def play(self) -> bytes:
        # Pickled, because arrays from Ray's store would keep its memory occupied.
        end = time.monotonic() + GATHER_SECONDS
        deliveries = [self._worker.play()]
        while time.monotonic() < end:
            deliveries.append(self._worker.play())
        return pickle.dumps(deliveries)

    def match(self, match: LearningMatch, parcels: Sequence[Parcel | None]) -> DuelScore:
        first, second = (_unpacked(*player) for player in zip(match.players, parcels, strict=True))
        return play_match(self._game, dataclasses.replace(match, players=(first, second)))


def name_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _unpacked(options: Any, parcel: Parcel | None) -> Any:
    """Replace the network of `options` by the node's copy of it."""
    if parcel is None:
        return options
    folder = default_cache_dir() / "cluster"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / parcel.name
    if path.exists() and digest_of(path) == parcel.name.partition(".")[0]:
        os.utime(path)
    else:
        write_atomically(path, importlib.import_module("ray").get(parcel.content[0]))
        for old in sorted(folder.glob("[!.]*"), key=lambda path: path.stat().st_mtime, reverse=True)[CACHED_NETWORKS:]:
            with contextlib.suppress(FileNotFoundError):  # another actor of the node was faster
                old.unlink()
    return dataclasses.replace(options, net=str(path))


class _Remote:
    # An actor. It makes an object of this package on its node, and calls the methods of it.

    def begin(self, made: bytes) -> None:
        make, arguments = pickle.loads(made)
        self._player = make(*arguments)

    def call(self, name: str, *arguments: Any) -> Any:
        return getattr(self._player, name)(*arguments)


class RayWorkers:
    """Plays in actors. A lost actor is started again where there is room.

    One thread may use it. Another one may call `match` at the same time.
    """

    def __init__(
        self, cluster: Cluster, game: Game[Any, Any], settings: SelfPlaySettings, seed: int, on_loss: OnLoss
    ) -> None:
        """Request the actors. They start as soon as there is room.

        `close` closes the cluster, too. `seed` is for the first actor; each start of an actor gets its own. `on_loss`
        is called with the number of each lost actor and the reason.
        """
        self._cluster, self._ray = cluster, cluster.ray
        options = cluster.options
        self.count = max(1, cluster.room) if options.actors is None else options.actors
        names = filter(is_in_file, (settings.search, settings.targets))
        self._arguments = game, settings, {name: read_source(name) for name in names}
        self._seed, self._on_loss = seed, on_loss
        resources = {"num_cpus": options.cpus, "num_gpus": options.gpus}
        self._remote = self._ray.remote(_Remote).options(**resources, max_restarts=0, scheduling_strategy="SPREAD")
        self._task: tuple[Task, Parcel | None] | None = None
        self._starts = self._failures = 0
        self._actors: list[Any] = [None] * self.count
        self._ready = [False] * self.count
        self._started = [0.0] * self.count
        # Pending calls in order: reference -> (number of the actor, method)
        self._calls: dict[Any, tuple[int, str]] = {}
        self._parcels: dict[str, Parcel] = {}
        self._lock = threading.Lock()
        for number in range(self.count):
            self._start(number)

    def use(self, task: Task) -> None:
        self._task = task, self._parcel(task.options)
        for number, is_ready in enumerate(self._ready):
            if is_ready:
                self._call(number, "use", *self._task)

    def take(self, seconds: float) -> list[Delivery]:
        """Return the deliveries that have arrived (see `Workers`).

        Raises:
            LearningError: the cluster is lost, or no actor can play.
        """
        self._cluster.check()
        for number, actor in enumerate(self._actors):
            if actor is None and time.monotonic() - self._started[number] > RESTART_SECONDS:
                self._start(number)
        if not self._calls:
            time.sleep(min(seconds, RESTART_SECONDS))
            return []
        self._ray.wait(list(self._calls), timeout=seconds)
        arrived, _ = self._ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0)
        deliveries: list[Delivery] = []
        for reference in arrived:
            if reference not in self._calls:  # its actor has just been lost
                continue
            number, name = self._calls.pop(reference)
            try:
                found = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                self._lose(number, _why(error))
                continue
            if name == "begin":
                self._admit(number)
            elif name == "play":
                self._failures = 0
                deliveries += pickle.loads(found)
                self._call(number, "play")
        return deliveries

    def match(self, game: Game[Any, Any], match: LearningMatch) -> DuelScore:
        """Play `yomi.engine.matches.duel.play_match` in parts on all ready actors. Each part has its own seed.

        This process plays the parts of lost actors, and all of them if no actor is ready. `sprt` is evaluated after
        each round of parts.
        """
        parcels = [self._parcel(options) for options in match.players]
        scores, total = list[DuelScore](), DuelScore()
        left = (match.games + 1) // 2
        while left:
            actors = [actor for actor, is_ready in zip(self._actors, self._ready, strict=True) if actor and is_ready]
            parts = max(1, min(len(actors), left))
            now = left if match.sprt is None else min(left, parts * SIDE_BY_SIDE // 2)
            left -= now
            calls = []
            for part in range(parts):
                share = now * (part + 1) // parts - now * part // parts
                seed = match.seed + 1_000_003 * (len(scores) + part)
                own = dataclasses.replace(match, games=2 * share, seed=seed, sprt=None)
                calls.append((actors[part].call.remote("match", own, parcels) if actors else None, own))
            scores += [self._score(call) or play_match(game, own) for call, own in calls]
            total = _joined(scores)
            if match.sprt is not None and match.sprt.verdict(total.pairs):
                break
        return total

    def close(self) -> None:
        self._cluster.close()

    def _score(self, call: Any) -> DuelScore | None:
        """Return the score of a part, or None if there is no actor or it is lost."""
        if call is None:
            return None
        while not self._ray.wait([call], timeout=1.0)[0]:
            self._cluster.check()
        try:
            score: DuelScore = self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError:  # `take` reports the loss
            return None
        return score

    def _start(self, number: int) -> None:
        seed = self._seed + 7919 * self._starts
        self._starts += 1
        self._started[number] = time.monotonic()
        made = pickle.dumps((ActorPlayer, (__version__, *self._arguments, seed, self._cluster.options.gpus)))
        self._actors[number] = actor = self._remote.remote()
        self._calls[actor.begin.remote(made)] = number, "begin"

    def _admit(self, number: int) -> None:
        self._ready[number] = True
        if self._task is not None:
            self._call(number, "use", *self._task)
        for _ in range(DELIVERIES_AHEAD):
            self._call(number, "play")

    def _call(self, number: int, name: str, *arguments: Any) -> None:
        self._calls[self._actors[number].call.remote(name, *arguments)] = number, name

    def _lose(self, number: int, why: str) -> None:
        actor, self._actors[number], self._ready[number] = self._actors[number], None, False
        self._calls = {call: (other, name) for call, (other, name) in self._calls.items() if other != number}
        self._ray.kill(actor)
        self._on_loss(number, why)
        self._failures += 1
        if self._failures >= FAILURES * self.count:
            raise LearningError(f"no actor of the cluster can play: {why}")

    def _parcel(self, options: Options | EngineSpec) -> Parcel | None:
        """Store the network of `options`, unless it is stored already."""
        if isinstance(options, EngineSpec) or options.net is None:
            return None
        with self._lock:
            if options.net not in self._parcels:
                self._cluster.wait()
                path = Path(options.net)
                content = path.read_bytes()
                self._parcels[options.net] = Parcel(
                    f"{name_of(content)}{''.join(path.suffixes)}", [self._ray.put(content)]
                )
                for old in list(self._parcels)[:-CACHED_NETWORKS]:
                    del self._parcels[old]
            return self._parcels[options.net]


def _joined(scores: Sequence[DuelScore]) -> DuelScore:
    wins, draws, losses = (sum(getattr(score, name) for score in scores) for name in ("wins", "draws", "losses"))
    pairs = tuple(map(sum, zip(*(score.pairs for score in scores), strict=True)))
    return DuelScore(wins, draws, losses, pairs, tuple(why for score in scores for why in score.faults))


def _why(error: Exception) -> str:
    """Return the reason for the loss of an actor, on one line."""
    cause = getattr(error, "cause", None)
    if cause is not None:
        return f"{type(cause).__name__}: {first_line(cause)}"
    return first_line(error, -1).partition(". ")[0].removesuffix(".")
