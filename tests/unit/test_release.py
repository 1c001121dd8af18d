"""Version, changelog, citation and the metadata of packages agree."""

import importlib.util
import io
import shutil
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests import release
from yomi import __version__

NAMES = ("pyproject.toml", "CITATION.cff", "CHANGELOG.md")
METADATA = f"""Metadata-Version: 2.4
Name: yomi-engine
Version: {__version__}
Summary: A playing engine for Go and shogi: GTP and USI, numba-compiled search, KataGo's and dlshogi's networks
License-Expression: GPL-3.0-or-later AND GPL-3.0-only AND LicenseRef-KataGo-Network
"""


def test_this_release_is_consistent() -> None:
    assert list(release.faults()) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("pyproject.toml", f'version = "{__version__}"', 'version = "9.9"', "pyproject.toml: version 9.9 found"),
        ("CITATION.cff", f"version: {__version__}\n", "version: 9.9\n", "CITATION.cff: version 9.9 found"),
        ("CITATION.cff", "date-released: 20", "date-released: 19", "CITATION.cff: date 19"),
        ("CHANGELOG.md", "## [", "## [9.9] - 2030-01-01\n\n## [", "CHANGELOG.md: version 9.9 found"),
        ("CHANGELOG.md", "### Added", "### News", "section News found"),
        ("CHANGELOG.md", "\n- ", "\n- " + "word " * release.MAX_WORDS, "words found, expected at most"),
        ("CHANGELOG.md", "\n- ", "\n- entry\n  ", "an indented line found"),
    ],
)
def test_faults_are_found(name: str, old: str, new: str, expected: str, tmp_path: Path) -> None:
    for each in NAMES:
        shutil.copy(release.ROOT / each, tmp_path / each)
    text = (tmp_path / name).read_text("utf-8")
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1), "utf-8")
    assert any(expected in fault for fault in release.faults(tmp_path))


@pytest.mark.parametrize("form", ["wheel", "sdist"])
def test_metadata_of_packages(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def make(text: str) -> str:
        if form == "wheel":
            path = tmp_path / "yomi_engine-0-py3-none-any.whl"
            with zipfile.ZipFile(path, "w") as wheel:
                wheel.writestr("yomi_engine-0.dist-info/METADATA", text)
        else:
            path = tmp_path / "yomi_engine-0.tar.gz"
            with tarfile.open(path, "w:gz") as sdist:
                member = tarfile.TarInfo("yomi_engine-0/PKG-INFO")
                member.size = len(text.encode())
                sdist.addfile(member, io.BytesIO(text.encode()))
        return str(path)

    assert release.main([make(METADATA)]) == 0
    assert release.main([make(METADATA.replace("GPL-3.0-or", "GPL-2.0-or"))]) == 1
    rest = "-or-later AND GPL-3.0-only AND LicenseRef-KataGo-Network"
    assert f"License-Expression GPL-2.0{rest} found, expected GPL-3.0{rest}" in capsys.readouterr().out


def test_every_included_network_has_an_author_and_a_licence() -> None:
    models = release.ROOT / "nets" / "models"
    listed = (models / "AUTHORS.md").read_text("utf-8")
    project = tomllib.loads((release.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for path in models.iterdir():
        if path.is_file() and path.suffix not in (".py", ".md", ".ini"):
            assert f"| `{path.name}`" in listed, f"{path.name}: expected its author in nets/models/AUTHORS.md"
    notes = tomllib.loads((release.ROOT / "REUSE.toml").read_text("utf-8"))["annotations"]
    licences = {note["SPDX-License-Identifier"] for note in notes}
    assert licences == set(project["license"].split(" AND "))
    assert licences == {path.stem for path in (release.ROOT / "LICENSES").iterdir()}
    assert all((release.ROOT / note["path"]).is_file() for note in notes[1:])


def test_addresses_of_the_metadata() -> None:
    """The addresses follow from one setting, and none is made up while it is empty."""
    spec = importlib.util.spec_from_file_location("hatch_build", release.ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    pytest.importorskip("hatchling")
    spec.loader.exec_module(hooks)
    assert hooks.addresses("") == {}
    assert hooks.addresses("https://a.b/c")["Issues"] == "https://a.b/c/issues"
