// Problems in the page of a review: the reader looks for a better move than the mistake of the game.
// @ts-check
"use strict";

/**
 * @typedef {object} Quiz
 * @property {("B" | "W")[]} sides whose mistakes are asked for
 * @property {number[]} numbers of the mistakes
 * @property {number} place of the current problem in `numbers`
 * @property {Map<number, string>} answers moves by number of the mistake; an empty text if the answer was shown
 * @property {string} selected shogi: the square or drop (`P*`) that was chosen
 * @property {string[]} choice shogi: the move without and with promotion, to choose from
 */
/** Null while the page shows the game. @type {Quiz | null} */
let quiz = null;
const CORRECT = 0.01, CORRECT_POINTS = 0.5; // an answer that loses no more winrate and points is as good as the best move

/** @type {Record<string, Record<string, string>>} */
const QUIZ_TEXTS = {
  en: {
    refute: "▶ Refutation", betterLine: "▶ Better line", problems: "Problems", problem: "Problem {} of {}", find: "find a better move than the game's", yourMove: "Your move",
    play: "Play", reveal: "Show the answer", previous: "◀ Problem", following: "Problem ▶", leave: "Back to the game",
    promote: "Promote", keep: "Do not promote", sides: "Mistakes of", both: "both", right: "Right: the best move",
    good: "Right: it loses {} only", loses: "It loses {}", same: "The move of the game: it loses {}",
    unknown: "The search did not consider this move", bestIs: "best is {}", playedWas: "played was {}", solved: "{} of {} solved",
    noProblems: "No mistakes to ask for", unreadable: "Unknown move: {}",
  },
  ja: {
    refute: "▶ とがめる手順", betterLine: "▶ 最善手順", problems: "次の一手問題", problem: "第{}問／全{}問", find: "実戦より良い手は？", yourMove: "指し手",
    play: "着手", reveal: "正解を見る", previous: "◀ 前の問題", following: "次の問題 ▶", leave: "本譜に戻る",
    promote: "成る", keep: "成らない", sides: "出題", both: "両者", right: "正解：最善手",
    good: "正解：損失は{}のみ", loses: "損失 {}", same: "実戦の手：損失 {}",
    unknown: "探索の候補にない手", bestIs: "最善は{}", playedWas: "実戦は{}", solved: "正解 {}／{}",
    noProblems: "出題する悪手はありません", unreadable: "読めない手：{}",
  },
};

/** Return a text with its gaps filled. @param {string} key @param {...(string | number)} values */
const q = (key, ...values) => values.reduce((/** @type {string} */ text, value) => text.replace("{}", String(value)), QUIZ_TEXTS[language][key]);

/** Begin problems. @param {("B" | "W")[]} sides */
function startQuiz(sides) {
  const numbers = mistakes.filter((number) => sides.includes(review.moves[number].side) && bestLine(number).length);
  quiz = { sides, numbers, place: 0, answers: quiz?.answers ?? new Map(), selected: "", choice: [] };
  goToProblem(0);
  drawLists(); // for the side whose problems these are
}

/** Show another problem. @param {number} place */
function goToProblem(place) {
  if (!quiz) return;
  quiz.place = Math.max(0, Math.min(quiz.numbers.length - 1, place));
  quiz.selected = "";
  quiz.choice = [];
  goTo(quiz.numbers[quiz.place] ?? 0);
}

/** Whether the page hides the answer: a problem without a move of the reader. */
const isAsking = () => quiz !== null && quiz.numbers.length > 0 && !quiz.answers.has(quiz.numbers[quiz.place]);

/** Take the reader's move, or show the answer. @param {string} move a move of the game's notation, or an empty text */
function answer(move) {
  if (!quiz || !isAsking()) return;
  const number = quiz.numbers[quiz.place];
  quiz.answers.set(number, move);
  quiz.selected = "";
  quiz.choice = [];
  draw();
  if (move && !isRight(number, move) && !matchMedia("(prefers-reduced-motion: reduce)").matches)
    playLines(number, [["refutation", refutation(number, move)], ["betterLine", bestLine(number)]]);
}

/** Return the loss of a move that the search considered, or null. @param {number} number @param {string} move */
function lossOf(number, move) {
  const candidates = review.turns[number].candidates, found = candidates.find(([each]) => each === move);
  if (!found) return null;
  return { loss: Math.max(0, candidates[0][3] - found[3]), scoreLoss: Math.max(0, (candidates[0][4] ?? 0) - (found[4] ?? 0)) };
}

