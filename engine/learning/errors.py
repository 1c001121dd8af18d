"""The error of learning."""

from __future__ import annotations


class LearningError(Exception):
    """Learning cannot begin, go on or be told of; one line that says what was expected."""
