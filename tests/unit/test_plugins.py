"""Devices of plug-in execution providers: rows of a table, what is refused, sessions that fail, and a software GPU."""

import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.contract.networks import write_small_network
from tests.fakes.plugins import SOFTWARE_VARIABLE, FakeRuntime, forget
from tests.looping import looped
from tests.naive.shogi_networks import NetworkShape, write_network
from yomi.bench.measure import make_job
from yomi.engine.evaluators import devices
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.devices import (
    CPU,
    KINDS,
    Device,
    devices_of,
    expect_packages,
    find_fault,
    find_gpus,
    parse_device,
)
from yomi.engine.evaluators.network import open_network
from yomi.engine.evaluators.onnx_session import GpuSession, make_session
from yomi.engine.evaluators.vulkan import PROCESSOR, Adapter, find_adapters
from yomi.engine.evaluators.workers import make_device_queue
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.go.players.setup import go_subject
from yomi.engine.machine import PACKAGES
from yomi.engine.options import TABLE, Options
from yomi.engine.shogi.descriptor import GAME as SHOGI
from yomi.engine.shogi.players.setup import shogi_subject
from yomi.nets.dlshogi.network import ShogiForm
from yomi.nets.gpu_variants import Variant, variant_file
from yomi.nets.installation import extra_command

GPU = Adapter("GeForce", "NVIDIA 580.95", 2)
OLD_GPU = Adapter("Iris", "Mesa 22", 1, has_half=False)
SOFTWARE = Adapter("llvmpipe", "Mesa", PROCESSOR, has_half=False)
PLUGINS = {kind: row for kind, row in KINDS.items() if row.module}
WEBGPU, ON_SOFTWARE = Device("webgpu"), Device("webgpu:software")


@pytest.fixture(autouse=True)
def no_memory() -> Iterator[None]:
    """Forget what was found out about this machine."""
    forget()
    yield
    forget()


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    """Install every plug-in's package and an onnxruntime that knows WebGPU; Vulkan shows one GPU."""
    fake = FakeRuntime("WebGpuExecutionProvider")
    monkeypatch.setattr(devices, "_registered", set())
    monkeypatch.setitem(sys.modules, "onnxruntime", fake)
    for row in PLUGINS.values():
        package = SimpleNamespace(get_library_path=lambda: "/somewhere/library.so")
        monkeypatch.setitem(sys.modules, row.module, package)
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: object())
    show(monkeypatch, GPU)
    return fake


def show(monkeypatch: pytest.MonkeyPatch, *adapters: Adapter) -> None:
    monkeypatch.setattr(devices, "find_adapters", lambda: list(adapters))
    forget()


def test_every_row_is_a_device_with_an_extra() -> None:
    assert TABLE["device"].choices == ("auto", *KINDS)
    for kind, row in KINDS.items():
        assert parse_device(kind) == Device(kind)
        assert "pip" in extra_command(row.extra)
        assert all(backend in TABLE["backend"].choices for backend in row.backends)
        if row.module:
            assert row.package in extra_command(row.extra)
            assert row.package in PACKAGES
        if kind != "cpu":
            assert parse_device(f"{kind}:3") == Device(kind, 3)
            assert str(parse_device(f"{kind}:3")) == f"{kind}:3"


@looped("text", ["", "gpu", "cuda:", "cuda:x", "cpu:1", "cuda:1:1", "cuda:1000", "openvino:tpu"])
def test_a_device_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(EvaluatorError, match=f"device {text} found, expected auto or one of cpu, cuda, "):
        parse_device(text)


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    absent = [row.module for row in PLUGINS.values()]
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: None if name in absent else real(name))
    with pytest.raises(
        EvaluatorError, match=r"device webgpu:0: onnxruntime-ep-webgpu not installed; to mend it: .*pip"
    ):
        parse_device("webgpu").check()
    # onnxruntime-gpu may be the host that is there: another build over it would break it
    with pytest.raises(EvaluatorError) as caught:
        parse_device("rtx").check()
    assert '"onnxruntime-ep-nv-tensorrt-rtx-cu13>=' in str(caught.value)
    assert '"onnxruntime>=' not in str(caught.value)
    absent.append("onnxruntime")
    forget()
    with pytest.raises(EvaluatorError, match=r'onnxruntime and onnxruntime-ep-webgpu not .*"onnxruntime>='):
        parse_device("webgpu").check()


