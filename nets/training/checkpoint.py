"""Checkpoints: one file with everything that a training needs to resume exactly."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch

from yomi.nets.errors import NetworkError
from yomi.nets.files import write_atomically

FORMAT = 1


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint. The old one stays until the new one is complete.

    Raises:
        OSError: it cannot be written.
    """
    content = io.BytesIO()  # PyTorch's own error of a full disk is a RuntimeError about its file format
    torch.save({"format": FORMAT, **state}, content)
    write_atomically(path, content.getvalue(), sync=True)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint, with its tensors on the CPU.

    Raises:
        NetworkError: it cannot be read, or has another format.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror}: expected a checkpoint") from None
    except Exception:  # torch raises what unpickling happens to meet, and advises to load the file unsafely
        state = None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise NetworkError(
            f"{path}: a damaged file or one of another kind found, expected a checkpoint of format {FORMAT}"
            " (without the file, training begins anew)"
        )
    return state
