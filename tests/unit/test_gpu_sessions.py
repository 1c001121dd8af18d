"""onnxruntime on GPUs, proved without one: which device, what is missing, context, buffers and batch sizes."""

from __future__ import annotations

import collections
import itertools
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnxruntime.transformers import float16

from tests.fakes.cuda_driver import FakeDriver
from yomi.engine.evaluators import cuda, onnx_session, providers
from yomi.engine.evaluators.base import DeviceLostError, EvaluatorError
from yomi.engine.evaluators.cuda import ThreadDevice, aligned_zeros
from yomi.engine.evaluators.gpu import fill
from yomi.engine.evaluators.onnx_session import GpuSession, batch_sizes, make_session, tensorrt_options
from yomi.engine.evaluators.providers import choose_backend, choose_device, find_fault, find_package_fault
from yomi.engine.evaluators.workers import choose_devices, make_device_queue
from yomi.engine.go.networks.katago import default_rows
from yomi.engine.options import Options
from yomi.native.packing import pack, packed_bytes
from yomi.nets.dlshogi.definition import NetworkShape, write_network
from yomi.nets.errors import NetworkError
from yomi.nets.installation import extra_command
from yomi.nets.packed import Variant, make_variant, variant_file

OUTPUTS = ["output_policy", "output_value"]


def forget() -> None:
    find_fault.cache_clear()
    find_package_fault.cache_clear()


@pytest.fixture(autouse=True)
def no_memory() -> Any:
    """Forget what was found out about this machine."""
    forget()
    yield
    forget()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(cuda, "load_driver", lambda **_: fake)
    return fake


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_network(tmp_path_factory.mktemp("net") / "net.onnx", NetworkShape(blocks=2, channels=16))


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, *names: str, gpus: int = 1) -> None:
    """Pretend that there are GPUs, and that onnxruntime has these providers, whose files are no libraries."""
    for name in names:
        (folder / f"libonnxruntime_providers_{name}.so").write_bytes(b"nothing")
    monkeypatch.setattr(providers, "_folder", lambda: folder)
    monkeypatch.setattr(providers, "gpu_names", lambda: [f"NVIDIA {i}" for i in range(gpus)])
    monkeypatch.setattr("onnxruntime.preload_dlls", lambda: None)


# -- which device ------------------------------------------------------------------------------------------------------


def test_a_build_for_the_processor_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, gpus=4)
    for device in ("cuda", "cuda:3", "tensorrt"):
        with pytest.raises(EvaluatorError, match=f"device {device}: this onnxruntime is built for the processor only"):
            choose_device(device)
    with pytest.raises(EvaluatorError, match=r'uninstall -y onnxruntime .* install .*"onnxruntime-gpu\[cuda,cudnn\]~='):
        choose_device("cuda")
    assert choose_device("auto") == "cpu"
    assert choose_device("cpu") == "cpu"


def test_no_driver_and_no_gpu_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, "cuda")

    def none() -> list[str]:
        raise EvaluatorError("libcuda.so.1, NVIDIA's driver, is not found")

    monkeypatch.setattr(providers, "gpu_names", none)
    with pytest.raises(EvaluatorError, match=r"libcuda.so.1, NVIDIA's driver, is not found; to mend it: install NV"):
        choose_device("cuda")
    forget()
    monkeypatch.setattr(providers, "gpu_names", list)
    with pytest.raises(EvaluatorError, match="shows no GPU"):
        choose_device("cuda")


