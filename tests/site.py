"""Gather the pages of the documentation site in build/pages: `python -m tests.site && zensical build --strict`.

Pages beside docs/ become pages of the site too, and links between files of the repository lead to the site's pages.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
OUTSIDE = {
    "README.md": "index.md",
    "README.ja.md": "index.ja.md",
    "docs/README.md": "start.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "nets/README.md": "nets/index.md",
}
"""Paths in the repository -> paths in the site, if they differ by more than the folder docs."""
LINK = re.compile(r'(\]\(|src=")(?![a-z]+:|#)([^)#"\s]+)')


def stage() -> None:
    shutil.rmtree(PAGES, ignore_errors=True)
    for source in sources():
        path, target = ROOT / source, PAGES / site_path(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(with_site_links(path.read_text("utf-8"), source), "utf-8")
        else:
            shutil.copyfile(path, target)


def sources() -> list[str]:
    """Return the paths of all pages and pictures, from the root of the repository."""
    docs = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.*")}
    return sorted(docs | set(OUTSIDE))


def site_path(path: str) -> str:
    return OUTSIDE.get(path, path.removeprefix("docs/"))


def with_site_links(page: str, source: str) -> str:
    """Return the text of a page with links between files of the repository as links between files of the site."""
    folder, own = posixpath.dirname(source), posixpath.dirname(site_path(source))

    def site_link(found: re.Match[str]) -> str:
        return found[1] + posixpath.relpath(site_path(posixpath.normpath(posixpath.join(folder, found[2]))), own or ".")

    return LINK.sub(site_link, page)


if __name__ == "__main__":
    stage()
