"""Makes a wheel of one system and Python if native/compiled has kernels; otherwise the wheel serves all systems.

It also makes the addresses in the metadata from one setting.
"""

import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Kernels(BuildHookInterface):  # type: ignore[type-arg]
    """The hook that hatchling looks for in this file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Tag the wheel and take the kernels in, which git does not track."""
        folder = Path(self.root) / "native" / "compiled"
        if self.target_name == "wheel" and version != "editable" and folder.is_dir():
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["force_include"][str(folder)] = "yomi/native/compiled"


class Addresses(MetadataHookInterface):
    """The hook for `dynamic` fields: makes [project.urls] from `tool.yomi.repository`, if it is filled in."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "pyproject.toml").read_text("utf-8")
        metadata["urls"] = addresses(tomllib.loads(text)["tool"]["yomi"]["repository"])


def addresses(repository: str) -> dict[str, str]:
    """Return the addresses of a repository's pages by their names in the metadata."""
    if not repository:
        return {}
    return {
        "Repository": repository,
        "Documentation": f"{repository}/blob/main/docs/README.md",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
