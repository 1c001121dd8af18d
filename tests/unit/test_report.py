"""The page of measurements and its charts are those of the results, and the READMEs agree with them."""

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import measurements as report
from tests.charts import FILL, LABELS, RIGHT, WIDTH, Bar, Interval, bars, intervals

SVG = "{http://www.w3.org/2000/svg}"
MATCH = {
    "date": "2026-11-26",
    "commit": "0123abc",
    "machine": "Zen 4",
    "command": "yomi match",
    "player": "a",
    "opponent": "b",
    "conditions": "9×9",
    "wins": 3,
    "losses": 1,
    "draws": 0,
}


def write(folder: Path, name: str, *rows: object) -> None:
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def test_the_page_and_the_charts_are_current() -> None:
    for path, text in report.outputs().items():
        assert path.read_text("utf-8") == text, "run: python -m tests.measurements"


def test_figures_of_the_readme_are_on_the_page() -> None:
    page = report.PAGE.read_text("utf-8").splitlines()
    lines = (report.ROOT / "README.md").read_text("utf-8").splitlines()
    matches = [line for line in lines if re.search(r"\d+-\d+-\d+ \|", line)]
    speeds = [line for line in lines if re.match(r"\| Go \d+×\d+, ", line)]
    assert matches
    assert speeds
    for line in matches:
        (score,) = re.findall(r"\d+-\d+-\d+", line)
        ((low, high),) = re.findall(r"(\d+)% to (\d+)%", line)
        assert any(f"| {score} |" in row and f"({low}% to {high}%)" in row for row in page), line
    for line in speeds:
        size, cells = line.split(",", 1)[0], re.findall(r"(?<=\| )[\d.,]+(?= \|)", line)
        assert any(row.startswith(size) and all(cell in row for cell in cells) for row in page), line


def test_machines_of_results_are_described() -> None:
    known = {row["name"] for row in report.read("machines")}
    for name in report.TABLES:
        assert {row["machine"] for row in report.read(name) if "machine" in row} <= known, name


def test_a_later_result_replaces_an_earlier_one_on_the_same_machine(tmp_path: Path) -> None:
    write(tmp_path, "go", MATCH, MATCH | {"wins": 5}, MATCH | {"machine": "Zen 3"})
    assert [(row["machine"], row["wins"]) for row in report.read("go", tmp_path)] == [("Zen 4", 5), ("Zen 3", 3)]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([], "not an object found"),
        ({key: value for key, value in MATCH.items() if key != "draws"}, "no draws found, expected command, commit"),
        (MATCH | {"winrate": 1}, "winrate found, expected only"),
        (MATCH | {"wins": "3"}, "wins 3 found, expected a whole number"),
        (MATCH | {"wins": -1}, "wins -1 found"),
        (MATCH | {"wins": 0, "losses": 0}, "no games found"),
        (MATCH | {"date": "26 Nov"}, "date 26 Nov found, expected YYYY-MM-DD"),
        (MATCH | {"interval": 5}, "interval 5 found, expected a list of numbers"),
    ],
)
def test_faults_of_a_line_are_named(row: object, expected: str, tmp_path: Path) -> None:
    write(tmp_path, "go", MATCH, row)
    with pytest.raises(report.ReportError, match=re.escape(expected)) as caught:
        report.read("go", tmp_path)
    assert "go.jsonl:2: " in str(caught.value)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_result_is_added(tmp_path: Path) -> None:
    words = [f"{key}={value}" for key, value in MATCH.items() if key not in ("date", "commit")]
    write(tmp_path, "go")
    report.add("go", words, tmp_path)
    (row,) = report.read("go", tmp_path)
    assert row | {"date": MATCH["date"], "commit": MATCH["commit"]} == MATCH
    with pytest.raises(report.ReportError, match="no conditions, draws"):
        report.add("go", words[1:2], tmp_path)
    with pytest.raises(report.ReportError, match="table chess found, expected one of machines, speed"):
        report.add("chess", words, tmp_path)
    with pytest.raises(report.ReportError, match="machine Z80 found, expected one of Zen 4"):
        report.add("go", [*words, "machine=Z80"], tmp_path)
    with pytest.raises(report.ReportError, match="wins found, expected FIELD=VALUE"):
        report.add("go", ["wins"], tmp_path)


def test_a_page_needs_a_place_for_each_table() -> None:
    with pytest.raises(report.ReportError, match="tables go found, expected go, shogi"):
        report.render("<!-- table go -->\n<!-- end -->", {"go": [], "shogi": []})


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"wins": 26, "losses": 28, "draws": 45}, (49, 42, 56)),
        ({"wins": 15, "losses": 1, "draws": 8}, (79, 68, 91)),
        ({"wins": 7, "losses": 0, "draws": 0}, (100, 65, 100)),
        ({"wins": 0, "losses": 7, "draws": 0}, (0, 0, 35)),
        ({"wins": 1, "losses": 1, "draws": 0, "interval": [5, 95]}, (50, 5, 95)),
        ({"share": 25, "error": 8}, (25, 17, 33)),
    ],
)
def test_scores_have_intervals(row: report.Row, expected: tuple[int, int, int]) -> None:
    assert tuple(round(100 * part) for part in report.score_of(row)) == expected


def test_charts() -> None:
    picture = ElementTree.fromstring(bars("<title>", [Bar("a & b", 4.0, "8 : 2"), Bar("c", 1.0, "1 : 1")]))
    drawn = [float(each.get("width", "")) for each in picture.iter(f"{SVG}rect") if each.get("fill") == FILL]
    assert drawn[0] == 4 * drawn[1]
    assert "4.0× (8 : 2)" in [each.text for each in picture.iter(f"{SVG}text")]
    picture = ElementTree.fromstring(intervals("scores", [Interval("x" * 200, 0.5, 0.0, 1.0)]))
    (dot,) = picture.iter(f"{SVG}circle")
    assert float(dot.get("cx", "")) == pytest.approx(LABELS + (WIDTH - LABELS - RIGHT) / 2)
    (whisker,) = (each for each in picture.iter(f"{SVG}line") if each.get("stroke") == FILL)
    assert (whisker.get("x1"), whisker.get("x2")) == (f"{LABELS:g}", f"{WIDTH - RIGHT:g}")
