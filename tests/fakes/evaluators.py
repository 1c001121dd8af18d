"""Evaluators whose opinions are made up, and that tell how they were used."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from yomi.native.spec import Inputs
from yomi.native.tree.arrays import VALUE

if TYPE_CHECKING:
    from yomi.engine.evaluators.base import Evaluator
    from yomi.native.tree.arrays import Batch


def opinion(key: int, symmetry: int, policy_size: int, area: int) -> tuple[npt.NDArray[np.float32], ...]:
    """Return what the scripted evaluator says of a position: logits[P], values[VALUES], ownership[A].

    Drawn at random with the position's hash (and the symmetry) as the seed, so that equal positions get equal opinions.
    """
    rng = np.random.Generator(np.random.PCG64([key, symmetry]))
    logits = (1.5 * rng.standard_normal(policy_size)).astype(np.float32)
    value, score, stdev, lead = rng.uniform(-0.9, 0.9), rng.normal(0, 6), rng.uniform(2, 9), rng.normal(0, 6)
    errors = rng.uniform(0.02, 0.5), rng.uniform(0.1, 5.0)
    ownership = rng.uniform(-1, 1, area).astype(np.float32)
    return logits, np.array([value, score, stdev, lead, *errors, 0.0], np.float32), ownership


class ScriptedEvaluator:
    """Gives each position the opinion that `opinion` draws for it.

    Args:
        batch_size: rows of a batch.
        asymmetrical: draw another opinion for each symmetry; without it the opinion is that of symmetry 0, read as if
            the network had seen the row's symmetry.
        seconds: how long an evaluation takes.
        fail_at: the call that raises `error`, counted from 1; 0 for none.
    """

    inputs = Inputs.NOTHING
    description = "scripted"

    def __init__(
        self, batch_size: int = 1, *, asymmetrical: bool = False, seconds: float = 0.0, fail_at: int = 0
    ) -> None:
        self.batch_size = batch_size
        self.asymmetrical = asymmetrical
        self.seconds = seconds
        self.fail_at = fail_at
        self.error = RuntimeError("the device is gone")
        self.made_in = threading.get_ident()
        self.used_in: set[int] = set()
        self.closed_in: int | None = None
        self.calls = 0
        self.rows: list[int] = []
        self._lock = threading.Lock()

    def evaluate(self, batch: Batch, rows: int) -> None:
        with self._lock:  # two threads may share one
            self.used_in.add(threading.get_ident())
            self.calls += 1
            self.rows.append(rows)
            fails = self.calls == self.fail_at
        if fails:
            raise self.error
        if self.seconds:
            time.sleep(self.seconds)
        for row in range(rows):
            symmetry = int(batch.symmetry[row]) if self.asymmetrical else 0
            said = opinion(int(batch.keys[row]), symmetry, batch.logits.shape[1], batch.ownership.shape[1])
            batch.logits[row], batch.values[row], batch.ownership[row] = said

    def bind(self, batch: Batch) -> None:
        """Return None: it is Python."""

    def close(self) -> None:
        assert self.closed_in is None, "closed twice"
        self.closed_in = threading.get_ident()


class RootedEvaluator(ScriptedEvaluator):
    """A scripted network that says another policy of a root than of the same position further down a tree."""

    inputs = Inputs.NUMBERS

    def evaluate(self, batch: Batch, rows: int) -> None:
        super().evaluate(batch, rows)
        batch.logits[:rows] *= 1.0 + batch.is_root[:rows, None]


class FaultyEvaluator:
    """An evaluator that goes wrong for some calls.

    Args:
        inner: judges where nothing goes wrong.
        fault: raise, nan, hang (for `seconds`, then it answers) or none.
        calls: the calls, counted from 1, that go wrong.
        seconds: how long it hangs.
    """

    def __init__(self, inner: Evaluator, fault: str, calls: range, seconds: float = 10.0) -> None:
        self.inner = inner
        self.fault = fault
        self.faulty_calls = calls
        self.seconds = seconds
        self.inputs = inner.inputs
        self.batch_size = inner.batch_size
        self.description = f"faulty {inner.description}"
        self.calls = 0
        self.released = threading.Event()
        """Set by a test to end the hanging."""

    def evaluate(self, batch: Batch, rows: int) -> None:
        self.calls += 1
        is_faulty = self.calls in self.faulty_calls
        if is_faulty and self.fault == "raise":
            raise RuntimeError("the device is gone")
        if is_faulty and self.fault == "hang":
            self.released.wait(self.seconds)
        self.inner.evaluate(batch, rows)
        if is_faulty and self.fault == "nan":
            batch.values[rows - 1, VALUE] = np.nan

    def bind(self, batch: Batch) -> None:
        """Return None: it is Python."""

    def close(self) -> None:
        self.inner.close()
