"""What ends a search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """When a search ends: at the first of its limits that is reached; without any it runs until it is stopped."""

    visits: int | None = None
    """Visits of the root, those kept from an earlier search included."""
    playouts: int | None = None
    """Playouts of this search alone."""
    seconds: float | None = None
    """Wall-clock time from the start of this search."""
