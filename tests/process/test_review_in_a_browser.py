"""Pages of reviews in a real Chromium, on the screens of a desktop and a phone."""

from __future__ import annotations

import functools
import json
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.process.pages import SCREENS, Open, assert_fits, axe_faults, coordinates, corner, write_page_of
from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import PASS, Board, square
from yomi.engine.pages.review import index_page, review_page
from yomi.engine.reviews.review import Candidate, Opinion, Review, reviewed_moves
from yomi.engine.shogi.descriptor import GAME as SHOGI
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import format_usi

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BOARD = Board(19, 19)
MOVES = 250
LARGEST = 300_000  # bytes of a page
SLOWEST = 5.0  # seconds until a page is drawn; on an idle machine it takes less than one


def opinions(game: Any, moves: list[int], rng: random.Random) -> list[Opinion]:
    """Return made-up opinions of every position, each with six candidates with lines of legal moves."""
    found = []
    for move in (*moves, None):
        legal = list(game.legal_moves())
        chosen = rng.sample(legal, min(6, len(legal)))
        winrate = rng.choice((0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.7))
        candidates = tuple(Candidate(each, 50, 0.1, winrate, 0.0, line(game, each, rng)) for each in chosen)
        area = "".join(rng.choice("A]z") for _ in range(361)) if isinstance(game, GoGame) else ""
        first = candidates[0]
        found.append(
            Opinion(game.side_to_move, winrate, 0.0, first.move, first.pv, candidates=candidates, ownership=area)
        )
        if move is not None:
            play(game, move)
    return found


def line(game: Any, first: int, rng: random.Random) -> tuple[int, ...]:
    after, moves = game.copy(), [first]
    play(after, first)
    while len(moves) < 8 and not is_over(after) and (legal := list(after.legal_moves())):
        moves.append(rng.choice(legal))
        play(after, moves[-1])
    return tuple(moves)


def is_over(game: Any) -> bool:
    return bool(game.is_over if isinstance(game, GoGame) else game.outcome() is not None)


def play(game: Any, move: int) -> None:
    if isinstance(game, GoGame):
        game.play(game.side_to_move, move)
    else:
        game.play(move)


def random_moves(game: Any, rng: random.Random) -> list[int]:
    moves: list[int] = []
    while len(moves) < MOVES and not is_over(game):
        legal = list(game.legal_moves())
        moves.append(rng.choice([move for move in legal if move != PASS] or legal))
        play(game, moves[-1])
    return moves


@functools.cache
def go_page() -> tuple[str, list[Any]]:
    """Return a page, and the stones after every move."""
    rng = random.Random(7)
    moves = random_moves(GoGame(square(19)), rng)
    found = opinions(GoGame(square(19)), moves, rng)
    replayed, boards = GoGame(square(19)), []
    for move in (*moves, None):
        stones = [0] * 361
        for color, point in replayed.stones():
            vertex = square(19).vertex(point)
            stones[(19 - int(vertex[1:])) * 19 + "ABCDEFGHJKLMNOPQRST".index(vertex[0])] = color
        boards.append(stones)
        if move is not None:
            play(replayed, move)
    review = Review(
        "go",
        GO.score,
        "a network",
        reviewed_moves(moves, found, square(19).vertex, 12),
        found,
        names={BLACK: "Kuro", WHITE: "Shiro"},
        first_position={"width": 19, "height": 19, "stones": []},
        phases=(50, 150),
        format_move=square(19).vertex,
    )
    return review_page(review), boards


@functools.cache
def shogi_page() -> tuple[str, list[Any]]:
    """Return a page, and the SFEN after every move, without the move number."""
    rng = random.Random(8)
    moves = random_moves(ShogiGame(), rng)
    found = opinions(ShogiGame(), moves, rng)
    replayed, boards = ShogiGame(), []
    for move in (*moves, None):
        boards.append(replayed.sfen().rpartition(" ")[0])
        if move is not None:
            play(replayed, move)
    review = Review(
        "shogi",
        SHOGI.score,
        "a network",
        reviewed_moves(moves, found, format_usi, 8),
        found,
        names={BLACK: "先手の人", WHITE: "後手の人"},
        first_position={"sfen": ShogiGame().sfen()},
        phases=(30, 80),
        format_move=format_usi,
    )
    return review_page(review), boards


