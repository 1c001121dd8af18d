"""Check that a release is consistent: `python -m tests.release [PACKAGE...]`.

The version of `yomi.__version__` must be that of pyproject.toml, of CITATION.cff, and of the newest heading of
CHANGELOG.md. Wheels and sdists must contain it too, with the metadata of pyproject.toml.
"""

from __future__ import annotations

import email
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

from yomi import __version__

ROOT = Path(__file__).parents[1]
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""Headings of Keep a Changelog."""
MAX_WORDS = 20
"""Words of an entry of the changelog."""


def faults(root: Path = ROOT, version: str = __version__) -> Iterator[str]:
    """Yield the faults of a checkout, a line each."""
    found = {
        "pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"],
        "CITATION.cff": _first(r"^version: (\S+)$", root / "CITATION.cff"),
        "CHANGELOG.md": _first(r"^## \[(\S+)\] - \d{4}-\d\d-\d\d$", root / "CHANGELOG.md"),
    }
    for name, text in found.items():
        if text != version:
            yield f"{name}: version {text} found, expected {version} as in yomi.__version__"
    date = _first(r"^date-released: (\S+)$", root / "CITATION.cff")
    newest = _first(r"^## \[\S+\] - (\S+)$", root / "CHANGELOG.md")
    if date != newest:
        yield f"CITATION.cff: date {date} found, expected {newest} as in CHANGELOG.md"
    for number, line in enumerate((root / "CHANGELOG.md").read_text("utf-8").splitlines(), 1):
        words = [word for word in line.split() if re.search(r"\w", word)]
        if line.startswith("- ") and len(words) > MAX_WORDS:
            yield f"CHANGELOG.md:{number}: {len(words)} words found, expected at most {MAX_WORDS} an entry"
        if line.startswith("### ") and line[4:] not in SECTIONS:
            yield f"CHANGELOG.md:{number}: section {line[4:]} found, expected one of {', '.join(SECTIONS)}"
        if line.startswith(" "):
            yield f"CHANGELOG.md:{number}: an indented line found, expected one line an entry"


def faults_of_package(path: Path, version: str = __version__) -> Iterator[str]:
    """Yield the differences between the metadata of a wheel or sdist and pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = read_metadata(path)
    expected = {
        "Name": project["name"],
        "Version": version,
        "Summary": project["description"],
        "License-Expression": project["license"],
    }
    for field, text in expected.items():
        if metadata[field] != text:
            yield f"{path}: {field} {metadata[field]} found, expected {text}"


def read_metadata(path: Path) -> Message:
    """Return the fields of METADATA in a wheel, or of PKG-INFO in an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            (name,) = (name for name in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
            return email.message_from_bytes(wheel.read(name))
    with tarfile.open(path) as sdist:
        (name,) = (name for name in sdist.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", name))
        member = sdist.extractfile(name)
        assert member is not None
        return email.message_from_bytes(member.read())


def _first(pattern: str, path: Path) -> str | None:
    found = re.search(pattern, path.read_text("utf-8"), re.MULTILINE)
    return found and found[1]


def main(packages: list[str]) -> int:
    """Print the faults of the checkout and of packages. Return 1 if there are any."""
    found = [*faults(), *(fault for name in packages for fault in faults_of_package(Path(name)))]
    print("\n".join(found) or f"yomi {__version__}: version, changelog and metadata agree")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
