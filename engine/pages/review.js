// The page of a review: steps through the game, shows mistakes and plays better lines on the board.
// @ts-check
"use strict";

/**
 * A move that the engine considered: move, visits, prior, the mover's winrate, the mover's score, variation.
 * @typedef {[string, number, number, number, number | null, string[]]} Candidate
 */
/**
 * @typedef {object} Turn a position, before the move of the same number
 * @property {"B" | "W"} side the side to move
 * @property {number} winrate Black's, [0, 1]
 * @property {number | null} score Black's lead in points or centipawns
 * @property {number | null} mate plies to the mate, negative for the mated side
 * @property {Candidate[]} candidates best first
 * @property {string} [ownership] two points a character: see `ownershipOf`
 * @property {Record<string, number>} [policy] probability by move, of moves that are no candidates
 */
/**
 * @typedef {object} Move
 * @property {string} move GTP or USI
 * @property {"B" | "W"} side
 * @property {number} loss of winrate, [0, 1]
 * @property {number | null} scoreLoss
 * @property {"" | "inaccuracy" | "mistake" | "blunder"} kind
 * @property {boolean} isBest
 * @property {number} accuracy in percent
 * @property {number} [missed] plies of a mate that was missed
 */
/**
 * @typedef {object} Review
 * @property {"go" | "shogi"} game
 * @property {number} width
 * @property {number} height
 * @property {string} sfen of the first position, shogi
 * @property {[string, string][]} stones of the first position, Go: color and vertex
 * @property {{B: string, W: string}} names
 * @property {Record<string, string>} sides of shogi, in Japanese
 * @property {Record<string, string>} facts by language: rules, komi, limit, engine
 * @property {boolean} hasPoints whether scores come before winrates
 * @property {string} result
 * @property {Move[]} moves
 * @property {Turn[]} turns
 * @property {Record<string, (number | null)[][]>} summaries by side: of the whole game and its phases, as `SUMMARY` lists
 * @property {number[]} phases number of the first move of middle game and endgame
 * @property {("B" | "W")[]} [quiz] the page begins with problems of these sides
 */

/** @type {Record<string, Record<string, string>>} */
const TEXTS = {
  en: {
    against: "against",
    first: "First position", back: "Back", forward: "Forward", last: "Last position", slider: "Move",
    previousMistake: "◀ Mistake", nextMistake: "Mistake ▶", playBetter: "▶ Better line", backToGame: "↩ Game", backToProblem: "↩ Problem",
    policy: "Policy", graph: "Winrate and score", mistakes: "Mistakes", player: "Player", both: "both", order: "Order",
    bySize: "worst first", byMove: "as played", lost: "Lost", lostWinrate: "Winrate lost", lostScore: "Score lost", lostPoints: "Points lost", all: "Show all {}", histogram: "Moves by loss", punish: "▶ Refutation",
    refutation: "Refutation", betterLine: "Better line", view: "Values for {}", more: "{} and more", below: "below {}", legend: "Click the graph to go to a move.",
    summary: "Summary", move: "Move", candidate: "Move", played: "Played", loss: "Loss", better: "Better", visits: "Visits", nodes: "Nodes", prior: "Prior",
    winrate: "Winrate", score: "Score", line: "Line", points: "points", centipawns: "centipawns", none: "No mistakes.",
    blunder: "blunder", mistake: "mistake", inaccuracy: "inaccuracy", best: "best move", class: "Class", phase: "Phase", start: "Start of the game",
    toMove: "to move", variation: "Variation", accuracy: "Accuracy", agreement: "As the engine",
    meanLoss: "Mean loss", opening: "Opening", middle: "Middle game", endgame: "Endgame",
    next: "Played next", missed: "missed a mate in {} plies",
    keys: "Keys: ← → step, Home End, ↑ ↓ previous and next mistake, Enter plays the better line, Escape returns, F turns the board.",
  },
  ja: {
    against: "対",
    first: "初期局面", back: "一手戻る", forward: "一手進む", last: "最終局面", slider: "手数",
    previousMistake: "◀ 前の悪手", nextMistake: "次の悪手 ▶", playBetter: "▶ 最善手順", backToGame: "↩ 本譜", backToProblem: "↩ 問題図",
    policy: "指し手の確率", graph: "勝率と形勢", mistakes: "悪手一覧", player: "対局者", both: "両者", order: "並べ方",
    bySize: "損失順", byMove: "手順", lost: "損失", lostWinrate: "勝率の損失", lostScore: "評価値の損失", lostPoints: "目数の損失", all: "{}手すべてを表示", histogram: "損失の分布", punish: "▶ とがめる手順",
    refutation: "とがめる手順", betterLine: "最善手順", view: "{}から見た値", more: "{}以上", below: "{}未満", legend: "グラフを押すとその局面に移ります。",
    summary: "まとめ", move: "手数", candidate: "候補手", played: "実戦", loss: "損失", better: "最善", visits: "探索数", nodes: "ノード数", prior: "確率",
    winrate: "勝率", score: "形勢", line: "読み筋", points: "目", centipawns: "", none: "悪手はありません。",
    blunder: "悪手", mistake: "疑問手", inaccuracy: "緩手", best: "最善手", class: "判定", phase: "段階", start: "対局開始",
    toMove: "の手番", variation: "変化", accuracy: "精度", agreement: "一致率",
    meanLoss: "平均損失", opening: "序盤", middle: "中盤", endgame: "終盤",
    next: "次の一手", missed: "{}手詰めを逃す",
    keys: "キー: ← → 一手ずつ、Home End、↑ ↓ 前後の悪手、Enter 最善手順、Escape 本譜、F 盤の反転。",
  },
};