SFENS = """positions.map(({ squares, hands, toMove }) => {
  const rows = Array.from({ length: 9 }, (_, row) => squares.slice(9 * row, 9 * row + 9)
    .map((piece) => !piece ? "1" : (piece.isPromoted ? "+" : "") +
      (piece.color === 1 ? piece.kind : piece.kind.toLowerCase()))
    .join("").replace(/1+/g, (gap) => gap.length));
  const held = [1, 2].map((color) => Array.from("RBGSNLP", (kind) => {
    const count = hands[color][kind] ?? 0, letter = color === 1 ? kind : kind.toLowerCase();
    return count === 0 ? "" : count === 1 ? letter : count + letter;
  }).join("")).join("");
  return `${rows.join("/")} ${toMove === 1 ? "b" : "w"} ${held || "-"}`;
})"""


@pytest.mark.parametrize(("locale", "screen"), [("ja-JP", "desktop"), ("en-US", "phone")])
@pytest.mark.parametrize("make", [go_page, shogi_page])
def test_a_review_of_a_long_game(open_page: Open, tmp_path: Path, make: Any, locale: str, screen: str) -> None:
    text, boards = make()
    path = write_page_of(text, tmp_path)
    assert path.stat().st_size <= LARGEST
    page, requests = open_page(viewport=SCREENS[screen], locale=locale), []
    page.on("request", lambda request: requests.append(request.url))
    begin = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("#board svg")
    assert time.perf_counter() - begin < SLOWEST
    # The page plays moves by the game's rules: captures in Go, hands and promotions in shogi.
    if make is go_page:
        assert page.evaluate("positions.map((position) => Array.from(position.stones))") == boards
    else:
        assert page.evaluate(SFENS) == boards
    assert page.inner_text("#mistakes-title") == ("悪手一覧" if locale == "ja-JP" else "Mistakes")
    count = page.evaluate("mistakes.length")
    assert count > 10
    page.keyboard.press("End")
    assert page.evaluate("state.turn") == len(boards) - 1
    page.keyboard.press("Home")
    # Every mistake is reached by the keyboard, and its better line can be played to the end and left.
    seen = []
    later = page.evaluate("mistakes.filter((number) => number > 0)")
    for _ in later:
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        shown = page.evaluate("[state.turn, state.line.length, state.step]")
        assert shown[1] > 0
        assert shown[2] == 1
        page.keyboard.press("ArrowRight")
        assert page.evaluate("state.step") == min(2, shown[1])
        page.keyboard.press("Escape")
        assert page.evaluate("state.step") == 0
        seen.append(shown[0])
    assert seen == later
    assert_fits(page, screen)
    page.click("#language")
    assert page.inner_text("#mistakes-title") == ("Mistakes" if locale == "ja-JP" else "悪手一覧")
    assert_fits(page, screen)
    assert requests == [path.as_uri()]


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("make", [go_page, shogi_page])
def test_problems_hide_the_answer_until_a_move(open_page: Open, tmp_path: Path, make: Any, screen: str) -> None:
    page = open_page(write_page_of(make()[0], tmp_path).as_uri(), viewport=SCREENS[screen], locale="en-US")
    page.click("[data-go=quiz]")
    count = page.evaluate("quiz.numbers.length")
    assert count == page.evaluate("mistakes.length")
    for key in ("Enter", "ArrowRight", "End"):  # keys that would show the answer
        page.keyboard.press(key)
    assert page.evaluate("[quiz.place, state.turn === quiz.numbers[0], state.step]") == [0, True, 0]
    for hidden in ("#mistakes", "#moves", "#graph", "#slider"):
        assert not page.is_visible(hidden)
    assert page.inner_text("#status").startswith(f"Problem 1 of {count} · ")
    # the best move, then the move of the game, both on the board
    for place, kind in ((0, "bestLine(number)[0]"), (1, "review.moves[number].move")):
        move = page.evaluate(f"((number) => {kind})(quiz.numbers[{place}])")
        click_move(page, move)
        text = page.inner_text("#status")
        assert ("Right: the best move" if place == 0 else "The move of the game: it loses") in text
        assert f"1 of {count} solved" in text
        assert page.is_visible("#moves")
        assert not page.is_visible("#mistakes")
        page.keyboard.press("ArrowDown")
    # a typed move and the button; the better line can be played after that
    page.fill("[name=answer]", "nonsense")
    page.press("[name=answer]", "Enter")
    assert "Unknown move: nonsense" in page.inner_text("#status")
    move = page.evaluate("review.turns[state.turn].candidates[1][0]")
    page.fill("[name=answer]", move.lower() if make is go_page else move)
    page.press("[name=answer]", "Enter")
    points = "0.0 points, " if make is go_page else ""
    assert f"Right: it loses {points}0.0% only" in page.inner_text("#status"), "all candidates have one value here"
    page.keyboard.press("ArrowDown")
    page.click("[data-quiz=reveal]")
    assert "best is" in page.inner_text("#status")
    page.keyboard.press("Enter")
    assert page.evaluate("state.step") == 1
    page.keyboard.press("Escape")
    page.select_option("#sides", "W")
    sides = page.evaluate("quiz.numbers.map((number) => review.moves[number].side)")
    assert set(sides) == {"W"}
    assert 0 < len(sides) < count
    assert_fits(page, screen)
    page.keyboard.press("Escape")
    assert page.is_visible("#mistakes")
    assert not page.is_visible("#quiz")