def test_a_broken_library_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch, tmp_path, "shared", "cuda")
    with pytest.raises(EvaluatorError, match=r"libonnxruntime_providers_shared\.so is broken .* to mend it: .*pip"):
        choose_device("cuda")
    # auto goes on with what works, and says so
    assert choose_device("auto") == "cpu"
    assert "device auto: the network runs on the processor: libonnxruntime_providers_shared.so is broken" in caplog.text


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, "cuda", "tensorrt")
    missing = "libcublasLt.so.12"

    def load(path: str, **_: Any) -> None:
        raise OSError(f"{missing}: cannot open shared object file: No such file or directory")

    monkeypatch.setattr("ctypes.CDLL", load)
    with pytest.raises(EvaluatorError, match=r"device cuda: libcublasLt\.so\.12 is not found; to mend it: .*-gpu"):
        choose_device("cuda")
    forget()
    missing = "libcuda.so.1"
    with pytest.raises(EvaluatorError, match=r"libcuda\.so\.1 is not found; to mend it: install NVIDIA's driver"):
        choose_device("cuda")
    missing = "libnvinfer.so.10"
    with pytest.raises(
        EvaluatorError, match=r"libnvinfer\.so\.10 is not found; .*\[cuda,cudnn\].*tensorrt-cu13>=.*,<11"
    ):
        choose_device("tensorrt")
    forget()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(EvaluatorError, match=r"device tensorrt: tensorrt cannot be imported: .* to mend it: .*-cu13"):
        choose_device("tensorrt")


@pytest.mark.parametrize(
    ("version", "extra", "installed", "removed", "wanted"),
    [
        (None, "cuda", ["numpy"], None, "cuda"),
        (13020, "cuda", ["onnxruntime-gpu"], None, "cuda"),
        (13020, "cuda", ["onnxruntime", "tensorrt-cu12"], "onnxruntime &&", "cuda"),
        (14000, "tensorrt", ["tensorrt_cu13", "tensorrt_cu13_libs"], None, "tensorrt"),
        (13000, "tensorrt", ["tensorrt", "tensorrt_cu13"], "tensorrt tensorrt-cu13 &&", "tensorrt"),
        (12080, "tensorrt", ["onnxruntime", "onnxruntime-gpu"], "onnxruntime onnxruntime-gpu &&", "tensorrt12"),
        (11080, "cuda", [], None, "cuda12"),
    ],
)
def test_the_remedy_is_for_the_driver_and_removes_what_clashes(
    version: int | None,
    extra: str,
    installed: list[str],
    removed: str | None,
    wanted: str,
    driver: FakeDriver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver.version = version or 0
    if version is None:
        monkeypatch.setattr(providers, "driver_cuda", lambda: cuda._check(100, "no driver"))
    found = [types.SimpleNamespace(name=name) for name in installed]
    monkeypatch.setattr("importlib.metadata.distributions", lambda: found)
    command = providers.gpu_command(extra)
    assert command.endswith(extra_command(wanted))
    assert ("uninstall" in command) == (removed is not None)
    assert f"-y {removed}" in command or removed is None


def test_a_driver_too_old_for_onnxruntime_is_named(
    driver: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, "cuda")
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: None)
    monkeypatch.setattr("onnxruntime.cuda_version", "13.0")
    assert choose_device("cuda") == "cuda"
    forget()
    driver.version = 12080
    with pytest.raises(EvaluatorError, match=r"built for CUDA 13, NVIDIA's driver runs CUDA 12 at .*\]~=1\.26"):
        choose_device("cuda")


