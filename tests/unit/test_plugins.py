"""Devices of plug-in execution providers: rows of a table, what is refused, sessions that fail, and a software GPU."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.contract.networks import write_small_network
from tests.fakes.plugins import SOFTWARE_VARIABLE, FakeRuntime
from yomi.engine.evaluators import plugins
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.load import load
from yomi.engine.evaluators.onnx_session import GpuSession
from yomi.engine.evaluators.plugin_session import PluginSession
from yomi.engine.evaluators.plugins import PROCESSOR, Adapter, find_adapters
from yomi.engine.evaluators.providers import choose_device, expect_packages, find_fault, split_device
from yomi.engine.evaluators.workers import choose_devices, make_device_queue
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.options import TABLE, Options
from yomi.engine.shogi.descriptor import GAME as SHOGI
from yomi.native.tree.buffers import make_batch
from yomi.nets.dlshogi.definition import NetworkShape, write_network
from yomi.nets.installation import extra_command
from yomi.nets.packed import Variant, variant_file

GPU = Adapter("GeForce", "NVIDIA 580.95", 2)
OLD_GPU = Adapter("Iris", "Mesa 22", 1, has_half=False)
SOFTWARE = Adapter("llvmpipe", "Mesa", PROCESSOR, has_half=False)


@pytest.fixture(autouse=True)
def no_memory() -> Iterator[None]:
    """Forget what was found out about this machine."""
    find_fault.cache_clear()
    yield
    find_fault.cache_clear()


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    """Install every plug-in's package and an onnxruntime that knows WebGPU; Vulkan shows one GPU."""
    fake = FakeRuntime("WebGpuExecutionProvider")
    monkeypatch.setattr(plugins, "_registered", set())
    monkeypatch.setitem(sys.modules, "onnxruntime", fake)
    for row in plugins.PLUGINS.values():
        package = SimpleNamespace(get_library_path=lambda: "/somewhere/library.so")
        monkeypatch.setitem(sys.modules, row.module, package)
    monkeypatch.setattr(plugins.importlib.util, "find_spec", lambda name: object())
    show(monkeypatch, GPU)
    return fake


def show(monkeypatch: pytest.MonkeyPatch, *adapters: Adapter) -> None:
    monkeypatch.setattr(plugins, "find_adapters", lambda: list(adapters))
    find_fault.cache_clear()


def test_every_row_is_a_device_with_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, row in plugins.PLUGINS.items():
        assert kind in TABLE["device"].choices
        assert row.package in extra_command(row.extra)
        assert split_device(kind) == (kind, 0)
        assert split_device(f"{kind}:3") == (kind, 3)
    assert split_device("cuda:1") == ("cuda", 1)


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    absent = [row.module for row in plugins.PLUGINS.values()]
    monkeypatch.setattr(plugins.importlib.util, "find_spec", lambda name: None if name in absent else real(name))
    with pytest.raises(EvaluatorError, match=r"device webgpu: onnxruntime-ep-webgpu not installed; to mend it: .*pip"):
        choose_device("webgpu")
    # onnxruntime-gpu may be the host that is there: another build over it would break it
    with pytest.raises(EvaluatorError) as caught:
        choose_device("rtx")
    assert '"onnxruntime-ep-nv-tensorrt-rtx-cu13>=' in str(caught.value)
    assert '"onnxruntime>=' not in str(caught.value)
    absent.append("onnxruntime")
    find_fault.cache_clear()
    with pytest.raises(EvaluatorError, match=r'onnxruntime and onnxruntime-ep-webgpu not .*"onnxruntime>='):
        choose_device("webgpu")


def test_an_onnxruntime_without_plug_ins_is_refused(runtime: FakeRuntime) -> None:
    runtime.__version__ = "1.24.3"  # type: ignore[misc]
    with pytest.raises(EvaluatorError, match=r"onnxruntime 1\.24\.3 found, expected 1\.24\.4 or later"):
        choose_device("webgpu")


def test_a_gpu_is_registered_once_for_all_sessions(runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SOFTWARE_VARIABLE, raising=False)
    assert choose_device("webgpu") == "webgpu"
    assert choose_devices(Options(device="webgpu")) == ["webgpu:0"]
    session = PluginSession(Path("net.onnx"), "webgpu", 0, 16, ["value"])
    PluginSession(Path("net.onnx"), "webgpu", 0, 16, ["value"]).close()
    # The variable has onnxruntime offer the device in containers, and is gone afterwards.
    assert runtime.registered == [("onnxruntime_ep_webgpu", "/somewhere/library.so", "1")]
    assert SOFTWARE_VARIABLE not in os.environ
    assert session.name == "WebGPU, GeForce, NVIDIA 580.95"
    with pytest.raises(
        EvaluatorError, match=r"GPUs 0 \(GeForce, NVIDIA 580.95\) found, expected one with the number 1"
    ):
        choose_devices(Options(device="webgpu", devices="0,1"))