@pytest.mark.parametrize("make", [go_page, shogi_page])
def test_a_hidden_field_and_a_hidden_button_lose_the_focus_at_once(open_page: Open, tmp_path: Path, make: Any) -> None:
    page = open_page(write_page_of(make()[0], tmp_path).as_uri())
    page.click("[data-go=quiz]")
    # In one task, so that nothing is painted between: the next key would go to the hidden element.
    focused = """([selector, act]) => {
      const element = document.querySelector(selector);
      element.focus();
      const has = document.activeElement === element;
      act === "click" ? element.click() : element.form.requestSubmit();
      return [has, document.activeElement === document.body];
    }"""
    page.fill("[name=answer]", page.evaluate("bestLine(quiz.numbers[0])[0]"))
    assert page.evaluate(focused, ["[name=answer]", "submit"]) == [True, True]
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused, ["[data-quiz=reveal]", "click"]) == [True, True]
    page.keyboard.press("Enter")
    assert page.evaluate("state.step") == 1


def click_move(page: Any, move: str) -> None:
    """Click a move's point, or its piece and its square."""
    if "a" <= move[-1] <= "i" or move.endswith("+"):
        page.click(f'[data-hand="{move[0]}"]' if move[1] == "*" else f'[data-place="{move[:2]}"]')
        page.click(f'[data-place="{move[2:4]}"]')
        if page.is_visible("#promotion"):
            page.click(f"[data-quiz={'promote' if move.endswith('+') else 'keep'}]")
    else:
        page.click(f'[data-place="{move}"]')


def test_a_page_can_begin_with_problems(open_page: Open, tmp_path: Path) -> None:
    text = go_page()[0].replace('"phases":', '"quiz":["B"],"phases":', 1)
    page = open_page(write_page_of(text, tmp_path).as_uri(), locale="ja-JP")
    assert page.inner_text("#status").startswith("第1問／全")
    assert page.evaluate("quiz.sides") == ["B"]


@pytest.mark.parametrize("make", [go_page, shogi_page])
def test_a_review_turned(open_page: Open, tmp_path: Path, make: Any) -> None:
    text = make()[0].replace('"phases":', '"quiz":["W"],"phases":', 1)
    page = open_page(write_page_of(text, tmp_path).as_uri(), locale="ja-JP")
    place = "A1" if make is go_page else "9i"
    assert corner(page, place) == "top right", "White's problems are seen from White"
    page.keyboard.press("f")
    assert corner(page, place) == "bottom left"
    page.click("[data-quiz=leave]")
    turned = coordinates(page)
    page.click("#turn")
    columns = 8 if make is go_page else 9
    straight = coordinates(page)
    assert (straight[:columns], straight[columns:]) == (turned[:columns][::-1], turned[columns:][::-1])


