"""The journal of learning, the ratings of networks, the summary, and the page."""

import itertools
import json
import math
import re
import shutil
import threading
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from yomi.engine.cli.main import main
from yomi.engine.learning.journal import (
    NAME,
    PARTS,
    Event,
    GenerationFigures,
    Journal,
    LearningError,
    Progress,
    ratings,
)
from yomi.engine.learning.page import (
    LATEST,
    LOCK,
    PAGE,
    POINTS,
    TEMPLATE,
    read_games,
    run_data,
    short_names,
    status_text,
    write_runs,
)
from yomi.engine.learning.run import _tensorboard
from yomi.system import lock_file

START = 1_800_000_000.0
FIRST, SECOND, THIRD = "11111111", "22222222", "33333333"
FOREIGN = "</script><img src=x onerror=alert(1)>"
"""What an engine or a record may be called."""


def met(name: str, network: str, against: str, wins: int, losses: int, draws: int = 0, **more: Any) -> Event:
    event = {"event": name, "generation": 0, "network": network, "against": against, "seconds": 60.0}
    return {**event, "wins": wins, "losses": losses, "draws": draws, **more}


def played(generation: int, network: str, **more: Any) -> Event:
    event = {
        "event": "selfplay",
        "generation": generation,
        "network": network,
        "games": 60,
        "rows": 2000,
        "moves": 2500,
    }
    return {**event, "evaluations": 60_000, "seconds": 30.0, "black": 40, "white": 18, "drawn": 2, **more}


def trained(generation: int, policy: float) -> Event:
    losses = {"policy": policy, "value": 0.5}
    return {
        "event": "training",
        "generation": generation,
        "steps": 200,
        "seconds": 12,
        "window": 9000,
        "losses": losses,
    }


def started(**settings: Any) -> Event:
    return {"event": "start", "version": "1.2.0", "settings": {"game": "go", "size": 7, **settings}}


EVENTS: list[tuple[float, Event]] = [  # with the seconds since START
    (0, started(recipe={"blocks": 4})),
    (30, played(0, "rollouts", lead=6.5)),
    (50, trained(0, 4.0)),
    (110, met("gate", FIRST, "rollouts", 40, 20, promoted=True)),
    (110, {"event": "promotion", "generation": 0, "network": FIRST}),
    (170, met("match", FIRST, "uniform", 30, 10)),
    (180, {"event": "stop", "why": "Ctrl-C"}),
    (90_000, started(precision="auto")),
    (90_001, {"event": "precision", "precision": "int8"}),
    (90_030, played(1, FIRST, lead=4.5)),
    (90_040, trained(1, 3.5)),
    (90_100, met("gate", SECOND, FIRST, 35, 25, generation=1, promoted=True)),
    (90_100, {"event": "promotion", "generation": 1, "network": SECOND}),
    (90_110, {"event": "wait", "part": "training", "for": "rows", "seconds": 10.0}),
    (90_140, played(11, SECOND, lead=2.5)),
    (90_160, trained(11, 2.0)),
    (90_220, met("gate", THIRD, SECOND, 20, 40, generation=11, promoted=False)),
    (90_225, {"event": "lost", "part": "worker 2", "why": FOREIGN + "\x1b[2J"}),
]

TEXT = """\
state       yomi learn go: running, last event (lost) 31 s ago
settings    version 1.2.0, game go, size 7, precision int8
generation  11 after 0.11 hours
games       180 games, 6,000 rows, 7,500 moves
training    600 steps
network     22222222 (generation 1), Elo +176 ± 128 over rollouts, Elo +57 ± 88 over 11111111, the first
refused     33333333 (generation 11), Elo +57 ± 158 over rollouts, Elo -61 ± 128 over 11111111, the first
ladder      uniform 30-10-0 (Elo -67 ± 153) (wins-losses-draws)
losses      policy 2.0000 (3.5000), value 0.5000 (0.5000) (in brackets 10 generations ago)
self-play   2.00 games/s, 2,000 evaluations/s
            2.00 games/s, 2,000 evaluations/s (last 10 generations)
time        self-play 22%, training 9%, gate 44%, ladder 15%, players wait 0%, trainer waits 2%
            self-play 24%, training 10%, gate 48%, ladder 0%, players wait 0%, trainer waits 8% (last 10 generations)
disk        rows 12.3 kB, games 0 B, networks 0 B, train 0 B, other JOURNAL kB
last wait   training for rows, 10.0 s, 2 min ago
last lost   worker 2 (</script><img src=x onerror=alert(1)>�[2J), 31 s ago
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which a little has been learned."""
    lines = [json.dumps({"time": START + at, **event}) for at, event in EVENTS]
    (tmp_path / NAME).write_text("".join(line + "\n" for line in lines))
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "shard.npz").write_bytes(bytes(12_345))
    return tmp_path