/** @type {Review} */
const review = JSON.parse(/** @type {HTMLElement} */ (document.getElementById("review")).textContent ?? "");
const isGo = review.game === "go";
if (!isGo) Object.assign(TEXTS.ja, { score: "評価値", graph: "勝率と評価値" });
if (review.hasPoints) {
  Object.assign(TEXTS.en, { graph: "Score and winrate" });
  Object.assign(TEXTS.ja, { graph: "形勢と勝率" });
}
for (const turn of review.turns)
  for (const candidate of turn.candidates) {
    const rest = /** @type {unknown} */ (candidate[5]); // stored as one text without the first move
    candidate[5] = [candidate[0], ...String(rest).split(" ").filter(Boolean)];
  }
const SUMMARY = ["moves", "accuracy", "agreement", "meanLoss", "blunder", "mistake", "inaccuracy"];
/** Lower edges of the histogram: points, or shares of winrate. */
const EDGES = review.hasPoints ? [0, 0.5, 1.5, 3, 6, 12] : [0, 0.01, 0.02, 0.05, 0.1, 0.2];
const FIRST = 10; // mistakes that a phone lists at first; review.css hides the others
const PHASES = ["opening", "middle", "endgame"];

/** Positions of the game, the first before move 1. @type {(GoPosition | ShogiPosition)[]} */
const positions = replay({ ...review, first: review.turns[0].side }, review.moves.map(({ move }) => move), review.moves.map(({ side }) => side));

const state = {
  turn: 0, // number of moves played
  /** Moves of the variation that is shown. @type {string[]} */
  line: [],
  step: 0, // moves of the variation on the board; 0: the game's position
  name: "variation",
  /** The variation below the pointer. @type {{line: string[], step: number} | null} */
  hover: null,
  /** Players whose mistakes are listed. @type {("B" | "W")[]} */
  sides: ["B", "W"],
};

/** Return the side whose values the page shows: White's if only White's mistakes are listed. */
const viewer = () => ((quiz?.sides ?? state.sides).join("") === "W" ? "W" : "B");
/** Return a winrate for the viewer. @param {number} winrate of a side @param {"B" | "W"} side */
const viewedWinrate = (winrate, side) => (side === viewer() ? winrate : 1 - winrate);
/** Return a score for the viewer. @param {number | null} score of a side @param {"B" | "W"} side */
const viewedScore = (score, side) => (score === null || side === viewer() ? score : 0 - score);

