"""The page of `yomi serve` in a real Chromium, by mouse, finger and keyboard."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.process.pages import (
    PIECES_IN_PAIRS,
    SCREENS,
    Open,
    Visit,
    assert_fits,
    axe_faults,
    coordinates,
    corner,
    until,
)
from tests.process.test_serve import Server
from yomi.engine.color import BLACK, WHITE
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import format_japanese, format_usi

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize("screen", SCREENS)
def test_a_game_in_the_browser(open_page: Open, server: Server, screen: str) -> None:
    page = open_page(server.address, viewport=SCREENS[screen], locale="ja-JP")
    page.wait_for_selector("#board svg")
    page.select_option("[name=level]", "1")
    page.select_option("[name=seconds]", "0.5")
    page.click("#new button")
    until(page, "game && game.level === 1 && !waiting")
    page.click('[data-place="E5"]')
    until(page, "game.moves.length === 2 && !waiting")
    assert page.evaluate("game.moves[0]") == "E5"
    page.reload()
    until(page, "game && game.moves.length === 2 && !waiting")
    page.fill("[name=move]", "Z9")
    page.press("[name=move]", "Enter")
    until(page, "message.includes('Z9') && !waiting")
    page.click("[data-do=hint]")
    until(page, "hint && !waiting")
    assert "%" in page.inner_text("#moves")
    page.click("#actions [data-do=undo]")
    until(page, "game.moves.length === 0 && !waiting")
    # shogi: the piece first, then its square; a drop and a promotion come from a record
    page.select_option("[name=game]", "shogi")
    page.click("#new button")
    until(page, "game.game === 'shogi' && !waiting")
    page.click('[data-place="7g"]')
    page.click('[data-place="7f"]')
    until(page, "game.moves.length === 2 && !waiting")
    assert page.evaluate("game.moves[0]") == "7g7f"
    assert page.inner_text("#played").startswith("1. ▲７六歩 ")
    page.select_option("[name=human]", "both")
    line = "position startpos moves 7g7f 3c3d"
    page.set_input_files("[name=record]", {"name": "a.usi", "mimeType": "text/plain", "buffer": line.encode()})
    page.click("#new button")
    until(page, "game.human === 'both' && !waiting")
    page.click('[data-place="8h"]')
    page.click('[data-place="2b"]')
    page.click("[data-do=promote]")
    until(page, "game.moves.length === 3 && !waiting")
    page.click('[data-place="3a"]')
    page.click('[data-place="2b"]')
    until(page, "game.moves.length === 4 && !waiting")
    page.click('[data-hand="B"]')
    page.click('[data-place="5e"]')
    until(page, "game.moves.length === 5 && !waiting")
    assert page.evaluate("game.moves.slice(2)") == ["8h2b+", "3a2b", "B*5e"]
    assert_fits(page, screen)


def test_the_level_auto_in_the_browser(open_page: Open, server: Server) -> None:
    page = open_page(server.address)
    page.wait_for_selector("#board svg")
    page.select_option("[name=level]", "auto")
    for lost in range(1, 4):
        before = page.evaluate("game.id")
        page.click("#new button")
        until(page, f"game.id !== '{before}' && game.level === 5 && !waiting")
        page.click("[data-do=resign]")
        until(page, "game.ending !== null")
        assert page.evaluate("follower('go')") == [5, -lost, ""] if lost < 3 else [4, 0, ""]
    page.click("#new button")
    until(page, "game.level === 4 && !waiting")


def test_clicks_and_records_in_the_browser(open_page: Open, server: Server) -> None:
    page = open_page(server.address, locale="en-US")
    until(page, "game && !waiting")
    # a move during a hint, and the second click of a double click, are not sent
    page.evaluate("(ACTIONS.hint(game), play('C3'), null)")
    until(page, "hint && !waiting")
    page.dblclick('[data-place="C3"]')
    until(page, "game.moves.length === 2 && !waiting")
    page.reload()
    until(page, "game && game.moves.length === 2 && !waiting")
    assert page.inner_text("#status").startswith("2. "), "a screen reader announces the engine's move"
    page.select_option("[name=human]", "both")
    record = b"(;GM[1]SZ[9];B[ee];B[gg];W[aa])"
    page.set_input_files("[name=record]", {"name": "a.sgf", "mimeType": "text/plain", "buffer": record})
    page.click("#new button")
    until(page, "game.human === 'both' && !waiting")
    stones = page.evaluate("Array.from(positionsOf(game).at(-1).stones)")
    assert (stones.count(BLACK), stones.count(WHITE)) == (2, 1), "colors need not alternate"
    assert page.input_value("[name=record]") == "", "the next game begins without the record"
    page.select_option("[name=game]", "shogi")
    kif = "手合割：平手\n手数----指手---------消費時間--\n1 ７六歩(77)\n".encode("shift_jis")
    page.set_input_files("[name=record]", {"name": "a.kif", "mimeType": "text/plain", "buffer": kif})
    page.click("#new button")
    until(page, "game.game === 'shogi' && !waiting")
    assert page.evaluate("game.moves") == ["7g7f"]


@pytest.mark.parametrize(
    ("locale", "lead", "result"),
    [
        ("en-US", "Black leads by 4.5 points · Click dead stones", "Black wins by 4.5 points"),
        ("ja-JP", "黒が4目半リード · 死石をクリックしてください", "黒の4目半勝ち"),
    ],
)
def test_dead_stones_in_the_browser(open_page: Open, server: Server, locale: str, lead: str, result: str) -> None:
    visit = Visit(open_page, server, locale)
    wall = "".join(f";B[c{row}];W[b{row}]" for row in "abcde")
    visit.begin(f"(;GM[1]SZ[5]KM[0.5]{wall};B[ad];W[])", human="both")
    visit.page.click("#actions [data-do=pass]")
    visit.until("game.counting && game.counting.dead && !waiting")
    assert visit.page.inner_text("#status") == lead
    visit.page.click('[data-place="A2"]')
    visit.until("game.counting.dead.length === 0 && !waiting")
    visit.page.focus("#board")
    visit.page.evaluate("(cursor = 'A2', null)")
    visit.press("Enter")
    visit.until("game.counting.dead.length === 1 && !waiting")
    visit.page.click("[data-do=agree]")
    visit.until("game.result && !waiting")
    assert visit.page.inner_text("#status").endswith(result)
    assert "ended" in visit.page.get_attribute("#status", "class")
    territory = [visit.page.locator(f"#board rect[fill='{color}']").count() for color in ("#111", "#fff")]
    assert territory == [10, 5], "with the point of the dead stone"
    assert shown_actions(visit.page) == ["undo", "save", "review"], "the others no longer apply"
    visit.page.click("#actions [data-do=undo]")
    visit.until("game.counting && !waiting")


def shown_actions(page: Any) -> list[str]:
    """Return the names of the visible buttons for the game."""
    return list(
        page.evaluate("Array.from(document.querySelectorAll('#actions button:not([hidden])'), (b) => b.dataset.do)")
    )


def test_go_by_keyboard(open_page: Open, server: Server) -> None:
    visit = Visit(open_page, server)
    visit.begin(human="both")
    visit.page.focus("#board")
    assert visit.page.inner_text("#place") == "E5 empty"
    visit.press("ArrowRight", "ArrowUp", "Enter")
    visit.until("game.moves.length === 1 && !waiting")
    visit.press("ArrowLeft", "ArrowRight")
    assert visit.page.inner_text("#place") == "F6 Black"
    visit.press(*["ArrowUp"] * 9, *["ArrowLeft"] * 9, " ")
    visit.until("game.moves.length === 2 && !waiting")
    assert visit.page.evaluate("game.moves") == ["F6", "A9"]


def test_shogi_by_keyboard(open_page: Open, server: Server) -> None:
    visit = Visit(open_page, server, "ja-JP")
    visit.begin("position startpos moves 7g7f 3c3d", game="shogi", human="both")
    visit.page.focus("#board")
    visit.press(*["ArrowLeft"] * 3, *["ArrowDown"] * 3)
    assert visit.page.inner_text("#place") == "8八 先手角"
    visit.press("Enter", *["ArrowUp"] * 6, *["ArrowRight"] * 6)
    assert visit.page.inner_text("#place") == "2二 後手角, 動かせます"
    visit.press("Enter")
    assert visit.page.evaluate("document.activeElement.dataset.do") == "promote"
    visit.press("Enter")
    visit.until("game.moves.length === 3 && !waiting")
    assert visit.page.evaluate("document.activeElement.id") == "board"
    visit.page.fill("[name=move]", "3a2b")
    visit.page.press("[name=move]", "Enter")
    visit.until("game.moves.length === 4 && !waiting")
    visit.page.focus("#board")
    visit.press("b")
    assert visit.page.inner_text("#place") == "角：移動先を選んでください"
    visit.press(*["ArrowDown"] * 3, *["ArrowLeft"] * 3, "Enter")
    visit.until("game.moves.length === 5 && !waiting")
    assert visit.page.evaluate("game.moves.slice(2)") == ["8h2b+", "3a2b", "B*5e"]
    visit.page.click("[data-do=resign]")
    visit.until("game.result && !waiting")
    assert visit.page.inner_text("#status").endswith("先手の勝ち（投了）")
    assert shown_actions(visit.page) == ["undo", "save", "review"]
    assert not visit.page.is_visible("[name=move]")


def test_go_turned_for_white(open_page: Open, server: Server) -> None:
    visit = Visit(open_page, server)
    assert corner(visit.page, "A1") == "bottom left"
    assert coordinates(visit.page) == "ABCDEFGH987654321"
    visit.begin(human="white", level="1")
    visit.until("game.moves.length === 1")
    assert corner(visit.page, "A1") == "top right"
    assert coordinates(visit.page) == "HGFEDCBA123456789"
    visit.page.focus("#board")
    visit.page.evaluate("(cursor = 'A1', null)")
    visit.press("ArrowLeft", "ArrowDown")
    assert visit.page.inner_text("#place") == "B2 empty"
    visit.page.click('[data-place="A1"]')
    visit.until("game.moves.length === 3 && !waiting")
    assert visit.page.evaluate("game.moves[1]") == "A1"
    drawn = visit.page.locator("#board circle[fill='#fafafa']").bounding_box()
    assert drawn["x"] > visit.page.locator("#board svg").bounding_box()["x"] + 200, "the stone is at the right"
    assert visit.page.inner_text("#turn") == "Turn the board"
    visit.page.click("#turn")
    assert (corner(visit.page, "A1"), visit.page.get_attribute("#turn", "aria-pressed")) == ("bottom left", "true")
    visit.press("f")
    assert corner(visit.page, "A1") == "top right"
    visit.page.fill("[name=move]", "")
    visit.page.type("[name=move]", "F2")
    assert (corner(visit.page, "A1"), visit.page.input_value("[name=move]")) == ("top right", "F2")
    visit.page.reload()
    visit.until("game && !waiting")
    assert corner(visit.page, "A1") == "top right"
    visit.page.click("#turn")
    visit.begin(human="both")
    assert corner(visit.page, "A1") == "bottom left"
    assert visit.page.get_attribute("#turn", "aria-pressed") == "false"


def test_shogi_turned_for_gote(open_page: Open, server: Server) -> None:
    visit = Visit(open_page, server, "ja-JP")
    visit.begin("position startpos moves 7g7f 3c3d 8h2b+ 3a2b 2g2f", game="shogi", human="white")
    page = visit.page
    assert (corner(page, "1a"), coordinates(page)) == ("bottom left", "123456789九八七六五四三二一")
    hand = page.locator('[data-hand="B"]').bounding_box()
    assert hand["x"] > page.locator("#board svg").bounding_box()["x"] + 300, "gote's hand is at the right"
    upright = """[...document.querySelectorAll('#board g')].filter((each) =>
        !each.getAttribute('transform').includes('rotate')).length"""
    assert page.evaluate(upright) == 20, "gote's pieces point up: 19 on the board, one in the hand"
    page.focus("#board")
    page.evaluate("(cursor = '5a', null)")
    visit.press("ArrowUp", "ArrowRight")
    assert page.inner_text("#place") == "6二（空き）"
    page.click('[data-hand="B"]')
    page.click('[data-place="5e"]')
    visit.until("game.moves.length >= 6")
    assert page.evaluate("game.moves[5]") == "B*5e"
    assert page.inner_text("#turn") == "盤を反転"
    page.click("#turn")
    assert (corner(page, "1a"), coordinates(page)) == ("top right", "987654321一二三四五六七八九")


def test_analysis_in_the_browser(open_page: Open, server: Server) -> None:
    visit = Visit(open_page, server)
    visit.begin(human="both")
    visit.page.check("[name=analyse]")
    visit.until("hint && hint.visits > 20")
    assert "visits" in visit.page.inner_text("#opinion")
    assert visit.page.locator("#board circle[fill='#1565a9']").count() == 1, "the best move is on the board"
    before = visit.page.evaluate("hint.visits")
    visit.until(f"hint.visits > {before}")
    visit.page.click('[data-place="E5"]')
    visit.until("game.moves.length === 1 && hint && hint.ply === 1")
    visit.page.uncheck("[name=analyse]")
    assert visit.page.evaluate("[hint, analysis]") == [None, None]


@pytest.mark.parametrize(
    ("locale", "game", "record", "texts"),
    [
        ("en-US", "go", "(;GM[1]SZ[5]KM[0.5];B[cc];W[aa];B[bb])", ("Review this game", "Open the review")),
        ("ja-JP", "shogi", "position startpos moves 7g7f 3c3d", ("この対局を検討", "検討を開く")),
    ],
)
def test_a_review_of_a_record_in_the_browser(
    open_page: Open, server: Server, locale: str, game: str, record: str, texts: tuple[str, str]
) -> None:
    visit = Visit(open_page, server, locale)
    assert shown_actions(visit.page) == (["pass", "hint", "resign", "save"]), (
        "a game that has begun needs no review yet"
    )
    visit.begin(record, game=game, human="both")
    button, link = visit.page.locator("[data-do=review]"), visit.page.locator("#review-link")
    assert button.inner_text() == texts[0]
    button.click()
    visit.until("game.review && game.review.of")
    assert not button.is_visible()
    visit.page.reload()
    visit.until("game && game.review && game.review.isFinished")
    assert (link.inner_text(), visit.page.is_visible("#review progress")) == (texts[1], False)
    page = open_page(server.address.split("#")[0].rstrip("/") + link.get_attribute("href"), locale=locale)
    assert page.locator("#board svg").count() == 1
    visit.page.click("[data-do=resign]")
    visit.until("game.ending && !waiting")
    assert shown_actions(visit.page) == ["undo", "save"], "the same moves have been reviewed"


def test_settings_of_a_new_game_in_the_browser(open_page: Open, server: Server) -> None:
    visit = Visit(open_page, server, "ja-JP")
    visit.page.fill("[name=komi]", "0.5")
    visit.begin(rules="japanese", human="both")
    assert visit.page.inner_text("#facts").endswith("日本 · コミ 0.5")
    for vertex in ("B1", "A1", "A2"):
        before = visit.page.evaluate("game.moves.length")
        visit.page.click(f'[data-place="{vertex}"]')
        visit.until(f"game.moves.length === {before + 1} && !waiting")
    assert visit.page.inner_text("#captured") == "アゲハマ：黒 1 · 白 0"
    visit.page.select_option("[name=game]", "shogi")
    assert not visit.page.is_visible("[name=komi]")
    visit.begin(gives="2-piece", human="both")
    assert visit.page.evaluate("game.sfen").startswith("lnsgkgsnl/9/")
    assert visit.page.inner_text("#status").startswith("上手の番")
    assert visit.page.inner_text("[name=human]").split() == ["下手", "上手", "両者（自分で指す）"]


def test_two_windows_show_the_same_game(open_page: Open, server: Server) -> None:
    visit = Visit(open_page, server, "ja-JP")
    visit.begin(human="both")
    other = visit.page.context.new_page()
    other.goto(visit.page.url)
    until(other, "game && !waiting")
    visit.page.click('[data-place="C3"]')
    until(other, "game.moves.length === 1")
    assert other.inner_text("#played") == "1. C3"
    other.evaluate("(stream.abort.abort(), stream = {id: game.id}, null)")  # it misses the next move
    visit.page.click('[data-place="D4"]')
    visit.until("game.moves.length === 2 && !waiting")
    other.click('[data-place="E5"]')
    until(other, "game.moves.length === 2 && !waiting")
    assert (
        other.inner_text("#status") == "できません: 対局は別の画面で進んでいました。この画面を最新の局面に更新しました"
    )
    assert visit.page.evaluate("game.moves") == ["C3", "D4"]


def test_a_lost_connection_in_the_browser(open_page: Open) -> None:
    text = "接続が切れました。再接続しています…"
    running = Server()
    try:
        visit = Visit(open_page, running, "ja-JP")
        visit.page.context.set_offline(True)
        visit.page.click('[data-place="C3"]')
        visit.until("isLost")
        assert visit.page.inner_text("#status") == text
        visit.page.context.set_offline(False)
        visit.until("!isLost && !waiting")
        assert text not in visit.page.inner_text("#status")
        visit.page.click('[data-place="C3"]')
        visit.until("game.moves.length === 2 && !waiting")
    finally:
        running.end()
    visit.until("isLost")
    assert visit.page.inner_text("#status") == text
    again = Server("--port", running.port)
    try:
        visit.until("message !== ''")
        assert visit.page.inner_text("#status").startswith("できません: この対局はもう残っていません")
    finally:
        again.end()


def test_moves_of_shogi_have_the_names_of_the_engine(open_page: Open, server: Server) -> None:
    page = open_page(server.address)
    rng = random.Random(5)
    for _ in range(4):
        game = ShogiGame(PIECES_IN_PAIRS)
        moves, expected = [], []
        for _ in range(40):
            legal = game.legal_moves()
            moves.append([format_usi(move) for move in legal])
            expected.append([format_japanese(move, game.placement, game.last_target) for move in legal])
            if not legal:
                break
            game.play(rng.choice(legal))
        line = [format_usi(move) for _, move in game.moves]
        names = page.evaluate(
            """([sfen, line, moves]) => replay({sfen}, line).slice(0, moves.length)
                .map((position, number) => moves[number].map((move) => position.name(move, 'ja')))""",
            [PIECES_IN_PAIRS, line, moves],
        )
        assert names == expected


def test_a_choice_of_promotion_is_over_its_square(open_page: Open, server: Server) -> None:
    visit = Visit(open_page, server, "ja-JP")
    visit.begin("position startpos moves 7g7f 3c3d", game="shogi", human="both")
    visit.page.click('[data-place="8h"]')
    visit.page.click('[data-place="2b"]')
    square, choice = (visit.page.locator(name).bounding_box() for name in ('[data-place="2b"]', "#promotion"))
    assert abs(square["y"] + square["height"] / 2 - choice["y"] - choice["height"] / 2) < 2
    assert choice["x"] < square["x"] < square["x"] + square["width"] < choice["x"] + choice["width"]
    visit.press("Escape")
    assert not visit.page.is_visible("#promotion")
    visit.page.fill("[name=move]", "▲２二角不成")
    visit.page.press("[name=move]", "Enter")
    visit.until("game.moves.length === 3 && !waiting")
    assert visit.page.evaluate("game.moves[2]") == "8h2b"
    assert visit.page.inner_text("#status").startswith("3. ▲２二角不成")


def assert_accessible(page: Any) -> None:
    """Fail for each element with too little contrast, without a name, or out of the keyboard's reach."""
    faults = axe_faults(page)
    # axe does not see the focus: everything that can be clicked is reached by the key Tab, and the focus is visible
    reached = {each for each in (press_tab(page) for _ in range(60)) if each}
    wanted = page.evaluate(
        """[...document.querySelectorAll('button, select, input, textarea, a[href], #board')]
            .filter((each) => each.offsetParent && !each.disabled && each.tabIndex >= 0)
            .map((each) => each.outerHTML.slice(0, 80))"""
    )
    assert (faults, [each for each in wanted if each not in reached]) == ([], [])


