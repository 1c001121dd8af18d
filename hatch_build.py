"""Makes a wheel of one system and Python if native/compiled has kernels; otherwise the wheel serves all systems."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Kernels(BuildHookInterface):  # type: ignore[type-arg]
    """The hook that hatchling looks for in this file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Tag the wheel and take the kernels in, which git does not track."""
        folder = Path(self.root) / "native" / "compiled"
        if self.target_name == "wheel" and version != "editable" and folder.is_dir():
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["force_include"][str(folder)] = "yomi/native/compiled"
