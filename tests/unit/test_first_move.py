"""The limit on the processor time from an empty cache to the first move."""

import sys

import pytest

from tests import first_move


def test_one_of_the_tries_must_keep_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = first_move.EXPECTED * first_move.TOLERANCE
    ratios, kept = iter([limit + 1.0, limit - 0.1]), list[str | None]()
    monkeypatch.setattr(first_move, "measure", lambda cache: kept.append(cache) or next(ratios))
    first_move.main(["cache"])
    assert kept == ["cache", None], "the second try needs another empty cache"
    monkeypatch.setattr(first_move, "measure", lambda cache: limit + 0.1)
    with pytest.raises(SystemExit, match="find what compiles longer"):
        first_move.main()


@pytest.mark.linux  # Windows does not add up the times of ended processes
def test_processor_time_is_that_of_the_command() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    assert 0.27 <= first_move.processor_time([sys.executable, "-c", busy]) < 3.0  # in ticks of 0.01 s
    with pytest.raises(SystemExit, match="expected a move"):
        first_move.processor_time([sys.executable, "-c", "print('? no')"], "genmove b\n")