/** Return the refutation of the reader's move, or of the game's if the answer was right or shown. */
function wrongLine() {
  if (!quiz) return [];
  const number = quiz.numbers[quiz.place], move = quiz.answers.get(number) ?? "";
  return refutation(number, move && !isRight(number, move) ? move : review.moves[number].move);
}

/** Whether a loss is none. @param {{loss: number, scoreLoss: number}} lost */
const isSmall = ({ loss, scoreLoss }) => loss <= CORRECT && !(review.hasPoints && scoreLoss > CORRECT_POINTS);

/** @param {{loss: number, scoreLoss: number | null}} lost */
const lossText = ({ loss, scoreLoss }) => {
  const isJapanese = language === "ja", lost = (scoreLoss ?? 0).toFixed(1);
  const points = review.hasPoints ? [isJapanese ? `${lost}目` : `${lost} points`] : [];
  return [...points, percent(loss)].join(isJapanese ? "、" : ", ");
};

/** @param {number} number of a mistake @param {string} move */
function isRight(number, move) {
  const loss = lossOf(number, move);
  return move !== review.moves[number].move && loss !== null && isSmall(loss);
}

/** Return the text below the board. */
function quizText() {
  if (!quiz) return "";
  if (!quiz.numbers.length) return q("noProblems");
  const number = quiz.numbers[quiz.place], played = review.moves[number], position = positions[number];
  const head = q("problem", quiz.place + 1, quiz.numbers.length);
  if (isAsking()) return `${head} · ${number + 1}. ${sideName(played.side)} · ${q("find")}`;
  const move = quiz.answers.get(number) ?? "", loss = lossOf(number, move), best = bestLine(number)[0];
  const parts = [head];
  if (move) {
    const name = moveName(position, move);
    if (move === best) parts.push(`${name}: ${q("right")}`);
    else if (move === played.move) parts.push(`${name}: ${q("same", lossText(played))}`);
    else if (loss === null) parts.push(`${name}: ${q("unknown")}`);
    else parts.push(`${name}: ${q(isSmall(loss) ? "good" : "loses", lossText(loss))}`);
  }
  if (move !== best) parts.push(q("bestIs", moveName(position, best)));
  if (move !== played.move) parts.push(`${q("playedWas", moveName(position, played.move))}, ${verdict(played)}`);
  const solved = quiz.numbers.filter((each) => isRight(each, quiz?.answers.get(each) ?? "")).length;
  parts.push(q("solved", solved, quiz.numbers.length));
  return parts.join(" · ");
}

// -- moves on the board ------------------------------------------------------------------------------------------------

/** Return what is drawn over a problem without an answer. @returns {Overlay} */
function askingOverlay() {
  const selected = quiz?.selected ?? "";
  if (isGo) return { onPlace: clickVertex };
  return { onPlace: clickPiece, onHand: (kind) => select(`${kind}*`), marked: selected && !selected.includes("*") ? [selected] : [] };
}

/** @param {string} vertex */
function clickVertex(vertex) {
  const position = positions[state.turn];
  if (position instanceof GoPosition && !position.stones[position.point(vertex)]) answer(vertex);
}

/** @param {string} selected a square, or a drop such as `P*` */
function select(selected) {
  if (!quiz) return;
  quiz.selected = selected;
  quiz.choice = [];
  draw();
}

/** A square of shogi was clicked: first a piece, then where it goes. @param {string} square */
function clickPiece(square) {
  const position = positions[state.turn];
  if (!quiz || !(position instanceof ShogiPosition)) return;
  const piece = position.squares[position.square(square)], { selected } = quiz;
  if (piece?.color === position.toMove) select(square);
  else if (selected.includes("*")) {
    if (!piece) answer(selected + square);
  } else if (selected) {
    const moved = position.squares[position.square(selected)], move = selected + square;
    const rows = [selected, square].map((each) => Math.floor(position.square(each) / 9));
    const isZone = rows.some((row) => (position.toMove === BLACK ? row < 3 : row > 5));
    if (moved && isZone && !moved.isPromoted && !"KG".includes(moved.kind)) {
      quiz.choice = [move, `${move}+`];
      draw();
      /** @type {HTMLElement} */ (document.querySelector("[data-quiz=promote]")).focus();
    } else answer(move);
  }
}

