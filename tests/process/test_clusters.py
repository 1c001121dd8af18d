"""Runs in parts (`--task`, `yomi merge`) equal whole runs, and `yomi status` shows both."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.units import FakeUnitPool
from tests.process.match_process import ROOT, scripted
from tests.process.prepared import fresh, prepared
from tests.unit.test_go_dataset import random_record
from yomi.engine.cli.main import build, main
from yomi.engine.clusters import jobs
from yomi.engine.clusters.jobs import RUN_NAME, read_run
from yomi.engine.datasets import shards as shard_units
from yomi.engine.default_network import named_file
from yomi.engine.matches import remote as match_remote
from yomi.engine.matches.results import JOURNAL_NAME, read_journal
from yomi.engine.reviews import shares

pytestmark = pytest.mark.slow

PLAYERS = [scripted("usi", conduct) for conduct in ("fine", "resign", "declare")]
# Times in journals, CSA, KIF and SGF
TIMES = re.compile(
    rb'"(?:finished|seconds)": ?(?:"[^"]*"|\[[^\]]*\]|[\d.]+)'
    rb"|,T\d+|^T\d+|^\$(?:START|END)_TIME:.*"
    rb"|\( *[\d:.]+/[\d:.]+\)|\d\d:\d\d\.\d|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d"
    rb"|\d+\.\d+ s",
    re.MULTILINE,
)


def contents(folder: Path, leave_out: tuple[str, ...] = (RUN_NAME,)) -> dict[str, bytes]:
    """Return the files of a folder without times."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in leave_out)
    return {str(path.relative_to(folder)): TIMES.sub(b"", path.read_bytes()) for path in files}


def in_order(found: dict[str, bytes]) -> dict[str, bytes]:
    """Return contents with the games of a journal in order: a match writes them as they end."""
    head, *games = found[JOURNAL_NAME].splitlines(keepends=True)
    games.sort(key=lambda line: int(line.removeprefix(b'{"number": ').partition(b",")[0]))
    return {**found, JOURNAL_NAME: b"".join([head, *games])}


def described(folder: Path) -> dict[str, Any]:
    run: dict[str, Any] = json.loads((folder / RUN_NAME).read_text())
    return {name: value for name, value in run.items() if name not in ("starts", "words")}


