"""The error of kernels that cannot be made ready; apart from them, for the command line knows it and loads no numba."""

from yomi.errors import Error


class CompileError(Error, RuntimeError):
    """Kernels cannot be compiled, or not kept; the message is one line."""