# -- the journal -------------------------------------------------------------------------------------------------------


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path / NAME)
    assert journal.read() == []
    journal.append("stop", why="Ctrl-C")
    journal.append("wait", part="training", seconds=3, **{"for": "rows"})
    stop, wait = journal.read()
    assert (stop["event"], stop["why"], wait["for"]) == ("stop", "Ctrl-C", "rows")
    assert wait["time"] >= stop["time"] > START - 1e9


def test_a_line_that_a_kill_cut_short_is_ignored_and_then_cut_off(tmp_path: Path) -> None:
    path = tmp_path / NAME
    journal = Journal(path)
    journal.append("stop", why="one")
    whole = path.read_bytes()
    for cut in (whole[:5], b"\0\0\0", whole[:-1]):
        path.write_bytes(whole + cut)
        assert [each["why"] for each in journal.read()] == ["one"]
        journal.append("stop", why="two")
        assert [each["why"] for each in journal.read()] == ["one", "two"]
    path.write_bytes(whole[:7])  # nothing is whole
    journal.append("stop", why="three")
    assert [each["why"] for each in journal.read()] == ["three"]


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"event": "stop", "why": "x"}', '{"event": "stop", "time": 1.0}', '{"event": 3, "time": 1.0}', ""],
)
def test_a_broken_line_is_an_error_that_names_file_and_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / NAME
    path.write_text('{"event": "other", "time": 1.0}\n' + line + "\n")
    with pytest.raises(LearningError, match=rf"^{re.escape(str(path))}, line 2: expected an event as JSON \(.+\)$"):
        Journal(path).read()


def test_an_event_says_all_that_is_asked_of_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / NAME)
    with pytest.raises(ValueError, match="promotion: network is None"):
        journal.append("promotion", generation=3)
    with pytest.raises(ValueError, match="training: losses is 3"):
        journal.append("training", generation=0, steps=1, seconds=1.0, window=1, losses=3)
    assert journal.read() == []


