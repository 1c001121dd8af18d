"""Ten thousand broken lines; `python -m tests.process.gtp_fuzz` sends as many as one likes."""

from pathlib import Path

import pytest

from tests.process.gtp_fuzz import check, expected_id, make_files, run_engine, run_session


def test_handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_files(tmp_path)
    run_session(10_000, seed=20)


@pytest.mark.slow
def test_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_files(tmp_path)
    run_engine(1000, 21, ["tests.process.fake_engine"])


def test_the_checker_sees_faults() -> None:
    assert expected_id(b"12 name") == "12"
    assert expected_id(b"name # 12") == ""
    assert expected_id(b" # 12") is None
    for answer in ("", "=13 yomi\n\n", "=12 yomi\n", "=12 a\n\nb\n\n", "?12 internal error: x\n\n"):
        with pytest.raises(AssertionError):
            check(b"12 name", answer)
