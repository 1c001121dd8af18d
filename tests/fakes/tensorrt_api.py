"""The part of TensorRT's Python API that yomi uses, and objects that refuse every other call.

`tests/unit/test_tensorrt_engine.py` compares it with NVIDIA's own package if that is installed.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

API = """
Builder(logger: ILogger) -> None
Builder.build_serialized_network(network: INetworkDefinition, config: IBuilderConfig) -> IHostMemory
Builder.create_builder_config() -> IBuilderConfig
Builder.create_network(flags: int = 0) -> INetworkDefinition
Builder.create_optimization_profile() -> IOptimizationProfile
IBuilderConfig.add_optimization_profile(profile: IOptimizationProfile) -> int
IBuilderConfig.clear_flag(flag: BuilderFlag) -> None
IBuilderConfig.create_timing_cache(serialized_timing_cache: Buffer) -> ITimingCache
IBuilderConfig.get_timing_cache() -> ITimingCache
IBuilderConfig.progress_monitor = IProgressMonitor
IBuilderConfig.set_timing_cache(cache: ITimingCache, ignore_mismatch: bool) -> bool
ICudaEngine.create_execution_context(strategy: ExecutionContextAllocationStrategy = STATIC) -> IExecutionContext
ICudaEngine.get_tensor_dtype(name: str) -> DataType
ICudaEngine.get_tensor_mode(name: str) -> TensorIOMode
ICudaEngine.get_tensor_name(index: int) -> str
ICudaEngine.get_tensor_shape(name: str) -> Dims
ICudaEngine.num_io_tensors -> int
IExecutionContext.execute_async_v3(stream_handle: int) -> bool
IExecutionContext.get_tensor_shape(name: str) -> Dims
IExecutionContext.infer_shapes() -> list[str]
IExecutionContext.set_input_shape(name: str, shape: tuple) -> bool
IExecutionContext.set_optimization_profile_async(profile_index: int, stream_handle: int) -> bool
IExecutionContext.set_tensor_address(name: str, memory: int) -> bool
INetworkDefinition.get_input(index: int) -> ITensor
INetworkDefinition.num_inputs -> int
IOptimizationProfile.set_shape(input: str, min: Dims, opt: Dims, max: Dims) -> None
ITensor.name -> str
ITensor.shape -> Dims
ITimingCache.serialize() -> IHostMemory
OnnxParser(network: INetworkDefinition, logger: ILogger) -> None
OnnxParser.get_error(index: int) -> ParserError
OnnxParser.num_errors -> int
OnnxParser.parse(model: Buffer, path: str = None) -> bool
Runtime(logger: ILogger) -> None
Runtime.deserialize_cuda_engine(serialized_engine: Buffer) -> ICudaEngine
""".strip().splitlines()
# Methods that yomi overrides: TensorRT calls them, with arguments in this order.
CALLBACKS = """
ILogger.log(severity: Severity, msg: str) -> None
IProgressMonitor.phase_finish(phase_name: str) -> None
IProgressMonitor.phase_start(phase_name: str, parent_phase: str, num_steps: int) -> None
IProgressMonitor.step_complete(phase_name: str, step: int) -> bool
""".strip().splitlines()
MEMBERS = ("BuilderFlag.TF32", "NetworkDefinitionCreationFlag.STRONGLY_TYPED", "TensorIOMode.INPUT")
WITHOUT_FORM = ("__version__", "nptype", "ILogger", "IProgressMonitor", *(name.split(".")[0] for name in MEMBERS))
TYPES = {"int": int, "str": str, "bool": bool, "Buffer": bytes, "tuple": tuple}


class Form(NamedTuple):
    """A line of API."""

    text: str
    arguments: list[tuple[str, str, bool]] | None  # name, type, whether it has a default; None for an attribute
    result: str

    @staticmethod
    def read(line: str) -> tuple[str, Form]:
        found = re.fullmatch(r"([\w.]+)(?:\((.*)\))? (?:->|=) (.+)", line)
        assert found, line
        name, given, result = found.groups()
        if given is None:
            return name, Form(line, None, result)
        parts = [re.fullmatch(r"(\w+): (.+?)( = .+)?", part) for part in given.split(", ") if part]
        return name, Form(line, [(part[1], part[2], part[3] is not None) for part in parts if part], result)

    def check(self, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Raise AssertionError if a call differs from the form in number, names or types of its arguments."""
        assert self.arguments is not None, f"{self.text} is no function"
        names = [name for name, _, _ in self.arguments]
        assert len(given) <= len(names), self.text
        values = dict(zip(names, given, strict=False))
        assert not values.keys() & named.keys(), self.text
        values |= named
        assert values.keys() <= set(names), f"{self.text}: {named}"
        for name, kind, has_default in self.arguments:
            assert name in values or has_default, f"{self.text}: {name} is missing"
            if name in values:
                assert fits(values[name], kind), f"{self.text}: {name} is {values[name]!r}"


FORMS = dict(map(Form.read, API))


def fits(value: Any, kind: str) -> bool:
    if kind == "Dims":  # made of any sequence of integers
        return isinstance(value, (tuple, list)) and all(type(each) is int for each in value)
    if kind in TYPES:
        return type(value) is TYPES[kind]
    if isinstance(value, Formed):
        return bool(object.__getattribute__(value, "kind") == kind)
    return any(each.__name__ == kind for each in type(value).__mro__)


