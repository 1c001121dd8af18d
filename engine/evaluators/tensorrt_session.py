"""A network on TensorRT itself, as one evaluation worker owns it: context, stream, buffers, execution contexts."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import DeviceLostError, EvaluatorError
from yomi.engine.evaluators.onnx_session import batch_sizes
from yomi.engine.evaluators.providers import split_device
from yomi.engine.evaluators.tensorrt_driver import Driver, open_driver
from yomi.engine.evaluators.tensorrt_session import Network, load_network
from yomi.native.packing import packed_bytes
from yomi.nets.packed import SUFFIX, Variant

_log = logging.getLogger("yomi.evaluators")

Array = npt.NDArray[Any]

TRIALS = 3  # batches of each size for the comparison of CUDA graphs
TOLERANCE = 1e-3  # of an output's greatest number: allowed difference between results with and without a graph


@dataclass(frozen=True, slots=True)
class _Packed:
    """An input that is sent as bits."""

    source: int  # address of the bits
    bits: int  # of a row
    repeat: int  # numbers made of each bit


class TensorRtSession:
    """Implements yomi.engine.evaluators.gpu.GpuEngine, in the thread that makes it.

    A whole batch, from the first copy to the last, is one CUDA graph, which one call starts.
    """

    def __init__(
        self,
        path: Path,
        device: str,
        rows: int,
        outputs: Sequence[str],
        variant: Variant,
        *,
        fixed: bool = False,
        open_driver: Callable[[int], Driver] = open_driver,
        open_network: Callable[[Path, str, str, Sequence[int], int], Network] = load_network,
    ) -> None:
        """Push the device's context, load or build the engine, allocate, and capture a graph of each batch size.

        Args:
            path: an ONNX file in the requested precision.
            device: tensorrt, with or without a number.
            rows: greatest batch.
            outputs: names of the outputs to return.
            variant: with the inputs that are sent as bits.
            fixed: the file is for batches of exactly `rows` rows.
            open_driver: opens a GPU by number.
            open_network: loads the network for the thread's GPU.

        Raises:
            EvaluatorError: device or file cannot be used. The context is popped.
        """
        self.rows = rows
        # page-locked arrays [rows, ...], written before `run`; packed ones have SUFFIX in their names
        self.inputs: dict[str, Array] = {}
        self._sizes = [rows] if fixed else batch_sizes(rows)
        self._outputs = list(outputs)
        self._results: dict[str, Array] = {}
        self._addresses: dict[str, int] = {}  # on the device, of every input and output of the network
        self._packed: dict[str, _Packed] = {}
        self._graphs: dict[int, int] = {}  # by batch size
        self._network: Network | None = None
        self._driver = open_driver(split_device(device)[1])
        try:
            driver = self._driver
            self._network = open_network(path, driver.name, driver.version, self._sizes, driver.stream)
            self._allocate(self._network, variant)
            self._capture(path.name)
        except BaseException:
            self.close()
            raise

    def run(self, rows: int) -> list[Array]:
        """Evaluate the first `rows` rows of the inputs.

        Returns:
            The outputs, [rows, ...] each; valid until the next call.

        Raises:
            EvaluatorError: the device failed, or is no longer this thread's.
        """
        driver = self._driver
        driver.check()
        size = next(size for size in self._sizes if size >= rows)
        try:
            if size in self._graphs:
                driver.launch(self._graphs[size])
            else:
                self._enqueue(size)
            driver.synchronize()
        except EvaluatorError:
            driver.expect_alive()
            raise
        return [self._results[name][:rows] for name in self._outputs]

    def _enqueue(self, size: int) -> None:
        """Put all commands of a batch on the stream."""
        driver, network = self._driver, self._network
        assert network is not None, "the session is closed"
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
            driver.download(self._results[name][:size], self._addresses[name])

    def _capture(self, name: str) -> None:
        """Capture a graph of each batch size and compare the results. If that fails, no graphs are used.

        Args:
            name: the network's, for the log.

        Raises:
            EvaluatorError: the batch cannot be computed without graphs either.
        """
        rng = np.random.default_rng(1)
        trials = [(int(size), seed) for seed, size in enumerate(rng.permutation(np.repeat(self._sizes, TRIALS)))]
        # TensorRT wants each size to have been computed before it is captured.
        expected = {seed: self._trial(size, seed) for size, seed in trials}
        try:
            self._graphs = {size: self._driver.capture(functools.partial(self._enqueue, size)) for size in self._sizes}
            for index in rng.permutation(len(trials)):
                size, seed = trials[index]
                for found, wanted in zip(self._trial(size, seed), expected[seed], strict=True):
                    limit = TOLERANCE * np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
                    if not np.allclose(found, wanted, rtol=0.0, atol=limit, equal_nan=True):
                        raise EvaluatorError(f"a graph's batch of {size} rows differs from what was computed without")
        except DeviceLostError:
            raise
        except EvaluatorError as error:
            self._graphs = {}
            _log.warning("%s: computed without CUDA graphs: %s", name, error)
            self.run(self.rows)

    def _trial(self, size: int, seed: int) -> list[Array]:
        """Return the outputs of random inputs."""
        rng = np.random.default_rng(seed)
        for array in self.inputs.values():
            is_packed = array.dtype == np.uint8
            array[...] = rng.integers(0, 256, array.shape) if is_packed else rng.random(array.shape)
        return [output.astype(np.float32) for output in self.run(size)]

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
                self.inputs[name] = driver.pinned((rows, *shape), dtype)
                continue
            is_constant = name in variant.constant
            bits = shape[0] if is_constant else math.prod(shape)
            host = driver.pinned((rows, packed_bytes(bits)), np.uint8)
            self.inputs[name + SUFFIX] = host
            repeat = math.prod(shape[1:]) if is_constant else 1
            self._packed[name] = _Packed(driver.allocate(host.nbytes), bits, repeat)
        for name in self._outputs:
            shape, dtype = network.outputs[name]
            self._results[name] = driver.pinned((rows, *shape), dtype)
