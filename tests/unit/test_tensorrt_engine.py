"""TensorRT as yomi calls it, against a module that stands in for it."""

import enum
import functools
import importlib.util
import inspect
import json
import logging
import shutil
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes import tensorrt_api
from tests.fakes.gpu_driver import RecordingDriver
from tests.fakes.tensorrt_api import API, CALLBACKS, FORMS, LIBRARIES, MEMBERS, STUBS, Form, Formed, overloads
from yomi.engine.evaluators import tensorrt_session as tensorrt_engine
from yomi.engine.evaluators.base import EvaluatorError, stop_making
from yomi.engine.evaluators.devices import Device, Gpu
from yomi.nets.gpu_variants import Variant


class FakeTensorRt:
    """The part of TensorRT's module that builds and reads engines; an engine is its ONNX file behind a magic word."""

    __version__ = "10.16.1.11"
    NetworkDefinitionCreationFlag = enum.IntEnum("NetworkDefinitionCreationFlag", {"STRONGLY_TYPED": 1})
    TensorIOMode = enum.Enum("TensorIOMode", ["INPUT", "OUTPUT"])
    BuilderFlag = enum.Enum("BuilderFlag", ["TF32"])

    class ILogger:
        def log(self, severity: Any, msg: str) -> None:
            raise NotImplementedError

    class IProgressMonitor:
        pass

    def __init__(self) -> None:
        self.built: list[dict[int, Any]] = []
        self.given_timings: list[bytes] = []
        self.parse_errors: list[str] = []
        self.fails = False
        self.loggers: list[Any] = []
        self.uses_tf32: list[bool] = []
        self.refuses_timings = False
        self.has_no_gpu = False
        self.engine = FakeEngine()
        self.used: set[str] = set()  # names of API
        self.on_step: Callable[[], object] = lambda: None

    def nptype(self, dtype: Any) -> Any:
        return dtype

    def Builder(self, logger: Any) -> Any:  # noqa: N802
        self.loggers.append(logger)
        self.built.append({})

        def create_network(flags: int) -> Any:
            assert flags == 2
            tensor = types.SimpleNamespace(name="input1", shape=(-1, 62, 9, 9))
            return types.SimpleNamespace(num_inputs=1, get_input=lambda index: tensor)

        return types.SimpleNamespace(
            create_network=create_network,
            create_builder_config=self._config,
            create_optimization_profile=lambda: types.SimpleNamespace(
                set_shape=lambda name, *shapes: self.built[-1].update({shapes[0][0]: {name, *shapes}})
            ),
            build_serialized_network=self._build,
        )

    def OnnxParser(self, network: Any, logger: Any) -> Any:  # noqa: N802
        self.loggers.append(logger)
        errors = self.parse_errors
        return types.SimpleNamespace(
            parse=lambda content: not errors, num_errors=len(errors), get_error=lambda i: errors[i]
        )

    def _config(self) -> Any:
        def create_timing_cache(content: bytes) -> Any:
            self.given_timings.append(content)
            if content == b"half a fi":
                return None
            return types.SimpleNamespace(serialize=lambda: content + b"t")

        config = types.SimpleNamespace(add_optimization_profile=lambda profile: None, progress_monitor=None)
        config.create_timing_cache = create_timing_cache

        def set_timing_cache(cache: Any, ignore_mismatch: bool) -> bool:
            if self.refuses_timings and self.given_timings[-1]:
                return False
            config.cache = cache
            return True

        config.set_timing_cache = set_timing_cache
        self.uses_tf32.append(True)
        config.clear_flag = lambda flag: self.uses_tf32.__setitem__(-1, flag is not self.BuilderFlag.TF32)
        config.get_timing_cache = lambda: config.cache
        return config

    def _build(self, network: Any, config: Any) -> bytes | None:
        config.progress_monitor.phase_start("Tactics", None, 40)
        for step in range(3):
            self.on_step()
            if not config.progress_monitor.step_complete("Tactics", step):
                return None
        config.progress_monitor.phase_finish("Tactics")
        return None if self.fails else b"ENGINE"

    def Runtime(self, logger: Any) -> Any:  # noqa: N802
        if self.has_no_gpu:
            raise TypeError("pybind11::init(): factory function returned nullptr")
        self.loggers.append(logger)

        def deserialize_cuda_engine(content: bytes) -> Any:
            return self.engine if content == b"ENGINE" else None

        return types.SimpleNamespace(deserialize_cuda_engine=deserialize_cuda_engine)


