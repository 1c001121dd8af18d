"""A browser, its pages, and a server of `yomi serve` for the tests in a real Chromium."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.process.pages import CHROMIUM, Open
from tests.process.test_serve import Server


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if CHROMIUM is None:
        pytest.skip("no Chromium found: install Debian's package chromium")
    with playwright.sync_playwright() as running:
        # its own settings belong to no folder of the project
        config = str(tmp_path_factory.mktemp("config"))
        environment: dict[str, str | float | bool] = {**os.environ, "XDG_CONFIG_HOME": config}
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], env=environment)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Give what opens an address in a page with settings of its own. Faults of pages fail the test at its end."""
    contexts: list[Any] = []
    errors: list[str] = []

    def open_address(address: str = "about:blank", **options: Any) -> Any:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        # the browser itself reports each refused request
        page.on("console", lambda message: "Failed to load resource" in message.text or errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        return page

    yield open_address
    for context in contexts:
        context.close()
    assert not errors


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    pytest.importorskip("fastapi", reason="the extra web is not installed")
    running = Server()
    yield running
    assert "Traceback" not in running.end()