/** Return the owner of each point, +1 Black's to -1 White's. @param {string} text two points a character, in 9 steps each */
function ownershipOf(text) {
  const steps = Array.from(text, (letter) => letter.charCodeAt(0)).flatMap((code) => {
    const both = code - 35 - Number(code > 60) - Number(code > 92);
    return [Math.floor(both / 9), both % 9];
  });
  return steps.slice(0, review.width * review.height).map((step) => step / 4 - 1);
}

/** @param {"B" | "W"} side */
const sideName = (side) => (language === "ja" && review.sides[side]) || t(review.game + side);

/** @param {string} text @param {() => void} action */
function button(text, action) {
  const element = html("button", { type: "button" }, text);
  element.addEventListener("click", action);
  return element;
}

/** @param {number | null} score */
function scoreText(score) {
  if (score === null) return "";
  const text = Math.abs(score).toFixed(isGo ? 1 : 0), sign = Number(text) === 0 ? "" : score > 0 ? "+" : "−";
  return sign + text;
}

/** Return the name of a move in the language of the page. @param {GoPosition | ShogiPosition} position @param {string} move */
function moveName(position, move) {
  return position.name(move, language);
}

/** Return the best line of a position. @param {number} turn */
const bestLine = (turn) => review.turns[turn]?.candidates[0]?.[5] ?? [];
const mistakes = review.moves.flatMap((move, number) => (move.kind ? [number] : []));

// -- going through the game --------------------------------------------------------------------------------------------

let timer = 0; // of a line that plays by itself

/** Show the position after so many moves. @param {number} turn */
function goTo(turn) {
  clearTimeout(timer);
  state.turn = Math.max(0, Math.min(review.moves.length, turn));
  Object.assign(state, { line: [], step: 0, hover: null });
  draw();
}

/** Show a variation of a position. @param {number} turn @param {string[]} line @param {number} step */
function showLine(turn, line, step = 1, name = "variation") {
  clearTimeout(timer);
  if (!line.length) return;
  Object.assign(state, { turn, line, step: Math.max(1, Math.min(line.length, step)), name, hover: null });
  draw();
}

/** Show a variation that the pointer is on. @param {{line: string[], step: number} | null} hover */
function setHover(hover) {
  if (JSON.stringify(hover) === JSON.stringify(state.hover)) return;
  state.hover = hover;
  drawBoard();
}

/**
 * Play variations of a position one after another, a move at a time. Any step of the reader ends this.
 * @param {number} turn @param {[string, string[]][]} lines names and moves
 */
function playLines(turn, lines) {
  const frames = lines.flatMap(([name, line]) => line.map((_, place) => ({ name, line, step: place + 1 })));
  const next = () => {
    const frame = frames.shift();
    if (!frame) return;
    showLine(turn, frame.line, frame.step, frame.name);
    timer = setTimeout(next, frame.step === frame.line.length ? 2500 : 900);
  };
  clearTimeout(timer);
  timer = setTimeout(next, 900);
}

/** Return the line that shows why a move is bad: the move, and the best answers to it. @param {number} turn @param {string} move */
function refutation(turn, move) {
  if (review.moves[turn]?.move === move) return [move, ...bestLine(turn + 1)];
  return review.turns[turn]?.candidates.find(([each]) => each === move)?.[5] ?? [];
}

/** Mistakes of the players that were chosen, in the order of the game. */
const shownMistakes = () => mistakes.filter((number) => state.sides.includes(review.moves[number].side));

/** Return the mistake that the page shows: the next move, or the one that led here. */
function currentMistake() {
  for (const number of [state.turn, state.turn - 1]) if (shownMistakes().includes(number)) return number;
  return state.turn;
}