class FakeEngine:
    """An engine with one input and one output, whose lengths a context knows once it has the input's."""

    num_io_tensors = 2

    def __init__(self, row: tuple[int, ...] = (1,)) -> None:
        self.row = row
        self.calls: list[Any] = []
        self.refuses = ""

    def create_execution_context(self) -> Any:
        given: list[tuple[int, ...]] = []

        def note(name: str, *arguments: Any) -> bool:
            self.calls.append((name, *arguments))
            if self.refuses == name == "profile":
                raise RuntimeError("Error in set optimization profile async.")
            if name == "shape":
                given.append(arguments[1])
            return self.refuses != name

        def get_tensor_shape(name: str) -> tuple[int, ...]:
            return given[0] if name == "input1" else (given[0][0], *self.row)

        return types.SimpleNamespace(
            set_optimization_profile_async=functools.partial(note, "profile"),
            set_input_shape=functools.partial(note, "shape"),
            set_tensor_address=functools.partial(note, "address"),
            execute_async_v3=functools.partial(note, "execute"),
            infer_shapes=list,
            get_tensor_shape=get_tensor_shape,
        )

    def get_tensor_name(self, index: int) -> str:
        return ("input1", "value")[index]

    def get_tensor_mode(self, name: str) -> FakeTensorRt.TensorIOMode:
        mode = FakeTensorRt.TensorIOMode
        return mode.INPUT if name == "input1" else mode.OUTPUT

    def get_tensor_dtype(self, name: str) -> Any:
        return np.float32

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return (-1, 62, 9, 9) if name == "input1" else (-1, -1)


@pytest.fixture
def tensorrt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeTensorRt]:
    fake = FakeTensorRt()
    monkeypatch.setitem(sys.modules, "tensorrt", Formed("", fake, fake.used))
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tensorrt_engine, "INTERVAL", 0.0)
    tensorrt_engine.get_logger.cache_clear()
    yield fake
    tensorrt_engine.get_logger.cache_clear()


def load(path: Path, gpu: str = "H100", driver: str = "13000", sizes: tuple[int, ...] = (8,)) -> Any:
    return tensorrt_engine.load_network(path, gpu, driver, sizes, 77)


def test_an_engine_is_built_once_for_all_that_it_depends_on(
    tensorrt: FakeTensorRt, tmp_path: Path, capsys: pytest.CaptureFixture[str], shogi_net: Path
) -> None:
    sizes = (8, 16, 64)
    load(shogi_net, sizes=sizes)
    assert tensorrt.built == [{rows: {"input1", (rows, 62, 9, 9)} for rows in sizes}]  # least, best and most
    assert tensorrt.uses_tf32 == [False]
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "yomi: building a TensorRT engine of net.onnx for H100, batches of 8, 16, 64: once, minutes" in printed.err
    assert "yomi: building: Tactics, 3 of 40 ..." in printed.err
    load(shogi_net, sizes=sizes)
    assert len(tensorrt.built) == 1
    assert capsys.readouterr().err == ""
    load(shogi_net, gpu="A100", sizes=sizes)
    load(shogi_net, driver="12080", sizes=sizes)
    load(shogi_net, sizes=(8, 16, 32))
    tensorrt.__version__ = "11.5.0"
    load(shogi_net, sizes=sizes)
    assert len(tensorrt.built) == 5
    assert len(list(tmp_path.glob("tensorrt/*.engine"))) == 5
    # timings are kept by device, driver and version; the third build of the first set found the first's
    assert tensorrt.given_timings == [b"", b"", b"", b"t", b""]


@pytest.mark.parametrize("kept", [b"t", b"half a fi"])
def test_timings_that_tensorrt_does_not_take_are_told_and_made_anew(
    tensorrt: FakeTensorRt, tmp_path: Path, capsys: pytest.CaptureFixture[str], shogi_net: Path, kept: bytes
) -> None:
    load(shogi_net)
    (timings,) = tmp_path.glob("tensorrt/timings-*")
    timings.write_bytes(kept)
    tensorrt.refuses_timings = kept == b"t"
    load(shogi_net, sizes=(16,))
    assert "these timings of another GPU or version: it measures again" in capsys.readouterr().err
    assert tensorrt.given_timings == [b"", kept, b""]
    assert timings.read_bytes() == b"t"