def varied_page(make: Any) -> tuple[str, dict[str, Any]]:
    """Return the page of a review with losses and classes of many sizes, and its data."""
    text = make()[0]
    begin, end = text.index('id="review">') + len('id="review">'), text.index("</script>")
    data: dict[str, Any] = json.loads(text[begin:end])
    rng = random.Random(9)
    for move in data["moves"]:
        move["loss"] = rng.choice((0.0, 0.01, 0.02, 0.05, 0.1, 0.2, rng.random()))
        move["scoreLoss"] = rng.choice((0.0, 0.5, 1.5, 3, 6, 12, 20 * rng.random()))
        move["kind"] = rng.choice(["", "", "inaccuracy", "mistake", "blunder"])
    data["names"] = {"B": "Kuro", "W": "Shiro"}
    return text[:begin] + json.dumps(data) + text[end:], data


def rows_of(page: Any) -> list[int]:
    numbers: list[int] = page.evaluate(
        "[...document.querySelectorAll('#mistakes tbody tr')].map((row) => +row.dataset.number)"
    )
    return numbers


@pytest.mark.parametrize("make", [go_page, shogi_page])
def test_mistakes_of_one_player_by_size_and_by_number(open_page: Open, tmp_path: Path, make: Any) -> None:
    text, data = varied_page(make)
    page = open_page(write_page_of(text, tmp_path).as_uri(), locale="en-US")
    loss = "scoreLoss" if make is go_page else "loss"
    classes = ["", "inaccuracy", "mistake", "blunder"]
    for sides in ("BW", "W", "B"):
        page.select_option("#player", sides)
        moves = [(number, move) for number, move in enumerate(data["moves"]) if move["kind"] and move["side"] in sides]
        page.select_option("#order", "size")
        ranked = sorted(moves, key=lambda each: (-classes.index(each[1]["kind"]), -each[1][loss]))
        assert rows_of(page) == [number for number, _ in ranked]
        page.select_option("#order", "move")
        assert rows_of(page) == [number for number, _ in moves]
        seen = page.evaluate("[viewer(), document.querySelectorAll('#summary tr.whole').length]")
        assert seen == ["W" if sides == "W" else "B", len(sides)]
        page.keyboard.press("Home")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("state.turn") == next(number for number, _ in moves if number)
    page.keyboard.press("End")
    page.focus("#player")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("state.turn") == len(data["moves"]), "a list keeps its own keys"


@pytest.mark.parametrize("make", [go_page, shogi_page])
def test_the_histogram_counts_moves_by_loss(open_page: Open, tmp_path: Path, make: Any) -> None:
    text, data = varied_page(make)
    page = open_page(write_page_of(text, tmp_path).as_uri(), locale="en-US")
    if make is go_page:
        edges, names = [0, 0.5, 1.5, 3, 6, 12], ["below 0.5", "0.5–1.5", "1.5–3", "3–6", "6–12", "12 and more"]
    else:
        edges = [0, 0.01, 0.02, 0.05, 0.1, 0.2]
        names = ["below 1%", "1%–2%", "2%–5%", "5%–10%", "10%–20%", "20% and more"]
    wanted = []
    for place, name in enumerate(names):
        above = edges[place + 1] if place < 5 else 1e9
        losses = [(move["side"], move["scoreLoss" if make is go_page else "loss"]) for move in data["moves"]]
        counts = [sum(edges[place] <= loss < above for owner, loss in losses if owner == side) for side in "BW"]
        wanted.append([name, *map(str, counts)])
    shown = page.evaluate(
        """[...document.querySelectorAll('#histogram tbody tr')].map((row) =>
            [...row.querySelectorAll('td:not(.bar)')].map((cell) => cell.textContent))"""
    )
    assert shown == wanted
    assert sum(int(row[1]) + int(row[2]) for row in shown) == len(data["moves"])
    widths = page.evaluate("[...document.querySelectorAll('.bar span')].map((bar) => parseFloat(bar.style.width))")
    most = max(int(count) for row in shown for count in row[1:])
    assert widths == pytest.approx([100 * int(count) / most for row in shown for count in row[1:]], abs=0.01)