def test_a_software_adapter_has_to_be_asked_for(runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    show(monkeypatch, SOFTWARE)
    with pytest.raises(
        EvaluatorError, match=r"no GPU but llvmpipe, which computes on the processor; .*webgpu:software"
    ):
        choose_device("webgpu")
    assert not runtime.registered
    assert choose_devices(Options(device="webgpu:software")) == ["webgpu:software:0"]
    assert PluginSession(Path("net.onnx"), "webgpu:software", 0, 2, ["value"]).name == (
        "WebGPU, llvmpipe, a software adapter"
    )
    show(monkeypatch, GPU, SOFTWARE)
    with pytest.raises(EvaluatorError, match="Vulkan shows GeForce, which WebGPU takes before any software adapter"):
        choose_device("webgpu:software")
    show(monkeypatch)
    with pytest.raises(EvaluatorError, match="Vulkan shows no GPU; to mend it: install the GPU's Vulkan driver"):
        choose_device("webgpu")
    with pytest.raises(EvaluatorError, match="no driver that computes on the processor"):
        choose_device("webgpu:software")


def test_beside_a_gpu_software_drivers_are_hidden_from_webgpu(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VK_LOADER_DRIVERS_DISABLE", raising=False)
    environment = os.environ
    choose_device("webgpu")
    assert "VK_LOADER_DRIVERS_DISABLE" not in environment
    show(monkeypatch, GPU, SOFTWARE)
    choose_device("webgpu")
    assert "swiftshader" in environment.pop("VK_LOADER_DRIVERS_DISABLE")


def test_rtx_names_the_gpu_that_it_does_not_support(runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.provider, runtime.offered = "NvTensorRTRTXExecutionProvider", 2
    capabilities = [(8, 9), (12, 0)]
    monkeypatch.setattr(plugins, "gpu_names", lambda: [f"NVIDIA {number}" for number in range(len(capabilities))])
    monkeypatch.setattr(plugins, "compute_capability", lambda number: capabilities[number])
    assert choose_devices(Options(device="rtx", devices="0,1")) == ["rtx:0", "rtx:1"]
    capabilities[0] = (9, 0)
    find_fault.cache_clear()
    with pytest.raises(EvaluatorError, match=r"GPU 0 \(NVIDIA 0\) of compute capability 9\.0 found, .* expects 8\.6"):
        choose_device("rtx")


def test_a_library_that_fails_and_one_that_offers_nothing(runtime: FakeRuntime) -> None:
    runtime.register_error = RuntimeError("libvulkan is old\nand more")
    with pytest.raises(EvaluatorError, match="onnxruntime-ep-webgpu cannot be loaded: libvulkan is old; to mend it"):
        choose_device("webgpu")
    runtime.register_error, runtime.offered = None, 0
    find_fault.cache_clear()
    with pytest.raises(EvaluatorError, match="onnxruntime-ep-webgpu offers no device"):
        choose_device("webgpu")


def test_nodes_on_the_processor_are_counted_and_named(runtime: FakeRuntime) -> None:
    runtime.left = ["Shape", "Cast", "Shape"]
    session = PluginSession(Path("net.onnx"), "webgpu", 0, 2, ["value"])
    assert session.name == "WebGPU, GeForce, NVIDIA 580.95, 3 nodes on the processor: 1 Cast, 2 Shape"
    runtime.taken = []
    with pytest.raises(EvaluatorError, match="WebGpuExecutionProvider took none of its 3 nodes"):
        PluginSession(Path("net.onnx"), "webgpu", 0, 2, ["value"])


def test_batches_are_filled_up_to_a_few_sizes(runtime: FakeRuntime) -> None:
    session = PluginSession(Path("net.onnx"), "webgpu", 0, 16, ["value"])
    assert runtime.sizes == [size for size in range(2, 17, 2) for _ in ("alone", "recorded", "replayed")]
    assert runtime.chosen == [(0, {"enableGraphCapture": "1"})]
    session.inputs["input"][:] = np.arange(16)[:, None]
    (found,) = session.run(3)
    assert found.tolist() == [[0], [3], [6]]
    assert runtime.sizes[-1] == 4
    session.run(16)
    assert runtime.sizes[-1] == 16
    runtime.sizes.clear()
    PluginSession(Path("net.onnx"), "webgpu", 0, 16, ["value"], fixed=True)
    assert set(runtime.sizes) == {16}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("capture", "device webgpu:0: onnxruntime: cannot be captured"),
        ("result", "recorded commands for 1 rows compute another value than single ones"),
    ],
)
def test_recorded_commands_that_are_wrong_are_left_out_with_a_line(
    runtime: FakeRuntime, fault: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    runtime.bad_graphs = fault
    session = PluginSession(Path("net.onnx"), "webgpu", 0, 8, ["value"])
    assert caplog.messages == [f"net.onnx on webgpu: computed without recorded commands: {reason}"]
    assert runtime.chosen == [(0, {"enableGraphCapture": "1"}), (0, {})]
    session.inputs["input"][:3] = 2
    (found,) = session.run(3)
    assert found.tolist() == [[6]] * 3


def test_sessions_that_fail_say_what_onnxruntime_says(runtime: FakeRuntime) -> None:
    session = PluginSession(Path("net.onnx"), "webgpu", 0, 2, ["value"])
    runtime.run_error = RuntimeError("device is lost\ntrace")
    with pytest.raises(EvaluatorError, match=r"^device webgpu:0: onnxruntime: device is lost$"):
        session.run(1)
    with pytest.raises(EvaluatorError, match="device is lost"):
        PluginSession(Path("net.onnx"), "webgpu", 0, 2, ["value"])
    runtime.session_error = RuntimeError("no memory")
    with pytest.raises(EvaluatorError, match=r"device webgpu: net\.onnx: onnxruntime cannot load it: no memory"):
        PluginSession(Path("net.onnx"), "webgpu", 0, 2, ["value"])


def test_sessions_of_a_shared_device_compute_one_at_a_time(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = PluginSession(Path("net.onnx"), "webgpu", 0, 2, ["value"])
    other = PluginSession(Path("net.onnx"), "webgpu", 0, 2, ["value"])
    is_in, may_go, ended = threading.Event(), threading.Event(), threading.Event()
    real = session._session.run_with_iobinding

    def slow(binding: Any, options: Any) -> None:
        is_in.set()
        assert may_go.wait(10)
        real(binding, options)

    monkeypatch.setattr(session._session, "run_with_iobinding", slow)
    first = threading.Thread(target=session.run, args=(1,))
    second = threading.Thread(target=lambda: (other.run(1), ended.set()))
    first.start()
    assert is_in.wait(10)
    second.start()
    assert not ended.wait(0.05)
    may_go.set()
    assert ended.wait(10)
    first.join()
    second.join()


def test_packages_for_a_network_come_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yomi.engine.evaluators.providers.importlib.util.find_spec", lambda name: None)
    with pytest.raises(EvaluatorError, match=r"device webgpu needs onnx, which is not installed: .*onnxruntime-ep-web"):
        expect_packages(Path("net.onnx"), "webgpu")


# -- a driver that computes on the processor ---------------------------------------------------------------------------


@pytest.fixture
def software(network: Path) -> None:
    """Skip if there is no WebGPU provider with a software adapter, or none that it takes."""
    fault = find_fault("webgpu:software")
    if fault is not None:
        pytest.skip(f"no software adapter for WebGPU: {fault}")
    try:
        plugins.open_session(network, "webgpu:software", 0, {})
    except EvaluatorError as error:
        if "No supported adapters" not in str(error):
            raise
        pytest.skip(f"WebGPU refuses {find_adapters()[0]}")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_network(tmp_path_factory.mktemp("net") / "net.onnx", NetworkShape(blocks=1, channels=16))


def test_a_software_adapter_computes_what_the_processor_does(software: None, network: Path, tmp_path: Path) -> None:
    assert find_adapters()[0].is_software
    variant = Variant(packed=("input1", "input2"), constant=("input2",))
    path, outputs = variant_file(network, variant, tmp_path), ["output_policy", "output_value"]
    reference = GpuSession(path, "cpu", 2, outputs)
    session = PluginSession(path, "webgpu:software", 0, 2, outputs)
    assert "nodes on the processor" not in session.name
    assert session._bound, "its commands are recorded"
    random = np.random.default_rng(0)
    for rows in (2, 1):
        for name, array in reference.inputs.items():
            array[...] = random.integers(0, 256, array.shape)
            session.inputs[name][...] = array
        for found, wanted in zip(session.run(rows), reference.run(rows), strict=True):
            assert len(found) == rows
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    session.close()
    reference.close()


@pytest.mark.parametrize("game", [GO, SHOGI], ids=lambda game: game.name)
def test_two_workers_share_a_software_adapter(
    game: Any,
    software: None,
    network: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = write_small_network(tmp_path) if game is GO else network
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    options = Options(device="webgpu:software", batch_size=1)
    queue = make_device_queue(lambda device: load(game.formats, path, 9, device, batch_size=1), options)
    try:
        evaluator: Any = queue.evaluator
        assert evaluator.description.startswith(f"{evaluator.info.name} on webgpu:software:0 (WebGPU, ")
        assert evaluator.description.endswith("a software adapter, fp32)")

        def value(each: Any) -> float:
            batch = make_batch(each.spec, 1, each.inputs)
            each.evaluate(batch, 1)
            return float(batch.values[0, 0])

        wanted = value(load(game.formats, path, 9, "cpu", "onnx"))
        assert [queue.call(value) for _ in range(4)] == pytest.approx([wanted] * 4, abs=1e-4)
        assert not caplog.messages, "commands are recorded for every output"
    finally:
        queue.close()
