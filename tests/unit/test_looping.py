"""A test in a loop gets every case and its fixtures, and a failure names its case."""

import pytest

from tests.looping import looped

seen: list[object] = []


@pytest.fixture
def forget() -> None:
    seen.clear()


@looped("first", [1, 2])
@looped(("second", "third"), [("a", "b"), ("c", "d")])
def pairs(first: int, second: str, third: str, forget: None) -> None:
    seen.append((first, second, third))


test_pairs = pairs


def test_every_case_was_called(forget: None) -> None:
    pairs(forget=forget)
    assert seen == [(1, "a", "b"), (1, "c", "d"), (2, "a", "b"), (2, "c", "d")]


def test_a_failure_names_its_case() -> None:
    @looped("number", [0, 1])
    def fails(number: int) -> None:
        assert number == 0

    with pytest.raises(AssertionError) as caught:
        fails()
    assert caught.value.__notes__ == ["case: {'number': 1}"]