def test_the_gpu_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, "cuda", gpus=2)
    monkeypatch.setattr(providers, "find_fault", lambda device: None)
    assert choose_device("cuda:1") == "cuda:1"
    assert choose_devices(Options(device="cuda", devices="1,0")) == ["cuda:1", "cuda:0"]
    with pytest.raises(EvaluatorError, match=r"GPUs 0 \(NVIDIA 0\), 1 \(NVIDIA 1\) found, expected .* number 2"):
        choose_devices(Options(device="cuda", devices="0,2"))
    assert choose_devices(Options(device="auto")) == ["cuda:0"]
    assert choose_devices(Options(device="cpu")) == ["cpu"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(device="cuda", backend="native"), "backend native computes on the CPU"),
        (Options(device="cuda", backend="tensorrt"), "expected device tensorrt, not cuda"),
        (Options(device="cpu", precision="fp16"), "precision fp16 is for GPUs"),
        (Options(device="cuda", devices="zero"), "devices: 'zero' found"),
    ],
)
def test_options_that_do_not_go_together(options: Options, message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        choose_devices(options)


def test_tensorrt_itself_or_through_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"tensorrt", "onnx", "onnxruntime"}
    fault = {"tensorrt": providers.Fault("libnvinfer.so.10 is not found", "pip install it")}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if name in installed else None)
    monkeypatch.setitem(sys.modules, "tensorrt", types.ModuleType("tensorrt"))
    monkeypatch.setattr(providers, "find_fault", lambda device: fault.get(device))
    monkeypatch.setattr(providers, "gpu_names", lambda: ["NVIDIA"])
    assert choose_backend("tensorrt:0", "auto") == "tensorrt"
    assert choose_backend("cuda:0", "auto") == "onnx"
    with pytest.raises(EvaluatorError, match=r"libnvinfer\.so\.10 is not found"):
        choose_backend("tensorrt", "onnx")
    installed.remove("tensorrt")
    with pytest.raises(EvaluatorError, match=r"tensorrt not installed.* install .*tensorrt-cu13>=.*libnvinfer"):
        choose_backend("tensorrt", "auto")
    fault.clear()
    assert choose_backend("tensorrt", "auto") == "onnx"
    with pytest.raises(EvaluatorError, match="device tensorrt: tensorrt not installed"):
        choose_backend("tensorrt", "tensorrt")
    installed.add("tensorrt")
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(EvaluatorError, match="device tensorrt: tensorrt cannot be imported: "):
        choose_backend("tensorrt", "tensorrt")


# -- is it really the one that computes --------------------------------------------------------------------------------


class FallenBack:
    """onnxruntime's session where the provider that was asked for could not be loaded."""

    running = ("CPUExecutionProvider",)
    number = "0"

    def __init__(self, path: str, settings: Any, providers: list[Any], enable_fallback: int) -> None:
        assert enable_fallback == 0
        self.asked = providers

    def disable_fallback(self) -> None:
        pass

    def get_providers(self) -> list[str]:
        return list(self.running)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {"device_id": self.number} for name in self.running}


def pretend(monkeypatch: pytest.MonkeyPatch, session: type[FallenBack]) -> None:
    options = types.SimpleNamespace(add_session_config_entry=lambda *_: None)
    fake = types.SimpleNamespace(
        SessionOptions=lambda: options, InferenceSession=session, set_default_logger_severity=lambda level: None
    )
    monkeypatch.setitem(sys.modules, "onnxruntime", fake)
    monkeypatch.setattr(onnx_session, "find_fault", lambda device: None)


def test_every_worker_notices_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, FallenBack)
    with pytest.raises(EvaluatorError, match="device cuda:0: onnxruntime fell back to CPUExecutionProvider: its own"):
        make_session(Path("net.onnx"), "cuda:0")
    monkeypatch.setattr("yomi.engine.evaluators.workers.choose_devices", lambda options: ["cuda:0", "cuda:1"])
    made = []

    class SecondFallsBack(FallenBack):
        def get_providers(self) -> list[str]:
            first = self.asked[0][1]["device_id"] == "0"
            return ["CUDAExecutionProvider", "CPUExecutionProvider"] if first else ["CPUExecutionProvider"]

    pretend(monkeypatch, SecondFallsBack)

    def make(device: str) -> Any:
        made.append(device)
        make_session(Path("net.onnx"), device)
        return types.SimpleNamespace(description=device, close=lambda: None)

    monkeypatch.setattr(SecondFallsBack, "running", ("CUDAExecutionProvider",))
    with pytest.raises(EvaluatorError, match="device cuda:1: onnxruntime fell back"):
        make_device_queue(make, Options(device="cuda", devices="0,1", device_workers=1))
    assert sorted(made) == ["cuda:0", "cuda:1"]


def test_another_gpu_than_asked_for_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnTheFirst(FallenBack):
        running = ("CUDAExecutionProvider", "CPUExecutionProvider")

    pretend(monkeypatch, OnTheFirst)
    make_session(Path("net.onnx"), "cuda:0")
    with pytest.raises(EvaluatorError, match="device cuda:1: onnxruntime took GPU 0, expected 1"):
        make_session(Path("net.onnx"), "cuda:1")


