"""Finds the material that lies beside a developer's checkout and is no part of the project."""

from pathlib import Path

import pytest

_FOLDER = Path(__file__).resolve().parents[2] / "shared"


def shared_path(*parts: str) -> Path:
    """Return a path in the shared folder beside the repository; skip the test where it is absent."""
    path = _FOLDER.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {'/'.join(parts)} of the shared folder beside the repository")
    return path
