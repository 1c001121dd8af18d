"""The page of a review: its data, and that nothing in a record can break out of it."""

import json
import re
from typing import Any

import numpy as np
import pytest

from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.pages.review import CANDIDATES, index_entry, index_page, page_data, review_page
from yomi.engine.reviews.review import Candidate, Opinion, Review, ownership_letters, reviewed_moves
from yomi.engine.shogi.descriptor import GAME as SHOGI

NASTY = "</script><script>alert(1)</script><!--"


def go_review(**changes: Any) -> Review:
    """Return a review of two moves; the second loses 30% and 12 points."""
    names = {1: "D4", 2: "E5", 3: "C3"}
    candidates = (Candidate(1, 90, 0.5, 0.55, 0.5, (1, 3)), Candidate(2, 10, 0.001, 0.5, -1.0, (2,)))
    opinions = [
        Opinion(BLACK, 0.55, 0.5, 1, (1, 3), candidates=candidates, ownership="Az"),
        Opinion(WHITE, 0.45, -0.5, 3, (3,), candidates=(Candidate(3, 5, 0.9, 0.45, -0.5, (3,)),)),
        Opinion(BLACK, 0.85, 12.0),
    ]
    return Review(
        game="go",
        score=GO.score,
        engine="a network",
        moves=reviewed_moves([1, 2], opinions, names.__getitem__, 12),
        opinions=opinions,
        first_position={"width": 9, "height": 9, "stones": []},
        phases=(1, 2),
        format_move=names.__getitem__,
        **changes,
    )


def data_in(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="\w+">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_moves_have_losses_and_kinds() -> None:
    first, second = page_data(go_review())["moves"]
    assert first == {
        "move": "D4",
        "side": "B",
        "loss": 0.0,
        "scoreLoss": 0.0,
        "kind": "",
        "isBest": True,
        "accuracy": 100.0,
    }
    assert (second["kind"], second["loss"], second["scoreLoss"]) == ("blunder", 0.3, 11.5)
    assert second["accuracy"] == 16.3, "11.5 points weigh more than 30% of winrate"


def test_turns_have_candidates_for_the_mover_and_values_for_black() -> None:
    first, second, _ = page_data(go_review())["turns"]
    assert first["candidates"] == [["D4", 90, 0.5, 0.55, 0.5, "C3"], ["E5", 10, 0.001, 0.5, -1.0, ""]]
    assert first["policy"] == {}, "candidates have their priors"
    assert first["ownership"] == chr(35 + 8), "-1 and +1 are the steps 0 and 8"
    assert (second["winrate"], second["score"]) == (0.55, 0.5)
    assert second["candidates"][0][3] == 0.45


def test_candidates_are_limited() -> None:
    review = go_review()
    many = tuple(Candidate(1, 1, 0.1, 0.5, None, (1,)) for _ in range(CANDIDATES + 3))
    review.opinions[0] = Opinion(BLACK, 0.5, candidates=many)
    assert len(page_data(review)["turns"][0]["candidates"]) == CANDIDATES


def test_ownership_letters() -> None:
    assert ownership_letters(np.array([-1.0, 0.0, 1.0, 7.0], np.float32)) == "A]zz"
    assert ownership_letters(None) == ""


def test_a_missed_mate_is_shown() -> None:
    opinions = [Opinion(BLACK, 1.0, 29995.0, 1, (1,), mate=5), Opinion(WHITE, 0.4, -50.0)]
    review = Review("shogi", SHOGI.score, "", reviewed_moves([2], opinions, str, 8), opinions, format_move=str)
    assert page_data(review)["moves"][0]["missed"] == 5
    opinions[1] = Opinion(WHITE, 0.0, -29994.0, mate=-6)
    review.moves = reviewed_moves([2], opinions, str, 8)
    assert "missed" not in page_data(review)["moves"][0], "a longer mate is no miss"


def test_names_of_a_record_cannot_leave_the_data() -> None:
    page = review_page(go_review(names={BLACK: NASTY, WHITE: "&amp; \u2028"}, result=NASTY))
    assert page.count("<script") == page.count("</script>") == 2
    assert "<!--" not in page
    assert data_in(page)["names"] == {"B": NASTY, "W": "&amp; \u2028"}


def test_names_of_a_record_may_be_the_marks_of_the_page() -> None:
    page = review_page(go_review(names={BLACK: "/*SCRIPT*/", WHITE: "/*STYLE*/"}))
    assert data_in(page)["names"] == {"B": "/*SCRIPT*/", "W": "/*STYLE*/"}


def test_a_page_needs_no_other_file() -> None:
    page = review_page(go_review())
    assert not re.search(r"""(src|href)=|@import|url\(|fetch\(|XMLHttpRequest|WebSocket""", page)
    assert "default-src 'none'" in page
    for mark in ("/*STYLE*/", "/*DATA*/", "/*SCRIPT*/"):
        assert mark not in page


def test_an_index_links_to_pages_and_keeps_names_in_its_data() -> None:
    review = go_review(names={BLACK: NASTY, WHITE: "白"}, result="W+R", date="2026-11-29")
    page = index_page([("a <b>", "folder/a b#1.yomi.html", index_entry(review))])
    assert page.count("<script") == page.count("</script>") == 2
    (entry,) = data_in(page)
    assert (entry["name"], entry["address"]) == ("a <b>", "folder/a%20b%231.yomi.html")
    assert (entry["names"], entry["result"], entry["date"]) == ({"B": NASTY, "W": "白"}, "W+R", "2026-11-29")
    assert entry["hasPoints"], "points come first in Go"
    assert entry["results"] == {
        "B": [1, 99.9999, 1.0, 0.0, 0, 0, 0],
        "W": [1, pytest.approx(16.3, abs=0.1), 0.0, 11.5, 1, 0, 0],
    }