def test_a_build_that_nobody_waits_for_is_stopped(tensorrt: FakeTensorRt, tmp_path: Path, shogi_net: Path) -> None:
    """Neither does the worker begin that waited for it."""
    stop, errors = threading.Event(), list[str]()
    tensorrt.on_step = stop.set

    def run() -> None:
        stop_making.set(stop)
        with pytest.raises(EvaluatorError) as caught:
            load(shogi_net)
        errors.append(str(caught.value))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [f"{shogi_net}: nobody waits for its TensorRT engine any more"] * 2
    assert len(tensorrt.built) == 1
    assert not list(tmp_path.glob("tensorrt/*"))


def test_tensorrt_tells_everything_to_one_logger_that_leaves_stdout_alone(
    tensorrt: FakeTensorRt, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, shogi_net: Path
) -> None:
    load(shogi_net)
    load(shogi_net, gpu="A100")
    (logger,) = set(tensorrt.loggers)
    assert len(tensorrt.loggers) == 6
    assert isinstance(logger, tensorrt.ILogger)
    with caplog.at_level(logging.DEBUG, "yomi.evaluators"):
        for severity in range(5):
            logger.log(severity, f"message {severity}")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        *(("ERROR", f"TensorRT: message {severity}") for severity in (0, 1)),
        ("INFO", "TensorRT: message 2"),
        ("DEBUG", "TensorRT: message 3"),
    ]
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("error", [ImportError("libnvinfer.so.10"), OSError("libcudart.so.12")])
def test_a_tensorrt_that_cannot_be_imported(
    tensorrt: FakeTensorRt, monkeypatch: pytest.MonkeyPatch, shogi_net: Path, error: Exception
) -> None:
    class Broken:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "tensorrt":
                raise error

    monkeypatch.delitem(sys.modules, "tensorrt")
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(EvaluatorError, match=r"TensorRT cannot be imported \(lib.*\); to mend it: .*pip.* install"):
        load(shogi_net)


def test_workers_of_one_gpu_build_one_engine(tensorrt: FakeTensorRt, shogi_net: Path) -> None:
    threads = [threading.Thread(target=load, args=(shogi_net,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tensorrt.built) == 1


def test_an_engine_that_cannot_be_read_is_built_anew(tensorrt: FakeTensorRt, tmp_path: Path, shogi_net: Path) -> None:
    load(shogi_net)
    (entry,) = tmp_path.glob("tensorrt/*.engine")
    entry.write_bytes(b"half an eng")
    load(shogi_net)
    assert entry.read_bytes() == b"ENGINE"
    assert len(tensorrt.built) == 2


def test_what_tensorrt_refuses(tensorrt: FakeTensorRt, shogi_net: Path) -> None:
    tensorrt.parse_errors = ["no importer for\n  Frobnicate"]
    with pytest.raises(EvaluatorError, match=r"net\.onnx: TensorRT cannot read it: no importer for Frobnicate"):
        load(shogi_net)
    tensorrt.parse_errors, tensorrt.fails = [], True
    with pytest.raises(EvaluatorError, match="cannot build an engine for H100"):
        load(shogi_net)


def test_an_engine_runs_at_the_addresses_it_is_given(tensorrt: FakeTensorRt) -> None:
    engine = FakeEngine()
    network = tensorrt_engine.TensorRtNetwork(None, Formed("ICudaEngine", engine, tensorrt.used), [8, 16], 77)
    assert network.inputs == {"input1": ((62, 9, 9), np.dtype(np.float32))}
    assert network.outputs == {"value": ((1,), np.dtype(np.float32))}
    assert engine.calls == [
        *[("profile", 0, 77), ("shape", "input1", (8, 62, 9, 9))],
        *[("profile", 1, 77), ("shape", "input1", (16, 62, 9, 9))],
    ]
    engine.calls.clear()
    for rows in (8, 16):
        network.enqueue(rows, {"input1": 1, "value": 2}, 77)
    assert engine.calls == [("address", "input1", 1), ("address", "value", 2), ("execute", 77)] * 2
    for engine.refuses, message in (("address", "refuses the address of input1"), ("execute", "could not start")):
        with pytest.raises(EvaluatorError, match=message):
            network.enqueue(16, {"input1": 1}, 77)
    network.close()


@pytest.mark.parametrize(
    ("engine", "refuses", "message"),
    [
        (FakeEngine((-1,)), "", r"value of shape \(8, -1\) found in batches of 8 rows: expected 8, then known lengths"),
        (FakeEngine(), "shape", "refuses batches of 8 rows for input1"),
    ],
)
def test_an_engine_that_cannot_be_used(tensorrt: FakeTensorRt, engine: FakeEngine, refuses: str, message: str) -> None:
    engine.refuses = refuses
    with pytest.raises(EvaluatorError, match=message):
        tensorrt_engine.TensorRtNetwork(None, Formed("ICudaEngine", engine, tensorrt.used), [8, 16], 77)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("no GPU", r"pybind11::init\(\): factory.*"), ("profile", "Error in set optimization profile.*")],
)
def test_what_tensorrt_cannot_make_is_an_error_of_the_evaluator(
    tensorrt: FakeTensorRt, monkeypatch: pytest.MonkeyPatch, shogi_net: Path, fault: str, reason: str
) -> None:
    log: list[tuple[str, int, int]] = []
    monkeypatch.setattr(tensorrt_engine, "CudaDriver", lambda number: RecordingDriver(number, log))
    monkeypatch.setattr("yomi.engine.evaluators.devices.find_gpus", lambda kind: [Gpu("0")])
    tensorrt.has_no_gpu, tensorrt.engine.refuses = fault == "no GPU", fault
    with pytest.raises(EvaluatorError, match=f"TensorRT refuses net.onnx: {reason}; its messages say why"):
        tensorrt_engine.TensorRtSession(shogi_net, Device("tensorrt"), 4, ["value"], Variant())
    assert log[-1][0] == "pop"


