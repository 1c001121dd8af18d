"""Who plays the games: actors of Ray, on any machines.

The machines share no files: networks come through Ray's store, games go back the same way, and nothing that an actor
holds is missed when it is lost. Begin reading at `RayWorkers.take`.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi import __version__
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.learning.errors import LearningError
from yomi.engine.learning.store import DIGITS, digest_of
from yomi.engine.learning.workers import FAILURES, RESTART_SECONDS, Delivery, Producer, Task
from yomi.engine.machine import usable_cores
from yomi.engine.matches.duel import SIDE_BY_SIDE, Players, Score, play_match
from yomi.nets.files import default_cache_dir, write_atomically

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.learning.settings import SelfPlaySettings
    from yomi.engine.matches.sprt import Sprt
    from yomi.engine.options import Options

LOCAL, AUTO = "local", "auto"
UNDER_WAY = 2
"""Deliveries of an actor that are asked for and not taken: it plays one while the other is on its way."""
GATHER_SECONDS = 0.25
"""That an actor plays for a delivery, at least: a call costs milliseconds."""
HEAD_SECONDS = 10.0
"""Without an answer, after which a cluster's head counts as lost."""
RECONNECT_SECONDS = 86_400
"""After which Ray ends a process whose head is lost, by itself and without a word; we say so long before."""
STORE_BYTES = 2**29
"""Of a local cluster's object store; all that lies there are a few networks and deliveries."""
KEPT = 8
"""Networks in a node's cache, the latest."""
AUTH_MODE, AUTH_TOKEN, AUTH_TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
OPEN = "disabled"
EXPECTED = (
    "expected a running cluster that this machine is a node of, and its token in RAY_AUTH_TOKEN or "
    "~/.ray/auth_token (--insecure if it has none)"
)
SECURED_FROM = (2, 52)
"""Version of Ray that knows tokens."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a cluster."""

    address: str
    """local for one of this machine's own, auto for the one that this machine is a node of, or its head's HOST:PORT."""
    actors: int | None = None
    """None: as many as there is room for."""
    cpus: float = 1.0
    """Of an actor."""
    gpus: float = 0.0
    """Of an actor; without a share of one it sees none."""
    insecure: bool = False
    """Use a cluster that takes anyone's code."""


class Cluster:
    """The connection to a cluster: one of a process."""

    def __init__(self, asked: Asked) -> None:
        """Start a cluster, or connect to one.

        Raises:
            LearningError: that fails, or it cannot be secured.
        """
        self.asked = asked
        must_be_secure = not asked.insecure and AUTH_MODE not in os.environ
        os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", str(RECONNECT_SECONDS))
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault(AUTH_MODE, OPEN if asked.insecure else "token")
        if must_be_secure and asked.address == LOCAL and not {AUTH_TOKEN, AUTH_TOKEN_PATH} & set(os.environ):
            os.environ[AUTH_TOKEN] = secrets.token_hex(32)
        if asked.address == LOCAL:  # Ray then listens on 127.0.0.1, as it does by default on macOS and Windows
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        self.ray: Any = importlib.import_module("ray")  # reads the environment
        version = self.ray.__version__
        if must_be_secure and tuple(int(part) for part in version.split(".")[:2]) < SECURED_FROM:
            raise LearningError(f"Ray {version} knows no authentication: expected Ray 2.52 or newer, or --insecure")
        self._connect()
        if must_be_secure and asked.address != LOCAL:
            self._check_secured()
        context = self.ray.get_runtime_context()
        host, _, port = context.gcs_address.rpartition(":")
        if asked.address == LOCAL and host.strip("[]") not in ("127.0.0.1", "::1"):
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
        """How many actors there is room for now."""
        needs = {"CPU": self.asked.cpus, "GPU": self.asked.gpus}
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        return sum(min(int(node.get(key, 0.0) / need) for key, need in needs.items() if need) for node in nodes)

    def check(self) -> None:
        """See now and then that what all depends on is there: who waits for a cluster without a head waits for ever.

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
                f"cluster {self.asked.address}: {lost}; all games that came are kept: give the command again when "
                "there is a cluster"
            )

    def wait(self) -> None:
        """Wait until what all depends on is there; Ray ends a process without a word that stores something before.

        Raises:
            LearningError: see `check`.
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
        """Leave it; actors end, and a local one ends altogether."""
        self.ray.shutdown()

    def _connect(self) -> None:
        asked, own = self.asked, dict[str, Any]()
        if asked.address == LOCAL:
            processors = max(usable_cores(), math.ceil((asked.actors or 0) * asked.cpus))
            own = {"num_cpus": processors, "include_dashboard": False, "object_store_memory": STORE_BYTES}
        elif asked.address != AUTO:
            _reach(asked.address)
        try:
            self.ray.init(address=asked.address, log_to_driver=False, logging_level=logging.ERROR, **own)
        except (self.ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, OSError) as error:
            why = _first_line(error)
            if type(error).__name__ == "AuthenticationError":  # of Ray 2.52 and newer; its line goes on and on
                why = "no token found, or another one than the cluster's"
            hint = "" if asked.address == LOCAL else f"; {EXPECTED}"
            raise LearningError(f"--cluster {asked.address}: {why}{hint}") from None
        # Raylets that end say so in dozens of lines, whatever log_to_driver is; RayWorkers does in one.
        self.ray._private.worker.print_to_stdstream = lambda *_, **__: None

    def _check_secured(self) -> None:
        """See that the cluster asks for a token: one that does not takes ours without a word."""

        def read_mode() -> str:
            import os

            return os.environ.get("RAY_AUTH_MODE", "")

        mode = self.ray.get(self.ray.remote(read_mode).options(num_cpus=0).remote())
        if mode.lower() in ("", OPEN):
            self.close()
            raise LearningError(
                f"--cluster {self.asked.address}: it runs the code of all who reach it, expected one whose nodes are "
                "started with RAY_AUTH_MODE=token, or --insecure"
            )


