"""onnxruntime on GPUs, proved without one: which device, what is missing, context, buffers and batch sizes."""

import collections
import contextlib
import itertools
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnxruntime.transformers import float16

from tests.fakes.cuda_driver import FakeDriver
from tests.fakes.plugins import forget
from tests.naive.shogi_networks import NetworkShape, write_network
from yomi.engine.evaluators import cuda, devices, onnx_session
from yomi.engine.evaluators.backends import fill
from yomi.engine.evaluators.base import DeviceLostError, EvaluatorError
from yomi.engine.evaluators.cuda import ThreadDevice, aligned_zeros
from yomi.engine.evaluators.devices import CPU, Device, device_of, devices_of, install_command, parse_device
from yomi.engine.evaluators.onnx_session import GpuSession, batch_sizes, make_session
from yomi.engine.evaluators.workers import make_device_queue
from yomi.engine.go.networks import default_rows
from yomi.engine.options import Options
from yomi.engine.shogi.players.setup import make_queue
from yomi.native.packing import pack, packed_bytes
from yomi.nets.errors import NetworkError
from yomi.nets.gpu_variants import Variant, make_variant, variant_file
from yomi.nets.installation import extra_command

OUTPUTS = ["output_policy", "output_value"]


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
    monkeypatch.setattr(devices, "_libraries", lambda name: sorted(folder.glob(f"*onnxruntime_providers_{name}*")))
    monkeypatch.setattr(devices, "gpu_descriptions", lambda: [f"NVIDIA {i}" for i in range(gpus)])
    monkeypatch.setattr("onnxruntime.preload_dlls", lambda: None)


# -- which device ------------------------------------------------------------------------------------------------------


def test_a_build_for_the_processor_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, gpus=4)
    for device in (Device("cuda"), Device("cuda", 3)):
        with pytest.raises(EvaluatorError, match=f"device {device}: this onnxruntime is built for the processor only"):
            device.check()
    with pytest.raises(EvaluatorError, match=r'uninstall -y onnxruntime .* install .*"onnxruntime-gpu\[cuda,cudnn\]~='):
        parse_device("cuda").check()
    assert parse_device("auto").is_cpu
    parse_device("cpu").check()


def test_no_driver_and_no_gpu_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, "cuda")

    def none() -> list[str]:
        raise EvaluatorError("libcuda.so.1, NVIDIA's driver, is not found")

    monkeypatch.setattr(devices, "gpu_descriptions", none)
    with pytest.raises(EvaluatorError, match=r"libcuda.so.1, NVIDIA's driver, is not found; to mend it: install NV"):
        parse_device("cuda").check()
    forget()
    monkeypatch.setattr(devices, "gpu_descriptions", list)
    with pytest.raises(EvaluatorError, match="shows no GPU"):
        parse_device("cuda").check()


def test_a_broken_library_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch, tmp_path, "shared", "cuda")
    with pytest.raises(EvaluatorError, match=r"libonnxruntime_providers_shared\.so is broken .* to mend it: .*pip"):
        parse_device("cuda").check()
    # auto chooses the processor, with a warning
    assert parse_device("auto").is_cpu
    assert "device auto: the network runs on the processor: libonnxruntime_providers_shared.so is broken" in caplog.text


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, "cuda", "tensorrt")
    missing = "libcublasLt.so.12"

    def load(path: str, **_: Any) -> None:
        raise OSError(f"{missing}: cannot open shared object file: No such file or directory")

    monkeypatch.setattr("ctypes.CDLL", load)
    with pytest.raises(EvaluatorError, match=r"device cuda:0: libcublasLt\.so\.12 is not found; to mend it: .*-gpu"):
        parse_device("cuda").check()
    forget()
    missing = "libcuda.so.1"
    with pytest.raises(EvaluatorError, match=r"libcuda\.so\.1 is not found; to mend it: install NVIDIA's driver"):
        parse_device("cuda").check()


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
        monkeypatch.setattr(devices, "driver_cuda", lambda: cuda._check(100, "no driver"))
    found = [types.SimpleNamespace(name=name) for name in installed]
    monkeypatch.setattr("importlib.metadata.distributions", lambda: found)
    command = install_command(extra)
    assert command.endswith(extra_command(wanted))
    assert ("uninstall" in command) == (removed is not None)
    assert f"-y {removed}" in command or removed is None


def test_a_driver_too_old_for_onnxruntime_is_named(
    driver: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, "cuda")
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: None)
    monkeypatch.setattr("onnxruntime.cuda_version", "13.0")
    parse_device("cuda").check()
    forget()
    driver.version = 12080
    with pytest.raises(EvaluatorError, match=r"built for CUDA 13, NVIDIA's driver runs CUDA 12 at .*\]~=1\.26"):
        parse_device("cuda").check()


