"""Pages of learning runs in a real Chromium."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.process.pages import SCREENS, Open, assert_fits
from tests.unit.test_learning_status import EVENTS
from yomi.engine.learning.journal import NAME
from yomi.engine.learning.page import LATEST, PAGE, plain_data, write_comparison, write_page, write_runs
from yomi.engine.shogi.game import ShogiGame

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_games_of_a_learning_run(open_page: Open, tmp_path: Path) -> None:
    go = {"width": 9, "height": 9, "stones": [["B", "C3"]], "first": "W"}
    games = [
        {"title": "one", "result": "B+2", "moves": ["E5", "pass"], "first": go, "boards": [], "values": [0.1, -0.2, 0]},
        {"title": "two", "result": "mate", "moves": ["7g7f"], "first": {"sfen": ShogiGame().sfen()}, "boards": []},
        {"title": "three", "result": "", "moves": ["d3"], "first": {}, "boards": [". X", "X X"]},
    ]
    for game in games:
        game.setdefault("values", [None])
    (tmp_path / LATEST).write_text(json.dumps({"games": games}))
    write_page(tmp_path)
    page = open_page((tmp_path / PAGE).as_uri())
    page.keyboard.press("End")
    assert page.locator("svg.board circle[fill='#111']").count() == 1
    assert page.locator("svg.board circle[fill='#fafafa']").count() == 1, "White moves first after handicap"
    page.select_option("[aria-label=game]", "1")
    assert page.locator("svg.board polygon").count() == 40
    page.select_option("[aria-label=game]", "2")
    assert page.inner_text("pre >> nth=1") == ". X"
    assert page.locator("svg.board").count() == 0


def write_run(folder: Path, hours: float, games: int) -> Path:
    """Write the journal of a run, stretched to `hours`, with `games` in each event of self-play."""
    folder.mkdir()
    kinds = ("start", "selfplay", "training", "gate")
    events = [event for at, event in EVENTS if at < 90_000 and event["event"] in kinds]
    lines = []
    for at, event in enumerate(events):
        seconds = 3600 * hours * at / (len(events) - 1)
        changed = {"games": games, "black": games, "white": 0, "drawn": 0} if event["event"] == "selfplay" else {}
        lines.append(json.dumps({"time": 1_800_000_000.0 + seconds, **event, **changed}))
    (folder / NAME).write_text("\n".join(lines) + "\n")
    return folder


TITLES = "[...document.querySelectorAll('h2')].map((each) => each.textContent)"
# The numbers below a chart, and those at its left.
ACROSS = """(title) => [...[...document.querySelectorAll('section')]
    .find((each) => each.querySelector('h2').textContent.startsWith(title))
    .querySelectorAll('text[text-anchor=middle]')].map((each) => each.textContent)"""
UP = ACROSS.replace("middle", "end")


@pytest.mark.parametrize(
    ("hours", "games", "rate", "across"),
    [
        (0.5, 1, "minute", ["0", "5", "10", "15", "20", "25", "30 min"]),
        (5.0, 9000, "second", ["0", "1", "2", "3", "4", "5 h"]),
        (10.0, 1, "hour", ["0", "2", "4", "6", "8", "10 h"]),
        (24.0, 1, "minute", ["0", "6", "12", "18", "24 h"]),
        (240.0, 1, "minute", ["0", "2", "4", "6", "8", "10 days"]),
    ],
)
def test_units_fit_a_learning_run(
    open_page: Open, tmp_path: Path, hours: float, games: int, rate: str, across: list[str]
) -> None:
    folder = write_run(tmp_path / "run", hours, games)
    if rate == "hour":
        text = (folder / NAME).read_text().replace('"seconds": 30.0', '"seconds": 3000.0')
        (folder / NAME).write_text(text)
    write_page(folder)
    page = open_page((folder / PAGE).as_uri())
    assert f"Games per {rate} of self-play" in page.evaluate(TITLES)
    assert "Mean lead Black's in self-play, in points" in page.evaluate(TITLES)
    assert page.evaluate(ACROSS, "Games") == across
    assert all(text.endswith("%") for text in page.evaluate(UP, "Time"))


def test_a_status_without_graphs(open_page: Open, tmp_path: Path) -> None:
    text = "done        3 of 4 pairs of games (75%)\n\n<b>a</b> against b: 3-1-2\n"
    write_runs([plain_data("match", "yomi match", text, True)], tmp_path / "status.html", 0.0)
    page = open_page((tmp_path / "status.html").as_uri())
    assert page.inner_text("h1") == "yomi match"
    assert "<b>a</b> against b: 3-1-2" in page.inner_text("#summary")
    assert not page.evaluate(TITLES)[1:]


@pytest.mark.parametrize("screen", SCREENS)
def test_learning_runs_laid_over_each_other(open_page: Open, tmp_path: Path, screen: str) -> None:
    folders = [write_run(tmp_path / "first", 1.0, 100), write_run(tmp_path / "second", 4.0, 700)]
    write_comparison(folders, tmp_path / "runs.html")
    page = open_page((tmp_path / "runs.html").as_uri(), viewport=SCREENS[screen])
    assert page.inner_text("h1") == "yomi: first, second"
    titles = page.evaluate(TITLES)
    assert len([title for title in titles if title.startswith("Elo ")]) == 1
    assert not [title for title in titles if title.startswith("Time ")]
    assert [title for title in titles if title.startswith("Newest")] == [
        "Newest networks of first scores: wins-losses-draws",
        "Newest networks of second scores: wins-losses-draws",
    ]
    colors = page.evaluate(
        """[...[...document.querySelectorAll('section')].find((each) => each.textContent.startsWith('Games '))
            .querySelectorAll('circle')].map((each) => [each.getAttribute('fill'), each.getAttribute('cx')])"""
    )
    assert [color for color, _ in colors] == ["var(--c0)", "var(--c1)"], "a color for each run"
    assert float(colors[0][1]) < float(colors[1][1]), "the second run was slower"
    assert page.inner_text(".legend >> nth=0").split() == ["first", "second"]
    assert page.evaluate(ACROSS, "Elo") == ["0", "1", "2", "3", "4 h"]
    page.select_option("#axis select", "games")
    assert page.evaluate(ACROSS, "Elo") == ["0", "200", "400", "600 games"]
    assert_fits(page, screen)