def test_an_onnxruntime_without_plug_ins_is_refused(runtime: FakeRuntime) -> None:
    runtime.__version__ = "1.24.3"  # type: ignore[misc]
    with pytest.raises(EvaluatorError, match=r"onnxruntime 1\.24\.3 found, expected 1\.24\.4 or later"):
        parse_device("webgpu").check()


def test_a_gpu_is_registered_once_for_all_sessions(runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SOFTWARE_VARIABLE, raising=False)
    assert list(map(str, devices_of(Options(device="webgpu")))) == ["webgpu:0"]
    session = GpuSession(Path("net.onnx"), WEBGPU, 16, ["value"])
    GpuSession(Path("net.onnx"), WEBGPU, 16, ["value"]).close()
    # The variable has onnxruntime offer the device in containers, and is gone afterwards.
    assert runtime.registered == [("onnxruntime_ep_webgpu", "/somewhere/library.so", "1")]
    assert SOFTWARE_VARIABLE not in os.environ
    assert session.name == "WebGPU, GeForce, NVIDIA 580.95"
    with pytest.raises(
        EvaluatorError, match=r"GPUs 0 \(GeForce, NVIDIA 580.95\) found, expected one with the number 1"
    ):
        devices_of(Options(device="webgpu", devices="0,1"))