def test_the_gpu_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, "cuda", gpus=2)
    monkeypatch.setattr(devices, "find_fault", lambda kind: None)
    assert devices_of(Options(device="cuda", devices="1,0")) == [Device("cuda", 1), Device("cuda", 0)]
    with pytest.raises(EvaluatorError, match=r"GPUs 0 \(NVIDIA 0\), 1 \(NVIDIA 1\) found, expected .* number 2"):
        devices_of(Options(device="cuda", devices="0,2"))
    assert devices_of(Options(device="auto")) == [Device("cuda")]
    assert devices_of(Options(device="auto", backend="native")) == [CPU]
    assert devices_of(Options(device="cpu")) == [CPU]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(device="cuda", backend="native"), "backend native found for device cuda, expected auto or onnx"),
        (Options(device="cuda", backend="tensorrt"), "backend tensorrt found for device cuda, expected auto or onnx"),
        (Options(device="tensorrt", backend="onnx"), "backend onnx found for device tensorrt, expected auto or tenso"),
        (
            Options(device="cpu", precision="fp16"),
            "precision fp16 found for device cpu .*, expected auto or fp32",
        ),
        (Options(device="cpu", backend="onnx", precision="int16"), "for device cpu and backend onnx, .* auto or fp32$"),
        (Options(device="webgpu", precision="int8"), "precision int8 found for .*, expected auto or fp32 or fp16"),
        (Options(device="cuda", devices="zero"), "devices: 'zero' found"),
    ],
)
def test_options_that_do_not_go_together(options: Options, message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        devices_of(options)


def test_tensorrt_needs_its_own_package(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"tensorrt", "onnx", "onnxruntime"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if name in installed else None)
    monkeypatch.setitem(sys.modules, "tensorrt", types.ModuleType("tensorrt"))
    monkeypatch.setattr(devices, "gpu_descriptions", lambda: ["NVIDIA"])
    device = Device("tensorrt")
    device.check()
    for name in ("tensorrt", "onnx"):
        forget()
        installed.remove(name)
        with pytest.raises(EvaluatorError, match=f"tensorrt:0: {name} not installed; .* install .*tensorrt-cu13"):
            device.check()
        installed.add(name)
    forget()
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(EvaluatorError, match=r"tensorrt:0: tensorrt cannot be imported: .* to mend it: .*-cu13"):
        device.check()


def test_the_text_of_a_device_is_parsed_once(monkeypatch: pytest.MonkeyPatch, network: Path) -> None:
    options = Options.for_game("shogi")
    options.device, options.backend, options.net = "cpu", "onnx", str(network)
    with contextlib.closing(make_queue(options)) as queue:
        assert queue.evaluator.description.startswith("net on cpu (onnxruntime")
    assert device_of(options) == CPU
    assert parse_device.cache_info().misses == 1


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
    monkeypatch.setattr(onnx_session, "find_fault", lambda kind: None)


def test_every_worker_notices_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, FallenBack)
    with pytest.raises(EvaluatorError, match="device cuda:0: onnxruntime fell back to CPUExecutionProvider: its own"):
        make_session(Path("net.onnx"), Device("cuda"))
    made = []

    class SecondFallsBack(FallenBack):
        def get_providers(self) -> list[str]:
            first = self.asked[0][1]["device_id"] == "0"
            return ["CUDAExecutionProvider", "CPUExecutionProvider"] if first else ["CPUExecutionProvider"]

    pretend(monkeypatch, SecondFallsBack)

    def make(device: Device) -> Any:
        made.append(device.number)
        make_session(Path("net.onnx"), device)
        return types.SimpleNamespace(description=device, close=lambda: None)

    monkeypatch.setattr(SecondFallsBack, "running", ("CUDAExecutionProvider",))
    with pytest.raises(EvaluatorError, match="device cuda:1: onnxruntime fell back"):
        make_device_queue(make, [Device("cuda"), Device("cuda", 1)], 1)
    assert sorted(made) == [0, 1]


def test_another_gpu_than_asked_for_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnTheFirst(FallenBack):
        running = ("CUDAExecutionProvider", "CPUExecutionProvider")

    pretend(monkeypatch, OnTheFirst)
    make_session(Path("net.onnx"), Device("cuda"))
    with pytest.raises(EvaluatorError, match="device cuda:1: onnxruntime took GPU 0, expected 1"):
        make_session(Path("net.onnx"), Device("cuda", 1))


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
    assert batch_sizes(128) == [2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128]
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
    result: list[Any] = make_session(network).run(OUTPUTS, {"input1": planes, "input2": board})
    return result