# -- the form of the calls ---------------------------------------------------------------------------------------------


def test_every_form_in_the_list_is_used(tensorrt: FakeTensorRt, shogi_net: Path) -> None:
    load(shogi_net).enqueue(8, {"input1": 1}, 77)
    tensorrt.parse_errors = ["no importer"]
    with pytest.raises(EvaluatorError):
        load(shogi_net, gpu="A100")
    assert tensorrt.used == set(FORMS)
    for base, made in (
        ("ILogger", tensorrt_engine.get_logger()),
        ("IProgressMonitor", tensorrt_engine._make_monitor(tensorrt)),
    ):
        own = {name for name in vars(type(made)) if not name.startswith("_")}
        forms = {name.partition(".")[2]: form for name, form in map(Form.read, CALLBACKS) if name.startswith(base)}
        assert own == set(forms)
        for name, form in forms.items():
            assert form.arguments is not None
            assert list(inspect.signature(getattr(made, name)).parameters) == [each[0] for each in form.arguments]


@pytest.fixture(scope="session")
def nvidia(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Give docstrings and constants of NVIDIA's package, imported in a process of its own."""
    name = next((name for name in ("tensorrt", "tensorrt_bindings") if importlib.util.find_spec(name)), None)
    if name is None:
        pytest.skip('needs: pip install --no-deps "tensorrt-cu13-bindings>=10.14.1,<11"')
    folder = tmp_path_factory.mktemp("tensorrt")
    if importlib.util.find_spec("tensorrt_libs") is None:
        if shutil.which("cc") is None:
            pytest.skip("needs a C compiler, or TensorRT's libraries")
        (folder / "stubs.c").write_text(STUBS)
        for library in (f"lib{each}.so.10" for each in LIBRARIES):
            command = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", library, "stubs.c"]
            subprocess.run(command, cwd=folder, check=True)
    names = [Form.read(line)[0] for line in (*API, *CALLBACKS)]
    ended = subprocess.run(
        [sys.executable, tensorrt_api.__file__, name, *names], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.mark.linux
def test_the_forms_are_those_of_nvidias_package(nvidia: dict[str, Any]) -> None:
    for line in (*API, *CALLBACKS):
        name, _ = Form.read(line)
        found = list(overloads(name, nvidia["docs"][name]))
        assert line.replace(" = IProg", " -> IProg") in found, f"{line}: {found or nvidia['docs'][name]}"
    assert nvidia["settable"] == [name for name, form in FORMS.items() if " = " in form.text and not form.arguments]
    assert nvidia["members"] == [*MEMBERS]
    assert nvidia["severities"] == ["INTERNAL_ERROR", "ERROR", "WARNING", "INFO", "VERBOSE"]
    assert nvidia["dims"] == [-1, 62, 9, 9]
    assert nvidia["types"] == ["float16", "float32", "int32", "bool"]
