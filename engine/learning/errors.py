from __future__ import annotations

from yomi.nets.errors import LineError


class LearningError(LineError):
    """A run cannot begin, continue or be displayed."""