def _reach(address: str) -> None:
    """See that something listens at an address: Ray itself takes its time to say so, and many lines."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise LearningError(f"--cluster {address}: expected {AUTO}, {LOCAL}, or HOST:PORT of a cluster's head")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
    except OSError as error:
        raise LearningError(
            f"--cluster {address}: {error.strerror or error}, expected the head of a cluster of Ray"
        ) from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@dataclass(frozen=True)
class Parcel:
    """A network on its way to the nodes."""

    name: str
    """Of its file: the digest of its content, and the ending."""
    content: list[Any]
    """One reference to its bytes, in a list that Ray does not look into: a node that has the file fetches nothing."""


class Player:
    """What an actor does; all of it in one thread."""

    def __init__(self, version: str, game: Game[Any, Any], settings: SelfPlaySettings, seed: int, gpus: float) -> None:
        """Make ready to play; slow on a node that has never compiled the game's kernels.

        Raises:
            LearningError: the node has another version of yomi.
            CompileError: compiling fails.
        """
        if version != __version__:
            raise LearningError(f"yomi {__version__} found on the node, expected {version}, which the command has")
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray leaves it as it is, and all actors would share the first
        self._game = game
        game.compile(lambda line: None)
        self._producer = Producer(game, settings, seed)

    def use(self, task: Task, parcel: Parcel | None) -> None:
        """See Producer.use."""
        self._producer.use(dataclasses.replace(task, options=_unpacked(task.options, parcel)))

    def play(self) -> bytes:
        """Return deliveries, pickled: arrays that come out of Ray's store as they are keep their memory there."""
        end = time.monotonic() + GATHER_SECONDS
        deliveries = [self._producer.play()]
        while time.monotonic() < end:
            deliveries.append(self._producer.play())
        return pickle.dumps(deliveries)

    def match(self, players: Sequence[tuple[Any, Parcel | None]], *arguments: Any) -> Score:
        """See yomi.engine.matches.duel.play_match."""
        first, second = (_unpacked(*player) for player in players)
        return play_match(self._game, (first, second), *arguments)


def name_of(content: bytes) -> str:
    """Return a network's name; see yomi.engine.learning.store.digest_of."""
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _unpacked(options: Any, parcel: Parcel | None) -> Any:
    """Return options whose network is a file of this node; an engine, or options without a network, as they are."""
    if parcel is None:
        return options
    folder = default_cache_dir() / "cluster"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / parcel.name
    if path.exists() and digest_of(path) == parcel.name.partition(".")[0]:
        os.utime(path)
    else:
        write_atomically(path, importlib.import_module("ray").get(parcel.content[0]))
        for old in sorted(folder.glob("[!.]*"), key=lambda each: each.stat().st_mtime, reverse=True)[KEPT:]:
            with contextlib.suppress(FileNotFoundError):  # another actor of the node was faster
                old.unlink()
    return dataclasses.replace(options, net=str(path))


class _Remote:
    """An actor: has an object of this package play."""

    def begin(self, made: bytes) -> None:
        make, arguments = pickle.loads(made)
        self._player = make(*arguments)

    def call(self, name: str, *arguments: Any) -> Any:
        return getattr(self._player, name)(*arguments)


