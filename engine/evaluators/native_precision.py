"""In which precision our own kernels compute on this processor."""

from engine.evaluators.base import EvaluatorError
from native.forward.emit import HAS_BF16


def native_precision(asked: str) -> str:
    """Return fp32 or bf16 for auto, fp32 or bf16; auto is the faster one that the processor has.

    Raises:
        EvaluatorError: bf16 was asked for, and the processor does not have it.
    """
    if asked == "bf16" and not HAS_BF16:
        raise EvaluatorError("a processor without AVX512-BF16 found: expected precision auto or fp32")
    if asked == "auto":
        return "bf16" if HAS_BF16 else "fp32"
    return asked