def test_a_software_adapter_has_to_be_asked_for(runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    show(monkeypatch, SOFTWARE)
    with pytest.raises(
        EvaluatorError, match=r"no GPU but llvmpipe, which computes on the processor; .*webgpu:software"
    ):
        parse_device("webgpu").check()
    assert not runtime.registered
    assert list(map(str, devices_of(Options(device="webgpu:software")))) == ["webgpu:software:0"]
    assert GpuSession(Path("net.onnx"), ON_SOFTWARE, 2, ["value"]).name == ("WebGPU, llvmpipe, a software adapter")
    show(monkeypatch, GPU, SOFTWARE)
    with pytest.raises(EvaluatorError, match="Vulkan shows GeForce, which WebGPU takes before any software adapter"):
        parse_device("webgpu:software").check()
    show(monkeypatch)
    with pytest.raises(EvaluatorError, match="Vulkan shows no GPU; to mend it: install the GPU's Vulkan driver"):
        parse_device("webgpu").check()
    with pytest.raises(EvaluatorError, match="no driver that computes on the processor"):
        parse_device("webgpu:software").check()


def test_beside_a_gpu_software_drivers_are_hidden_from_webgpu(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VK_LOADER_DRIVERS_DISABLE", raising=False)
    environment = os.environ
    parse_device("webgpu").check()
    assert "VK_LOADER_DRIVERS_DISABLE" not in environment
    show(monkeypatch, GPU, SOFTWARE)
    parse_device("webgpu").check()
    assert "swiftshader" in environment.pop("VK_LOADER_DRIVERS_DISABLE")


def test_rtx_names_the_gpu_that_it_does_not_support(runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.provider, runtime.offered = "NvTensorRTRTXExecutionProvider", 2
    capabilities = [(8, 9), (12, 0)]
    monkeypatch.setattr(
        devices, "gpu_descriptions", lambda: [f"NVIDIA {number}" for number in range(len(capabilities))]
    )
    monkeypatch.setattr(devices, "compute_capability", lambda number: capabilities[number])
    assert list(map(str, devices_of(Options(device="rtx", devices="0,1")))) == ["rtx:0", "rtx:1"]
    capabilities[0] = (9, 0)
    forget()
    with pytest.raises(EvaluatorError, match=r"GPU 0 \(NVIDIA 0\) of compute capability 9\.0 found, .* expects 8\.6"):
        parse_device("rtx").check()


def test_openvino_prefers_a_gpu_and_names_what_is_not_offered(runtime: FakeRuntime) -> None:
    runtime.provider, runtime.offered = "OpenVINOExecutionProvider", 3
    runtime.facts = [
        {"ov_device": "CPU", "FULL_DEVICE_NAME": "Core Ultra", "OPTIMIZATION_CAPABILITIES": "FP32 INT8 BIN"},
        {"ov_device": "GPU.0", "FULL_DEVICE_NAME": "Iris", "OPTIMIZATION_CAPABILITIES": "FP32 BIN FP16"},
        {"ov_device": "GPU.1", "FULL_DEVICE_NAME": "Arc", "OPTIMIZATION_CAPABILITIES": "FP32 BIN FP16"},
    ]
    assert devices_of(Options(device="openvino")) == [Device("openvino")]
    assert [gpu.name for gpu in find_gpus("openvino")] == ["Iris", "Arc", "Core Ultra"]
    assert [gpu.has_half for gpu in find_gpus("openvino")] == [True, True, False]
    assert parse_device("openvino:GPU:1").gpu.name == "Arc"
    assert parse_device("openvino:CPU") == Device("openvino:cpu")
    assert parse_device("openvino:cpu").gpu.name == "Core Ultra"
    with pytest.raises(
        EvaluatorError, match="onnxruntime-ep-openvino offers no device called NPU; to mend it: install"
    ):
        parse_device("openvino:npu").check()


def test_a_library_that_fails_and_one_that_offers_nothing(runtime: FakeRuntime) -> None:
    runtime.register_error = RuntimeError("libvulkan is old\nand more")
    with pytest.raises(EvaluatorError, match="onnxruntime-ep-webgpu cannot be loaded: libvulkan is old; to mend it"):
        parse_device("webgpu").check()
    runtime.register_error, runtime.offered = None, 0
    forget()
    with pytest.raises(EvaluatorError, match="onnxruntime-ep-webgpu offers no device"):
        parse_device("webgpu").check()


def test_nodes_on_the_processor_are_counted_and_named(runtime: FakeRuntime) -> None:
    runtime.left = ["Shape", "Cast", "Shape"]
    session = GpuSession(Path("net.onnx"), WEBGPU, 2, ["value"])
    assert session.name == "WebGPU, GeForce, NVIDIA 580.95, 3 nodes on the processor: 1 Cast, 2 Shape"
    runtime.taken = []
    with pytest.raises(EvaluatorError, match="WebGpuExecutionProvider took none of the network's 3 nodes"):
        GpuSession(Path("net.onnx"), WEBGPU, 2, ["value"])


def test_batches_are_filled_up_to_a_few_sizes(runtime: FakeRuntime) -> None:
    session = GpuSession(Path("net.onnx"), WEBGPU, 16, ["value"])
    sizes = [1, *range(2, 17, 2)]
    # The first shows the outputs' shapes. Each is recorded, computed alone, and replayed.
    assert sorted(runtime.sizes) == sorted([1, *sizes, *sizes, *sizes])
    assert runtime.chosen == [(0, {"enableGraphCapture": "1"})]
    session.inputs["input"][:] = np.arange(16)[:, None]
    (found,) = session.run(3)
    assert found.tolist() == [[0], [3], [6]]
    assert runtime.sizes[-1] == 4
    session.run(16)
    assert runtime.sizes[-1] == 16
    runtime.sizes.clear()
    GpuSession(Path("net.onnx"), WEBGPU, 16, ["value"], fixed=True)
    assert set(runtime.sizes) == {16}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("capture", "device webgpu:0: onnxruntime: cannot be captured"),
        ("result", "recorded commands for 3 rows compute another value than single ones"),
    ],
)
def test_recorded_commands_that_are_wrong_are_left_out_with_a_line(
    runtime: FakeRuntime, fault: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    runtime.bad_graphs = fault
    session = GpuSession(Path("net.onnx"), WEBGPU, 8, ["value"])
    assert caplog.messages == [f"net.onnx on webgpu:0: computed without recorded commands: {reason}"]
    assert runtime.chosen == [(0, {"enableGraphCapture": "1"}), (0, {})]
    session.inputs["input"][:3] = 2
    (found,) = session.run(3)
    assert found.tolist() == [[6]] * 3


def test_sessions_that_fail_say_what_onnxruntime_says(runtime: FakeRuntime) -> None:
    session = GpuSession(Path("net.onnx"), WEBGPU, 2, ["value"])
    runtime.run_error = RuntimeError("device is lost\ntrace")
    with pytest.raises(EvaluatorError, match=r"^device webgpu:0: onnxruntime: device is lost$"):
        session.run(1)
    with pytest.raises(EvaluatorError, match="device is lost"):
        GpuSession(Path("net.onnx"), WEBGPU, 2, ["value"])
    runtime.session_error = RuntimeError("no memory")
    with pytest.raises(EvaluatorError, match=r"device webgpu:0: net\.onnx: onnxruntime cannot load it: no memory"):
        GpuSession(Path("net.onnx"), WEBGPU, 2, ["value"])


def test_sessions_of_a_shared_device_compute_one_at_a_time(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = GpuSession(Path("net.onnx"), WEBGPU, 2, ["value"])
    other = GpuSession(Path("net.onnx"), WEBGPU, 2, ["value"])
    is_in, may_go, ended = threading.Event(), threading.Event(), threading.Event()
    real = session._session.run_with_iobinding

    def slow(binding: Any, options: Any) -> None:
        is_in.set()
        assert may_go.wait(300)
        real(binding, options)

    monkeypatch.setattr(session._session, "run_with_iobinding", slow)
    first = threading.Thread(target=session.run, args=(1,))
    second = threading.Thread(target=lambda: (other.run(1), ended.set()))
    first.start()
    assert is_in.wait(300)
    second.start()
    assert not ended.wait(0.05)
    may_go.set()
    assert ended.wait(300)
    first.join()
    second.join()


def test_packages_for_a_network_come_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yomi.engine.evaluators.devices.importlib.util.find_spec", lambda name: None)
    with pytest.raises(EvaluatorError, match=r"device webgpu needs onnx, which is not installed: .*onnxruntime-ep-web"):
        expect_packages(Path("net.onnx"), WEBGPU)


# -- a driver that computes on the processor ---------------------------------------------------------------------------


@pytest.fixture
def software(network: Path) -> None:
    """Skip if there is no WebGPU provider with a software adapter, or none that it takes."""
    fault = find_fault("webgpu:software")
    if fault is not None:
        pytest.skip(f"no software adapter for WebGPU: {fault}")
    try:
        make_session(network, ON_SOFTWARE)
    except EvaluatorError as error:
        if "No supported adapters" not in str(error):
            raise
        pytest.skip(f"WebGPU refuses {find_adapters()[0]}")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dlshogi(tmp_path_factory.mktemp("net"))


def test_a_software_adapter_computes_what_the_processor_does(software: None, network: Path, tmp_path: Path) -> None:
    assert find_adapters()[0].is_software
    variant = Variant(packed=("input1", "input2"), constant=("input2",))
    path, outputs = variant_file(network, variant, tmp_path), ["output_policy", "output_value"]
    reference = GpuSession(path, CPU, 2, outputs)
    session = GpuSession(path, ON_SOFTWARE, 2, outputs)
    assert "nodes on the processor" not in session.name
    assert session._batches, "its commands are recorded"
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


def write_alphazero(folder: Path) -> Path:
    return write_network(folder / "net.onnx", NetworkShape(blocks=1, channels=16, form=ShogiForm.ALPHAZERO))


def write_dlshogi(folder: Path) -> Path:
    return write_network(folder / "net.onnx", NetworkShape(blocks=1, channels=16))


@pytest.mark.parametrize(
    ("game", "write"),
    [(GO, write_small_network), (SHOGI, write_dlshogi), (SHOGI, write_alphazero)],
    ids=["katago", "dlshogi", "alphazero"],
)
def test_two_workers_share_a_software_adapter(
    game: Any,
    write: Callable[[Path], Path],
    software: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = write(tmp_path)
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    network = open_network(game.formats, path, 9)
    queue = make_device_queue(lambda device: network.load(device, batch_size=1), [ON_SOFTWARE] * 2)
    try:
        evaluator: Any = queue.evaluator
        assert evaluator.description.startswith(f"{evaluator.info.name} on webgpu:software:0 (WebGPU, ")
        assert evaluator.description.endswith("a software adapter, fp32)")

        def outputs(each: Any) -> list[Any]:
            subject = go_subject(9) if game is GO else shogi_subject(each.spec)
            job = make_job(each, replace(subject, spec=each.spec), subject.games[-1], 1, SimpleQueue())
            each.evaluate(job.batch, 1)
            legal = job.batch.indices[0, : job.batch.move_count[0]]
            return [job.batch.logits[0, legal], job.batch.values[0], job.batch.ownership[0]]

        kernels = outputs(network.load(backend="native", precision="fp32"))
        assert all(np.ptp(found) > 0.01 for found in kernels[:2])
        for found in (queue.call(outputs) for _ in range(4)):
            for name, adapter, processor in zip(("logits", "values", "ownership"), found, kernels, strict=True):
                np.testing.assert_allclose(adapter, processor, rtol=1e-4, atol=1e-4, err_msg=name)
        assert not caplog.messages, "commands are recorded for every output"
    finally:
        queue.close()
