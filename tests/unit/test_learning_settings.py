"""Settings of the learning loop: what they may be, and what is written of them."""

from pathlib import Path
from typing import Any

import pytest

from engine.learning.settings import LearnSettings, make_settings, reference, training_tables
from engine.option_row import OptionError

ROOT = Path(__file__).resolve().parents[2]


def test_the_documentation_has_all_of_them() -> None:
    text = (ROOT / "docs/LEARNING.md").read_text(encoding="utf-8")
    assert reference() in text, "put engine.learning.settings.reference() into docs/LEARNING.md"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"visitss": 3}, "setting visitss: expected one of search, visits,"),
        ({"visits": 1}, "visits 1: expected 2 to inf"),
        ({"visits": 2.5}, "visits 2.5: expected int"),
        ({"full_share": 1.5}, "full_share 1.5: expected 0.01 to 1"),
        ({"search": "minimax"}, "search minimax: expected one of puct, gumbel"),
        ({"keep_tree": 1}, "keep_tree 1: expected bool"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        make_settings(values)
    assert str(caught.value).startswith(message)


def test_tables_of_ones_own_are_put_over_the_settings() -> None:
    settings = make_settings({"rows": 3200, "passes": 2, "batch": 64})
    tables = training_tables(settings, {"kind": "go"}, {"training": {"batch": 32}, "loss": {"lead": 1.0}}, 1)
    assert tables["network"] == {"name": "yomi-learn", "kind": "go"}
    assert tables["training"]["batch"] == 32
    assert tables["training"]["decay"] == pytest.approx(1 - 1 / 100)
    assert tables["loss"]["lead"] == 1.0
    assert LearnSettings() == make_settings({})