/** @type {Record<string, () => void>} */
const ACTIONS = {
  first: () => goTo(0),
  before: () => (state.step > 1 ? showLine(state.turn, state.line, state.step - 1, state.name) : goTo(state.turn - (state.step ? 0 : 1))),
  after: () => (state.step ? showLine(state.turn, state.line, state.step + 1, state.name) : goTo(state.turn + 1)),
  last: () => goTo(review.moves.length),
  "mistake-before": () => goTo(shownMistakes().filter((number) => number < state.turn).pop() ?? state.turn),
  "mistake-after": () => goTo(shownMistakes().find((number) => number > state.turn) ?? state.turn),
  better: () => showLine(currentMistake(), bestLine(currentMistake()), 1, "betterLine"),
  punish: () => showLine(currentMistake(), refutation(currentMistake(), review.moves[currentMistake()]?.move ?? ""), 1, "refutation"),
  return: () => goTo(state.turn),
  quiz: () => startQuiz(state.sides),
};
/** @type {Record<string, string>} */
const KEYS = {
  ArrowLeft: "before", ArrowRight: "after", Home: "first", End: "last", ArrowUp: "mistake-before",
  ArrowDown: "mistake-after", Enter: "better", Escape: "return",
};

// -- drawing -----------------------------------------------------------------------------------------------------------

/** Return what is drawn over the board. White alone is seen from White. @returns {Overlay} */
function overlay() {
  const bottom = bottomFor(viewer() === "W" ? WHITE : BLACK);
  if (isAsking()) return { ...askingOverlay(), bottom };
  const turn = review.turns[state.turn], { line, step } = state.hover ?? state;
  const targets = turn && !state.step && isChecked("candidates") ? turn.candidates.map(([move]) => move) : [];
  if (!turn || step) return { bottom, numbers: line.slice(0, step), targets };
  const most = turn.candidates[0]?.[1] || 1, next = review.moves[state.turn];
  const candidates = isChecked("candidates")
    ? turn.candidates.map(([move, visits, , winrate, score]) => ({
        move, share: visits / most,
        label: review.hasPoints ? scoreText(viewedScore(score, turn.side)) : String(Math.round(100 * viewedWinrate(winrate, turn.side))),
        detail: review.hasPoints ? percent(viewedWinrate(winrate, turn.side), 0) : "",
      }))
    : [];
  const ownership = isChecked("ownership") && turn.ownership ? ownershipOf(turn.ownership) : null;
  /** @type {number[] | null} */
  let policy = null;
  const position = positions[state.turn];
  if (isChecked("policy") && turn.policy && position instanceof GoPosition) {
    policy = Array(position.stones.length).fill(0);
    const priors = [...turn.candidates.map(([move, , prior]) => /** @type {[string, number]} */ ([move, prior])), ...Object.entries(turn.policy)];
    for (const [move, share] of priors) if (move !== "pass") policy[position.point(move)] = share;
  }
  return { bottom, candidates, ownership, policy, played: next?.kind ? next.move : "", targets };
}

function shownPosition() {
  let position = positions[state.turn];
  if (state.hover && !isGo) return position; // arrows show moves to come
  const { line, step } = state.hover ?? state;
  for (const move of line.slice(0, step)) position = position.play(move);
  return position;
}

/** Return how bad a mistake was. @param {Move} move */
function verdict({ kind, loss, scoreLoss, missed }) {
  const points = scoreLoss === null ? [] : [`${scoreText(-scoreLoss)}${language === "ja" ? "" : " "}${t(isGo ? "points" : "centipawns")}`];
  const mate = missed ? [t("missed").replace("{}", String(missed))] : [];
  return `${t(kind)} (${[...scoresFirst([`−${percent(loss)}`], points), ...mate].join(", ")})`;
}

/** Return winrates and scores in the order of the game. @template T @param {T[]} winrates @param {T[]} scores */
const scoresFirst = (winrates, scores) => (review.hasPoints ? [...scores, ...winrates] : [...winrates, ...scores]);

/** Return the value of a position for the viewer, with its side. @param {Turn} turn */
function valueText({ winrate, score }) {
  const lead = score === null ? [] : [`${scoreText(viewedScore(score, "B"))}${isGo ? (language === "ja" ? "目" : " points") : ""}`];
  const [first, second] = scoresFirst([percent(viewedWinrate(winrate, "B"))], lead);
  return `${sideName(viewer())} ${second ? `${first} (${second})` : first}`;
}

/** Return the moves of the variation that is shown. */
function lineText() {
  const names = lineNames(positions[state.turn], state.line.slice(0, state.step));
  return `${t(state.name)}, ${state.step}/${state.line.length}: ${names.map((name, place) => (isGo ? `${place + 1} ${name}` : name)).join(" ")}`;
}