NUMBERS = """[...document.querySelectorAll('#board text')].filter((text) => text.getAttribute('font-weight') === '700')
    .flatMap((text) => text.textContent.split(' ')).filter((text) => /^[0-9]+$/.test(text)).map(Number)
    .sort((a, b) => a - b)"""


@pytest.mark.parametrize("make", [go_page, shogi_page])
def test_a_line_is_numbered_on_the_board(open_page: Open, tmp_path: Path, make: Any) -> None:
    address = write_page_of(make()[0], tmp_path).as_uri()
    page = open_page(address, viewport=SCREENS["desktop"])
    page.evaluate("goTo(3)")
    move = page.evaluate("bestLine(3)[0]")
    target = f'#board [data-move="{move}"]' if make is go_page else "#board [data-move]"
    page.hover(target)
    line = page.evaluate("state.hover.line")
    count = len(set(line)) if make is go_page else len(line)
    assert page.evaluate(NUMBERS) == list(range(1, count + 1))
    page.hover('#moves [data-line="0"][data-step="3"]')
    assert page.evaluate(NUMBERS) == [1, 2, 3]
    page.hover("#graph-title")
    assert page.evaluate("[state.hover, state.step, state.turn]") == [None, 0, 3], "nothing is left on the board"
    page.focus("#moves button")
    assert page.evaluate(NUMBERS)[:3] == [1, 2, 3]
    page.click('#moves [data-line="1"][data-step="2"]')
    assert page.evaluate("[state.turn, state.step, state.line]") == [
        3,
        2,
        page.evaluate("review.turns[3].candidates[1][5]"),
    ]
    page = open_page(address, viewport=SCREENS["phone"], has_touch=True)
    page.evaluate("goTo(3)")
    page.tap(target)
    assert page.evaluate(NUMBERS)[:3] == [1, 2, 3], "a finger that was lifted leaves the numbers"
    assert page.evaluate("state.step") == 0


@pytest.mark.parametrize("make", [go_page, shogi_page])
def test_a_wrong_answer_is_refuted_on_the_board(open_page: Open, tmp_path: Path, make: Any) -> None:
    page = open_page()
    page.clock.install()
    page.goto(write_page_of(make()[0], tmp_path).as_uri())
    page.click("[data-go=quiz]")
    number = page.evaluate("quiz.numbers[0]")
    page.evaluate(f"answer(review.moves[{number}].move)")
    wanted = page.evaluate(f"[[review.moves[{number}].move, ...bestLine({number} + 1)], bestLine({number})]")
    seen: list[tuple[str, list[str], int]] = []
    for _ in range(60):
        page.clock.run_for(500)
        shown = tuple(page.evaluate("[state.name, state.line, state.step]"))
        if shown[2] and (not seen or seen[-1] != shown):
            seen.append(shown)
    assert seen == [
        (name, line, step + 1)
        for name, line in zip(["refutation", "betterLine"], wanted, strict=True)
        for step in range(len(line))
    ]
    page.keyboard.press("Escape")
    page.click("[data-quiz=refute]")
    assert page.evaluate("[state.name, state.step]") == ["refutation", 1]
    page.click("#line-steps [data-go=after]")
    assert page.evaluate("state.step") == 2
    page.click("#line-steps [data-go=return]")
    assert page.evaluate("[state.step, state.turn]") == [0, number]
    assert not page.is_visible("#line-steps")
    page.emulate_media(reduced_motion="reduce")
    page.click("[data-quiz=following]")
    page.evaluate("answer(review.moves[quiz.numbers[1]].move)")
    page.clock.run_for(5000)
    assert page.evaluate("state.step") == 0, "nothing moves by itself for readers who do not want it"


# Texts whose color has too little contrast to the color behind them, by the formula of WCAG 2
CONTRAST = """[...document.querySelectorAll('body *')].filter((element) =>
    !element.closest('svg, option, script, style') && element.checkVisibility() &&
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
  .flatMap((element) => {
    const channels = (color) => color.match(/[0-9.]+/g).map(Number);
    const light = ([red, green, blue]) => [red, green, blue].map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
      .reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
    let behind = element;
    const back = (each) => channels(getComputedStyle(each).backgroundColor);
    while (behind.parentElement && back(behind)[3] === 0) behind = behind.parentElement;
    const lights = [channels(getComputedStyle(element).color), back(behind)].map(light);
    const ratio = (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
    return ratio < 4.5 ? [`${element.textContent} ${ratio}`] : [];
  })"""