class Dims:
    """A shape. As TensorRT's, it is no tuple."""

    def __init__(self, lengths: tuple[int, ...]) -> None:
        self._lengths = lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, index: int) -> int:
        return self._lengths[index]


class Formed:
    """An object of TensorRT's whose calls must have the form of API. `inner` answers them."""

    def __init__(self, kind: str, inner: Any, used: set[str]) -> None:
        for name, value in (("kind", kind), ("inner", inner), ("used", used)):
            object.__setattr__(self, name, value)

    def __getattribute__(self, name: str) -> Any:
        kind, inner, used = (object.__getattribute__(self, each) for each in ("kind", "inner", "used"))
        if name.startswith("__") and name != "__version__":
            return object.__getattribute__(self, name)
        if not kind and name in WITHOUT_FORM:
            return getattr(inner, name)
        form = _find(kind, name, used)
        if form.arguments is None:
            return _wrap(form.result, getattr(inner, name), used)
        return _checked(form, getattr(inner, name), name if not kind else form.result, used)

    def __setattr__(self, name: str, value: Any) -> None:
        kind, inner, used = (object.__getattribute__(self, each) for each in ("kind", "inner", "used"))
        form = _find(kind, name, used)
        assert " = " in form.text, f"{form.text} cannot be set"
        assert fits(value, form.result), form.text
        setattr(inner, name, value)

    def __bytes__(self) -> bytes:
        assert object.__getattribute__(self, "kind") == "IHostMemory"  # the only one with the buffer protocol
        return bytes(object.__getattribute__(self, "inner"))


def _find(kind: str, name: str, used: set[str]) -> Form:
    whole = f"{kind}.{name}" if kind else name
    assert whole in FORMS, f"TensorRT's {whole} is not in API"
    used.add(whole)
    return FORMS[whole]


def _checked(form: Form, function: Callable[..., Any], result: str, used: set[str]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        form.check(given, named)
        plain = [object.__getattribute__(each, "inner") if isinstance(each, Formed) else each for each in given]
        return _wrap(result, function(*plain, **named), used)

    return call


def _wrap(kind: str, value: Any, used: set[str]) -> Any:
    if value is None or kind in ("None", "DataType", "TensorIOMode", "ParserError", "list[str]", *TYPES):
        return value
    return Dims(value) if kind == "Dims" else Formed(kind, value, used)


# -- NVIDIA's own package ----------------------------------------------------------------------------------------------

# NVIDIA's libraries are not on PyPI, its bindings are. To be imported these need nine functions, which nothing calls.
STUBS = "".join(
    f"void *{name}(void) {{ return 0; }}\n"
    for name in (
        *("createInferBuilder_INTERNAL", "createInferRefitter_INTERNAL", "createInferRuntime_INTERNAL"),
        *("createNvOnnxParserRefitter_INTERNAL", "createNvOnnxParser_INTERNAL", "getBuilderPluginRegistry"),
        *("getNvOnnxParserVersion", "getPluginRegistry", "initLibNvInferPlugins"),
    )
)
LIBRARIES = "nvinfer", "nvinfer_plugin", "nvonnxparser"


def overloads(whole: str, doc: str) -> Iterator[str]:
    """Yield the forms of a function or attribute from its docstring, which pybind11 writes, as lines of API."""
    short = whole.rpartition(".")[2]
    for line in doc.splitlines():
        found = re.fullmatch(r"(?:\d+\. )?(\w*)\((?:self|arg0): [^,()]+(?:, )?(.*)\) -> (.+)", line.strip())
        if found and found[1] in (short, "", "__init__"):
            given, result = (
                re.sub(r"(?:typing|typing_extensions|collections\.abc|nvonnxparser|tensorrt\w*)(?:\.|::)", "", part)
                for part in (found[2], found[3])
            )
            given = re.sub(r"<\w+\.(\w+): \d+>", r"\1", given.replace("tensorrt.", "").replace("ILogger.", ""))
            given = given.replace("SupportsInt", "int").replace(": buffer", ": Buffer")
            result = (
                result.replace("tensorrt.", "").replace("List[", "list[").replace("::", "").replace("IParser", "Parser")
            )
            yield f"{whole}({given}) -> {result}" if found[1] else f"{whole} -> {result}"


def describe(module: str, names: Sequence[str]) -> dict[str, Any]:
    """Import NVIDIA's package, with the current folder's stub libraries, and return its contents."""
    for library in sorted(Path.cwd().glob("lib*.so.*")):
        ctypes.CDLL(str(library))
    package = importlib.import_module(module)
    docs, settable = {}, []
    for name in names:
        kind, _, member = name.partition(".")
        found = inspect.getattr_static(getattr(package, kind), member or "__init__")
        docs[name] = (found.fget if isinstance(found, property) else found).__doc__
        if isinstance(found, property) and found.fset is not None and " = " in FORMS[name].text:
            settable.append(name)
    numpy_types = [package.float16, package.float32, package.int32, package.bool]
    return {
        "docs": docs,
        "settable": settable,
        "members": [name for name in MEMBERS if int(attrgetter(name)(package)) >= 0],
        "severities": [each.name for each in sorted(package.ILogger.Severity.__members__.values(), key=int)],
        "dims": tuple(package.Dims((-1, 62, 9, 9))),
        "types": [package.nptype(each).__name__.rstrip("_") for each in numpy_types],
    }


if __name__ == "__main__":
    print(json.dumps(describe(sys.argv[1], sys.argv[2:])))
