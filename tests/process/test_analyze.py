"""`yomi review` in a process: the real search over records of both games."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.process.engine_process import PATIENCE, ROOT
from tests.process.prepared import prepared
from yomi.engine.go.record_files import load_record
from yomi.engine.shogi.records.files import load_records

pytestmark = pytest.mark.slow

SGF = "(;GM[1]SZ[9]KM[7]RU[Tromp-Taylor];B[ee];W[cc];B[gg];W[gc];B[cg];W[ec])"
MATE = "sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G 1 moves 5i4h 5a4a\n"  # a gold at 5b mates
USI = "startpos moves 7g7f 3c3d 8h2b+ 3a2b B*9f\n"


def test_records_of_both_games(tmp_path: Path) -> None:
    (tmp_path / "go.sgf").write_text(SGF)
    (tmp_path / "shogi.usi").write_text(USI)
    (tmp_path / "mate.sfen").write_text(MATE)
    (tmp_path / "broken.kif").write_text("手合割：平手\n   1 ５五歩(57)\n   2 ３四歩(33)\n")
    report = tmp_path / "report.json"
    flags = ("--visits", "8", "--memory", "64M", "--seed", "1", "--workers", "1", "--json")
    done = subprocess.run(
        prepared("yomi", "analyze", str(tmp_path), *flags, str(report)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    assert "yomi: error: " in done.stderr
    assert "broken.kif: no move was understood: line 2" in done.stderr
    assert "Traceback" not in done.stderr
    found = {Path(each["file"]).name: each for each in json.loads(report.read_text())}
    assert set(found) == {"go.sgf", "shogi.usi", "mate.sfen", "broken.kif"}
    assert found["mate.sfen"]["moves"][0]["missed_mate"] == 1
    assert found["mate.sfen"]["black"]["missed_mates"] == 1
    for name, moves in (("go.sgf", 6), ("shogi.usi", 5)):
        assert len(found[name]["moves"]) == moves
        assert len(found[name]["positions"]) == moves + 1
        assert all(0.0 <= each["winrate"] <= 1.0 for each in found[name]["positions"])
        assert f"{tmp_path / name}: Black against White, " in done.stdout
    assert done.stdout.count("\nBlack: 3 moves") == 2
    bishop = found["shogi.usi"]["moves"][4]
    assert bishop["move"] == "B*9f"
    assert len(list(load_record(tmp_path / "go.yomi.sgf").line())) == 7
    assert [each.comment[:6] for each in load_records(tmp_path / "shogi.yomi.csa")[0].moves] == ["yomi: "] * 5
