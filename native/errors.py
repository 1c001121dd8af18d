"""The error for kernels."""

# In a module of its own, since the command line imports it without numba.
from yomi.errors import Error


class CompileError(Error, RuntimeError):
    """Kernels cannot be compiled or cached. The message is one line."""
