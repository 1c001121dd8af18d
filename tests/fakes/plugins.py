"""onnxruntime and a plug-in's package, as yomi.engine.evaluators.devices uses them, without a GPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from yomi.engine.evaluators import devices

SOFTWARE_VARIABLE = "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"


CACHES = (devices.parse_device, devices.find_gpus, devices.find_fault, devices.find_package_fault)


def forget() -> None:
    """Forget what was found out about this machine's devices."""
    for cached in CACHES:
        cached.cache_clear()  # type: ignore[attr-defined]  # mypy joins the types of the functions


class FakeRuntime:
    """Remembers registered libraries and opened sessions.

    Args:
        provider: name of the provider whose library is registered.
        devices: how many devices that provider offers.
        left: operators that it leaves to the processor.
        taken: operators that it takes.
    """

    __version__ = "1.32.0"

    def __init__(
        self, provider: str, devices: int = 1, left: Sequence[str] = (), taken: Sequence[str] = ("Conv", "Relu")
    ) -> None:
        self.provider, self.left, self.taken = provider, left, taken
        self.registered: list[tuple[str, str, str | None]] = []
        """(name, library, the environment's permission of software adapters)"""
        self.offered = devices
        self.register_error: Exception | None = None
        self.session_error: Exception | None = None
        self.run_error: Exception | None = None
        self.sizes: list[int] = []
        """Rows of each batch, computed or replayed."""
        self.bad_graphs = ""
        """`capture`: commands cannot be recorded; `result`: their replay leaves the outputs as they were."""
        self.OrtValue = SimpleNamespace(ortvalue_from_numpy=self._copy, ortvalue_from_shape_and_type=self._zeros)
        self.OrtDeviceMemoryType = SimpleNamespace(DEFAULT="default")
        self.vendor = 4318
        """Vendor of the provider's memory. Values of another vendor cannot be bound."""
        self.facts: list[dict[str, str]] = [{}] * devices
        """Metadata of the devices."""
        self.chosen: list[tuple[int, dict[str, str]]] = []
        """The device's number and the options of each session."""

    def _copy(self, array: Any, device: str, number: int, vendor: int) -> FakeValue:
        assert (device, number, vendor) == ("gpu", 0, self.vendor)
        return FakeValue(array.copy())

    def _zeros(self, shape: Any, dtype: Any, device: str, number: int, vendor: int) -> FakeValue:
        assert (device, number, vendor) == ("gpu", 0, self.vendor)
        return FakeValue(np.zeros(shape, dtype))

    def set_default_logger_severity(self, severity: int) -> None:
        """Do nothing: there is no log."""

    def register_execution_provider_library(self, name: str, library: str) -> None:
        if self.register_error is not None:
            raise self.register_error
        assert name not in [known for known, *_ in self.registered], "registered twice"
        self.registered.append((name, library, os.environ.get(SOFTWARE_VARIABLE)))

    def get_ep_devices(self) -> list[Any]:
        others = [SimpleNamespace(ep_name="CPUExecutionProvider", number=-1)]
        memory = SimpleNamespace(device_vendor_id=self.vendor)
        return others + [
            SimpleNamespace(ep_name=self.provider, number=number, memory_info=lambda kind: memory, ep_metadata=facts)
            for number, facts in enumerate((self.facts * self.offered)[: self.offered])
        ]

    def SessionOptions(self) -> Any:  # noqa: N802
        def add(devices: list[Any], options: dict[str, str]) -> None:
            self.chosen.append((devices[0].number, options))

        return SimpleNamespace(add_session_config_entry=lambda key, value: None, add_provider_for_devices=add)

    def RunOptions(self) -> Any:  # noqa: N802
        entries: dict[str, str] = {}
        return SimpleNamespace(add_run_config_entry=entries.__setitem__, entries=entries)

    def InferenceSession(self, path: str, settings: Any, enable_fallback: int) -> FakeSession:  # noqa: N802
        assert not enable_fallback
        if self.session_error is not None:
            raise self.session_error
        return FakeSession(self)


class FakeSession:
    """A network whose value is the sum of its inputs."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self._runtime = runtime
        self.falls_back = True
        self.graph_capture = runtime.chosen[-1][1].get("enableGraphCapture") == "1"
        self.recorded: dict[str, FakeBinding] = {}

    def disable_fallback(self) -> None:
        self.falls_back = False

    def get_provider_graph_assignment_info(self) -> list[Any]:
        def part(name: str, operators: Sequence[str]) -> Any:
            return SimpleNamespace(
                ep_name=name, get_nodes=lambda: [SimpleNamespace(op_type=each) for each in operators]
            )

        return [part(self._runtime.provider, self._runtime.taken), part("CPUExecutionProvider", self._runtime.left)]

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="input", shape=["batch", 3], type="tensor(float)")]

    def io_binding(self) -> FakeBinding:
        return FakeBinding()

    def run_with_iobinding(self, binding: FakeBinding, options: Any) -> None:
        assert self.graph_capture
        graph = options.entries["gpu_graph_id"]
        if self._runtime.bad_graphs == "capture":
            raise RuntimeError("cannot be captured")
        fed = {name: value.array for name, value in binding.inputs.items()}
        (output,) = self.run(list(binding.outputs), fed)
        assert self.recorded.setdefault(graph, binding) is binding, "recorded with another binding"
        if not binding.was_run or self._runtime.bad_graphs != "result":
            binding.outputs["value"].array[...] = output
        binding.was_run = True

    def run(self, outputs: list[str], fed: dict[str, Any], options: Any = None) -> list[Any]:
        assert outputs == ["value"]
        assert not self.falls_back
        if self._runtime.run_error is not None:
            raise self._runtime.run_error
        self._runtime.sizes.append(len(fed["input"]))
        return [np.array(fed["input"]).sum(axis=1, keepdims=True)]


class FakeValue:
    """A value at a fixed place on the device."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def update_inplace(self, array: Any) -> None:
        assert array.shape == self.array.shape
        self.array[...] = array


class FakeBinding:
    """The inputs and outputs of recorded commands."""

    def __init__(self) -> None:
        self.inputs: dict[str, FakeValue] = {}
        self.outputs: dict[str, FakeValue] = {}
        self.was_run = False
        self.bind_ortvalue_input = self.inputs.__setitem__
        self.bind_ortvalue_output = self.outputs.__setitem__

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [value.array.copy() for value in self.outputs.values()]
