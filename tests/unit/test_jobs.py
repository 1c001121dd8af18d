"""Tasks, descriptions of runs, and the checks of parts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.looping import looped
from yomi import __version__
from yomi.engine.clusters.jobs import (
    RUN_NAME,
    JobError,
    Part,
    Run,
    Start,
    Task,
    begin_run,
    check_parts,
    missing_lines,
    part_folders,
    ranges,
    read_run,
)
from yomi.engine.reviews import shares
from yomi.nets.files import copy_file

START = Start("0.2.0", {"host": "a", "cpu": "b", "cores": 2}, 1.0, 0)


def made(task: str | None = "1/2", **others: Any) -> Run:
    values: dict[str, Any] = {
        "command": "match",
        "words": ["match", "a", "b c"],
        "task": None if task is None else Task.parse(task),
        "units": 7,
        "unit": "pairs of games",
        "settings": {"size": 9, "players": [{"limits": "visits 2"}]},
        "networks": {"a --net": "a.bin.gz 0123"},
        "starts": [START],
    }
    return Run(**{**values, **others})


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_tasks_share_all_units_without_a_rest(count: int) -> None:
    tasks = [Task.parse(f"{number}/{count}") for number in range(1, count + 1)]
    shares = [list(task.share(7)) for task in tasks]
    assert sorted(unit for share in shares for unit in share) == list(range(7))
    assert shares == [[unit for unit in range(7) if task.has(unit)] for task in tasks]


@looped("text", ["", "0/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3", "1 / 2", "1/99999999"])
def test_bad_tasks_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 2/5, found"):
        Task.parse(text)


def test_a_description_says_version_machine_and_every_start(tmp_path: Path) -> None:
    run = made(words=["match", "a", "b c", "--task", "1/2"], starts=())
    begin_run(tmp_path, run, 0, is_new=True)
    begin_run(tmp_path, run, 3, is_new=False)
    found = read_run(tmp_path)
    assert found.words == ["match", "a", "b c"]
    assert (found.task, found.settings, found.networks) == (run.task, run.settings, run.networks)
    assert [(start.version, start.done) for start in found.starts] == [(__version__, 0), (__version__, 3)]
    assert found.starts[0].machine["cores"]
    assert found.command_line(Task(2, 2)) == "yomi match a 'b c' --task 2/2"
    assert replace(found, words=[]).command_line(Task(2, 2)) == "the same call from Python with task='2/2'"
    begin_run(tmp_path, replace(run, units=9), 0, is_new=True)
    assert [start.done for start in read_run(tmp_path).starts] == [0]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"yomi-run": 2}', "null"])
def test_broken_descriptions_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / RUN_NAME).write_text(text)
    with pytest.raises(JobError, match=RUN_NAME):
        read_run(tmp_path)


def test_every_field_of_a_description_is_checked(tmp_path: Path) -> None:
    begin_run(tmp_path, made(starts=()), 0, is_new=True)
    whole = json.loads((tmp_path / RUN_NAME).read_text())
    for name in whole:
        (tmp_path / RUN_NAME).write_text(json.dumps({key: value for key, value in whole.items() if key != name}))
        with pytest.raises(JobError, match=r"expected the description of a run"):
            read_run(tmp_path)


@looped(
    ("others", "message"),
    [
        ({"starts": [START, replace(START, version="0.1.0")]}, "b: version 0.1.0 found, expected 0.2.0 as in a"),
        ({"command": "duel"}, "b: command duel found, expected match as in a"),
        ({"networks": {"a --net": "a.bin.gz 4567"}}, "b: a --net a.bin.gz 4567 found, expected a.bin.gz 0123 as in a"),
        (
            {"settings": {"size": 9, "players": [{"limits": "visits 3"}]}},
            "b: players.0.limits visits 3 found, expected visits 2 as in a",
        ),
        (
            {"settings": {"size": 9, "players": [{"limits": "visits 2"}], "pairs of games": ["x"]}},
            'b: pairs of games ["x"] found, expected null as in a',
        ),
        ({"units": 8}, "b: number of pairs of games 8 found, expected 7 as in a"),
        ({"task": Task(2, 3)}, "b: number of tasks 3 found, expected 2 as in a"),
        ({"task": Task(1, 2)}, "b: task 1/2 found twice, expected it only in a"),
        ({"task": None}, "b: a whole run found, expected a part, made with --task"),
    ],
)
def test_parts_of_another_run_are_refused(others: dict[str, Any], message: str) -> None:
    with pytest.raises(JobError) as raised:
        check_parts([(Path("a"), made()), (Path("b"), replace(made("2/2"), **others))])
    assert str(raised.value) == message
    check_parts([(Path("a"), made()), (Path("b"), made("2/2"))])


def test_missing_units_are_named_with_their_command() -> None:
    first, second = Part(Path("a"), made("1/3"), frozenset({0, 6})), Part(Path("b"), made("2/3"), frozenset({1, 4}))
    assert missing_lines([first, second]) == (
        3,
        [
            "task 1/3 lacks pairs of games 4: yomi match a 'b c' --task 1/3",
            "task 3/3 lacks pairs of games 3, 6: yomi match a 'b c' --task 3/3",
        ],
    )


def test_ranges_of_units() -> None:
    assert ranges([0, 3, 6, 12, 15], 3) == "1 to 7, 13, 16"
    assert ranges([0, 2, 4, 6], 1, limit=2) == "1, 3 and 2 more"


def test_folders_of_parts_are_found_in_the_order_of_their_tasks(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        folder = tmp_path / f"part-{number}-of-10"
        folder.mkdir()
        begin_run(folder, made(f"{number}/10", starts=()), 0, is_new=True)
    (tmp_path / "part-3-of-10").mkdir()
    names = [folder.name for folder in part_folders([tmp_path])]
    assert names == ["part-1-of-10", "part-2-of-10", "part-10-of-10"]
    assert part_folders([tmp_path / "part-2-of-10", Path("x")]) == [tmp_path / "part-2-of-10", Path("x")]


def test_a_part_of_a_review_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    line = {"unit": 0, "path": "a.sgf", "folder": ".", "games": [], "reviewed": [], "cells": []}
    run = Run("review", ["review"], Task(1, 1), 2, "records", {"records": ["a.sgf 12", "b.sgf 34"]}, {})
    for lines, message in (
        ([line, line], "record 1 .a.sgf. found twice"),
        ([line, {**line, "unit": 1}], "record 2 is a.sgf, expected b.sgf 34 as in run.json"),
    ):
        (tmp_path / "records.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
        with pytest.raises(JobError, match=message):
            shares.done(tmp_path, run, {})


@pytest.mark.linux  # Windows lets few users make links
def test_a_part_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of another folder")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="a link, folder or device found, expected a regular file"):
        copy_file(tmp_path / "link", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