@pytest.mark.parametrize(("half", "tolerance"), [(False, 1e-6), (True, 2e-2)])
def test_bits_are_unpacked_by_the_graph(network: Path, tmp_path: Path, half: bool, tolerance: float) -> None:
    variant = Variant(half, ("input1", "input2"), ("input2",))
    path = variant_file(network, variant, tmp_path)
    assert variant_file(network, variant, tmp_path) == path
    casts = {node.input[0]: node.attribute[0].i for node in onnx.load(path).graph.node if node.op_type == "Cast"}
    assert casts["input1_packed"] == casts["input2_packed"] == onnx.TensorProto.FLOAT  # TensorRT: from uint8 no other
    session = GpuSession(path, CPU, 8, OUTPUTS, half=half)
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
    """As on a GPU, except that values lie in ordinary memory."""

    def _place(self) -> tuple[str, int]:
        return "cpu", 0


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
        self._session, self._fault, self._graphs = make_session(path), fault, graphs
        self._runs: collections.Counter[int] = collections.Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run(self, outputs: list[str], fed: dict[str, Any], graph: int) -> Any:
        assert graph == onnx_session.UNCAPTURED
        return self._session.run(outputs, fed)

    def run_with_iobinding(self, binding: Any, graph: int) -> None:
        self._runs[graph] += 1
        if self._graphs and self._runs[graph] > 1:
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
        (
            "capture",
            "1.32.0",
            "device cuda:0: onnxruntime: CUDA failure 900: operation not permitted when",
        ),
        ("stale", "1.32.0", "rows compute another output_policy than single ones"),
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

    def make(path: Path, device: Device, options: Any = None) -> Any:
        asked.append(options)
        return WithGraphs(path, fault, "enable_cuda_graph" in options)

    monkeypatch.setattr(onnx_session, "make_session", make)
    monkeypatch.setattr(onnx_session, "_run_options", lambda graph: graph)
    monkeypatch.setattr("onnxruntime.__version__", version)
    session = OnProcessor(network, Device("cuda"), 4, OUTPUTS)
    assert driver.names().count("pin") == 4
    graphs = {} if reason else {"enable_cuda_graph": "1"}
    assert asked[-1] == {**graphs, "use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (reason is not None)
    if reason is not None:
        assert said[0].startswith("net.onnx on cuda:0: computed without recorded commands: ")
        assert reason in said[0]
    planes, hands = random_inputs(3)
    fill(session, "input1", planes)
    session.inputs["input2"][:3] = hands[:, :, None, None]
    for output, wanted in zip(session.run(3), expected(network, planes, hands), strict=True):
        assert output == pytest.approx(wanted, abs=1e-6)
    session.close()
    OnProcessor(network, Device("cuda"), 4, OUTPUTS, half=True).close()
    assert asked[-1]["use_tf32"] == "1"


def test_a_gpu_session_keeps_its_device_and_memory(
    network: Path, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_session, "make_session", lambda *_, **__: make_session(network))
    session = OnProcessor(network, Device("cuda", 1), 4, OUTPUTS)
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
    monkeypatch.setattr(onnx_session, "make_session", lambda *_, **__: make_session(network))
    session = OnProcessor(network, Device("cuda", 1), 4, OUTPUTS)
    monkeypatch.setattr(session, "_session", None)  # whatever it raises
    with pytest.raises(EvaluatorError, match="device cuda:1: onnxruntime: ") as caught:
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
    monkeypatch.setattr(onnx_session, "find_fault", lambda kind: None)
    (tmp_path / "net.onnx").write_bytes(b"nothing")
    with pytest.raises(EvaluatorError, match="onnxruntime cannot load it"):
        GpuSession(tmp_path / "net.onnx", Device("cuda"), 4, OUTPUTS)
    assert driver.names() == ["retain", "push", "pop", "release"]


def test_an_input_that_is_not_there(network: Path, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="inputs input1, input2 found, expected one called spatial"):
        variant_file(network, Variant(packed=("spatial",)), tmp_path)


def test_options_of_tensorrt_for_rtx(network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "net.onnx"
    path.write_bytes(network.read_bytes())
    rtx = Device("rtx").row
    before = rtx.options(path, batch_sizes(64), True)
    assert before["nv_profile_min_shapes"] == "input1:1x62x9x9,input2:1x57x9x9"
    assert before["nv_profile_max_shapes"] == "input1:64x62x9x9,input2:64x57x9x9"
    assert Path(before["nv_runtime_cache_path"]).is_dir()
    assert rtx.options(network, batch_sizes(64), True) == before
    write_network(path, NetworkShape(blocks=2, channels=16, seed=2))  # another network of the same name
    assert rtx.options(path, batch_sizes(64), True)["nv_runtime_cache_path"] != before["nv_runtime_cache_path"]


def test_options_of_openvino(network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    for half, hint in ((False, "f32"), (True, "f16")):
        found = json.loads(Device("openvino").row.options(network, [8], half)["load_config"])
        assert found["CPU"]["INFERENCE_PRECISION_HINT"] == found["GPU"]["INFERENCE_PRECISION_HINT"] == hint
        assert Path(found["NPU"]["CACHE_DIR"]).is_dir()