def press_tab(page: Any) -> str:
    """Move the focus by a key, and return the element if its focus is visible."""
    page.keyboard.press("Tab")
    return str(
        page.evaluate(
            """getComputedStyle(document.activeElement).outlineStyle === 'none' ? ''
                : document.activeElement.outerHTML.slice(0, 80)"""
        )
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_and_keyboard(open_page: Open, server: Server, tmp_path: Path, scheme: str) -> None:
    page = open_page(server.address, color_scheme=scheme)
    until(page, "game && !waiting")
    page.evaluate(PASTE, "(;GM[1]SZ[5];B[cc];W[bb];B[])")
    until(page, "game.moves.length === 3 && !waiting")
    page.evaluate(
        """(hint = {ply: 3, visits: 9, unit: 'visits', winrate: 0.6, score: 1, ownership: null,
            candidates: [['A1', 9, 0.5, 0.4, -1, ['A1']]]}, draw())"""
    )
    assert_accessible(page)
    page.click("#actions [data-do=pass]")
    until(page, "game.counting && game.counting.dead && !waiting")
    assert_accessible(page)
    page.click("[data-do=agree]")
    until(page, "game.ending && !waiting")
    page.click("[data-do=review]")
    until(page, "game.review && game.review.isFinished")
    assert_accessible(page)
    page.evaluate(PASTE, "position startpos moves 7g7f 3c3d")
    until(page, "game.game === 'shogi' && !waiting")
    page.evaluate("(warning = {move: '2g2f', loss: 0.1, points: null}, clickSquare('8h'), clickSquare('2b'), null)")
    assert page.is_visible("#promotion")
    assert page.is_visible("#warning")
    assert_accessible(page)


DROP = """([text]) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(text)], 'a.kif'));
    document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));
}"""
PASTE = """(text) => {
    const data = new DataTransfer();
    data.setData('text', text);
    document.body.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
}"""


def test_records_are_dropped_and_pasted(open_page: Open, server: Server) -> None:
    visit = Visit(open_page, server)
    kif = "手合割：平手\n手数----指手---------消費時間--\n1 ７六歩(77)\n".encode("shift_jis")
    visit.page.evaluate(DROP, [list(kif)])
    visit.until("game.game === 'shogi' && !waiting")
    assert visit.page.evaluate("[game.moves, game.human]") == [["7g7f"], "both"]
    visit.page.evaluate(PASTE, "(;GM[1]SZ[13];B[dd])")
    visit.until("game.game === 'go' && game.width === 13 && !waiting")
    assert visit.page.evaluate("[game.moves, game.human]") == [["D10"], "both"]
    visit.page.evaluate(PASTE, "Hello")
    visit.until("message !== '' && !waiting")
    assert visit.page.inner_text("#status").startswith("Not possible: ")
    assert visit.page.evaluate("game.width") == 13, "the game before is still there"
    kinds = "['https://online-go.com/game/1', 'https://lishogi.org/abcdEFGH'].map(kindOf)"
    assert visit.page.evaluate(kinds) == ["go", "shogi"]
    visit.page.fill("[name=pasted]", "position startpos moves 2g2f")
    visit.page.click("#new button")
    visit.until("game.game === 'shogi' && !waiting")
    assert visit.page.evaluate("game.moves.slice(0, 1)") == ["2g2f"]
    assert visit.page.input_value("[name=pasted]") == ""


def test_warnings_in_the_browser(open_page: Open, server: Server) -> None:
    visit = Visit(open_page, server)
    visit.begin("(;GM[1]SZ[5]KM[0.5]AB[cc]AW[cd];W[dc];B[cb])", human="both")
    visit.page.check("[name=warn]")
    visit.page.click('[data-place="A1"]')
    visit.until("warning && !waiting")
    assert visit.page.inner_text("#warning-text").startswith("A1 may lose ")
    assert visit.page.evaluate("document.activeElement.dataset.do") == "reconsider"
    visit.press("Enter")
    assert visit.page.evaluate("[warning, game.moves.length]") == [None, 2]
    visit.page.click('[data-place="A1"]')
    visit.until("warning && !waiting")
    visit.page.click("[data-do=anyway]")
    visit.until("game.moves.length === 3 && !waiting")


def test_clocks_in_the_browser(open_page: Open, server: Server) -> None:
    visit = Visit(open_page, server, "ja-JP")
    visit.begin(game="shogi", human="both", main="10", byoyomi="30", periods="2")
    assert visit.page.inner_text("#clocks .running").startswith("先手 ")
    assert visit.page.inner_text("#clocks span:last-child") == "後手 10:00 (30 × 2)"
    visit.begin(main="0.02", byoyomi="0")
    visit.until("game.result && !waiting")
    assert visit.page.inner_text("#status") == "後手の勝ち（時間切れ）"