def foreign_words(page: Any, locale: str) -> list[str]:
    """Return words of a page, except on the board, that are in another language than the page."""
    text = page.evaluate(
        """(() => {
            const board = document.getElementById("board") ?? document.createElement("div");
            board.hidden = true;
            const text = document.body.innerText;
            board.hidden = false;
            return text.replace("日本語", "");
        })()"""
    )
    if locale == "en-US":
        return re.findall("[\u3040-\u30ff\u4e00-\u9fff]+", text)
    own = {"English", "Kuro", "Shiro", "yomi", "network", "Home", "End", "Enter", "Escape", "game"}
    return [word for word in re.findall("[A-Za-z]{2,}", text) if word not in own]


@pytest.mark.parametrize("locale", ["en-US", "ja-JP"])
@pytest.mark.parametrize("make", [go_page, shogi_page])
def test_the_look_of_a_review(open_page: Open, tmp_path: Path, make: Any, locale: str) -> None:
    page = open_page(write_page_of(varied_page(make)[0], tmp_path).as_uri(), viewport=SCREENS["desktop"], locale=locale)
    page.evaluate("goTo(mistakes[3])")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRAST) == []
    assert foreign_words(page, locale) == []
    names = "Score Winrate blunder mistake inaccuracy" if locale == "en-US" else "形勢 勝率 悪手 疑問手 緩手"
    if make is shogi_page:
        names = names.replace("Score Winrate", "Winrate Score").replace("形勢 勝率", "勝率 評価値")
    assert page.inner_text(".legend").split()[:5] == names.split()
    tops = """new Set([...document.querySelectorAll('#mistake-steps button:not([hidden])')]
        .map((each) => each.offsetTop)).size"""
    assert page.evaluate(tops) == 1, "the buttons are in one row"
    page.keyboard.press("Enter")
    assert page.evaluate(tops) == 1
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(CONTRAST) == []
    assert page.is_visible("#board svg")
    assert not any(each.is_visible() for each in page.locator("button:not(td button), select, #slider").all())
    page.emulate_media(media="screen")
    page.set_viewport_size(SCREENS["phone"])
    visible = "[...document.querySelectorAll('#mistakes tbody tr')].filter((row) => row.checkVisibility()).length"
    assert page.evaluate(visible) == 10, "a long list would hide the summary"
    page.click(".show-all")
    assert page.evaluate(visible) == page.evaluate("mistakes.length")
    assert_fits(page, "phone")
    lists = page.evaluate(
        "['mistakes', 'moves', 'summary'].map((id) => byId(id).querySelector('.scroll'))"
        ".map((list) => list.scrollWidth - list.clientWidth)"
    )
    assert lists == [0, 0, 0], "no list scrolls sideways"


@pytest.mark.parametrize(
    ("game", "result", "english", "japanese"),
    [
        ("go", "B+R", "Black wins by resignation", "黒の中押し勝ち"),
        ("go", "W+Time", "White wins by time", "白の時間切れ勝ち"),
        ("go", "W+3.5", "White wins by 3.5 points", "白の3目半勝ち"),
        ("go", "B+0.5", "Black wins by 0.5 points", "黒の半目勝ち"),
        ("go", "B+12", "Black wins by 12 points", "黒の12目勝ち"),
        ("go", "B+", "Black wins", "黒の勝ち"),
        ("go", "0", "Draw", "持碁"),
        ("go", "黒中押し勝ち", "黒中押し勝ち", "黒中押し勝ち"),
        ("shogi", "TORYO", "Gote wins by resignation", "後手の勝ち（投了）"),
        ("shogi", "KACHI", "Sente wins by declaration", "先手の勝ち（入玉宣言）"),
        ("shogi", "SENNICHITE", "Draw by repetition", "千日手"),
        ("shogi", "+ILLEGAL_ACTION", "Gote wins by a breach of the rules", "後手の勝ち（反則）"),
        ("shogi", "", "", ""),
    ],
)
def test_results_are_words(browser: Any, index: str, game: str, result: str, english: str, japanese: str) -> None:
    page = browser.new_page()
    page.goto(index)
    for language, words in (("en", english), ("ja", japanese)):
        text = page.evaluate(
            "([own, game, result]) => { language = own; return resultText(result, 'B', (side) => t(game + side)); }",
            [language, game, result],
        )
        assert text == words
    page.close()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_page_of(index_page([]), tmp_path_factory.mktemp("index")).as_uri()


