"""Checkpoints: everything that a training needs to go on as if it had never stopped, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from nets.errors import NetworkError
from nets.files import atomic_writer

FORMAT = 1


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint such that the old one stays until the new one is whole.

    Raises:
        OSError: it cannot be written.
    """
    with atomic_writer(path, sync=True) as stream:
        torch.save({"format": FORMAT, **state}, stream)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint; its tensors lie on the CPU.

    Raises:
        NetworkError: it cannot be read, or is of another format.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror}: expected a checkpoint") from None
    except Exception as error:  # torch raises what unpickling happens to meet
        raise NetworkError(f"{path}: {str(error).splitlines()[0]}: expected a checkpoint") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise NetworkError(f"{path}: another kind of file found, expected a checkpoint of format {FORMAT}")
    return state
