"""The interface of evaluators. Nothing compiled is imported, so that commands that need only the errors start fast."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from yomi.errors import Error, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from yomi.native.bound_kernels import Calls
    from yomi.native.spec import Inputs
    from yomi.native.tree.arrays import Batch


# set when nobody needs the thread's new evaluator any more; builds that take minutes check it
stop_making: ContextVar[threading.Event] = ContextVar("stop_making", default=threading.Event())  # noqa: B039


def _print(line: str) -> None:
    print(f"yomi: {line}", file=sys.stderr, flush=True)  # protocols own stdout


notices: ContextVar[Callable[[str], None]] = ContextVar("notices", default=_print)  # receives lines for the user

LOG_ERRORS = 3  # level of onnxruntime's messages: errors and worse


class EvaluatorError(Error, RuntimeError):
    pass


@dataclass(frozen=True, slots=True)
class Fault:
    reason: str
    remedy: str  # a command, or an instruction

    def __str__(self) -> str:
        return f"{self.reason}; to mend it: {self.remedy}"


class DeviceLostError(EvaluatorError):
    """A GPU has failed and will fail until this process ends."""


class UnsupportedError(EvaluatorError):
    def __init__(self, path: Path, reason: str) -> None:
        """Make the message from a network's path and `reason`, which names the unsupported part in a few words."""
        super().__init__(one_line(f"{path}: {reason}: expected backend onnx (or auto)"))
        self.reason = reason


class Evaluator(Protocol):
    """Evaluates leaves. Several threads may call `evaluate` at the same time with different batches."""

    inputs: Inputs  # the arrays of a batch that it reads
    batch_size: int  # fastest number of rows on this machine

    @property
    def description(self) -> str:
        """One line that names the network, the device and the backend."""

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits, values and ownership of a batch's first `rows` rows. A long computation releases the GIL."""
        calls = self.bind(batch)
        assert calls is not None  # an evaluator without calls has an `evaluate` of its own
        calls.run(rows)

    def bind(self, batch: Batch) -> Calls | None:
        """Return calls that evaluate this batch without Python, or None if there are none.

        The calls may use scratch memory of the calling thread. Another thread may only make calls once this thread has
        ended.
        """
        return None

    def close(self) -> None:
        """Release the device. No method may be called afterwards."""
        return  # most evaluators have none
