// The keyboard on the board: a cursor, and what screen readers hear of it.
// @ts-check
"use strict";

let cursor = ""; // vertex or square of the keyboard's cursor

/** Keys on the board. @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
byId("board").addEventListener("focus", () => isPressed || moveCursor(0, 0));
byId("board").addEventListener("keydown", (event) => {
  if (!game || event.ctrlKey || event.metaKey || event.altKey) return;
  const arrow = ARROWS[event.key], kind = event.key.toUpperCase();
  if (arrow) {
    const sign = bottomColor(game) === WHITE ? -1 : 1;
    moveCursor(sign * arrow[0], sign * arrow[1]);
  }
  else if (event.key === "Enter" || event.key === " ") {
    if (game.game === "go") clickPoint(cursor);
    else {
      clickSquare(cursor);
      moveCursor(0, 0);
    }
  } else if (event.key === "Escape") {
    selected = "";
    choice = [];
    draw();
  } else if (game.game === "shogi" && HAND.includes(kind) && game.legal.some((move) => move.startsWith(`${kind}*`))) {
    clickHand(kind);
    announce("place", put(t("chosen"), language === "ja" ? KANJI[/** @type {"P"} */ (kind)] : PIECES[/** @type {"P"} */ (kind)]));
  } else return;
  event.preventDefault();
});

/** Move the cursor as Black sees the board, and announce its place. @param {number} right @param {number} down */
function moveCursor(right, down) {
  if (!game) return;
  const position = shownPosition(game), isGo = position instanceof GoPosition;
  const width = isGo ? position.width : 9, height = isGo ? position.height : 9;
  const known = !cursor ? -1 : isGo ? position.point(cursor) : position.square(cursor);
  const before = known >= 0 ? known : width * (height >> 1) + (width >> 1);
  const column = Math.max(0, Math.min(width - 1, (before % width) + right));
  const row = Math.max(0, Math.min(height - 1, Math.floor(before / width) + down));
  cursor = position.place(width * row + column);
  drawGame(game);
  const isTarget = targets(game).includes(cursor);
  announce("place", position.describe(width * row + column, language) + (isTarget ? `, ${t("canMove")}` : ""));
}
