"""Prepared processes behave as fresh ones do."""

import json
import os
import signal
import subprocess
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.process.prepared import fresh, prepared

pytestmark = pytest.mark.linux
SHOW = "import json, os, sys; print(json.dumps([sys.argv, os.getcwd(), os.environ['GIVEN'], sys.stdout.encoding]))"
STARTS = [prepared, fresh]


@pytest.mark.parametrize("typed", ["{}", "{", ""])
def test_streams_and_status(typed: str) -> None:
    ends = [subprocess.run(start("json.tool"), input=typed, capture_output=True, text=True) for start in STARTS]
    assert ends[0].returncode == ends[1].returncode
    assert ends[0].stdout == ends[1].stdout
    assert ends[0].stderr.splitlines()[-1:] == ends[1].stderr.splitlines()[-1:]


@pytest.mark.parametrize("settings", [{}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "NUMBA_OPT": "1"}])
def test_folder_and_environment(settings: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "show.py").write_text(SHOW)
    environment = {**os.environ, "GIVEN": "ü", "PYTHONPATH": str(tmp_path), **settings}
    shown = [subprocess.check_output(start("show", "a b"), cwd=tmp_path, env=environment) for start in STARTS]
    assert json.loads(shown[0]) == json.loads(shown[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals(number: int) -> None:
    ends = []
    for start in STARTS:
        command = start("tests.process.fake_engine")
        with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"name\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"= yomi\n"
            process.send_signal(number)
            assert process.stdout.read() == b"\n", "the end of the prepared process"
            ends.append(process.wait())
    assert ends[0] == ends[1]
