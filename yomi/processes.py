"""Processes of the same program that do not run its main module again, as multiprocessing's own would.

A script needs no `if __name__ == "__main__":` for them. Their functions are found by the names of modules.
"""

import threading
from multiprocessing import spawn
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

_thread = threading.local()  # `is_starting`: whether it starts a process of CONTEXT
_prepare = spawn.get_preparation_data


def _prepare_without_main(name: str) -> dict[str, Any]:
    """Return the facts that a new process gets: for a process of CONTEXT without the place of the main module."""
    is_hidden = getattr(_thread, "is_starting", False)
    return {key: fact for key, fact in _prepare(name).items() if not (is_hidden and key.startswith("init_main"))}


spawn.get_preparation_data = _prepare_without_main  # which multiprocessing calls when a process starts


class _Process(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802  (multiprocessing's name)
        _thread.is_starting = True
        try:
            return SpawnProcess._Popen(process_obj)
        finally:
            _thread.is_starting = False


class _Context(SpawnContext):
    Process = _Process


CONTEXT = _Context()
