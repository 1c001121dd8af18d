"""Several processes of one machine that train one network, each on a part of every batch.

All have the same weights, and their gradients are averaged (PyTorch's DistributedDataParallel; Li et al. 2020): by NCCL
between GPUs, one for each process, by gloo on processors. Except for rounding, a step is the step of one process with
the whole batch. Batch norms use the part of their process, and the teacher's hints are averaged over the parts.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, distributed, nn

from yomi.nets.errors import NetworkError
from yomi.nets.sparse import FindEncoder, no_encoder
from yomi.processes import CONTEXT

if TYPE_CHECKING:
    from yomi.nets.training.config import Config

# Seconds to wait for the end of a process whose connection is broken.
PATIENCE = 10.0


class Group:
    """The processes of a training, from the point of view of one of them. Without arguments there is only one."""

    def __init__(self, rank: int = 0, count: int = 1) -> None:
        self.rank, self.count = rank, count

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    def device(self, device: torch.device) -> torch.device:
        """Return this process's device, of the kind of `device`.

        Raises:
            NetworkError: there are fewer GPUs than processes.
        """
        if self.count == 1 or device.type == "cpu":
            return device
        if torch.cuda.device_count() < self.count:
            raise NetworkError(f"{self.count} processes on {torch.cuda.device_count()} GPUs found, expected one each")
        torch.cuda.set_device(self.rank)
        return torch.device("cuda", self.rank)

    def part(self, rows: int) -> slice:
        return slice(rows * self.rank // self.count, rows * (self.rank + 1) // self.count)

    def shared(self, network: nn.Module) -> nn.Module:
        """Return a wrapper of the network that averages gradients. All processes get the first process's weights."""
        if self.count == 1:
            return network
        # Outputs without labels have no loss: their parameters get no gradients.
        return nn.parallel.DistributedDataParallel(network, find_unused_parameters=True)

    def any(self, flag: bool) -> bool:
        """Return whether `flag` is true in any process. All processes must call this."""
        if self.count == 1:
            return flag
        flags = torch.tensor(float(flag))  # on the processor: nothing waits for a GPU
        distributed.all_reduce(flags)
        return bool(flags > 0)

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean over the processes. All processes must call this."""
        if self.count > 1:
            values = values.clone()
            distributed.all_reduce(values)
            values /= self.count
        return values


def mean_count(count: Tensor) -> Tensor:
    """Return a count in a part of the batch, averaged over the processes; at least 1."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return count.clamp(min=1)
    total = count.float()
    distributed.all_reduce(total)
    # A sum over a part divided by this averages, over the processes, to the mean over the whole batch.
    return total.clamp(min=1.0) / distributed.get_world_size()


@contextlib.contextmanager
def started(
    count: int, config: Config, folder: Path, device: str | None, last: int, find_encoder: FindEncoder = no_encoder
) -> Iterator[Group]:
    """Start the other processes of a training. This process is the first, and trains inside the block as they do.

    Args:
        count: number of processes, this one included; at least 1.
        config: for the trainer (`yomi.nets.training.loop`), as are `folder`, `device` and `find_encoder`.
        folder: folder of the run.
        device: auto, cpu or cuda; None for the configuration's.
        last: last step.
        find_encoder: finds a game's encoder.

    Raises:
        NetworkError: another process has ended before this one.
    """
    if count == 1:
        yield Group()
        return
    task = config, folder, device, last, find_encoder
    links: list[Connection] = []
    others: list[Any] = []
    with tempfile.TemporaryDirectory() as place:
        store = (Path(place) / "store").as_uri()
        try:
            for rank in range(1, count):
                link, other = CONTEXT.Pipe()
                links.append(link)
                others.append(CONTEXT.Process(target=_take_part, args=(other, store, rank, count, *task)))
                others[-1].start()
                other.close()
            for link in links:
                if why := link.recv():  # an empty text: it has started
                    raise NetworkError(f"a process of the training is lost: {why}")
            group = _join(store, 0, count)
            for link in links:
                link.send("all are there")
            yield group
            for process in others:
                process.join()
        except (EOFError, RuntimeError) as error:  # PyTorch's errors if another process is gone
            if lost := _lost(links, others):
                raise NetworkError(f"a process of the training is lost: {lost}") from error
            raise
        finally:
            for process in others:
                process.kill()
                process.join()
            if distributed.is_initialized():
                distributed.destroy_process_group()


def _join(store: str, rank: int, count: int) -> Group:
    """Join the group. All processes wait for each other."""
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # other machines cannot reach it
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    distributed.init_process_group(backend, init_method=store, rank=rank, world_size=count)
    torch.set_num_threads(max(1, torch.get_num_threads() // count))
    return Group(rank, count)


def _take_part(
    link: Connection,
    store: str,
    rank: int,
    count: int,
    config: Config,
    folder: Path,
    device: str | None,
    last: int,
    find_encoder: FindEncoder,
) -> None:
    """Train until the first process ends the training. Send errors to the first process."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # the first process handles them, and stops all at the same step
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    try:
        from yomi.nets.training.loop import Trainer

        link.send("")
        group = _join(store, rank, count)
        link.recv()  # all have joined: the others would wait for a process that ends earlier
        trainer = Trainer(config, folder, device, group=group, find_encoder=find_encoder)
        trainer.run(lambda step, values: None, last)
    except Exception as error:
        with contextlib.suppress(OSError):  # the first process has ended
            link.send(f"{type(error).__name__}: {error}")
        sys.exit(1)


def _lost(links: list[Connection], processes: list[Any]) -> str:
    """Return the reason why another process has ended; empty if none has failed."""
    ends = {process.sentinel: (link, process) for link, process in zip(links, processes, strict=True)}
    # A connection breaks before its process has ended, on a busy machine seconds before.
    while ready := wait(list(ends), PATIENCE):
        for sentinel in ready:
            link, process = ends.pop(sentinel)
            process.join(PATIENCE)  # the sentinel is closed a moment before the process has an exit code
            if process.exitcode:
                why = ""
                with contextlib.suppress(EOFError):
                    while not why:
                        why = link.recv()
                return why or f"ended with status {process.exitcode}"
    return ""