function statusText() {
  if (quiz) return quizText();
  const turn = review.turns[state.turn];
  if (state.step) return lineText();
  const parts = [];
  const move = review.moves[state.turn - 1];
  if (move) {
    parts.push(`${state.turn}. ${sideName(move.side)} ${moveName(positions[state.turn - 1], move.move)}`);
    if (move.kind) parts.push(verdict(move));
    else if (move.isBest) parts.push(t("best"));
  } else parts.push(t("start"));
  if (turn) {
    parts.push(valueText(turn));
    const next = review.moves[state.turn];
    if (next?.kind) parts.push(`${t("next")}: ${moveName(positions[state.turn], next.move)}, ${verdict(next)}`);
    else if (next) parts.push(`${sideName(turn.side)}${language === "ja" ? "" : " "}${t("toMove")}`);
  }
  if (state.turn === review.moves.length && review.result) parts.push(resultText(review.result, turn?.side ?? "B", (side) => sideName(side === "W" ? "W" : "B")));
  return parts.join(" · ");
}

function drawBoard() {
  const position = shownPosition(), status = statusText();
  byId("board").replaceChildren(position instanceof GoPosition ? drawGo(position, overlay(), status) : drawShogi(position, overlay(), status));
}

function draw() {
  const status = statusText();
  drawBoard();
  if (byId("status").textContent !== status) byId("status").textContent = status;
  byId("line").textContent = quiz && state.step ? lineText() : "";
  /** @type {HTMLInputElement} */ (byId("slider")).value = String(state.turn);
  byId("slider").setAttribute("aria-valuetext", status);
  for (const [action, isHidden] of /** @type {[string, boolean][]} */ ([["return", !state.step], ["quiz", state.step > 0]]))
    for (const each of document.querySelectorAll(`[data-go=${action}]`)) /** @type {HTMLElement} */ (each).hidden = isHidden;
  drawCandidates();
  drawCursor();
  drawQuiz();
  for (const row of document.querySelectorAll("#mistakes tr"))
    row.classList.toggle("current", row.getAttribute("data-number") === String(state.turn));
}

function drawCandidates() {
  const turn = review.turns[state.turn];
  const found = turn?.candidates ?? [];
  const hasPriors = found.some(([, , prior]) => prior > 0); // alpha-beta has none
  const rows = found.map(([move, visits, prior, winrate, score, line], place) => {
    const names = lineNames(positions[state.turn], line).map((name, step) => html("span", { "data-line": String(place), "data-step": String(step + 1) }, name));
    const first = button(moveName(positions[state.turn], move), () => showLine(state.turn, line));
    first.dataset.line = String(place);
    return html("tr", {},
      html("td", { class: "text" }, first),
      ...scoresFirst([html("td", {}, percent(viewedWinrate(winrate, turn.side)))], [html("td", {}, scoreText(viewedScore(score, turn.side)))]), html("td", {}, String(visits)),
      ...(hasPriors ? [html("td", {}, percent(prior))] : []), html("td", { class: "line" }, ...names.slice(1, 9).flatMap((name) => [name, " "])));
  });
  const view = html("p", { class: "soft" }, t("view").replace("{}", sideName(viewer())));
  byId("moves").replaceChildren(...(rows.length ? [view, table(["candidate", ...scoresFirst(["winrate"], ["score"]), ...(hasPriors ? ["visits", "prior"] : ["nodes"]), "line"], rows)] : []));
}

/** @param {string[]} heads @param {Node[]} rows */
function table(heads, rows) {
  const cells = heads.map((head) => html("th", { scope: "col", class: ["candidate", "line", "played", "better", "class", "phase"].includes(head) ? "text" : "" }, t(head)));
  const keys = rows.some((row) => row instanceof Element && row.querySelector("button")) ? {} : { tabindex: "0" }; // to scroll by keys
  return html("div", { class: "scroll", ...keys }, html("table", {}, html("thead", {}, html("tr", {}, ...cells)), html("tbody", {}, ...rows)));
}

/** @param {number} number of a move */
const badness = (number) => ["", "inaccuracy", "mistake", "blunder"].indexOf(review.moves[number].kind);

