"""Processes of the same program that do not run its main module again, as multiprocessing's own would.

A script needs no `if __name__ == "__main__":` for them. They get functions by their names in modules.
"""

import sys
import threading
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

_starting = threading.Lock()


class _Process(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802  (multiprocessing's name)
        # A started process gets the main module's name or file. While neither is there, it gets none.
        with _starting:
            main: dict[str, Any] = vars(sys.modules["__main__"])
            kept: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
            main.update(__file__=None, __spec__=None)
            try:
                return SpawnProcess._Popen(process_obj)
            finally:
                del main["__file__"]
                main.update(kept)


class _Context(SpawnContext):
    Process = _Process


CONTEXT = _Context()
