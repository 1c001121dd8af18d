"""Broken lines; `python -m tests.process.usi_fuzz` sends as many as one likes."""

import pytest

from tests.process.usi_fuzz import Checker, is_go, run_engine, run_session


def test_handlers() -> None:
    run_session(4000, seed=20)


@pytest.mark.slow
def test_process() -> None:
    run_engine(1000, 21, ["tests.process.fake_usi_engine"])


def test_the_checker_sees_faults() -> None:
    assert is_go(b"\tGO infinite")
    assert not is_go(b"going")
    for line in ("bestmove 7g7f", "info depth 1", "nonsense", "info string Error! go: internal error: x"):
        with pytest.raises(AssertionError):
            Checker().see(line)