/** Read a move that was typed: a vertex of Go, or USI. @param {string} text */
function typeMove(text) {
  const position = positions[state.turn], move = text.trim();
  if (position instanceof GoPosition) {
    const isPass = move.toLowerCase() === "pass";
    if (isPass || (/^[a-z][0-9]+$/i.test(move) && position.point(move) >= 0)) return answer(isPass ? "pass" : move.toUpperCase());
  } else if (/^([1-9][a-i]){2}\+?$/.test(move)) return answer(move);
  else if (/^[plnsgbr]\*[1-9][a-i]$/i.test(move)) return answer(move[0].toUpperCase() + move.slice(1));
  byId("status").textContent = q("unreadable", text);
}

// -- the controls ------------------------------------------------------------------------------------------------------

/** @type {Record<string, () => void>} */
const QUIZ_ACTIONS = {
  reveal: () => answer(""),
  previous: () => goToProblem((quiz?.place ?? 0) - 1),
  following: () => goToProblem((quiz?.place ?? 0) + 1),
  promote: () => answer(quiz?.choice[1] ?? ""),
  keep: () => answer(quiz?.choice[0] ?? ""),
  refute: () => {
    if (quiz) showLine(quiz.numbers[quiz.place], wrongLine(), 1, "refutation");
  },
  better: () => {
    if (quiz) showLine(quiz.numbers[quiz.place], bestLine(quiz.numbers[quiz.place]), 1, "betterLine");
  },
  leave: () => {
    quiz = null;
    clearTimeout(timer);
    drawLists();
  },
};

/** Keys of the game that problems use otherwise, and keys that would show the answer. @type {Record<string, () => void>} */
const QUIZ_KEYS = { "mistake-before": QUIZ_ACTIONS.previous, "mistake-after": QUIZ_ACTIONS.following };

/** Take an action of a key, if problems use it. Return false for actions of the game. @param {string} action */
function takesKey(action) {
  if (!quiz) return false;
  if (action === "return" && !state.step) QUIZ_ACTIONS.leave();
  else if (QUIZ_KEYS[action]) QUIZ_KEYS[action]();
  else return isAsking() || !(state.step || action === "better");
  return true;
}

/** Show and hide the parts of the page. */
function drawQuiz() {
  const isOn = quiz !== null, asking = isAsking();
  byId("quiz").hidden = !isOn;
  for (const id of ["steps", "mistake-steps", "overlays"]) byId(id).hidden = isOn;
  byId("line-steps").hidden = !state.step;
  for (const section of document.querySelectorAll(".side section"))
    /** @type {HTMLElement} */ (section).hidden = isOn && (asking || section.getAttribute("aria-labelledby") !== "candidates-title");
  byId("promotion").hidden = !quiz?.choice.length;
  byId("answer").hidden = !asking;
  for (const name of ["refute", "better"])
    /** @type {HTMLElement} */ (document.querySelector(`[data-quiz=${name}]`)).hidden = asking || !quiz?.numbers.length || (name === "refute" && !wrongLine().length);
  /** @type {HTMLElement} */ (document.querySelector("[data-quiz=reveal]")).hidden = !asking;
  for (const element of document.querySelectorAll("[data-quiz-label]"))
    element.textContent = q(element.getAttribute("data-quiz-label") ?? "");
  const choice = /** @type {HTMLSelectElement} */ (byId("sides"));
  const names = [q("both"), sideName("B"), sideName("W")];
  for (const [place, name] of names.entries()) choice.options[place].text = name;
  if (quiz) choice.value = quiz.sides.join("");
  // A browser takes the focus from a hidden element only when it next paints: a key pressed before that would be lost.
  const focused = document.activeElement;
  if (focused instanceof HTMLElement && focused.closest("[hidden]")) focused.blur();
}

for (const element of document.querySelectorAll("[data-quiz]"))
  element.addEventListener("click", () => QUIZ_ACTIONS[element.getAttribute("data-quiz") ?? ""]());
byId("sides").addEventListener("change", (event) => {
  const { value } = /** @type {HTMLSelectElement} */ (event.target);
  startQuiz(/** @type {("B" | "W")[]} */ (value.split("")));
});
byId("answer").addEventListener("submit", (event) => {
  event.preventDefault();
  const entry = /** @type {HTMLInputElement} */ (document.querySelector("[name=answer]"));
  typeMove(entry.value);
  entry.value = "";
});
