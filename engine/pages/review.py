"""Reviews as web pages: a self-contained page for each game, and an index. Their parts are the files in this folder."""

import itertools
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from yomi.engine.color import BLACK, WHITE
from yomi.engine.mistakes import CLASSES
from yomi.engine.reviews.review import LETTERS, PHASES, Opinion, Review, ReviewedMove
from yomi.language import ENGLISH, JAPANESE, within

CANDIDATES, LINE_MOVES = 8, 12  # of a position, at most
LINES, SHORT_LINE = 3, 6  # candidates with lines of LINE_MOVES moves, and the length of other candidates' lines
MIN_PRIOR = 0.01  # smaller priors are invisible on the board


def review_page(review: Review, quiz: Sequence[int] = ()) -> str:
    """Return the page of a review. It works when opened from a file, and makes no request.

    `quiz` are the sides whose mistakes the page asks for first; empty for none.
    """
    # the data come last: a record may contain any text, also a mark
    data = page_data(review) | ({"quiz": [LETTERS[color] for color in quiz]} if quiz else {})
    return fill(part("review.html"), part("quiz.js"), part("review.js")).replace("/*DATA*/", _script_data(data), 1)


def fill(page: str, *scripts: str) -> str:
    """Return a page with the common style and its scripts. The script of the boards comes before them."""
    script = part("board.js") + "".join(each.replace('"use strict";\n', "", 1) for each in scripts)
    return page.replace("/*STYLE*/", part("review.css"), 1).replace("/*SCRIPT*/", script, 1)


def page_data(review: Review) -> dict[str, Any]:
    """Return the data of a review for the page. review.js describes them (type Review)."""
    facts = {}
    for name in (ENGLISH, JAPANESE):
        with within(name):
            facts[name] = review.facts()
    return {
        "game": review.game,
        **review.first_position,
        "names": {LETTERS[color]: review.names.get(color, "") for color in (BLACK, WHITE)},
        "sides": {LETTERS[color]: side for color, side in review.sides.items()},
        "facts": facts,
        "hasPoints": review.has_points,
        "result": review.result,
        "moves": [_move(review, move) for move in review.moves],
        "turns": [_turn(review, opinion) for opinion in review.opinions],
        "phases": list(review.phases),
        "summaries": {
            LETTERS[color]: [_summary(review, color, phase) for phase in (None, *range(len(PHASES)))]
            for color in (BLACK, WHITE)
        },
    }


def _summary(review: Review, color: int, phase: int | None) -> list[float | None]:
    """Return a summary in the order of SUMMARY in review.js."""
    found = review.summary(color, phase)
    loss = found["score_loss" if review.has_points else "winrate_loss"]
    means = [None if mean is None else round(mean, 4) for mean in (found["accuracy"], found["best"], loss)]
    return [found["moves"], *means, *(found["classes"][name] for name in reversed(CLASSES))]


def _move(review: Review, move: ReviewedMove) -> dict[str, Any]:
    return {
        "move": move.text,
        "side": LETTERS[move.color],
        "loss": round(move.winrate_loss, 4),
        "scoreLoss": None if move.score_loss is None else round(move.score_loss, 2),
        "kind": review.class_of(move),
        "isBest": move.is_best,
        "accuracy": round(review.accuracy_of(move), 1),
        **({} if move.missed_mate is None else {"missed": move.missed_mate}),
    }


def _turn(review: Review, opinion: Opinion) -> dict[str, Any]:
    score = opinion.score_for(BLACK)
    name = review.format_move
    shown, others = opinion.candidates[:CANDIDATES], opinion.candidates[CANDIDATES:]
    return {
        "side": LETTERS[opinion.color],
        "winrate": round(opinion.winrate_for(BLACK), 4),
        "score": None if score is None else round(score, 2),
        "mate": opinion.mate,
        "candidates": [
            [
                name(each.move),
                each.visits,
                round(each.prior, 4),
                round(each.winrate, 4),
                None if each.score is None else round(each.score, 2),
                " ".join(map(name, each.pv[1 : LINE_MOVES if place < LINES else SHORT_LINE])),
            ]
            for place, each in enumerate(shown)
        ],
        **({"ownership": packed(opinion.ownership)} if opinion.ownership else {}),
        "policy": {name(each.move): round(each.prior, 3) for each in others if each.prior >= MIN_PRIOR},
    }


def packed(ownership: str) -> str:
    """Return ownership with two points in a character, in nine steps each: 350 positions take 60 kB, not 120."""
    steps = [round((ord(letter) - 65) / 57 * 8) for letter in ownership]
    pairs = itertools.zip_longest(steps[::2], steps[1::2], fillvalue=0)
    codes = (35 + 9 * first + second for first, second in pairs)
    return "".join(chr(code + (code >= 60) + (code >= 91)) for code in codes)  # without < and backslash


def part(name: str) -> str:
    """Return the text of a file for pages: style, script or frame."""
    return files("yomi.engine.pages").joinpath(name).read_text("utf-8")


def _script_data(data: Any) -> str:
    """Return JSON that cannot end the script element, even if a name in the record contains its closing tag."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def index_page(reviews: Sequence[tuple[str, str, dict[str, Any]]]) -> str:
    """Return a page that lists reviews. Each is (name, address of its page, its `index_entry`)."""
    entries = [{"name": name, "address": quote(address), **entry} for name, address, entry in reviews]
    return fill(part("index.html"), part("index.js")).replace("/*DATA*/", _script_data(entries), 1)


def index_entry(review: Review) -> dict[str, Any]:
    """Return a review's part of the list of reviews. index.js describes it (type Entry)."""
    return {
        "game": review.game,
        "date": review.date,
        "names": {letter: review.names.get(color, "") for color, letter in LETTERS.items()},
        "result": review.result,
        "toMove": LETTERS[review.opinions[-1].color],
        "hasPoints": review.has_points,
        "results": {letter: _summary(review, color, None) for color, letter in LETTERS.items()},
    }
