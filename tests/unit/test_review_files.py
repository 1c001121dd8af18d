"""Files and folders that `yomi review` reads and writes."""

import io
import json
import os
import sys
from pathlib import Path

import pytest

import yomi
from tests.contract.networks import write_small_network
from tests.fakes.player import FakePlayer
from tests.unit.command_lines import error_of
from tests.unit.reviews import CSA, SGF, fake_reviewers, make_folder
from yomi.engine.cli import review
from yomi.engine.cli.main import main
from yomi.engine.color import BLACK
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.game import Game
from yomi.engine.go.game import GoGame
from yomi.engine.go.review import only_size
from yomi.engine.options import Options
from yomi.engine.players.request import Decision, Request
from yomi.engine.reviews.review import Candidate, Opinion
from yomi.engine.reviews.scans import FULL, ReviewJournal
from yomi.engine.shogi.records.files import load_records, read_records, to_bytes
from yomi.nets.errors import NetworkError
from yomi.nets.load import open_file, prepare


def test_records_of_one_name_keep_their_reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_reviewers(monkeypatch)
    paths = [tmp_path / folder / "game.sgf" for folder in "abcd"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(SGF)
    out = tmp_path / "out"
    assert main(["analyze", *map(str, paths), "--out", str(out), "--visits", "16"]) == 0
    names = ["game.sgf-2.yomi.sgf", "game.sgf-3.yomi.sgf", "game.sgf.yomi.sgf", "game.yomi.sgf"]
    assert sorted(path.name for path in out.iterdir()) == names


def test_a_review_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    fake_reviewers(monkeypatch)
    paths = [tmp_path / "two.sgf", tmp_path / "a.csa", tmp_path / "broken.sgf"]
    for path, text in zip(paths, (SGF + SGF, CSA, "(;GM[2])"), strict=True):
        path.write_text(text)
    first, second = yomi.review(paths[0], visits=16, thresholds="1,2,3points")
    assert [move.text for move in first.moves] == ["C3", "B4", "D2"]
    assert first.files()[".sgf"] == second.files()[".sgf"]
    assert first.facts() == "rules chinese, komi 6.5, thresholds 1,2,3points, 16 visits a position, yomi (fake)"
    (shogi,) = yomi.review(str(paths[1]), quick=0)  # else a slow machine plans a quick first search
    assert shogi.limit == "100,000 nodes"
    assert isinstance(shogi, yomi.Review)
    for path, options, text in (
        (paths[2], {}, "GM is 2"),
        (tmp_path / "none", {}, "cannot read"),
        (paths[0], {"vists": 3}, "did you mean visits"),
        (paths[0], {"thresholds": "3"}, "expected three rising numbers"),
        (paths[1], {"thresholds": "1,2,3points"}, "expected % or cp"),
        (paths[0], {"quick": -1}, "quick -1 found, expected an integer of at least 0"),
    ):
        with pytest.raises(yomi.Error, match=text):
            yomi.review(path, **options)
    assert capfd.readouterr() == ("", "")


def test_a_folder_with_a_broken_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    folder, out, report = make_folder(tmp_path / "games"), tmp_path / "out", tmp_path / "report.json"
    status = main(["analyze", str(folder), "--out", str(out), "--json", str(report), "--visits", "16"])
    printed = capsys.readouterr()
    assert status == review.BROKEN
    assert f"yomi: error: {folder / 'b.sgf'}: line 1, column 3: board size 25: expected 2 to 19" in printed.err
    assert "Black (Ann): 2 moves" in printed.out
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert names == {"a.yomi.sgf", "sub/two-1.yomi.csa", "sub/two-1.csa.yomi.csa", "sub/two-2.yomi.csa"}
    found = json.loads(report.read_text())
    assert [(Path(each["file"]).name, each.get("number"), "error" in each) for each in found] == [
        ("a.sgf", 1, False),
        ("b.sgf", None, True),
        ("two-1.usi", 1, False),
        ("two.csa", 1, False),
        ("two.csa", 2, False),
    ]
    assert found[0]["positions"][0].keys() >= {"turn", "winrate", "score", "side_to_move"}
    assert [move["move"] for move in found[0]["moves"]] == ["C3", "B4", "D2"]
    assert load_records(out / "sub" / "two-1.yomi.csa")[0].moves


@pytest.mark.parametrize("kind", [NetworkError, EvaluatorError])
def test_a_record_that_the_network_cannot_take(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class OfOneSize(FakePlayer):
        def decide(self, request: Request[GoGame]) -> Decision:
            if request.game.board.side != 5:
                raise kind(f"net.onnx: made for boards of size 5, expected size {request.game.board.side}")
            return super().decide(request)

    monkeypatch.setattr(Game, "prepare", lambda *_: None)
    monkeypatch.setattr(
        "yomi.engine.go.review.make_analysts", lambda options, count, prompt: [OfOneSize(), OfOneSize()]
    )
    folder, report = tmp_path / "games", tmp_path / "report.json"
    folder.mkdir()
    for name, text in (("a.sgf", SGF), ("b.sgf", "(;SZ[9];B[cc];W[dd])"), ("c.sgf", SGF)):
        (folder / name).write_text(text)
    assert main(["analyze", str(folder), "--json", str(report)]) == review.BROKEN
    error = f"{folder / 'b.sgf'}: net.onnx: made for boards of size 5, expected size 9"
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("yomi: error")] == [f"yomi: error: {error}"]
    assert [each.get("error") for each in json.loads(report.read_text())] == [None, error, None]
    assert sorted(path.name for path in folder.glob("*.yomi.sgf")) == ["a.yomi.sgf", "c.yomi.sgf"]


def test_a_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake_reviewers(monkeypatch)
    path, report = tmp_path / "two.sgf", tmp_path / "report.json"
    path.write_text(SGF + "\n(;SZ[5]PB[Bob];B[cc])")
    assert main(["analyze", str(path), "--json", str(report)]) == 0
    heading = "(two-2): Bob (Black) against White, rules chinese, komi 7.5, 100 visits a position"
    shown = capsys.readouterr().out
    assert f"{path} {heading}\nBlack (Bob): 1 move" in shown
    assert shown.count("; fake") == 1
    assert sorted(each.name for each in tmp_path.glob("*.yomi.sgf")) == ["two-1.yomi.sgf", "two-2.yomi.sgf"]
    assert [each["number"] for each in json.loads(report.read_text())] == [1, 2]
    path.write_text("(;SZ[5];B[cc])\n(;SZ[5]AB[zz];B[cc])")
    assert main(["analyze", str(path)]) == 0
    assert f"yomi: {path}:2:8: AB[zz]: expected a point" in capsys.readouterr().err
    path.write_text("(;SZ[5];B[cc])\n(;SZ[5];B[zz];W[cc])")
    assert main(["analyze", str(path)]) == 0
    lines = capsys.readouterr().err.splitlines()
    fault = "move 1 of the record: B[zz]: expected a point of a 5x5 board"
    assert f"yomi: {path}:2:9: {fault}: this game is left out" in lines


def test_pages_and_their_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_reviewers(monkeypatch)
    path = tmp_path / "two.sgf"
    path.write_text(SGF + "\n(;SZ[5]PB[Bob];B[cc])")
    assert main(["analyze", str(path), "--html", "--out", str(tmp_path / "out")]) == 0
    pages = ["two-1.yomi.html", "two-2.yomi.html"]
    assert sorted(each.name for each in tmp_path.glob("out/*.html")) == ["index.yomi.html", *pages]
    index = (tmp_path / "out" / "index.yomi.html").read_text("utf-8")
    assert [index.count(f'"address":"{page}"') for page in pages] == [1, 1]


def test_an_opinion_in_the_journal_keeps_its_candidates(tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    path.write_text(SGF)
    candidate = Candidate(1, 90, 0.5, 0.55, None, (1, 3))
    opinion = Opinion(BLACK, 0.55, 0.5, 1, (1, 3), candidates=(candidate,), ownership="Az")
    journal = ReviewJournal(tmp_path, "settings")
    journal.game(path, 1).add(FULL, 0, (opinion, 7))
    journal.close()
    assert ReviewJournal(tmp_path, "settings").game(path, 1).found == {(FULL, 0): (opinion, 7)}


def test_a_report_is_replaced_where_there_is_something_to_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_reviewers(monkeypatch)
    path, report = tmp_path / "two.sgf", tmp_path / "report.json"
    path.write_text(SGF + SGF)
    report.write_text("of an earlier run")
    assert main(["analyze", str(path), "--json", str(report), "--rules", "none"]) == 2
    assert report.read_text() == "of an earlier run"
    (tmp_path / "two-2.yomi.sgf").mkdir()  # where the second review would go
    assert main(["analyze", str(path), "--json", str(report)]) == 2
    assert [each["number"] for each in json.loads(report.read_text())] == [1]


@pytest.mark.linux  # names of files are Unicode on other systems
def test_names_that_have_no_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_reviewers(monkeypatch)
    path, report, terminal = tmp_path / os.fsdecode(b"caf\xe9.sgf"), tmp_path / "report.json", io.BytesIO()
    path.write_text(SGF.replace("Ann", "\u67ef\u6d01"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(terminal, "iso8859-1", write_through=True))
    assert main(["analyze", str(path), "--json", str(report)]) == 0
    assert b"Black (\\u67ef\\u6d01): " in terminal.getvalue()
    assert b"caf\\udce9.sgf" in terminal.getvalue()
    assert [each["file"] for each in json.loads(report.read_text(encoding="utf-8"))] == [str(path)]


def test_files_are_written_before_anything_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*texts: object, file: object = None, **options: object) -> None:
        if file is not sys.stderr:
            raise BrokenPipeError

    fake_reviewers(monkeypatch)
    (tmp_path / "a.sgf").write_text(SGF)
    monkeypatch.setattr("builtins.print", fail)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert main(["analyze", str(tmp_path / "a.sgf")]) == 1
    assert (tmp_path / "a.yomi.sgf").is_file()


def test_the_first_record_need_not_be_of_the_networks_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = write_small_network(tmp_path)
    of_one_size = prepare(open_file(network), 5, tmp_path)[0]
    assert [only_size(str(path)) for path in (network, of_one_size, tmp_path / "none")] == [0, 5, 0]
    sizes: list[int] = []

    def make(options: Options, count: int | None, prompt: bool) -> list[FakePlayer]:
        sizes.append(options.size)
        return [FakePlayer()]

    monkeypatch.setattr(Game, "prepare", lambda *_: None)
    monkeypatch.setattr("yomi.engine.go.review.make_analysts", make)
    path = tmp_path / "game.sgf"
    path.write_text("(;SZ[9];B[cc];W[dd])")
    assert main(["analyze", str(path), "--net", str(of_one_size), "--device", "cpu"]) == 0
    assert main(["analyze", str(path), "--net", str(network), "--device", "cpu"]) == 0
    assert sizes == [5, 9]


def test_a_good_record_beside_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_reviewers(monkeypatch)
    path = tmp_path / "game.txt"  # told by its content
    path.write_text(SGF)
    assert main(["analyze", str(path)]) == 0
    assert (tmp_path / "game.yomi.sgf").is_file()
    assert main(["analyze", str(path), "--no-record", "--out", str(tmp_path / "none")]) == 0
    assert not (tmp_path / "none").exists()


def test_what_cannot_be_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such file or folder" in error_of(capsys, "analyze", str(tmp_path / "missing.sgf"))
    assert "no records found in this folder" in error_of(capsys, "analyze", str(tmp_path))


def test_only_broken_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a.sgf", "(;GM[2])"), ("b.csa", "nonsense"), ("c.kif", "nonsense")):
        (tmp_path / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        fake_reviewers(patch)
        assert main(["analyze", str(tmp_path)]) == review.BROKEN
    assert capsys.readouterr().err.count("yomi: error: ") == 3


def test_plot_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    (tmp_path / "a.sgf").write_text(SGF)
    assert "a picture needs matplotlib, which is not installed" in error_of(capsys, "analyze", str(tmp_path), "--plot")


def test_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    fake_reviewers(monkeypatch)
    (tmp_path / "a.sgf").write_text(SGF)
    (tmp_path / "b.csa").write_text(CSA)
    assert main(["analyze", str(tmp_path), "--plot"]) == 0
    for name in ("a.yomi.png", "b.yomi.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG\r\n")


def test_thresholds_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    (tmp_path / "a.sgf").write_text(SGF)
    (tmp_path / "b.kif").write_bytes(to_bytes(read_records(CSA), ".kif"))
    assert main(["review", str(tmp_path), "--thresholds", "0.1,20,30%"]) == 0
    assert "thresholds 0.1,20,30%" in capsys.readouterr().out
    comments = [move.comment for move in load_records(tmp_path / "b.yomi.kif")[0].moves]
    assert any("yomi: 悪手; " in comment for comment in comments)
    assert "reviewed by yomi (fake), thresholds 0.1,20,30%" in (tmp_path / "a.yomi.sgf").read_text()
    assert main(["review", str(tmp_path), "--thresholds", "1,2,3points"]) == 2
    assert f"--thresholds 1,2,3points: {tmp_path / 'b.kif'} is shogi, expected % or cp" in capsys.readouterr().err
    assert main(["review", str(tmp_path), "--thresholds", "3,2,1%"]) == 2
    assert "'3,2,1%' found, expected three rising numbers and a unit" in capsys.readouterr().err
