"""In which precision our own kernels compute on this processor."""

from engine.evaluators.base import EvaluatorError
from native.forward.emit import HAS_PAIRS


def native_precision(asked: str) -> str:
    """Return fp32 or int16 for auto, fp32 or int16; auto is the faster one that the processor has.

    Raises:
        EvaluatorError: int16 was asked for, and the processor does not have it.
    """
    if asked == "int16" and not HAS_PAIRS:
        raise EvaluatorError("a processor without products of 16-bit integers found: expected precision auto or fp32")
    if asked == "auto":
        return "int16" if HAS_PAIRS else "fp32"
    return asked