/** @param {number} number of a move */
const lost = (number) => (review.hasPoints ? review.moves[number].scoreLoss ?? 0 : review.moves[number].loss);

function drawMistakes() {
  const sorted = shownMistakes();
  if (/** @type {HTMLSelectElement} */ (byId("order")).value === "size") sorted.sort((a, b) => badness(b) - badness(a) || lost(b) - lost(a));
  const rows = sorted.map((number) => {
    const { move, side, loss, scoreLoss, kind } = review.moves[number], line = bestLine(number);
    const name = `${isGo ? `${sideName(side)} ` : ""}${moveName(positions[number], move)}`;
    return html("tr", { "data-number": String(number) },
      html("td", {}, String(number + 1)),
      html("td", { class: "text" }, button(name, () => goTo(number))),
      html("td", { class: `text ${kind}` }, t(kind)),
      ...scoresFirst([html("td", {}, percent(loss))], [html("td", {}, scoreLoss === null ? "" : scoreLoss.toFixed(isGo ? 1 : 0))]),
      html("td", { class: "text" }, line.length ? button(`▶ ${moveName(positions[number], line[0])}`, () => showLine(number, line)) : ""));
  });
  if (!rows.length) return byId("mistakes").replaceChildren(t("none"));
  const all = button(t("all").replace("{}", String(rows.length)), () => byId("mistakes").classList.add("all"));
  all.className = "show-all"; // on a phone, where a long list would hide what follows
  all.hidden = rows.length <= FIRST;
  const heads = ["move", "played", "class", ...scoresFirst(["lostWinrate"], [isGo ? "lostPoints" : "lostScore"]), "better"];
  byId("mistakes").replaceChildren(table(heads, rows), all);
}

function drawSummary() {
  const rows = [];
  for (const side of state.sides)
    review.summaries[side].forEach(([moves, accuracy, best, loss, ...kinds], phase) => {
      if (!moves) return;
      const name = phase ? t(PHASES[phase - 1]) : `${sideName(side)}${review.names[side] ? ` ${review.names[side]}` : ""}`;
      rows.push(html("tr", phase ? {} : { class: "whole" },
        html("td", { class: "text" }, name), html("td", {}, String(moves)), html("td", {}, `${accuracy?.toFixed(0)}%`), html("td", {}, percent(best ?? 0, 0)),
        html("td", {}, review.hasPoints ? `${loss?.toFixed(2)}` : percent(loss ?? 0, 2)),
        ...kinds.map((count, place) => html("td", { class: count ? SUMMARY[4 + place] : "" }, String(count)))));
    });
  byId("summary").replaceChildren(table(["phase", ...SUMMARY], rows));
}

/** Return the number of a side's moves in each class of loss. @param {"B" | "W"} side */
const histogram = (side) => EDGES.map((least, place) =>
  review.moves.filter((move) => move.side === side)
    .filter((move) => [review.hasPoints ? move.scoreLoss ?? 0 : move.loss].every((loss) => loss >= least && loss < (EDGES[place + 1] ?? Infinity))).length);

function drawHistogram() {
  const counts = state.sides.map(histogram), most = Math.max(1, ...counts.flat());
  const edge = (/** @type {number} */ value) => (review.hasPoints ? String(value) : percent(value, 0));
  const rows = EDGES.map((least, place) => {
    const next = EDGES[place + 1];
    const name = !place ? t("below").replace("{}", edge(next)) : next ? `${edge(least)}–${edge(next)}` : t("more").replace("{}", edge(least));
    return html("tr", {}, html("td", { class: "text" }, name), ...counts.flatMap((found, side) => [
      html("td", {}, String(found[place])),
      html("td", { class: "bar", "aria-hidden": "true" }, html("span", { class: `bar-${state.sides[side]}`, style: `width: ${(100 * found[place]) / most}%` }))]));
  });
  const heads = [html("th", { scope: "col", class: "text" }, t("lost") + (review.hasPoints ? ` (${t("points")})` : "")),
    ...state.sides.map((side) => html("th", { scope: "colgroup", colspan: "2", class: "text" }, sideName(side)))];
  byId("histogram").replaceChildren(html("table", {}, html("thead", {}, html("tr", {}, ...heads)), html("tbody", {}, ...rows)));
}