def test_several_may_append_at_once(tmp_path: Path) -> None:
    def append(part: int) -> None:
        for number in range(25):
            Journal(tmp_path / NAME).append("lost", part=f"{part}", why=f"{number}")

    threads = [threading.Thread(target=append, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = Journal(tmp_path / NAME).read()
    for part in range(4):
        assert [each["why"] for each in found if each["part"] == str(part)] == [str(number) for number in range(25)]


# -- ratings -----------------------------------------------------------------------------------------------------------


def naive_elo(wins: float, losses: float, draws: float = 0) -> float:
    """Return the difference at which the score is what is expected, one more game drawn."""
    return 400 * math.log10((wins + draws / 2 + 0.5) / (losses + draws / 2 + 0.5))


def test_two_players_are_as_far_apart_as_their_score_says() -> None:
    found = ratings([met("gate", SECOND, FIRST, 30, 20)])
    elo = found.over(SECOND)
    assert elo is not None
    assert found.anchor == FIRST
    assert elo.value == pytest.approx(naive_elo(30, 20), abs=0.1)
    slope = math.log(10) / 400 * (30.5 / 51) * (20.5 / 51)  # of the expected score by Elo
    assert elo.error == pytest.approx(1.96 * math.sqrt((30.5 / 51) * (20.5 / 51) / 51) / slope, rel=0.01)
    with_draws = ratings([met("gate", SECOND, FIRST, 30, 20, 6)]).over(SECOND)
    assert with_draws is not None
    assert with_draws.value == pytest.approx(naive_elo(30, 20, 6), abs=2)


def test_a_network_met_again_is_the_same_network_and_an_anchor_has_zero() -> None:
    events = [
        met("gate", SECOND, FIRST, 30, 20),
        met("match", SECOND, "earlier " + FIRST, 10, 5),
        met("match", FIRST, "rollouts", 8, 2),
        met("match", SECOND, "uniform", 9, 1),
    ]
    assert ratings(events).anchor == "rollouts"
    assert str(ratings(events).over("rollouts")) == "+0 ± 0"
    only_two = ratings(events[:2]).over(SECOND)
    assert only_two is not None
    assert only_two.value == pytest.approx(naive_elo(40, 25), abs=0.1)


def test_a_long_chain_keeps_its_length() -> None:
    names = [f"{number:08x}" for number in range(61)]
    events = [met("gate", new, old, 30, 20) for old, new in itertools.pairwise(names)]
    whole = ratings(events).over(names[-1])
    assert whole is not None
    assert whole.value == pytest.approx(60 * naive_elo(30, 20), rel=0.01)


def test_an_anchor_that_always_loses_does_not_hold_the_networks_back() -> None:
    names = [f"{number:08x}" for number in range(41)]
    events = [met("match", names[0], "rollouts", 20, 0)]
    for old, new in itertools.pairwise(names):
        events += [met("gate", new, old, 30, 20), met("match", new, "rollouts", 20, 0)]
    gained = ratings(events).over(names[-1], names[0])
    assert gained is not None
    assert gained.value == pytest.approx(40 * naive_elo(30, 20), rel=0.02)


def test_without_a_common_game_nothing_is_told_and_a_clean_score_stays_finite() -> None:
    found = ratings([met("match", FIRST, "rollouts", 50, 0), met("gate", THIRD, SECOND, 1, 1)])
    assert found.over(THIRD) is None
    assert found.over("unheard of") is None
    elo = found.over(FIRST)
    assert elo is not None
    assert elo.value == pytest.approx(naive_elo(50, 0), abs=1)
    assert ratings([]).over(FIRST) is None


# -- the summary -------------------------------------------------------------------------------------------------------


def test_the_summary(folder: Path) -> None:
    journal = (folder / NAME).stat().st_size
    assert status_text(folder, START + 90_256) == TEXT.replace("JOURNAL", f"{journal / 1000:.1f}")


def test_the_time_between_two_runs_does_not_count(folder: Path) -> None:
    progress = Progress(Journal(folder / NAME).read())
    assert progress.seconds == 180 + 225
    assert progress.shares([0, 30, 60])["self-play"] == [1.0, 0.0]
    assert progress.shares([0, 30, 60])["training"] == pytest.approx([0.0, 12 / 30])


def test_before_the_first_event(tmp_path: Path) -> None:
    assert status_text(tmp_path, START).startswith("state       nothing has run yet\n")
    assert len(read_page(tmp_path)["charts"]) == 0


# -- the page ----------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Reads the data of a page, and what it would load from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""
        self.tags: list[str] = []
        self.elsewhere: list[str] = []
        self.texts: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.last = dict(attrs).get("id") or tag
        self.elsewhere += [name for name, _ in attrs if name in ("src", "href", "onerror")]

    def handle_data(self, data: str) -> None:
        self.texts[self.last] = self.texts.get(self.last, "") + data


def read_page(folder: Path) -> dict[str, Any]:
    """Write a folder's page, and return its data."""
    now = START + 90_256
    write_runs([run_data(folder, folder.name, now)], folder / PAGE, now)
    page = Page()
    page.feed((folder / PAGE).read_text(encoding="utf-8"))
    assert page.elsewhere == []
    assert page.tags.count("script") == 3, "data, the boards, the page"
    assert "http" not in page.texts["script"].replace("http://www.w3.org/2000/svg", "")
    assert not list(folder.glob(".*.part"))
    (run,) = json.loads(page.texts["data"])["runs"]
    found: dict[str, Any] = run
    return found


def test_the_page_has_what_the_journal_says(folder: Path) -> None:
    data = read_page(folder)
    assert data["text"].splitlines()[:-3] == TEXT.splitlines()[:-3]  # the page is on the disk by now
    charts = {chart["title"]: chart for chart in data["charts"]}
    assert list(charts) == [
        *("Elo", "Loss: policy", "Loss: value", "Games", "Evaluations", "Time", "Mean lead", "Black's share"),
    ]
    promoted, refused = charts["Elo"]["lines"]
    assert [point[3] for point in promoted["points"]] == [FIRST, SECOND]
    assert [point[3] for point in refused["points"]] == [THIRD]
    assert promoted["points"][0][1] == pytest.approx(naive_elo(40, 20), abs=0.2)
    assert [y for _, y in charts["Loss: policy"]["lines"][0]["points"]] == [4.0, 3.5, 2.0]
    assert [y for _, y in charts["Games"]["lines"][0]["points"]] == [2.0, 2.0, 2.0]
    assert [y for _, y in charts["Mean lead"]["lines"][0]["points"]] == [6.5, 4.5, 2.5]
    newest = data["networks"][0]
    assert (newest["network"], newest["promoted"], newest["gate"]) == (THIRD, False, {SECOND: [20, 40, 0]})
    assert data["networks"][2]["anchors"] == {"uniform": [30, 10, 0]}


def test_runs_are_laid_over_each_other(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    parent = tmp_path_factory.mktemp("runs")
    for name in ("one", "two"):
        shutil.copytree(folder, parent / name / "learn-go")
        (parent / name / "learn-go" / "settings.json").write_text("{}")
    journal = parent / "two" / "learn-go" / NAME
    journal.write_text(journal.read_text().replace('"size": 7', '"size": 9'))
    monkeypatch.chdir(parent)
    folders = [str(Path(name, "learn-go")) for name in ("one", "two")]
    assert main(["learn", "status", *folders]) == 0
    told = capsys.readouterr().out
    assert f"{folders[0]}\nstate       yomi learn go: " in told
    assert told.endswith("learn-runs.html shows the runs together\n")
    table = [line.split() for line in told.splitlines()]
    for row in (
        folders,
        ["steps", "600", "600"],
        ["loss", "policy", "2.0000", "2.0000"],
        ["size", "7", "9"],
    ):
        assert row in table
    assert ["game", "go", "go"] not in table
    page = Page()
    page.feed(Path("learn-runs.html").read_text("utf-8"))
    runs = json.loads(page.texts["data"])["runs"]
    assert [run["name"] for run in runs] == folders
    assert runs[0]["charts"] == runs[1]["charts"]
    assert [total for _, total in runs[0]["played"]] == [0, 60, 120, 180]
    assert (parent / "two/learn-go" / PAGE).exists()
    assert main(["learn", "status", *folders, "--page", "no/such/page.html"]) == 2
    assert f"{Path('no/such/page.html')}: " in capsys.readouterr().err
    assert main(["status", *folders, "--html", "all.html"]) == 0  # the status of all kinds of runs
    told = capsys.readouterr().out
    assert f"{folders[0]}\nstate       yomi learn go: " in told
    assert told.endswith("written to all.html\n")
    assert '"charts": [{' in Path("all.html").read_text("utf-8")
    assert main(["learn", "status", "one/learn-go", "gone"]) == 2
    assert "gone: found no run, expected a folder of yomi learn" in capsys.readouterr().err


def test_figures_of_a_generation() -> None:
    collected = GenerationFigures()
    for _, event in EVENTS[:3]:
        collected.add({"time": START, **event})
    collected.add({"time": START, **played(0, FIRST, lead=2.0)})
    collected.add({"time": START, **met("match", FIRST, "uniform", 3, 1, 2)})
    figures = collected.take(1)
    assert (figures["generation"], figures["loss/policy"], figures["match/uniform"]) == (1, 4.0, 4 / 6)
    assert (figures["selfplay/games"], figures["selfplay/lead"], figures["training/steps"]) == (120, 2.0, 200)
    assert collected.take(2) == {"generation": 2}


def test_tensorboard_reads_the_figures(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run: Any = SimpleNamespace(folder=tmp_path, journal=SimpleNamespace(listeners=[]))
    with _tensorboard(True, run):
        (write,) = run.journal.listeners
        for at, event in EVENTS:
            write({"time": START + at, **event})
    found = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    losses = [(scalar.step, scalar.value) for scalar in found.Scalars("loss/policy")]
    trainings = [event for _, event in EVENTS if event["event"] == "training"]
    assert losses == [(event["generation"], event["losses"]["policy"]) for event in trainings]
    assert "match/uniform" in found.Tags()["scalars"]


def test_names_of_runs() -> None:
    assert short_names([Path("/a/b/one"), Path("/a/b/two/x")]) == ["one", str(Path("two/x"))]
    assert short_names([Path("/a/b"), Path("/a/b/c"), Path("/a/b")]) == ["b", "c", "b"]
    assert short_names([Path("/a/b")]) == ["b"]


def test_what_is_foreign_stays_text(folder: Path) -> None:
    game = {"title": FOREIGN, "result": "B+2", "moves": ["d4"], "first": {}, "boards": ["<b>", "x"]}
    game["values"] = [0.1, None]
    (folder / LATEST).write_text(json.dumps({"games": [game]}))
    data = read_page(folder)
    assert data["games"] == [game]
    assert FOREIGN in data["text"]
    assert "innerHTML" not in (folder / PAGE).read_text(encoding="utf-8")


def test_a_loss_that_is_no_number_is_a_gap_and_many_are_drawn_as_means(tmp_path: Path) -> None:
    journal = Journal(tmp_path / NAME)
    for number in range(2 * POINTS):
        event = trained(number, math.nan if number < 2 else number)
        journal.append("training", **{name: value for name, value in event.items() if name != "event"})
    (line,) = (chart["lines"][0] for chart in read_page(tmp_path)["charts"] if chart["title"] == "Loss: policy")
    assert [y for _, y in line["points"]] == [None, *(2.5 + 2 * number for number in range(POINTS - 1))]


@pytest.mark.parametrize("text", ["{", "[]", '{"games": [{"title": "x"}]}', '{"games": [{"values": "x"}]}', "3"])
def test_games_that_are_none_are_an_error(tmp_path: Path, text: str) -> None:
    assert read_games(tmp_path / LATEST) == []
    (tmp_path / LATEST).write_text(text)
    with pytest.raises(LearningError, match=r"latest\.json: expected games as JSON"):
        read_games(tmp_path / LATEST)


# -- runs that were killed, colors, damage -----------------------------------------------------------------------------


def test_a_run_without_a_process_was_killed(folder: Path) -> None:
    with (folder / LOCK).open("ab") as lock:
        assert "yomi learn go: killed (the same command continues), last event" in status_text(folder)
        assert read_page(folder)["running"] is False
        assert lock_file(lock.fileno(), wait=False)
        assert "yomi learn go: running, last event" in status_text(folder)
        assert read_page(folder)["running"] is True
    assert "killed" in status_text(folder)
    Journal(folder / NAME).append("stop", why="asked to")
    assert "yomi learn go: stopped (asked to), last event" in status_text(folder)


def test_a_copy_without_a_lock_runs_as_long_as_events_are_new(folder: Path) -> None:
    assert "running" in status_text(folder, START + 90_225 + 599)
    assert "killed" in status_text(folder, START + 90_225 + 601)


def test_each_line_of_a_chart_has_its_own_color() -> None:
    template = resources.files("yomi.engine.learning").joinpath(TEMPLATE).read_text(encoding="utf-8")
    (count,) = re.findall(r"const COLORS = (\d+);", template)
    assert int(count) >= len(PARTS)
    for part in template.split("@media")[:2]:
        palette = re.findall(r"--c(\d+): (#[0-9a-f]+);", part)
        assert [int(number) for number, _ in palette] == list(range(int(count)))
        assert len({color for _, color in palette}) == int(count)


def test_damaged_games_leave_the_rest_of_the_page(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / LATEST).write_bytes(bytes(100))
    assert read_page(folder)["games"] == []
    assert "latest.json: expected games as JSON" in caplog.text
