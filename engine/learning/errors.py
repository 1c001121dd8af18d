"""The error of learning."""

from __future__ import annotations

from yomi.nets.errors import LineError


class LearningError(LineError):
    """A run cannot begin, continue or be shown. The message is one line that says what was expected."""