# -- the thread's device and its memory --------------------------------------------------------------------------------


def test_a_thread_has_its_device_from_start_to_end(driver: FakeDriver) -> None:
    device = ThreadDevice(1)
    array = device.pinned((3, 5), np.float32)
    assert array.shape == (3, 5)
    assert array.ctypes.data % cuda.PAGE == 0
    device.check()
    array[...] = 0
    source = np.arange(15, dtype=np.float32)
    device.fetch(source.ctypes.data, array)
    assert (array.reshape(-1) == source).all()
    device.close()
    assert driver.names() == ["retain", "push", "pin", "check", "fetch", "unpin", "pop", "release"]
    assert not driver.registered
    assert set(driver.capture_modes.values()) == {0}  # the thread's own again
    assert driver.retained == {1: 0}


def test_a_lost_context_is_noticed(driver: FakeDriver) -> None:
    device, other = ThreadDevice(0), ThreadDevice(1)
    with pytest.raises(EvaluatorError, match="this thread has lost its GPU"):
        device.check()
    other.close()
    device.check()
    device.close()
    with pytest.raises(EvaluatorError, match="lost its GPU"):
        device.check()
    with pytest.raises(EvaluatorError, match="GPU 7: CUDA error 101"):
        ThreadDevice(7)


def test_what_one_thread_captures_does_not_concern_the_others(driver: FakeDriver) -> None:
    driver.capturing = -1  # another thread
    device = ThreadDevice(0)
    device.pinned((3, 5), np.float32)
    device.close()
    assert driver.names() == ["retain", "push", "pin", "unpin", "pop", "release"]


