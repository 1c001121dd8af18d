"""The error of kernels that cannot be made ready; apart from them, for the command line knows it and loads no numba."""


class CompileError(RuntimeError):
    """Kernels cannot be compiled, or not kept; the message is one line."""
