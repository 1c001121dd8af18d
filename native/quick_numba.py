"""Makes numba compile kernels in less time. The compiled code computes the same."""

# numba has few types, and what is replaced here is not meant to be.
# mypy: disable-error-code="assignment,attr-defined,method-assign,misc,no-untyped-call,unused-ignore"

import contextlib
import copy
import functools
import hashlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from numba.core import (
    base,
    cgutils,
    compiler,
    errors,
    funcdesc,
    ir,
    itanium_mangler,
    lowering,
    postproc,
    targetconfig,
    transforms,
    typed_passes,
    typeinfer,
    types,
    untyped_passes,
)
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, _pass_registry, register_pass
from numba.core.datamodel import default_manager, models
from numba.core.inline_closurecall import InlineWorker
from numba.core.rewrites import static_getitem
from numba.core.rewrites.registry import RewriteRegistry
from numba.core.types.functions import BaseFunction

# numba is written in Python, which takes three quarters of the time of a compilation. The changes below leave out work
# that kernels do not need, and work that numba repeats.


class _WholeTuple(models.TupleModel):  # type: ignore[misc]
    """A named tuple that is passed as one value, instead of 7 values for each of its arrays. LLVM splits it alike."""

    def get_argument_type(self) -> Any:
        return self.get_value_type()

    def as_argument(self, builder: Any, value: Any) -> Any:
        return value

    from_argument = as_argument


def _tuple_model(manager: Any, kind: Any) -> Any:
    is_ours = kind.instance_class.__module__.startswith("yomi.")
    return (_WholeTuple if is_ours else models.TupleModel)(manager, kind)


@functools.cache
def _digest(kinds: tuple[Any, ...], tags: tuple[str, ...]) -> str:
    return hashlib.sha256(f"{kinds} {tags}".encode()).hexdigest()[:24]


def _short_name(name: str, kinds: Any, *, abi_tags: Any = (), uid: Any = None) -> Any:
    """Return a symbol with a hash of the argument types. The name of a type of records may take a kilobyte."""
    return itanium_mangler.mangle(name, (_digest(tuple(kinds), tuple(abi_tags)),), uid=uid)


# Results of BaseFunction.get_call_type: numba tries all forms of an operator again for each of its uses.
_CALL_TYPES: dict[Any, Any] = {}
_FLAGS: list[Any] = []  # flags of compilations, which overloads inherit; their places are part of the key
_resolve = BaseFunction.get_call_type


def _call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
    flags = targetconfig.ConfigStack.top_or_none()
    values = None if flags is None else flags._values
    if values not in _FLAGS:
        _FLAGS.append(None if values is None else dict(values))
    key = id(function), context, tuple(args), tuple(dict(kws).items()), _FLAGS.index(values)
    if key not in _CALL_TYPES:
        found: Any = _resolve(function, context, args, kws)
        _CALL_TYPES[key] = found, function._impl_keys[found.args], function  # which keeps its id
    found, function._impl_keys[found.args], _ = _CALL_TYPES[key]  # other flags may have replaced the implementation
    return found


_process = postproc.PostProcessor.run


def _process_lazily(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Compute lifetimes of variables only when a pass reads them."""
    if emit_dels or self.func_ir.is_generator:
        _process(self, emit_dels, extend_lifetimes)
        return
    self.func_ir.blocks = transforms.canonicalize_cfg(self.func_ir.blocks)
    self.func_ir.variable_lifetime = postproc.VariableLifetime(self.func_ir.blocks)
    self.func_ir.generator_info = None


_WITHOUT_VARIABLES = frozenset({str, int, bool, float, type(None), ir.Loc, ir.Scope})


def _variables(self: Any, value: Any) -> list[Any]:
    """Return the variables in a value: a faster Inst._rec_list_vars."""
    kind = type(value)
    if kind is ir.Var:
        return [value]
    if kind in _WITHOUT_VARIABLES:
        return []
    if kind is dict:
        value = value.values()
    elif kind is not list and kind is not tuple:
        return value.list_vars() if isinstance(value, ir.Inst) else []
    found = []
    for part in value:
        kind = type(part)
        if kind is ir.Var:
            found.append(part)
        elif kind not in _WITHOUT_VARIABLES:
            found += _variables(self, part)
    return found


# Results of InlineWorker.run_untyped_passes, of which numba makes a copy for each place.
_INLINED: dict[Any, Any] = {}
_run_untyped_passes = InlineWorker.run_untyped_passes


def _translate_once(worker: Any, function: Any, enable_ssa: bool = False) -> Any:
    """Translate a function that is inlined before types are inferred."""
    if enable_ssa:  # such results are not copied
        return _run_untyped_passes(worker, function, enable_ssa)
    worker.flags.enable_ssa = False  # as numba does
    if function not in _INLINED:
        _INLINED[function] = _run_untyped_passes(worker, function)
    return _INLINED[function]


def _copy_scope(scope: Any, memo: dict[int, Any]) -> Any:
    """Copy a scope with its variables: numba does so for each block of an inlined function."""
    copied = memo[id(scope)] = ir.Scope(copy.deepcopy(scope.parent, memo), scope.loc)
    for name, variable in scope.localvars._con.items():
        memo[id(variable)] = copied.localvars._con[name] = ir.Var(copied, variable.name, variable.loc)
    copied.redefined.update(scope.redefined)
    copied.var_redefinitions.update({name: set(others) for name, others in scope.var_redefinitions.items()})
    return copied


class _ErrorContext:
    """numba's new_error_context without a generator, which took longer than its body."""

    __slots__ = ("_args", "_form", "_values")

    def __init__(self, form: str, *args: Any, **values: Any) -> None:
        self._form, self._args, self._values = form, args, values
        if (place := values.get("loc")) is not None and not place.filename.startswith(errors._numba_path):
            errors.loc_info.update(values)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, errors.NumbaError):
            error.add_context(errors._format_msg(self._form, self._args, self._values))


