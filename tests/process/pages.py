"""What the tests of pages in a real Chromium share: screens, waiting, and the page of `yomi serve`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_serve import Server
from tests.waiting import wait_until

PIECES_IN_PAIRS = "2+B3+B2/1+R3+R3/2G1G1G2/3S1S3/2+S1+P1+S2/1N2N2N1/3L1L3/5G3/4K3k b 2Pp 1"  # names need many words
SCREENS = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
Open = Callable[..., Any]


def write_page_of(text: str, folder: Path) -> Path:
    path = folder / "review.html"
    path.write_text(text, "utf-8")
    return path


def assert_fits(page: Any, screen: str) -> None:
    """Nothing is wider than the screen."""
    assert page.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen]["width"]


def until(page: Any, condition: str) -> None:
    """Wait until a condition holds. Playwright's own wait needs eval, which the page forbids."""
    wait_until(lambda: bool(page.evaluate(condition)), 120.0)


class Visit:
    """A page of the server in a browser."""

    def __init__(self, open_page: Open, server: Server, locale: str = "en-US") -> None:
        self.page = open_page(server.address, locale=locale)
        self.until("game && !waiting")

    def until(self, condition: str) -> None:
        until(self.page, condition)

    def begin(self, record: str = "", **values: str) -> None:
        """Begin a game with these values of the form."""
        for name, value in values.items():
            if name in ("main", "byoyomi", "periods", "increment"):
                self.page.fill(f"[name={name}]", value)
            else:
                self.page.select_option(f"[name={name}]", value)
        if record:
            file = {"name": "record", "mimeType": "text/plain", "buffer": record.encode()}
            self.page.set_input_files("[name=record]", file)
        before = self.page.evaluate("game.id")
        self.page.click("#new button")
        self.until(f"game.id !== '{before}' && !waiting")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)


def corner(page: Any, place: str) -> str:
    """Return the corner of the board that a point or square is in."""
    board, target = page.locator("#board svg").bounding_box(), page.locator(f'[data-place="{place}"]').bounding_box()
    middles = [[box[at] + box[size] / 2 for at, size in (("x", "width"), ("y", "height"))] for box in (board, target)]
    (board_x, board_y), (x, y) = middles
    return f"{'top' if y < board_y else 'bottom'} {'left' if x < board_x else 'right'}"


def coordinates(page: Any) -> str:
    """Return the coordinates along two sides of the board, in the order of reading."""
    return "".join(
        page.evaluate(
            """[...document.querySelectorAll('#board svg > text')].map((each) => ({
                text: each.textContent, x: +each.getAttribute('x'), y: +each.getAttribute('y')}))
                .filter(({text, x, y}) => /^[A-H]$/.test(text) ? y < 40 : /^[1-9]$/.test(text) ? x < 20 || y === 20
                    : /^[一二三四五六七八九]$/.test(text))
                .sort((a, b) => a.y - b.y || a.x - b.x).map(({text}) => text)"""
        )
    )


def axe_faults(page: Any) -> list[tuple[str, list[str]]]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
    found = axe.Axe().run(page).response["violations"]
    return [(each["id"], [node["target"] for node in each["nodes"]]) for each in found]
