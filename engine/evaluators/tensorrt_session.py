"""A network on TensorRT itself, as one evaluation worker owns it: context, stream, buffers, execution context."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.evaluators.onnx_session import batch_sizes
from engine.evaluators.providers import split_device
from engine.evaluators.tensorrt_driver import Driver, PycudaDriver
from engine.evaluators.tensorrt_engine import Network, load_network
from native.packing import packed_bytes
from nets.packed import SUFFIX, Variant

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Packed:
    """An input that travels as bits."""

    source: int
    """Address of the bits."""
    bits: int
    """Of a row."""
    repeat: int
    """Numbers made of each."""


class TensorRtSession:
    """See engine.evaluators.gpu.GpuEngine. Everything happens in the thread that makes it."""

    def __init__(
        self,
        path: Path,
        device: str,
        rows: int,
        outputs: Sequence[str],
        variant: Variant,
        *,
        fixed: bool = False,
        open_driver: Callable[[int], Driver] = PycudaDriver,
        open_network: Callable[[Path, str, str, Sequence[int]], Network] = load_network,
    ) -> None:
        """Push the device's context, load or build the engine, allocate, and evaluate each batch size once.

        Args:
            path: an ONNX file in the precision that is wanted.
            device: tensorrt, with or without a number.
            rows: greatest batch.
            outputs: what to return.
            variant: says which inputs travel as bits.
            fixed: the file is for batches of exactly `rows` rows.
            open_driver: opens a GPU by number.
            open_network: loads the network for the thread's GPU.

        Raises:
            EvaluatorError: device or file cannot be used; the context is popped again then.
        """
        self.rows = rows
        self.inputs: dict[str, Array] = {}
        """The page-locked arrays [rows, ...], to be written before `run`; packed ones have SUFFIX in their names."""
        self._sizes = [rows] if fixed else batch_sizes(rows)
        self._outputs = list(outputs)
        self._results: dict[str, Array] = {}
        self._addresses: dict[str, int] = {}
        """On the device, of every input and output of the network."""
        self._packed: dict[str, _Packed] = {}
        self._network: Network | None = None
        self._driver = open_driver(split_device(device)[1])
        try:
            self._network = open_network(path, self._driver.name, self._driver.version, self._sizes)
            self._allocate(self._network, variant)
            for size in self._sizes:
                self.run(size)
        except BaseException:
            self.close()
            raise

    def run(self, rows: int) -> list[Array]:
        """Evaluate the first `rows` rows of the inputs.

        Returns:
            The outputs, [rows, ...] each; valid until the next call.

        Raises:
            EvaluatorError: the device fails, or is no longer this thread's.
        """
        driver, network = self._driver, self._network
        assert network is not None, "the session is closed"
        driver.check()
        size = next(size for size in self._sizes if size >= rows)
        for name, (_, dtype) in network.inputs.items():
            packed = self._packed.get(name)
            if packed is None:
                driver.upload(self._addresses[name], self.inputs[name][:size])
            else:
                bits = self.inputs[name + SUFFIX][:size]
                driver.upload(packed.source, bits)
                target, words = self._addresses[name], bits.shape[1] // 4
                driver.unpack(packed.source, target, size, words, packed.bits, packed.repeat, dtype.name)
        network.enqueue(size, self._addresses, driver.stream)
        for name in self._outputs:
            driver.download(self._results[name][:rows], self._addresses[name])
        driver.synchronize()
        return [self._results[name][:rows] for name in self._outputs]

    def close(self) -> None:
        """Release the network, then the memory, and pop the context."""
        try:
            if self._network is not None:
                self._network.close()
                self._network = None
        finally:
            self.inputs.clear()
            self._results.clear()
            self._driver.close()

    def _allocate(self, network: Network, variant: Variant) -> None:
        driver, rows = self._driver, self.rows
        for name, (shape, dtype) in (*network.inputs.items(), *network.outputs.items()):
            self._addresses[name] = driver.allocate(rows * math.prod(shape) * dtype.itemsize)
        for name, (shape, dtype) in network.inputs.items():
            if name not in variant.packed:
                self.inputs[name] = driver.host_array((rows, *shape), dtype)
                continue
            is_constant = name in variant.constant
            bits = shape[0] if is_constant else math.prod(shape)
            host = driver.host_array((rows, packed_bytes(bits)), np.uint8)
            self.inputs[name + SUFFIX] = host
            repeat = math.prod(shape[1:]) if is_constant else 1
            self._packed[name] = _Packed(driver.allocate(host.nbytes), bits, repeat)
        for name in self._outputs:
            shape, dtype = network.outputs[name]
            self._results[name] = driver.host_array((rows, *shape), dtype)