def _optimize_functions(library: Any, module: Any) -> None:
    """Optimize the functions of a module one by one, with one sequence of passes for all."""
    module.data_layout = library._codegen._data_layout
    passes, builder = library._codegen._function_pass_manager()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


class _Passes(PassManager):  # type: ignore[misc]
    """Runs passes without timers, events and checks of numba's own passes."""

    def _runPass(self, index: int, step: Any, state: Any) -> None:  # noqa: N802
        step.analysis = self._analysis
        step.run_initialization(state)
        mutated = step.run_pass(state)
        step.run_finalizer(state)
        if mutated and _pass_registry.get(type(step)).mutates_CFG:
            postproc.PostProcessor(state.func_ir).run()


class _Lower(lowering.Lower):  # type: ignore[misc]
    """Writes LLVM's code. Without reference counts, a variable needs no code at its end."""

    def debug_print(self, message: str) -> None:
        pass

    def alloca_lltype(self, name: str, kind: Any, datamodel: Any = None) -> Any:
        if self.context.enable_debuginfo:
            return super().alloca_lltype(name, kind, datamodel)
        return cgutils.alloca_once(self.builder, kind, name=name, zfill=False)

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        if self.context.enable_nrt or self.context.enable_debuginfo:
            super().storevar(value, name, argidx)
            return
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        if self.context.enable_nrt or self.context.enable_debuginfo:
            super().delvar(name)
        elif name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(typed_passes.NativeLowering):  # type: ignore[misc]
    _name = "yomi_lowering"

    @property
    def lowering_class(self) -> Any:
        return _Lower


# Rewrites of typed code. numba's others make arrays.
_FIELDS = RewriteRegistry()
_FIELDS.rewrites["after-inference"] = [
    static_getitem.RewriteStringLiteralGetitems,
    static_getitem.RewriteStringLiteralSetitems,
]


@register_pass(mutates_CFG=True, analysis_only=False)
class _Rewrites(typed_passes.NopythonRewrites):  # type: ignore[misc]
    _name = "yomi_rewrites"

    def run_pass(self, state: Any) -> bool:
        if state.flags.nrt:
            return bool(super().run_pass(state))
        _FIELDS.apply("after-inference", state)
        return True


_REPLACED = {typed_passes.NativeLowering: _Lowering, typed_passes.NopythonRewrites: _Rewrites}
_LEFT_OUT = (
    untyped_passes.WithLifting,
    typed_passes.AnnotateTypes,
    typed_passes.DumpParforDiagnostics,
)


@functools.cache
def _passes(has_rewrites: bool, has_ssa: bool) -> _Passes:
    flags = compiler.Flags()
    flags.no_rewrites, flags.enable_ssa = not has_rewrites, has_ssa
    found = compiler.DefaultPassBuilder.define_nopython_pipeline(SimpleNamespace(flags=flags, func_ir=None))
    passes = _Passes("nopython")
    passes.passes = [(_REPLACED.get(step, step), text) for step, text in found.passes if step not in _LEFT_OUT]
    passes.finalize()
    return passes


class Compiler(compiler.CompilerBase):  # type: ignore[misc]
    """numba's pipeline for kernels."""

    def __init__(self, typing_context: Any, target_context: Any, *others: Any) -> None:
        # numba looks for new declarations before each function. The outermost compilation has found all.
        contexts = () if targetconfig.ConfigStack.top_or_none() is None else (typing_context, target_context)
        try:
            for context in contexts:
                context.refresh = lambda: None
            super().__init__(typing_context, target_context, *others)
        finally:
            for context in contexts:
                del context.refresh
        self.state.targetctx.__dict__.pop("refresh", None)  # it is a copy

    def define_pipelines(self) -> list[Any]:
        flags = self.state.flags
        return [_passes(not flags.no_rewrites, flags.enable_ssa)]


default_manager.register(types.NamedTuple, _tuple_model)

_CHANGES: tuple[tuple[Any, str, Any], ...] = (
    (funcdesc, "default_mangler", _short_name),
    (base, "_has_loc", functools.cache(base._has_loc)),
    (typeinfer, "new_error_context", _ErrorContext),
    (lowering, "new_error_context", _ErrorContext),
    (BaseFunction, "get_call_type", _call_type),
    (CPUCodeLibrary, "_optimize_functions", _optimize_functions),
    (postproc.PostProcessor, "run", _process_lazily),
    (ir.Inst, "_rec_list_vars", _variables),
    (InlineWorker, "run_untyped_passes", _translate_once),
    (ir.Scope, "__deepcopy__", _copy_scope),
    (ir.Loc, "__deepcopy__", lambda place, memo: place),  # it never changes
)
_MISSING = object()


@contextlib.contextmanager
def quick_numba() -> Iterator[None]:
    """Change numba while this thread compiles a kernel. A program's own functions are compiled by numba as it is."""
    with global_compiler_lock:
        before = [(owner, name, vars(owner).get(name, _MISSING)) for owner, name, _ in _CHANGES]
        try:
            for owner, name, value in _CHANGES:
                setattr(owner, name, value)
            yield
        finally:
            for owner, name, value in before:
                if value is not _MISSING:
                    setattr(owner, name, value)
                elif name in vars(owner):
                    delattr(owner, name)
