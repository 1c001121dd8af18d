"""Self-play on clusters of Ray: node processes of this machine, whose games cost next to nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.process.ray_nodes import TOKEN, Nodes
from yomi.engine.clusters import actors
from yomi.engine.clusters.actors import LOCAL, Cluster, ClusterError, ClusterOptions, Parcel
from yomi.engine.learning.processes import ActorWorkers, cluster_workers
from yomi.engine.learning.settings import LearnSettings
from yomi.engine.learning.spool import SelfPlayGame
from yomi.engine.learning.workers import Delivery, SelfPlayWorker, Task
from yomi.engine.matches.duel import LearningMatch
from yomi.engine.matches.rating import Sprt
from yomi.engine.options import Options
from yomi.engine.registry import GAMES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (the extra cluster)"),
    pytest.mark.filterwarnings("ignore"),  # Ray leaves sockets and processes to the end of the process
]

GO = GAMES["go"]
SETTINGS = LearnSettings(visits=12, cheap_visits=6, games=4)
SEED = 5


@pytest.fixture
def start() -> Iterator[Callable[..., Nodes]]:
    """Start clusters, which end with the test."""
    before = dict(os.environ)
    os.environ.pop("RAY_AUTH_MODE", None)  # Ray reads it when it is imported: that is left to Cluster
    os.environ["RAY_AUTH_TOKEN"] = TOKEN
    with contextlib.ExitStack() as stack:

        def make(processors: int, mode: str = "token") -> Nodes:
            nodes = Nodes(processors, mode)
            stack.callback(nodes.close)
            return nodes

        yield make
    os.environ.clear()
    os.environ.update(before)


def task() -> Task:
    options = Options.for_game("go")
    options.set("size", 3)
    options.set("evaluator", "uniform")
    return Task(options, "uniform", {})


def workers(asked: ClusterOptions, lost: list[tuple[int, str]]) -> ActorWorkers:
    made = cluster_workers(Cluster(asked), GO, SETTINGS, SEED, lambda number, why: lost.append((number, why)))
    made.use(task())
    return made


def take_until(
    made: ActorWorkers, is_enough: Callable[[list[Delivery]], bool], seconds: float = 90.0
) -> list[Delivery]:
    deliveries: list[Delivery] = []
    end = time.monotonic() + seconds
    while not is_enough(deliveries):
        assert time.monotonic() < end, f"{len(deliveries)} deliveries in {seconds} s"
        deliveries += made.take(0.5)
    return deliveries


def all_ready(made: ActorWorkers) -> bool:
    return len(made.actors.ready) == made.count


def games_of(deliveries: list[Delivery]) -> list[SelfPlayGame]:
    return [game for delivery in deliveries for game in delivery.games]


def games_at_home(seed: int, count: int) -> list[bytes]:
    producer = SelfPlayWorker(GO, SETTINGS, seed)
    producer.use(task())
    games: list[bytes] = []
    while len(games) < count:
        games += [game.to_bytes() for game in producer.play().games]
    producer.close()
    return games[:count]


def test_one_actor_plays_the_games_that_this_process_would_play(start: Callable[..., Nodes]) -> None:
    made = workers(ClusterOptions(LOCAL, actors=1), [])
    try:
        played = games_of(take_until(made, lambda deliveries: len(games_of(deliveries)) >= 30))
        assert [game.to_bytes() for game in played] == games_at_home(SEED, len(played))
    finally:
        made.close()


def test_a_killed_actor_and_a_removed_node_are_told_of_and_replaced(
    start: Callable[..., Nodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actors, "RESTART_SECONDS", 0.1)
    nodes = start(1)
    nodes.tell("add")
    lost: list[tuple[int, str]] = []
    made = workers(ClusterOptions(nodes.address), lost)
    try:
        assert made.count == 2
        take_until(made, lambda deliveries: all_ready(made) and len(deliveries) > 10)
        score = made.match(GO, LearningMatch((task().options,) * 2, 7, 8, 1, 0.0))
        assert score.games == 8
        assert score.wins > 0
        assert score.losses > 0
        assert sum(score.pairs) == 4
        score = made.match(GO, LearningMatch((task().options,) * 2, 400, 8, 1, 0.0, Sprt(-900.0, -800.0)))
        assert 0 < score.games < 400
        made.actors._ray.kill(made.actors._there[0])  # type: ignore[attr-defined]
        take_until(made, lambda _: bool(lost) and all_ready(made))
        assert [number for number, _ in lost] == [0]
        nodes.tell("remove")
        take_until(made, lambda _: len(lost) > 1)
        take_until(made, lambda deliveries: len(made.actors.ready) == 1 and len(deliveries) > 10)
        nodes.tell("add")
        take_until(made, lambda deliveries: all_ready(made) and len(deliveries) > 10)
        assert all(why and "\n" not in why for _, why in lost)
    finally:
        made.close()


def test_the_loss_of_the_head_is_one_line(
    start: Callable[..., Nodes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(actors, "HEAD_SECONDS", 1.0)
    nodes = start(1)
    made = workers(ClusterOptions(nodes.address), [])
    take_until(made, lambda deliveries: len(deliveries) > 2)
    nodes.tell("behead")
    with pytest.raises(ClusterError, match=r"^cluster .*: its head is lost .*: run the command again .*$"):
        take_until(made, lambda _: False)
    network = tmp_path / "network.onnx"
    network.write_bytes(b"a network that nobody loads")
    with pytest.raises(ClusterError, match="its head is lost"):  # and not the end of this process
        made.use(Task(dataclasses.replace(task().options, net=str(network)), "network", {}))
    made.close()


def test_a_cluster_that_runs_the_code_of_all_is_refused(start: Callable[..., Nodes]) -> None:
    nodes = start(1, "disabled")
    with pytest.raises(ClusterError, match=r"^--cluster .*: it runs anyone.s code, expected .* or --insecure$"):
        Cluster(ClusterOptions(nodes.address))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nowhere"])
def test_an_address_without_a_cluster_is_one_line(start: Callable[..., Nodes], address: str) -> None:
    with pytest.raises(ClusterError, match=rf"^--cluster {address}: .*expected .*$"):
        Cluster(ClusterOptions(address))


LISTENS = """\
from yomi.engine.clusters.actors import LOCAL, ClusterOptions, Cluster