def merge_fails(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """Run a merge that must fail, and return what it prints on stderr."""
    capsys.readouterr()
    assert main(["merge", *map(str, words)]) == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def whole_match(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("match")
    (folder / "openings.sfen").write_text("startpos moves 2g2f 8c8d 2f2e 8d8e\nstartpos moves 7g7f 3c3d 6g6f 4c4d\n")
    assert main([*match_words(folder), "--out", str(folder / "whole")]) == 0
    return folder / "whole"


def match_words(folder: Path) -> list[str]:
    openings = ("--openings", str(folder / "openings.sfen"))
    return ["match", "shogi", *PLAYERS, *openings, "--games", "3", "--byoyomi", "60", "--timeout", "60"]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_match_in_parts_is_the_whole_match(count: int, whole_match: Path, tmp_path: Path) -> None:
    for number in range(count, 0, -1):
        words = [*match_words(whole_match.parent), "--task", f"{number}/{count}", "--at-once", "2"]
        assert main([*words, "--out", str(tmp_path / "parts")]) == 0
    assert main(["merge", str(tmp_path / "parts"), "--out", str(tmp_path / "merged")]) == 0
    assert contents(tmp_path / "merged") == in_order(contents(whole_match))
    assert described(tmp_path / "merged") == described(whole_match)
    games = [game.number for game in read_journal(tmp_path / "merged" / JOURNAL_NAME)[1]]
    assert games == [0, 1, 2, 3, 4, 5, 6, 8, 10]  # three games of each pair: the last ones have no partner


def test_a_merge_names_missing_pairs_and_differences(
    whole_match: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts, words = tmp_path / "parts", match_words(whole_match.parent)
    secret = [word + " env.TOKEN=secret" if word.endswith("name=fine") else word for word in words]
    assert main([*secret, "--task", "1/3", "--out", str(parts)]) == 0
    error = merge_fails(capsys, parts, "--out", tmp_path / "merged")
    assert re.search(r"task 2/3 lacks pairs of games 2, 5: yomi match shogi .* --task 2/3\n", error)
    assert "4 of 6 pairs of games are missing: run the commands above, then merge again" in error
    assert "secret" not in error
    assert "secret" not in (parts / "part-1-of-3" / RUN_NAME).read_text()
    assert not (tmp_path / "merged").exists()
    assert main([*secret, "--task", "2/3", "--margin", "2", "--out", str(parts)]) == 0
    error = merge_fails(capsys, parts, "--out", tmp_path / "merged")
    assert error == (f"yomi: error: {parts}/part-2-of-3: margin 2.0 found, expected 0.0 as in {parts}/part-1-of-3\n")
    error = merge_fails(capsys, whole_match, parts, "--out", tmp_path / "merged")
    assert "a whole run found, expected a part, made with --task" in error
    assert "expected the name of a new folder" in merge_fails(capsys, parts, "--out", tmp_path)


def test_a_task_knows_no_test_of_a_match(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["match", "shogi", *PLAYERS[:2], "--sprt", "0,20", "--task", "1/2", "--out", str(tmp_path)]
    assert main(words) == 2
    assert "--sprt with --task: a task sees only its own games" in capsys.readouterr().err


def test_a_killed_part_of_a_match_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = [scripted("gtp", "fine", 0.02, name) for name in ("a", "b")]
    words = ["go", *slow, "--size", "9", "--games", "16", "--task", "2/2", "--out", str(tmp_path)]
    start = fresh("yomi", "match", *words)  # a prepared one would outlive its client for a moment
    process = subprocess.Popen(start, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    next(line for line in process.stderr if re.match(r"[12]/8  game", line))
    os.kill(process.pid, signal.SIGKILL)
    with process.stderr:
        process.wait()
    part = tmp_path / "part-2-of-2"
    before = len(read_journal(part / JOURNAL_NAME)[1])
    assert main(["status", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"done +\d of 8 pairs of games", shown)
    assert "waits for   task 2/2: " in shown
    assert "waits for   task 1/2, not begun: yomi match go " in shown
    assert main(["match", *words]) == 0
    games = read_journal(part / JOURNAL_NAME)[1]
    assert sorted(game.number for game in games) == [2, 3, 6, 7, 10, 11, 14, 15]
    assert 1 <= before < len(games)
    assert len(read_run(part).starts) == 2


DUEL = ["duel", "go", "--size", "5", "--net", "fast", "--visits", "4", "--second", "visits=2"]
DUEL += ["--opening-moves", "2", "--games", "10"]


@pytest.fixture(scope="module")
def whole_duel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("duel")
    assert main([*DUEL, "--at-once", "3", "--processes", "1", "--out", str(folder / "whole")]) == 0
    return folder / "whole"


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_duel_in_parts_is_the_whole_duel(count: int, whole_duel: Path, tmp_path: Path) -> None:
    for number in range(1, count + 1):
        processes = "2" if (number, count) == (2, 2) else "1"
        words = [*DUEL, "--processes", processes, "--out", str(tmp_path), "--task", f"{number}/{count}"]
        assert main(words) == 0
    assert main(["merge", *map(str, tmp_path.glob("part-*")), "--out", str(tmp_path / "merged")]) == 0
    assert contents(tmp_path / "merged") == in_order(contents(whole_duel))
    assert described(tmp_path / "merged") == described(whole_duel)


def test_a_duel_with_another_network_is_refused(
    whole_duel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.bin.gz"
    other.write_bytes(gzip.compress(gzip.decompress(Path(named_file("fast", "go")).read_bytes()), 1))
    words = [*DUEL, "--processes", "1", "--out", str(tmp_path), "--task"]
    assert main([*words, "1/2"]) == 0
    assert main([*words, "2/2", "--net", str(other)]) == 0
    error = merge_fails(capsys, tmp_path, "--out", tmp_path / "merged")
    assert re.search(
        r"part-2-of-2: first net other\.bin\.gz [0-9a-f]{16} found, expected \S+ [0-9a-f]{16} as in ", error
    )
    assert main([*DUEL, "--sprt", "0,20", "--task", "1/2", "--out", str(tmp_path / "test")]) == 2
    assert main(["status", str(whole_duel)]) == 0
    assert re.search(r"done +5 of 5 pairs.*the flags against visits=2: \d+-\d+-\d+", capsys.readouterr().out, re.DOTALL)


PLAY = ["dataset", "play", "go", "--teacher", "fast", "--size", "5", "--kept", "0.1", "--test-share", "0.2"]


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], Path]]:
    """Return command line and folder of whole data sets, by action."""
    folder = tmp_path_factory.mktemp("data")
    records = [random_record((7, 9)[seed % 2], seed, 30 + seed, "B+R") for seed in range(12)]
    (folder / "games.sgfs").write_text("\n".join(records) + "\n")
    made = {
        "play": [*PLAY, "--positions", "70", "--shard-rows", "10"],
        "make": ["dataset", "make", str(folder / "games.sgfs"), "--shard-rows", "64"],
    }
    for action, words in made.items():
        assert main([*words, "--out", str(folder / action)]) == 0
    return {action: (words, folder / action) for action, words in made.items()}


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("action", ["play", "make"])
def test_a_data_set_in_parts_is_the_whole_set(
    action: str,
    count: int,
    datasets: dict[str, tuple[list[str], Path]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words, whole = datasets[action]
    for number in range(count, 0, -1):
        assert main([*words, "--task", f"{number}/{count}", "--out", str(tmp_path / "parts")]) == 0
    part = tmp_path / "parts" / f"part-1-of-{count}"
    lost = next(path for path in sorted(part.iterdir()) if (path / "shard.json").exists())
    shutil.rmtree(lost)  # as if the task had been killed
    assert f"task 1/{count} lacks shards " in merge_fails(capsys, tmp_path / "parts", "--out", tmp_path / "merged")
    assert main([*words, "--task", f"1/{count}", "--out", str(tmp_path / "parts")]) == 0
    assert main(["merge", str(tmp_path / "parts"), "--out", str(tmp_path / "merged")]) == 0
    assert contents(tmp_path / "merged") == contents(whole)
    assert described(tmp_path / "merged") == described(whole)
    capsys.readouterr()
    assert main(["status", str(tmp_path / "parts")]) == 0
    assert re.search(
        r"done +(\d+) of \1 shards \(100%\)\n\npositions: [\d,]+ train \+ \d+ test", capsys.readouterr().out
    )


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """Return the command line and the folder of a review of records with equal names, several games and a fault."""
    folder = tmp_path_factory.mktemp("archive")
    records = [random_record(7, seed, 6 + seed, "B+R") for seed in range(7)]
    (folder / "games" / "b").mkdir(parents=True)
    for name, text in (("a.sgf", records[0]), ("b/a.sgf", records[1]), ("b/c.sgf", "".join(records[2:4]))):
        (folder / "games" / name).write_text(text)
    (folder / "d.sgf").write_text("no game")
    (folder / "a.sgf").write_text(records[4])
    words = ["review", str(folder / "games"), str(folder / "d.sgf"), str(folder / "a.sgf"), "--net", "fast"]
    words += ["--visits", "6", "--seed", "1", "--workers", "1", "--html"]
    assert main([*words, "--out", str(folder / "whole"), "--json", str(folder / "whole" / "all.json")]) == 1
    return words, folder / "whole"


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_review_in_parts_is_the_whole_review(
    count: int, archive: tuple[list[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, whole = archive
    statuses = [
        main([*words, "--task", f"{number}/{count}", "--out", str(tmp_path / "parts"), "--json", "all.json"])
        for number in range(count, 0, -1)
    ]
    assert sorted(statuses, reverse=True) == [1, *[0] * (count - 1)]  # one record is broken
    journal = tmp_path / "parts" / f"part-1-of-{count}" / "records.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])  # as if the task had been killed
    assert f"task 1/{count} lacks records " in merge_fails(capsys, tmp_path / "parts", "--out", tmp_path / "merged")
    main([*words, "--task", f"1/{count}", "--out", str(tmp_path / "parts"), "--json", "all.json"])
    assert main(["merge", str(tmp_path / "parts"), "--out", str(tmp_path / "merged")]) == 0
    assert contents(tmp_path / "merged", (RUN_NAME, "records.jsonl")) == contents(whole)
    capsys.readouterr()
    assert main(["status", str(tmp_path / "merged")]) == 0
    assert "done        5 of 5 records (100%)\n\n5 games reviewed; unreadable records: 1" in capsys.readouterr().out


def test_a_task_of_a_review_needs_a_folder(
    archive: tuple[list[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, whole = archive
    assert main([*words, "--task", "1/2"]) == 2
    assert "--task 1/2: expected --out FOLDER with it" in capsys.readouterr().err
    parts = tmp_path / "parts"
    assert main([*words[:2], *words[4:], "--task", "1/2", "--out", str(parts)]) == 0
    changed = whole.parent / "games" / "a.sgf"
    text = changed.read_text()
    changed.write_text(text + " ")
    try:
        assert main([*words[:2], *words[4:], "--task", "2/2", "--out", str(parts)]) == 0
    finally:
        changed.write_text(text)
    assert re.search(
        r"part-2-of-2: records\.0 a\.sgf \w{16} found, expected a\.sgf \w{16} as in",
        merge_fails(capsys, parts, "--out", tmp_path / "merged"),
    )


@pytest.fixture
def actors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let commands with --cluster work on actors in this process, some of which are lost."""
    monkeypatch.setattr(FakeUnitPool, "made", [], raising=False)
    monkeypatch.setattr(jobs, "require_package", lambda package, use: None)
    for module in (match_remote, shard_units, shares):
        monkeypatch.setattr(module, "UnitPool", FakeUnitPool)
    yield
    assert len(FakeUnitPool.made) == 1
    assert FakeUnitPool.made[0].lost


@pytest.mark.usefixtures("actors")
def test_a_match_on_a_cluster_is_the_whole_match(whole_match: Path, tmp_path: Path) -> None:
    words = ["--cluster", "local", "--at-once", "2", "--out", str(tmp_path)]
    assert main([*match_words(whole_match.parent), *words]) == 0
    found, wanted = in_order(contents(tmp_path)), in_order(contents(whole_match))
    assert found == wanted
    assert described(tmp_path) == described(whole_match)


@pytest.mark.usefixtures("actors")
def test_a_duel_on_a_cluster_is_the_whole_duel(whole_duel: Path, tmp_path: Path) -> None:
    words = ["--cluster", "local", "--processes", "3", "--at-once", "2", "--out", str(tmp_path)]
    assert main([*DUEL, *words]) == 0
    assert in_order(contents(tmp_path)) == in_order(contents(whole_duel))
    assert described(tmp_path) == described(whole_duel)


@pytest.mark.usefixtures("actors")
@pytest.mark.parametrize("action", ["play", "make"])
def test_a_data_set_on_a_cluster_is_the_whole_set(
    action: str, datasets: dict[str, tuple[list[str], Path]], tmp_path: Path
) -> None:
    words, whole = datasets[action]
    assert main([*words, "--cluster", "local", "--out", str(tmp_path)]) == 0
    assert contents(tmp_path) == contents(whole)
    assert described(tmp_path) == described(whole)


@pytest.mark.usefixtures("actors")
def test_a_review_on_a_cluster_is_the_whole_review(
    archive: tuple[list[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words, whole = archive
    words = [*words, "--cluster", "local", "--out", str(tmp_path / "review")]
    assert main([*words, "--json", str(tmp_path / "review" / "all.json")]) == 1
    assert contents(tmp_path / "review", (RUN_NAME, "records.jsonl")) == contents(whole)
    shown = capfd.readouterr()
    assert f"written to {tmp_path}/review/b/a.yomi.sgf\n" in shown.out
    assert re.search(r"^yomi: error: .*/d\.sgf: no game of SGF found", shown.err, re.MULTILINE)
    assert "yomi-review-" not in shown.out + shown.err
    assert main([*words, "--visits", "7"]) == 2
    assert "review belongs to another review: visits was '6', now '7'" in capfd.readouterr().err


def test_a_cluster_takes_no_tasks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = [*DUEL, "--out", str(tmp_path / "out"), "--cluster", "local"]
    assert main([*words, "--task", "1/2"]) == 2
    assert "--cluster with --task: expected one of them" in capsys.readouterr().err
    assert main([*words[:-2], "--gpus-per-process", "0.5"]) == 2
    assert "--insecure: expected --cluster with them" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_status_of_a_tuning_has_its_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tune", "go", "--size", "5", "--net", "fast", "--visits", "2", "--parameter", "c_puct", "0.5:2.0"]
    words += ["--games", "4", "--pairs", "1", "--confirm", "2", "--processes", "1", "--out", str(tmp_path)]
    assert main(words) == 0
    capsys.readouterr()
    assert main(["status", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "done        2 of 2 iterations (100%)" in shown
    assert re.search(r"^c_puct +0\.5 to 2 ", shown, re.MULTILINE)
    assert "a whole run found, expected a part" in merge_fails(capsys, tmp_path, "--out", tmp_path / "merged")


def test_the_status_of_a_match_has_its_tables(
    whole_match: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "status.html"
    assert main(["status", str(whole_match), "--html", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "done        6 of 6 pairs of games (100%)" in shown
    assert "waits for" not in shown
    assert "# PLAYER" in shown
    assert "6 of 6 pairs of games" in page.read_text()
    assert main(["status", str(tmp_path)]) == 2
    assert f"{tmp_path}: no run.json found, expected the folder of a run" in capsys.readouterr().err


SCRIPTS = {  # in place of other machines: they run the command here, or copy nothing
    "yomi": 'for word in "$@"; do printf "%s\\n" "$word"; done > "$(mktemp "$CALLS/XXXXXX")"',
    "ssh": 'shift; exec sh -c "$*"',
    "scp": "exit 0",
}


def page_blocks(kind: str) -> list[str]:
    page = (ROOT / "docs/how-to/clusters.md").read_text("utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def kubernetes_command() -> str:
    (block,) = page_blocks("yaml")
    found = re.search(r"command: \[sh, -c\]\n +args:\n +- >-\n((?: {14}.*\n)+)", block)
    assert found is not None
    return " ".join(line.strip() for line in found[1].splitlines())


@pytest.mark.parametrize(
    ("name", "tasks"),
    [("ssh", {f"{number}/3" for number in (1, 2, 3)}), ("slurm", {"3/20"}), ("kubernetes", {"5/20"})],
)
def test_the_programs_of_the_documents_call_known_commands(name: str, tasks: set[str], tmp_path: Path) -> None:
    for program, text in SCRIPTS.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / program).chmod(0o755)
    programs = {
        "ssh": next(block for block in page_blocks("") if "ssh " in block),
        "slurm": page_blocks("slurm")[0],
        "kubernetes": kubernetes_command(),
    }
    cluster = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "20", "JOB_COMPLETION_INDEX": "4"}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **cluster, "PATH": path, "CALLS": str(tmp_path / "calls")}
    (tmp_path / "calls").mkdir()
    shell = ["bash", "-e"] if name == "ssh" else ["sh", "-e"]
    subprocess.run([*shell, "-c", programs[name]], cwd=tmp_path, env=environment, timeout=60, check=True)
    calls = [call.read_text().splitlines() for call in (tmp_path / "calls").iterdir()]
    parsed = [build(words).parse_args(words) for words in calls]
    assert {str(args.task) for args in parsed if args.command == "duel"} == tasks
    assert [args.command for args in parsed if args.command != "duel"] == ["merge"] * (name == "ssh")


@pytest.mark.early
def test_the_loop_of_the_documents_works(tmp_path: Path) -> None:
    loop = next(block for block in page_blocks("") if block.startswith("for i in 1 2 3"))
    program = tmp_path / "yomi"
    program.write_text(f"#!/bin/sh\nPYTHONPATH='{ROOT}' exec {shlex.join(prepared('yomi'))} \"$@\"\n")
    program.chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-e", "-c", loop], cwd=tmp_path, env=path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "3 parts, 6 pairs of games merged in strength-whole" in done.stdout
    assert "done        6 of 6 pairs of games (100%)" in done.stdout