def test_a_key_is_answered_at_once(open_page: Open, tmp_path: Path) -> None:
    page = open_page(write_page_of(go_page()[0], tmp_path).as_uri(), viewport=SCREENS["desktop"])
    times = page.evaluate(
        """Array.from({ length: 60 }, () => {
            const begin = performance.now();
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
            document.body.getBoundingClientRect();  // lays the page out
            return performance.now() - begin;
        })"""
    )
    assert page.evaluate("state.turn") == 60
    # 11 ms on an idle Zen 3, where 50 ms are wanted; other tests run beside this
    assert sorted(times)[30] < 250


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("locale", ["en-US", "ja-JP"])
def test_the_index_of_reviews(open_page: Open, tmp_path: Path, locale: str, screen: str) -> None:
    def entry(name: str, date: str, accuracy: float | None, loss: float | None) -> tuple[str, str, dict[str, Any]]:
        results = {"B": [9, accuracy, 0.5, loss, 0, 0, 0], "W": [0, None, None, None, 0, 0, 0]}
        names = {"B": "Kuro" * 9, "W": "Shiro"}
        found = {
            "game": "go",
            "date": date,
            "names": names,
            "result": "B+R",
            "toMove": "W",
            "hasPoints": True,
        }
        return name, f"{name}.html", {**found, "results": results}

    entries = [
        entry("game-10", "", None, None),
        entry("game-9", "2026-11-29", 75.4, 1.25),
        entry("game-1", "2025-01-02", 88.0, 2.0),
    ]
    # an earlier version, which began the review, stored no entry
    path = write_page_of(index_page([*entries, ("game-2", "game-2.html", {})]), tmp_path)
    page = open_page(path.as_uri(), viewport=SCREENS[screen], locale=locale)
    shown = "[...document.querySelectorAll('tbody a')].map((link) => link.textContent)"
    orders = {
        "given": ["game-10", "game-9", "game-1", "game-2"],
        "game": ["game-1", "game-2", "game-9", "game-10"],
        "date": ["game-9", "game-1", "game-10", "game-2"],
        "accuracyB": ["game-1", "game-9", "game-10", "game-2"],
    }
    for key, wanted in orders.items():
        page.select_option("#order", key)
        assert page.evaluate(shown) == wanted
    if screen == "desktop":
        page.click("[data-sort=accuracyB]")
        assert page.evaluate(shown) == ["game-9", "game-1", "game-10", "game-2"], "the other way round"
        assert page.get_attribute("th[aria-sort]", "aria-sort") == "ascending"
    loss = "mean loss 1.25 points" if locale == "en-US" else "平均損失 1.25目"
    assert loss in page.inner_text("tbody")
    assert "75%" in page.inner_text("tbody")
    moves = page.evaluate("[...document.querySelectorAll('.cell-moves')].map((cell) => cell.textContent)")
    assert sorted(moves) == ["", "9", "9", "9"]
    assert foreign_words(page, locale) == ["KuroKuroKuroKuroKuroKuroKuroKuroKuro"] * 3 * (locale == "ja-JP")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRAST) == []
    assert_fits(page, screen)


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("make", [go_page, shogi_page])
def test_a_review_is_accessible(open_page: Open, tmp_path: Path, make: Any, screen: str) -> None:
    page = open_page(write_page_of(varied_page(make)[0], tmp_path).as_uri(), viewport=SCREENS[screen])
    steps = ["goTo(mistakes[3])", "ACTIONS.punish()", "startQuiz(['B'])", "answer('')", "QUIZ_ACTIONS.refute()"]
    for step in steps:
        page.evaluate(f"({step}, null)")
        assert axe_faults(page) == [], step
    page.goto(write_page_of(index_page([(name, name, {}) for name in ("one", "two")]), tmp_path).as_uri())
    assert axe_faults(page) == []
