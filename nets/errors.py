"""The error of this package."""

from yomi.errors import LineError


class NetworkError(LineError, ValueError):
    """A network's file cannot be used: it is broken, truncated, unknown, or made for another game or board."""