const GRAPH = { width: 600, height: 190, edge: 6 };
/** @param {number} turn */
const graphX = (turn) => GRAPH.edge + ((GRAPH.width - 2 * GRAPH.edge) * turn) / Math.max(1, review.turns.length - 1);
/** @param {number} share 0 to 1, from the bottom */
const graphY = (share) => GRAPH.height - GRAPH.edge - (GRAPH.height - 2 * GRAPH.edge) * share;

function drawGraph() {
  GRAPH.width = byId("graph").clientWidth || 600; // texts keep their size on a phone
  const scores = review.turns.map(({ score }) => Math.abs(score ?? 0)).sort((a, b) => a - b);
  // The scale fits nearly all scores: a lost endgame must not flatten the rest.
  const most = Math.max(isGo ? 10 : 500, scores[Math.floor(0.95 * (scores.length - 1))] ?? 0);
  const share = (/** @type {number | null} */ score) => 0.5 + 0.5 * Math.max(-1, Math.min(1, (viewedScore(score, "B") ?? 0) / most));
  const path = (/** @type {(turn: Turn) => number} */ value) =>
    review.turns.map((turn, number) => `${number ? "L" : "M"}${graphX(number).toFixed(1)} ${graphY(value(turn)).toFixed(1)}`).join("");
  const sheet = svg("svg", { viewBox: `0 0 ${GRAPH.width} ${GRAPH.height}`, role: "img", "aria-label": t("graph") });
  const line = { fill: "none", "stroke-width": 2, "stroke-linejoin": "round" };
  const hasScores = review.turns.some(({ score }) => score !== null);
  sheet.append(svg("path", { d: `M0 ${graphY(0.5)}H${GRAPH.width}`, stroke: "var(--line)" }));
  for (const first of review.phases) if (first > 0 && first < review.moves.length)
    sheet.append(svg("path", { d: `M${graphX(first)} 0V${GRAPH.height}`, stroke: "var(--soft)", "stroke-dasharray": "2 5" }));
  const curves = [svg("path", { ...line, d: path(({ winrate }) => viewedWinrate(winrate, "B")), stroke: "var(--accent)", "stroke-dasharray": review.hasPoints ? "5 3" : "none" })];
  if (hasScores) curves.push(svg("path", { ...line, d: path(({ score }) => share(score)), stroke: "var(--score)", "stroke-dasharray": review.hasPoints ? "none" : "5 3" }));
  sheet.append(...scoresFirst(curves.slice(1), curves.slice(0, 1)));
  for (const number of shownMistakes()) {
    const { kind } = review.moves[number], after = review.turns[number + 1];
    if (after) sheet.append(svg("circle", { cx: graphX(number + 1), cy: graphY(review.hasPoints ? share(after.score) : viewedWinrate(after.winrate, "B")), r: kind === "blunder" ? 5 : 3.5, fill: `var(--${kind})` }));
  }
  const small = { "font-size": 12, fill: "var(--soft)" };
  const top = scoresFirst(["100%"], hasScores ? [scoreText(most)] : []).join(" / "), low = scoresFirst(["0%"], hasScores ? [scoreText(-most)] : []).join(" / ");
  sheet.append(
    svg("text", { ...small, x: 8, y: 16 }, `${sideName(viewer())} ${top}`),
    svg("text", { ...small, x: 8, y: GRAPH.height - 8 }, low),
    svg("path", { id: "cursor", stroke: "var(--ink)", "stroke-width": 1 }),
  );
  sheet.addEventListener("click", (event) => {
    const { left, width } = sheet.getBoundingClientRect();
    goTo(Math.round(((event.clientX - left) / width) * (review.turns.length - 1)));
  });
  const key = (/** @type {string} */ style, /** @type {string} */ name) => html("span", {}, html("i", { class: style }), t(name));
  const names = scoresFirst([key("key-winrate", "winrate")], hasScores ? [key("key-score", "score")] : []);
  const legend = html("p", { class: `legend soft${review.hasPoints ? " points" : ""}` }, ...names, ...["blunder", "mistake", "inaccuracy"].map((kind) => key(`key-dot ${kind}`, kind)), html("span", {}, t("legend")));
  byId("graph").replaceChildren(sheet, legend);
}

