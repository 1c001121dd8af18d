"""A hook of MkDocs: pages beside docs/ become pages of the site, and links between pages lead to the site's pages."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
OUTSIDE = ("README.md", "README.ja.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "nets/README.md")
LINK = re.compile(r'(\]\(|src=")(?![a-z]+:|#)([^)#"\s]+)')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages beside docs/, under their paths in the repository."""
    for path in OUTSIDE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page with links between files of the repository as links between files of the site."""
    own = page.file.src_uri
    folder = posixpath.dirname(own if own in OUTSIDE else f"docs/{own}")

    def site_link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[2])).removeprefix("docs/")
        return found[1] + posixpath.relpath(target, posixpath.dirname(own) or ".")

    return LINK.sub(site_link, markdown)