def listening():
    rows = [line.split() for name in ("tcp", "tcp6") for line in list(open(f"/proc/net/{name}"))[1:]]
    return {row[1] for row in rows if row[3] == "0A"}

before = listening()
cluster = Cluster(ClusterOptions(LOCAL, 1))
print(*(listening() - before))
cluster.close()
"""


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system does not list its sockets there")
def test_a_cluster_of_this_machine_listens_to_it_alone() -> None:
    found = subprocess.run([sys.executable, "-c", LISTENS], capture_output=True, text=True, check=True).stdout.split()
    assert found
    assert all(address.partition(":")[0].endswith("0100007F") for address in found), found


def test_a_network_is_written_once_on_a_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    fetched: list[Any] = []
    monkeypatch.setattr(importlib.import_module("ray"), "get", lambda content: fetched.append(content) or content)
    for number in (0, 0, *range(1, 12)):
        content = b"network %d" % number
        files = {"net.onnx": content, "net.onnx.ini": b"values"}
        parcel = Parcel(actors._digest(files), "net.onnx", [pickle.dumps(files)])
        path = Path(parcel.unpack())
        assert path.name == "net.onnx"
        assert path.read_bytes() == content
        assert path.with_name("net.onnx.ini").read_bytes() == b"values"
    assert len(fetched) == 12
    assert len(list((tmp_path / "cluster").iterdir())) == actors.CACHED_NETWORKS
