"""The interface of evaluators. Nothing compiled is imported: who only wants the errors starts quickly."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from yomi.errors import Error
from yomi.nets.errors import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from yomi.native.calls import Calls
    from yomi.native.spec import Inputs
    from yomi.native.tree.arrays import Batch


stop_making: ContextVar[threading.Event] = ContextVar("stop_making", default=threading.Event())  # noqa: B039
"""Set once nobody wants the evaluator that this thread makes: what takes minutes has to look at it and give up."""


class EvaluatorError(Error, RuntimeError):
    """An evaluator cannot be made or used as asked; the message says what is missing."""


class DeviceLostError(EvaluatorError):
    """A GPU refuses everything until this process ends: nothing can be set up on it anew."""


class UnsupportedError(EvaluatorError):
    """Our own kernels cannot compute a network."""

    def __init__(self, path: Path, reason: str) -> None:
        """Say in `reason` what they cannot compute, in a few words."""
        super().__init__(one_line(f"{path}: {reason}: expected backend onnx (or auto)"))
        self.reason = reason


class Evaluator(Protocol):
    """Judges leaves. `evaluate` may be called by several threads at once, with different batches."""

    inputs: Inputs
    """What it reads of a batch."""
    batch_size: int
    """Rows at which it is fastest here."""

    @property
    def description(self) -> str:
        """What judges, where and how, on one line."""

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits, values and ownership of the first `rows` rows; blocks, without the GIL where it takes long."""

    def bind(self, batch: Batch) -> Calls | None:
        """Return calls that evaluate this batch without Python; None where there are none.

        They may share the working memory of the thread that asks: another may make them once this one has ended.
        """

    def close(self) -> None:
        """Release the device; nothing may be called afterwards."""