def test_arrays_have_their_pages_for_themselves() -> None:
    arrays = [aligned_zeros((n,), np.uint8) for n in (1, 4096, 5000)]
    assert all(array.ctypes.data % 4096 == 0 for array in arrays)
    ends = sorted((array.ctypes.data, array.ctypes.data + -(-array.nbytes // 4096) * 4096) for array in arrays)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(ends))


# -- batches -----------------------------------------------------------------------------------------------------------


def test_batches_come_in_few_sizes() -> None:
    assert batch_sizes(128) == [16, 32, 48, 64, 80, 96, 112, 128]
    assert batch_sizes(6) == [1, 2, 3, 4, 5, 6]
    assert batch_sizes(1) == [1]


def test_batches_of_go_hold_as_many_points_on_every_board() -> None:
    assert {size: default_rows(size) for size in (2, 7, 9, 13, 15, 19)} == {
        2: 256,
        7: 256,
        9: 256,
        13: 128,
        15: 64,
        19: 64,
    }


def random_inputs(rows: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    planes = (rng.random((rows, 62, 9, 9)) < 0.2).astype(np.float32)
    return planes, (rng.random((rows, 57)) < 0.3).astype(np.float32)


def expected(network: Path, planes: Any, hands: Any) -> list[Any]:
    board = np.ascontiguousarray(np.broadcast_to(hands[:, :, None, None], (*hands.shape, 9, 9)))
    result: list[Any] = make_session(network, "cpu").run(OUTPUTS, {"input1": planes, "input2": board})
    return result


@pytest.mark.parametrize(("half", "tolerance"), [(False, 1e-6), (True, 2e-2)])
def test_bits_are_unpacked_by_the_graph(network: Path, tmp_path: Path, half: bool, tolerance: float) -> None:
    variant = Variant(half, ("input1", "input2"), ("input2",))
    path = variant_file(network, variant, tmp_path)
    assert variant_file(network, variant, tmp_path) == path
    casts = {node.input[0]: node.attribute[0].i for node in onnx.load(path).graph.node if node.op_type == "Cast"}
    assert casts["input1_packed"] == casts["input2_packed"] == onnx.TensorProto.FLOAT  # TensorRT: from uint8 no other
    session = GpuSession(path, "cpu", 8, OUTPUTS, half=half)
    assert {name: array.shape for name, array in session.inputs.items()} == {
        "input1_packed": (8, packed_bytes(62 * 81)),
        "input2_packed": (8, packed_bytes(57)),
    }
    for rows in (8, 5, 1, 3):
        planes, hands = random_inputs(rows, rows)
        fill(session, "input1", pack(planes))
        fill(session, "input2", pack(hands))
        outputs = session.run(rows)
        assert [output.dtype.name for output in outputs] == ["float16" if half else "float32", "float32"]
        for found, wanted in zip(outputs, expected(network, planes, hands), strict=True):
            assert found.shape == wanted.shape
            assert found == pytest.approx(wanted, abs=tolerance)
    session.close()


def test_casts_that_the_converter_repeats_are_dropped(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert = float16.convert_float_to_float16

    def convert_as_in_1_31(*args: Any, **kwargs: Any) -> onnx.ModelProto:
        model: onnx.ModelProto = convert(*args, **kwargs)
        model.graph.node.extend([node for node in model.graph.node if node.op_type == "Cast"])
        return model

    expected = make_variant(network, Variant(half=True))
    monkeypatch.setattr(float16, "convert_float_to_float16", convert_as_in_1_31)
    found = make_variant(network, Variant(half=True))
    names = [node.name for node in onnx.load_from_string(found).graph.node]
    assert any("cast" in name for name in names)
    assert sorted(names) == sorted(node.name for node in onnx.load_from_string(expected).graph.node)


class OnProcessor(GpuSession):
    """As on a GPU, but for the values, which lie in ordinary memory."""

    def _start(self, path: Path, device: str, *, half: bool) -> None:
        self._place = ("cpu", 0)
        super()._start(path, device, half=half)


class WithGraphs:
    """A session that makes a graph of the second run with each number, on a processor.

    Args:
        path: the network.
        fault: refused (at the start), capture (the second run fails), stale (a graph computes nothing), or none.
        graphs: whether it makes any.
    """

    def __init__(self, path: Path, fault: str, graphs: bool) -> None:
        if graphs and fault == "refused":
            raise EvaluatorError("This session cannot use the graph capture feature as requested by the user")
        self._session, self._fault, self._graphs = make_session(path, "cpu"), fault, graphs
        self._runs: collections.Counter[int] = collections.Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run_with_iobinding(self, binding: Any, graph: int) -> None:
        self._runs[graph] += 1
        if self._graphs and graph != onnx_session.UNCAPTURED and self._runs[graph] > 1:
            if self._fault == "capture":
                raise RuntimeError("CUDA failure 900: operation not permitted when stream is capturing\nexpr=")
            if self._fault == "stale":
                return
        self._session.run_with_iobinding(binding)


@pytest.mark.parametrize(
    ("fault", "version", "reason"),
    [
        ("none", "1.31.1", None),
        ("none", "1.31.0", "onnxruntime 1.31.0 found, expected 1.31.1 or newer"),
        ("refused", "1.32.0", "This session cannot use the graph capture feature"),
        ("capture", "1.32.0", "onnxruntime: CUDA failure 900: operation not permitted when stream is capturing"),
        ("stale", "1.32.0", "rows computes another output_policy than single kernels"),
    ],
)
def test_without_right_graphs_there_are_none(
    fault: str,
    version: str,
    reason: str | None,
    network: Path,
    driver: FakeDriver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = []

    def make(path: Path, device: str, options: Any = None) -> Any:
        asked.append(options)
        return WithGraphs(path, fault, options["enable_cuda_graph"] == "1")

    monkeypatch.setattr(onnx_session, "make_session", make)
    monkeypatch.setattr(onnx_session, "run_options", lambda graph: graph)
    monkeypatch.setattr("onnxruntime.__version__", version)
    session = OnProcessor(network, "cuda", 4, OUTPUTS)
    assert driver.names().count("pin") == 4
    graphs = str(int(reason is None))
    assert asked[-1] == {"enable_cuda_graph": graphs, "use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (reason is not None)
    if reason is not None:
        assert said[0].startswith("net.onnx on cuda: computed without CUDA graphs: ")
        assert reason in said[0]
    planes, hands = random_inputs(3)
    fill(session, "input1", planes)
    session.inputs["input2"][:3] = hands[:, :, None, None]
    for output, wanted in zip(session.run(3), expected(network, planes, hands), strict=True):
        assert output == pytest.approx(wanted, abs=1e-6)
    session.close()
    OnProcessor(network, "cuda", 4, OUTPUTS, half=True).close()
    assert asked[-1]["use_tf32"] == "1"


def test_a_gpu_session_keeps_its_device_and_memory(
    network: Path, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_session, "make_session", lambda *_, **__: make_session(network, "cpu"))
    session = OnProcessor(network, "cuda:1", 4, OUTPUTS)
    assert driver.names()[:2] == ["retain", "push"]
    assert [value for name, value, _ in driver.calls if name == "push"] == [1]
    assert driver.names().count("pin") == 4  # two inputs, two outputs
    planes, hands = random_inputs(3)
    driver.calls.clear()
    fill(session, "input1", planes)
    session.inputs["input2"][:3] = hands[:, :, None, None]
    found = session.run(3)
    assert driver.names() == ["check", "fetch", "fetch"]
    for output, wanted in zip(found, expected(network, planes, hands), strict=True):
        assert output == pytest.approx(wanted, abs=1e-6)
    ThreadDevice(0)  # somebody takes the thread away
    with pytest.raises(EvaluatorError, match="lost its GPU"):
        session.run(3)
    driver.cuCtxPopCurrent_v2(None)
    driver.calls.clear()
    session.close()
    assert driver.names() == ["unpin"] * 4 + ["pop", "release"]


def test_a_gpu_that_onnxruntime_has_lost_is_known_as_such(
    network: Path, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_session, "make_session", lambda *_, **__: make_session(network, "cpu"))
    session = OnProcessor(network, "cuda:1", 4, OUTPUTS)
    monkeypatch.setattr(session, "_session", None)  # whatever it raises
    with pytest.raises(EvaluatorError, match="onnxruntime: ") as caught:
        session.run(3)
    assert not isinstance(caught.value, DeviceLostError)
    driver.error = 719
    with pytest.raises(DeviceLostError, match="GPU 1: CUDA error 719"):
        session.run(3)
    session.close()
    assert not any(driver.stacks.values())


def test_a_file_that_cannot_be_opened_gives_the_device_back(
    tmp_path: Path, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_session, "find_fault", lambda device: None)
    (tmp_path / "net.onnx").write_bytes(b"nothing")
    with pytest.raises(EvaluatorError, match="onnxruntime cannot load it"):
        GpuSession(tmp_path / "net.onnx", "cuda:0", 4, OUTPUTS)
    assert driver.names() == ["retain", "push", "pop", "release"]


def test_an_input_that_is_not_there(network: Path, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="inputs input1, input2 found, expected one called spatial"):
        variant_file(network, Variant(packed=("spatial",)), tmp_path)


def test_options_of_the_tensorrt_provider(network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    options = tensorrt_options(network, batch_sizes(64), half=True)
    assert options["trt_profile_min_shapes"] == "input1:8x62x9x9,input2:8x57x9x9"
    assert options["trt_profile_max_shapes"] == "input1:64x62x9x9,input2:64x57x9x9"
    assert options["trt_fp16_enable"] == "1"
    assert Path(options["trt_engine_cache_path"]).is_dir()
    assert "trt_cuda_graph_enable" not in options
    assert tensorrt_options(network, [4], half=False)["trt_fp16_enable"] == "0"


def test_engines_of_another_network_of_the_same_name_go_unused(
    network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "net.onnx"
    path.write_bytes(network.read_bytes())
    before = tensorrt_options(path, [4], half=True)
    assert tensorrt_options(path, [4], half=True) == before
    assert tensorrt_options(network, [4], half=True) == before
    write_network(path, NetworkShape(blocks=2, channels=16, seed=2))
    after = tensorrt_options(path, [4], half=True)
    assert after["trt_engine_cache_path"] != before["trt_engine_cache_path"]
    assert Path(after["trt_engine_cache_path"]).is_dir()
    assert after["trt_timing_cache_path"] == before["trt_timing_cache_path"]
