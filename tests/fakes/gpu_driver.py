"""A GPU whose memory is numpy's, that remembers what was asked of it, and a network that computes on it."""

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import DeviceLostError, EvaluatorError
from yomi.engine.evaluators.onnx_session import TYPES, make_session

Array = npt.NDArray[Any]


class RecordingDriver:
    """See yomi.engine.evaluators.cuda.CudaDriver.

    Work on the stream is put off until `synchronize`, as on a GPU: who forgets it, or frees too early, gets nonsense.

    Args:
        number: the GPU's.
        log: (call, number of the GPU, thread) of all drivers together.
    """

    def __init__(self, number: int, log: list[tuple[str, int, int]]) -> None:
        self.number = number
        self.name = f"GPU {number}"
        self.version = "13000"
        self.stream = 7000 + number
        self.log = log
        self.memory: dict[int, Array] = {}
        self.queued: list[Any] = []
        self.graphs: list[list[Any]] = []
        self.is_capturing = False
        self.bad_graphs = ""
        """`capture`: they cannot be captured; `result`: they leave the last copy out."""
        self.thread = threading.get_ident()
        self.is_broken = False
        """Every wait fails, as after a fault of the device that setting it up anew mends."""
        self.is_lost = False
        """Every wait fails, and the context's release as well."""
        self.is_stolen = False
        """The thread has another context."""
        self._note("push")

    def _note(self, name: str) -> None:
        if not self.is_capturing:
            self.log.append((name, self.number, threading.get_ident()))
        assert threading.get_ident() == self.thread, f"{name} in another thread than push"

    def check(self) -> None:
        self._note("check")
        if self.is_stolen:
            raise EvaluatorError(f"this thread has another GPU: expected {self.name}")

    def pinned(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        return np.zeros(shape, dtype)

    def allocate(self, size: int) -> int:
        block = np.full(size, 255, np.uint8)
        self.memory[block.ctypes.data] = block
        return block.ctypes.data

    def upload(self, address: int, source: Array) -> None:
        self._note("upload")
        assert source.flags.c_contiguous
        assert source.nbytes <= self.memory[address].nbytes
        self.queued.append(lambda: ctypes.memmove(address, source.ctypes.data, source.nbytes))

    def unpack(self, source: int, target: int, rows: int, words: int, bits: int, repeat: int, dtype: str) -> None:
        self._note("unpack")
        self.queued.append(lambda: self._unpack(source, target, rows, words, bits, repeat, dtype))

    def _unpack(self, source: int, target: int, rows: int, words: int, bits: int, repeat: int, dtype: str) -> None:
        packed = self.memory[source][: rows * words * 4].reshape(rows, words * 4)
        numbers = unpack_rows(packed, bits, repeat).astype(dtype)
        assert numbers.nbytes <= self.memory[target].nbytes
        self.memory[target][: numbers.nbytes] = numbers.reshape(-1).view(np.uint8)

    def download(self, target: Array, address: int) -> None:
        self._note("download")
        assert target.flags.c_contiguous
        self.queued.append(lambda: ctypes.memmove(target.ctypes.data, address, target.nbytes))

    def capture(self, work: Callable[[], None]) -> int:
        self._note("capture")
        assert not self.queued
        self.is_capturing = True
        work()
        self.is_capturing = False
        if self.bad_graphs == "capture":
            self.queued.clear()
            raise EvaluatorError(f"{self.name}: CUDA error 900")
        self.graphs.append(self.queued[: -1 if self.bad_graphs == "result" else None])
        self.queued = []
        return len(self.graphs) - 1

    def launch(self, graph: int) -> None:
        self._note("launch")
        self.queued += self.graphs[graph]

    def expect_alive(self) -> None:
        if self.is_lost:
            raise DeviceLostError(f"{self.name}: CUDA error 700")

    def synchronize(self) -> None:
        self._note("synchronize")
        if self.is_broken or self.is_lost:
            raise EvaluatorError(f"{self.name}: an illegal memory access was encountered")
        for work in self.queued:
            work()
        self.queued.clear()

    def close(self) -> None:
        self.memory.clear()
        self._note("pop")
        if self.is_lost:
            raise EvaluatorError(f"{self.name}: CUDA error 700")


def unpack_rows(packed: npt.NDArray[np.uint8], bits: int, repeat: int) -> Array:
    """Return what native/cuda/unpack.cu makes of rows of bits: the slow twin."""
    return np.unpackbits(packed, axis=1, bitorder="little")[:, :bits].repeat(repeat, axis=1)


class OnnxNetwork:
    """Stands in for TensorRtNetwork: reads and writes the memory of a recording driver."""

    def __init__(self, path: Path, driver: RecordingDriver, sizes: Sequence[int]) -> None:
        self._driver = driver
        self._session = make_session(path)
        self._sizes = sizes
        self.inputs, self.outputs = (
            {each.name: (tuple(each.shape[1:]), np.dtype(TYPES[each.type])) for each in tensors}
            for tensors in (self._session.get_inputs(), self._session.get_outputs())
        )

    def enqueue(self, rows: int, addresses: Mapping[str, int], stream: int) -> None:
        self._driver._note("enqueue")
        assert rows in self._sizes
        assert stream == self._driver.stream
        self._driver.queued.append(lambda: self._compute(rows, addresses))

    def _compute(self, rows: int, addresses: Mapping[str, int]) -> None:
        memory = self._driver.memory
        fed = {}
        for name, (shape, dtype) in self.inputs.items():
            size = rows * int(np.prod(shape)) * dtype.itemsize
            fed[name] = memory[addresses[name]][:size].view(dtype).reshape(rows, *shape)
        for name, output in zip(self.outputs, self._session.run(list(self.outputs), fed), strict=True):
            memory[addresses[name]][: output.nbytes] = output.reshape(-1).view(np.uint8)

    def close(self) -> None:
        self._driver._note("release")
