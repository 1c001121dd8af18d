"""`yomi doctor`."""

import types
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.plugins import forget
from yomi.engine.cli import doctor
from yomi.engine.cli.main import main
from yomi.engine.evaluators import backends, cuda, devices
from yomi.engine.evaluators.base import EvaluatorError, Fault
from yomi.engine.evaluators.devices import CPU, Device
from yomi.engine.evaluators.onnx_session import GpuSession
from yomi.nets.gpu_variants import variant_file
from yomi.nets.installation import pip_command


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    for word in ("Python 3", "numba 0.", "onnxruntime", "CPUExecutionProvider", "cores", "cache"):
        assert word in text


class Wrong(GpuSession):
    def run(self, rows: int) -> list[Any]:
        return [output + 1 for output in super().run(rows)]


def show_gpus(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    forget()
    monkeypatch.setattr(devices, "gpu_descriptions", lambda: list(names))
    monkeypatch.setattr(cuda, "gpu_names", lambda: list(names))


@pytest.mark.parametrize(
    ("session", "said"),
    [
        (GpuSession, "ok CUDA (--device cuda) works\n"),
        (Wrong, "-- CUDA (--device cuda) does not work: its output_policy and"),
        (None, "-- CUDA (--device cuda) does not work: CUDA failure 35\n"),
    ],
)
def test_doctor_tries_every_way_to_a_gpu_or_names_what_it_needs(
    session: Any, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def open_engine(path: Path, device: Device, rows: int, outputs: list[str], variant: Any) -> Any:
        assert device == Device("cuda")
        if session is None:
            raise EvaluatorError("CUDA failure 35\nand more")
        return session(variant_file(path, variant), CPU, rows, outputs)

    monkeypatch.setattr(backends, "open_engine", open_engine)
    show_gpus(monkeypatch, "NVIDIA Something", "NVIDIA Other")
    missing = Fault("tensorrt not installed", "pip install that")
    monkeypatch.setattr(devices, "find_package_fault", lambda kind: None if kind == "cuda" else missing)
    assert main(["doctor"]) == 0
    forget()
    text = capsys.readouterr().out
    assert "ok GPU 0: NVIDIA Something\n" in text
    assert "ok GPU 1: NVIDIA Other\n" in text
    assert said in text
    assert "-- TensorRT (--device tensorrt): tensorrt not installed; to install it:\n  --     pip install that" in text


def test_doctor_knows_a_gpu_by_its_uuid(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers of nvidia-smi are not CUDA's."""
    lines = ["GPU-b, NVIDIA Slow, 8192 MiB, 580.65, 7.5", "GPU-a, NVIDIA Fast, 143771 MiB, 580.65, 9.0"]
    answer = types.SimpleNamespace(stdout="\n".join(lines) + "\n")
    monkeypatch.setattr("shutil.which", lambda tool: tool)
    monkeypatch.setattr("subprocess.run", lambda command, **_: answer)
    show_gpus(monkeypatch, "NVIDIA Fast", "NVIDIA Slow")
    monkeypatch.setattr(cuda, "gpu_uuid", lambda number: ("GPU-a", "GPU-b")[number])
    assert main(["doctor"]) == 0
    forget()
    text = capsys.readouterr().out
    assert "ok GPU 0: NVIDIA Fast, 143771 MiB, compute capability 9.0, driver 580.65\n" in text
    assert "ok GPU 1: NVIDIA Slow, 8192 MiB, compute capability 7.5, driver 580.65\n" in text
    assert "ok TensorRT uses yomi's own binding of NVIDIA's driver\n" in text


def test_doctor_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fault = Fault("libcuda.so.1, NVIDIA's driver, is not found", "install the driver")
    monkeypatch.setattr(devices, "find_gpu_fault", lambda kind: fault)
    built = Fault("this onnxruntime is built for the processor only", "pip install the other")
    monkeypatch.setattr(devices, "find_package_fault", lambda kind: built if kind == "cuda" else None)
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "-- no GPU for CUDA: libcuda.so.1, NVIDIA's driver, is not found; to change this:" in text
    assert "--     install the driver" in text
    assert "ok TensorRT (--device tensorrt) is installed; a test needs a GPU\n" in text
    assert "-- CUDA (--device cuda): this onnxruntime is built for the processor only; to install it:" in text
    assert "-- WebGPU (--device webgpu): libcuda.so.1, NVIDIA's driver, is not found; to mend it:" in text
    assert "webgpu:software" not in text


def test_doctor_sees_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = doctor.package_version
    monkeypatch.setattr(doctor, "package_version", lambda name: None if name == "tqdm" else real(name))
    assert main(["doctor"]) == 1
    assert f"!! tqdm is missing: {pip_command('install', 'tqdm')}\n" in capsys.readouterr().out


def test_doctor_names_the_extras(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = doctor.package_version
    versions = {"torch": None, "matplotlib": "3.10"}
    monkeypatch.setattr(doctor, "package_version", lambda name: versions[name] if name in versions else real(name))
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "ok matplotlib 3.10\n" in text
    missing = "-- training (yomi train): torch is not installed; to install it:"
    assert f"{missing}\n  --     {pip_command('install', 'torch>=2.6', 'onnx>=1.18', 'onnxscript>=0.5')}\n" in text


def test_doctor_knows_the_machine_as_measurements_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "processor_name", lambda: "Some CPU")
    monkeypatch.setattr(doctor, "usable_cores", lambda: 7)
    assert next(doctor.processor()) == (doctor.OK, "Some CPU: 7 cores for yomi")
