"""Check the types of kernels without compiling: `python -m tests.typecheck [GROUP...]` names the line of a mistake.

GROUP is a key of yomi.native.kernel_groups.GROUPS; default: all.
"""

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from numba.core.ccallback import CFunc
from numba.core.compiler import Compiler, DefaultPassBuilder, compile_result
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.ir import Block, FunctionIR, Loc, Scope, Var
from numba.core.typed_passes import NopythonTypeInference
from numba.core.typing.templates import signature

from yomi.native import quick_numba
from yomi.native.jit import SOURCE_ROOT, WITHOUT_KERNELS
from yomi.native.kernel_groups import GROUPS

# numba generates the machine code of a callee before it looks at the rest of the caller. A wrong name in the search was
# found after more than a minute. Inferring types alone takes a tenth of the time.


def check(groups: Iterable[Callable[[], None]]) -> None:
    """Infer the types of all kernels that `groups` call. The process must do nothing else.

    Raises:
        Exception: any kind; a kernel has a mistake.
    """
    for compiler in (Compiler, quick_numba.Compiler):
        changed: Any = compiler
        changed.define_pipelines = _passes
    dispatcher: Any = Dispatcher
    dispatcher.add_overload = _keep
    entry: Any = CFunc
    dispatcher.enable_caching = entry.enable_caching = lambda _: None
    for group in groups:
        group()


def describe(error: Exception) -> str | None:
    """Return the line of a mistake in our source with its message; None if it is not in a kernel."""
    found = _Passes.found[1] if _Passes.found is not None else place(error)
    if found is None or isinstance(error, OSError):
        return None
    text = str(error) if isinstance(error, NumbaError) else f"{type(error).__name__}: {error}"
    path, number = found
    line = path.read_text(encoding="utf-8").splitlines()[number - 1].strip()
    return f"{path}:{number}: {line}\n{text}"


def place(error: BaseException) -> tuple[Path, int] | None:
    """Return the file and line of ours that numba, or Python, was processing when it raised an error."""
    # numba's messages name the line, except if a name, a field or an argument does not exist.
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Path(error.filename).resolve(), error.lineno
    cause = error.__cause__ or error.__context__
    if cause is not None and (found := place(cause)) is not None:
        return found
    if (loc := getattr(error, "loc", None)) is not None and _is_ours(Path(loc.filename)):
        return Path(loc.filename).resolve(), loc.line
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        for loc in _locations(frame.f_locals.values()):
            if _is_ours(Path(loc.filename)):
                return Path(loc.filename).resolve(), loc.line
        if _is_ours(Path(frame.f_code.co_filename)):
            return Path(frame.f_code.co_filename).resolve(), number
    return None


_COMPILERS = ("jit.py", "bound_kernels.py", "quick_numba.py")


def _is_ours(path: Path) -> bool:
    """Return whether a file holds kernels, and is not one that compiles them."""
    path = path.resolve()
    return path.is_relative_to(SOURCE_ROOT) and path.name not in {*WITHOUT_KERNELS, *_COMPILERS}


_WHOLE = (Block, FunctionIR, Scope, Var)


def _locations(values: Iterable[Any]) -> Iterator[Loc]:
    """Yield the source locations of numba's objects, except of whole blocks and functions."""
    for value in values:
        if isinstance(found := getattr(value, "loc", None), Loc) and not isinstance(value, _WHOLE):
            yield found


@register_pass(mutates_CFG=False, analysis_only=True)
class _Finish(FunctionPass):
    """Ends a compilation after type inference, with a function that does nothing."""

    _name = "yomi_finish_types"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.cr = compile_result(
            typing_context=state.typingctx,
            target_context=state.targetctx,
            entry_point=lambda *arguments: 0 if arguments else state.func_id.func(),  # a constant
            signature=signature(state.return_type, *state.args),
            objectmode=False,
            typing_error=None,
            fndesc=SimpleNamespace(llvm_cfunc_wrapper_name=""),
            library=SimpleNamespace(get_pointer_to_function=lambda name: 0),
        )
        return False


class _Passes(PassManager):
    """numba's passes; records the innermost place of an error, which the callers' errors would hide."""

    depth = 0  # number of callers that wait for this kernel's types
    found: tuple[int, tuple[Path, int] | None] | None = None  # depth and place of the mistake

    def run(self, state: Any) -> None:
        _Passes.depth += 1
        try:
            PassManager.run(self, state)
            if _Passes.found is not None and _Passes.found[0] > _Passes.depth:
                _Passes.found = None  # the caller handled it
        except Exception as error:
            if _Passes.found is None or _Passes.found[0] <= _Passes.depth:
                _Passes.found = _Passes.depth, place(error)
            raise
        finally:
            _Passes.depth -= 1


_PASSES: Any = _Passes


def _passes(compiler: Any) -> list[Any]:
    passes: Any = _PASSES("types only")
    passes.passes.extend(DefaultPassBuilder.define_untyped_pipeline(compiler.state).passes)
    passes.add_pass(NopythonTypeInference, "nopython frontend")
    passes.add_pass(_Finish, "finish")
    passes.finalize()
    return [passes]


def _keep(dispatcher: Any, result: Any) -> None:
    """Add a result to a dispatcher without the machine code that numba expects."""
    dispatcher.overloads[tuple(result.signature.args)] = result


def main(words: Sequence[str]) -> None:
    try:
        check(GROUPS[group].compile for group in words or GROUPS)
    except Exception as error:
        if (text := describe(error)) is None:
            raise
        raise SystemExit(text) from None


if __name__ == "__main__":
    main(sys.argv[1:])