class RayWorkers:
    """Plays in actors; one that is lost is started anew, wherever there is room.

    One thread uses it, but for `match`, which another may call meanwhile.
    """

    def __init__(
        self,
        cluster: Cluster,
        game: Game[Any, Any],
        settings: SelfPlaySettings,
        seed: int,
        on_loss: Callable[[int, str], None],
    ) -> None:
        """Ask for the actors; they begin as there is room for them.

        Args:
            cluster: where; closed with the workers.
            game: the descriptor.
            settings: how games are played.
            seed: of the first; each start of each actor has one of its own.
            on_loss: told of each actor that is lost, and why.
        """
        self._cluster, self._ray = cluster, cluster.ray
        asked = cluster.asked
        self.count = max(1, cluster.room) if asked.actors is None else asked.actors
        self._arguments = game, settings
        self._seed, self._on_loss = seed, on_loss
        resources = {"num_cpus": asked.cpus, "num_gpus": asked.gpus}
        self._remote = self._ray.remote(_Remote).options(**resources, max_restarts=0, scheduling_strategy="SPREAD")
        self._task: tuple[Task, Parcel | None] | None = None
        self._starts = self._failures = 0
        self._actors: list[Any] = [None] * self.count
        self._ready = [False] * self.count
        self._started = [0.0] * self.count
        self._calls: dict[Any, tuple[int, str]] = {}
        """Reference -> the actor's number and what it was asked for, in the order in which they were."""
        self._parcels: dict[str, Parcel] = {}
        self._lock = threading.Lock()
        for number in range(self.count):
            self._start(number)

    def use(self, task: Task) -> None:
        """See Workers."""
        self._task = task, self._parcel(task.options)
        for number, is_ready in enumerate(self._ready):
            if is_ready:
                self._call(number, "use", *self._task)

    def take(self, seconds: float) -> list[Delivery]:
        """See Workers.

        Raises:
            LearningError: the cluster's head is lost, or no actor can play.
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

    def match(
        self,
        game: Game[Any, Any],
        players: Players,
        games: int,
        visits: int,
        seed: int,
        lead: float,
        sprt: Sprt | None = None,
    ) -> Score:
        """Play yomi.engine.matches.duel.play_match in parts, each with a seed of its own, on all actors that are there.

        Where there are none, and for those that are lost meanwhile, this process plays. `sprt` is asked when all parts
        of a round are played.
        """
        sent = [(options, self._parcel(options)) for options in players]
        scores, total = list[Score](), Score()
        left = (games + 1) // 2
        while left:
            actors = [actor for actor, is_ready in zip(self._actors, self._ready, strict=True) if actor and is_ready]
            parts = max(1, min(len(actors), left))
            now = left if sprt is None else min(left, parts * SIDE_BY_SIDE // 2)
            left -= now
            calls = []
            for part in range(parts):
                share = now * (part + 1) // parts - now * part // parts
                rest = 2 * share, visits, seed + 1_000_003 * (len(scores) + part), lead
                calls.append((actors[part].call.remote("match", sent, *rest) if actors else None, rest))
            scores += [self._score(call) or play_match(game, players, *rest) for call, rest in calls]
            total = _joined(scores)
            if sprt is not None and sprt.verdict(total.pairs):
                break
        return total

    def close(self) -> None:
        """See Workers."""
        self._cluster.close()

    def _score(self, call: Any) -> Score | None:
        """Wait for a part of a match; None if its actor is lost, or there is none."""
        if call is None:
            return None
        while not self._ray.wait([call], timeout=1.0)[0]:
            self._cluster.check()
        try:
            score: Score = self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError:  # `take` tells of it
            return None
        return score

    def _start(self, number: int) -> None:
        seed = self._seed + 7919 * self._starts
        self._starts += 1
        self._started[number] = time.monotonic()
        made = pickle.dumps((Player, (__version__, *self._arguments, seed, self._cluster.asked.gpus)))
        self._actors[number] = actor = self._remote.remote()
        self._calls[actor.begin.remote(made)] = number, "begin"

    def _admit(self, number: int) -> None:
        """Let an actor play that has been made."""
        self._ready[number] = True
        if self._task is not None:
            self._call(number, "use", *self._task)
        for _ in range(UNDER_WAY):
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
        """Put a network into the store, once."""
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
                for old in list(self._parcels)[:-KEPT]:
                    del self._parcels[old]
            return self._parcels[options.net]


def _joined(scores: Sequence[Score]) -> Score:
    wins, draws, losses = (sum(getattr(each, name) for each in scores) for name in ("wins", "draws", "losses"))
    pairs = tuple(map(sum, zip(*(each.pairs for each in scores), strict=True)))
    return Score(wins, draws, losses, pairs, tuple(why for each in scores for why in each.faults))


def _why(error: Exception) -> str:
    """Return one line of what became of an actor."""
    cause = getattr(error, "cause", None)
    if cause is not None:
        return f"{type(cause).__name__}: {_first_line(cause)}"
    last = (str(error).strip().splitlines() or [type(error).__name__])[-1]
    return last.partition(". ")[0].removesuffix(".")
