"""Makes the pictures of the README again: `python -m tests.pictures`.

Needs playwright, Pillow, Chromium, fonts for kanji, and the extra web.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.process.test_serve import Server
from tests.waiting import wait_until
from yomi.engine.cli.main import main as yomi

GAME = """(;GM[1]FF[4]SZ[9]KM[7.5]RU[Tromp-Taylor]PB[yomi]PW[yomi]
;B[ee];W[ce];B[cf];W[gf];B[gd];W[fg];B[cd];W[fc];B[gc];W[de];B[dd];W[fe];B[fd];W[ef];B[be];W[ed];B[ec];W[bf]
;B[bg];W[dc];B[ee];W[df];B[af];W[ed];B[eb];W[bd];B[cc];W[cg];B[bf];W[ch];B[bh];W[he];B[ci];W[bi];B[di];W[eh]
;B[hd];W[ah];B[bc];W[dh];B[ai];W[fb];B[bi];W[db];B[ea];W[fa];B[ee];W[ic];B[ed];W[id];B[ge];W[hf];B[ei];W[fi]
;B[hb];W[ib];B[ff];W[ha];B[ga];W[hc];B[gb];W[fe];B[ie];W[if];B[ff];W[gh];B[ia];W[ie];B[fe];W[ha];B[eg];W[dg]
;B[ia];W[];B[ha];W[gg];B[ag];W[gi];B[da];W[];B[cb];W[];B[ad];W[];B[])"""
TURN = 5  # the position before a mistake
SHOGI = "position startpos moves 7g7f 3c3d 2g2f 8c8d 2f2e 8d8e 6i7h 4a3b 2e2d 2c2d 2h2d 8e8f 8g8f 8b8f 2d3d 2b3c"
FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
SCREEN = {"width": 1000, "height": 640}
COLORS = 96  # of a picture, which keeps files small


def main() -> int:
    """Take pictures of a review and of a game in the browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SCREEN, locale="en-US")
        take_review(page)
        take_board(page)
        browser.close()
    return 0


def take_review(page: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "game.sgf").write_text(GAME)
        if yomi(["review", str(folder / "game.sgf"), "--net", "fast", "--visits", "300", "--seed", "1", "--html"]) != 0:
            raise SystemExit("the review failed: its error is above")
        page.goto((folder / "game.yomi.html").as_uri())
        page.evaluate(f"goTo({TURN})")
        page.evaluate("document.querySelector('[name=ownership]').click(); scrollTo(0, 0)")
        keep(page, "review.png")
        page.evaluate("document.querySelector('[name=ownership]').click()")
        animate(page, "review.webp")


def animate(page: Any, name: str) -> None:
    """Write a moving picture of a review: moves, the line of a candidate, a refutation, and a problem."""
    from PIL import Image

    frames: list[tuple[Any, int]] = []

    def take(milliseconds: int) -> None:
        frames.append((Image.open(io.BytesIO(page.screenshot())).convert("RGB"), milliseconds))

    def play(name: str) -> None:
        page.click(f"[{name}]")
        take(900)
        for _ in range(page.evaluate("state.line.length - 1")):
            page.keyboard.press("ArrowRight")
            take(700)
        page.keyboard.press("Escape")

    page.emulate_media(reduced_motion="reduce")  # lines play when this function says so
    for turn in range(TURN + 1):
        page.evaluate(f"goTo({turn})")
        take(700)
    page.hover("#board [data-move]")
    take(2500)
    page.mouse.move(0, 0)
    page.keyboard.press("ArrowDown")
    take(1500)
    play("data-go=punish")
    play("data-go=better")
    page.click("[data-go=quiz]")
    take(2000)
    page.evaluate("answer(review.moves[quiz.numbers[0]].move)")
    take(2500)
    play("data-quiz=refute")
    play("data-quiz=better")
    pictures, times = zip(*frames, strict=True)
    path = FOLDER / name
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=times, loop=0, quality=70, method=6)
    print(f"{path}: {path.stat().st_size / 1024:.0f} KiB, {sum(times) / 1000:.0f} s")


def take_board(page: Any) -> None:
    server = Server()
    page.goto(server.address)
    wait_until(lambda: page.evaluate("game && !waiting"), 300)
    page.select_option("[name=game]", "shogi")
    page.set_input_files("[name=record]", {"name": "game.usi", "mimeType": "text/plain", "buffer": SHOGI.encode()})
    page.click("#new button")
    wait_until(lambda: page.evaluate("game.game === 'shogi' && !waiting"), 300)
    page.click("[data-do=hint]")
    wait_until(lambda: page.evaluate("hint && !waiting"), 300)
    page.evaluate("(document.activeElement.blur(), scrollTo(0, 0))")
    keep(page, "board.png")
    server.end()


def keep(page: Any, name: str) -> None:
    """Write a picture of the page, with few colors."""
    from PIL import Image

    path = FOLDER / name
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    sys.exit(main())