function drawCursor() {
  document.getElementById("cursor")?.setAttribute("d", `M${graphX(state.turn)} 0V${GRAPH.height}`);
}

function drawAll() {
  drawLabels();
  const name = (/** @type {"B" | "W"} */ side) => (review.names[side] ? `${review.names[side]} (${sideName(side)})` : sideName(side));
  const title = `${name("B")} ${t("against")} ${name("W")}`;
  document.title = `${title} – yomi`;
  byId("players").textContent = title;
  byId("facts").textContent = review.facts[language];
  byId("keys").textContent = t("keys");
  byId("slider").setAttribute("aria-label", t("slider"));
  const players = /** @type {HTMLSelectElement} */ (byId("player"));
  [t("both"), name("B"), name("W")].forEach((text, place) => (players.options[place].text = text));
  drawLists();
}

/** Draw what depends on the players that were chosen. */
function drawLists() {
  drawGraph();
  drawMistakes();
  drawSummary();
  drawHistogram();
  draw();
}

byId("player").addEventListener("change", (event) => {
  state.sides = /** @type {("B" | "W")[]} */ (/** @type {HTMLSelectElement} */ (event.target).value.split(""));
  drawLists();
});
byId("order").addEventListener("change", () => (drawMistakes(), draw()));
addEventListener("resize", () => (drawGraph(), drawCursor()));

/** Return the variation of an element below the pointer, or null. @param {EventTarget | null} target */
function variationAt(target) {
  if (isAsking()) return null;
  const { move, line, step } = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("[data-move], [data-line]"))?.dataset ?? {};
  const candidates = review.turns[state.turn]?.candidates ?? [];
  const found = line === undefined ? candidates.find(([each]) => each === move)?.[5] : candidates[Number(line)]?.[5];
  return found ? { line: found, step: step === undefined ? found.length : Number(step) } : null;
}

let isTouch = false;
for (const id of ["board", "moves"]) {
  byId(id).addEventListener("pointerover", (event) => {
    isTouch = event.pointerType === "touch";
    setHover(variationAt(event.target));
  });
  // A finger that is lifted leaves the numbers on the board.
  byId(id).addEventListener("pointerleave", (event) => event.pointerType !== "touch" && setHover(null));
  byId(id).addEventListener("click", (event) => {
    const found = variationAt(event.target), target = /** @type {Element} */ (event.target);
    if (!found || target.closest("button") || (isTouch && id === "board")) return;
    showLine(state.turn, found.line, id === "board" ? 1 : found.step);
  });
}
byId("moves").addEventListener("focusin", (event) => setHover(variationAt(event.target)));
byId("moves").addEventListener("focusout", () => setHover(null));


/** @type {HTMLInputElement} */ (byId("slider")).max = String(review.moves.length);
byId("slider").addEventListener("input", (event) => goTo(Number(/** @type {HTMLInputElement} */ (event.target).value)));
for (const element of document.querySelectorAll("[data-go]"))
  element.addEventListener("click", () => ACTIONS[element.getAttribute("data-go") ?? ""]());
for (const element of document.querySelectorAll("#overlays input")) element.addEventListener("change", draw);
offerLanguages(drawAll);
offerTurning(draw);
document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target), action = KEYS[event.key];
  // A focused button keeps Enter, the slider keeps its own arrows.
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.closest("#slider, select, #answer input") || (event.key === "Enter" && target.closest("button, input"))) return;
  event.preventDefault();
  if (!takesKey(action)) ACTIONS[action]();
});
for (const name of ["ownership", "policy"])
  if (!isGo || !review.turns.some((turn) => /** @type {Record<string, unknown>} */ (turn)[name])) {
    const label = document.querySelector(`[name=${name}]`)?.closest("label");
    if (label) /** @type {HTMLElement} */ (label).hidden = true;
  }
drawAll();
if (review.quiz) startQuiz(review.quiz);
