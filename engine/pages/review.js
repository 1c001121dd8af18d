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
 * @property {string} [ownership] one letter a point, "A" White's to "z" Black's
 * @property {Record<string, number>} [policy] probability by move
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
 * @property {number[]} phases number of the first move of middle game and endgame
 * @property {("B" | "W")[]} [quiz] the page begins with problems of these sides
 */

/** @type {Record<string, Record<string, string>>} */
const TEXTS = {
  en: {
    against: "against",
    first: "First position", back: "Back", forward: "Forward", last: "Last position", slider: "Move",
    previousMistake: "◀ Mistake", nextMistake: "Mistake ▶", playBetter: "Play the better line", backToGame: "Back to the game",
    policy: "Policy", graph: "Winrate and score", mistakes: "Mistakes",
    summary: "Summary", move: "Move", candidate: "Move", played: "Played", loss: "Loss", better: "Better", visits: "Visits", nodes: "Nodes", prior: "Prior",
    winrate: "Winrate", score: "Score", line: "Line", points: "points", centipawns: "centipawns", none: "No mistakes.",
    blunder: "blunder", mistake: "mistake", inaccuracy: "inaccuracy", best: "best move", start: "Start of the game",
    toMove: "to move", variation: "Variation", accuracy: "Accuracy", agreement: "As the engine",
    meanLoss: "Mean loss", opening: "Opening", middle: "Middle game", endgame: "Endgame",
    result: "Result", next: "Played next", missed: "missed a mate in {} plies",
    keys: "Keys: ← → step, Home End, ↑ ↓ previous and next mistake, Enter plays the better line, Escape returns, F turns the board.",
  },
  ja: {
    against: "対",
    first: "初期局面", back: "一手戻る", forward: "一手進む", last: "最終局面", slider: "手数",
    previousMistake: "◀ 前の悪手", nextMistake: "次の悪手 ▶", playBetter: "最善手順を再生", backToGame: "本譜に戻る",
    policy: "指し手の確率", graph: "勝率と形勢", mistakes: "悪手一覧",
    summary: "まとめ", move: "手数", candidate: "候補手", played: "実戦", loss: "損失", better: "最善", visits: "探索数", nodes: "ノード数", prior: "確率",
    winrate: "勝率", score: "形勢", line: "読み筋", points: "目", centipawns: "", none: "悪手はありません。",
    blunder: "悪手", mistake: "疑問手", inaccuracy: "緩手", best: "最善手", start: "対局開始",
    toMove: "の手番", variation: "変化", accuracy: "精度", agreement: "一致率",
    meanLoss: "平均損失", opening: "序盤", middle: "中盤", endgame: "終盤",
    result: "結果", next: "次の一手", missed: "{}手詰めを逃す",
    keys: "キー: ← → 一手ずつ、Home End、↑ ↓ 前後の悪手、Enter 最善手順、Escape 本譜、F 盤の反転。",
  },
};

/** @type {Review} */
const review = JSON.parse(/** @type {HTMLElement} */ (document.getElementById("review")).textContent ?? "");
const isGo = review.game === "go";
if (!isGo) Object.assign(TEXTS.ja, { score: "評価値", graph: "勝率と評価値" });
const PHASES = ["opening", "middle", "endgame"];

/** Positions of the game, the first before move 1. @type {(GoPosition | ShogiPosition)[]} */
const positions = replay({ ...review, first: review.turns[0].side }, review.moves.map(({ move }) => move), review.moves.map(({ side }) => side));

const state = {
  turn: 0, // number of moves played
  /** Moves of the variation that is shown. @type {string[]} */
  line: [],
  step: 0, // moves of the variation on the board; 0: the game's position
};

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
  return isGo ? `${score > 0 ? "+" : ""}${score.toFixed(1)}` : `${score > 0 ? "+" : ""}${Math.round(score)}`;
}

/** Return the name of a move in the language of the page. @param {GoPosition | ShogiPosition} position @param {string} move */
function moveName(position, move) {
  return position.name(move, language);
}

/** Return the best line of a position. @param {number} turn */
const bestLine = (turn) => review.turns[turn]?.candidates[0]?.[5] ?? [];
const mistakes = review.moves.flatMap((move, number) => (move.kind ? [number] : []));

// -- going through the game --------------------------------------------------------------------------------------------

/** Show the position after so many moves. @param {number} turn */
function goTo(turn) {
  state.turn = Math.max(0, Math.min(review.moves.length, turn));
  state.line = [];
  state.step = 0;
  draw();
}

/** Show a variation of a position. @param {number} turn @param {string[]} line @param {number} step */
function showLine(turn, line, step = 1) {
  if (!line.length) return;
  state.turn = turn;
  state.line = line;
  state.step = Math.max(1, Math.min(line.length, step));
  draw();
}

/** Return the mistake that the page shows: the next move, or the one that led here. */
function currentMistake() {
  for (const number of [state.turn, state.turn - 1]) if (review.moves[number]?.kind) return number;
  return state.turn;
}

/** @type {Record<string, () => void>} */
const ACTIONS = {
  first: () => goTo(0),
  before: () => (state.step > 1 ? showLine(state.turn, state.line, state.step - 1) : goTo(state.turn - (state.step ? 0 : 1))),
  after: () => (state.step ? showLine(state.turn, state.line, state.step + 1) : goTo(state.turn + 1)),
  last: () => goTo(review.moves.length),
  "mistake-before": () => goTo(mistakes.filter((number) => number < state.turn).pop() ?? state.turn),
  "mistake-after": () => goTo(mistakes.find((number) => number > state.turn) ?? state.turn),
  better: () => showLine(currentMistake(), bestLine(currentMistake())),
  return: () => goTo(state.turn),
  quiz: () => startQuiz(["B", "W"]),
};
/** @type {Record<string, string>} */
const KEYS = {
  ArrowLeft: "before", ArrowRight: "after", Home: "first", End: "last", ArrowUp: "mistake-before",
  ArrowDown: "mistake-after", Enter: "better", Escape: "return",
};

// -- drawing -----------------------------------------------------------------------------------------------------------

/** Return what is drawn over the board. Problems of White alone are seen from White. @returns {Overlay} */
function overlay() {
  const bottom = bottomFor(quiz?.sides.join("") === "W" ? WHITE : BLACK);
  if (isAsking()) return { ...askingOverlay(), bottom };
  const turn = review.turns[state.turn];
  if (!turn || state.step) return { bottom };
  const most = turn.candidates[0]?.[1] || 1, next = review.moves[state.turn];
  const candidates = isChecked("candidates")
    ? turn.candidates.map(([move, visits, , winrate, score]) => ({
        move, share: visits / most,
        label: review.hasPoints ? scoreText(score) : String(Math.round(100 * winrate)),
        detail: review.hasPoints ? percent(winrate, 0) : "",
      }))
    : [];
  const ownership = isChecked("ownership") && turn.ownership
    ? Array.from(turn.ownership, (letter) => (letter.charCodeAt(0) - 65) / 28.5 - 1)
    : null;
  /** @type {number[] | null} */
  let policy = null;
  const position = positions[state.turn];
  if (isChecked("policy") && turn.policy && position instanceof GoPosition) {
    policy = Array(position.stones.length).fill(0);
    for (const [move, share] of Object.entries(turn.policy)) if (move !== "pass") policy[position.point(move)] = share;
  }
  return { bottom, candidates, ownership, policy, played: next?.kind ? next.move : "" };
}

function shownPosition() {
  let position = positions[state.turn];
  for (const move of state.line.slice(0, state.step)) position = position.play(move);
  return position;
}

/** Return how bad a mistake was. @param {Move} move */
function verdict({ kind, loss, scoreLoss, missed }) {
  const points = scoreLoss === null ? [] : [`${scoreText(-scoreLoss)} ${t(isGo ? "points" : "centipawns")}`.trim()];
  const mate = missed ? [t("missed").replace("{}", String(missed))] : [];
  return `${t(kind)} (${[...scoresFirst([`−${percent(loss)}`], points), ...mate].join(", ")})`;
}

/** Return winrates and scores in the order of the game. @template T @param {T[]} winrates @param {T[]} scores */
const scoresFirst = (winrates, scores) => (review.hasPoints ? [...scores, ...winrates] : [...winrates, ...scores]);

/** Return the value of a position for Black. @param {Turn} turn */
function valueText({ winrate, score }) {
  const [first, second] = scoresFirst([percent(winrate)], score === null ? [] : [scoreText(score)]);
  return second ? `${first} (${second})` : first;
}

function statusText() {
  if (quiz && !state.step) return quizText();
  const turn = review.turns[state.turn];
  if (state.step) {
    const names = lineNames(positions[state.turn], state.line.slice(0, state.step));
    return `${t("variation")}, ${state.step}/${state.line.length}: ${names.join(" ")}`;
  }
  const parts = [];
  const move = review.moves[state.turn - 1];
  if (move) {
    parts.push(`${state.turn}. ${sideName(move.side)} ${moveName(positions[state.turn - 1], move.move)}`);
    if (move.kind) parts.push(verdict(move));
    else if (move.isBest) parts.push(t("best"));
  } else parts.push(t("start"));
  if (turn) {
    parts.push(`${sideName("B")} ${valueText(turn)}`);
    const next = review.moves[state.turn];
    if (next?.kind) parts.push(`${t("next")}: ${moveName(positions[state.turn], next.move)}, ${verdict(next)}`);
    else if (next) parts.push(`${sideName(turn.side)}${language === "ja" ? "" : " "}${t("toMove")}`);
  }
  if (state.turn === review.moves.length && review.result) parts.push(`${t("result")}: ${review.result}`);
  return parts.join(" · ");
}

function draw() {
  const position = shownPosition(), status = statusText();
  byId("board").replaceChildren(position instanceof GoPosition ? drawGo(position, overlay(), status) : drawShogi(position, overlay(), status));
  byId("status").textContent = status;
  /** @type {HTMLInputElement} */ (byId("slider")).value = String(state.turn);
  byId("slider").setAttribute("aria-valuetext", status);
  /** @type {HTMLElement} */ (document.querySelector("[data-go=return]")).hidden = !state.step;
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
  const rows = found.map(([move, visits, prior, winrate, score, line]) =>
    html("tr", {},
      html("td", { class: "text" }, button(moveName(positions[state.turn], move), () => showLine(state.turn, line))),
      ...scoresFirst([html("td", {}, percent(winrate))], [html("td", {}, scoreText(score))]), html("td", {}, String(visits)),
      ...(hasPriors ? [html("td", {}, percent(prior))] : []), html("td", { class: "line" }, lineNames(positions[state.turn], line).slice(1, 9).join(" "))));
  byId("moves").replaceChildren(rows.length ? table(["candidate", ...scoresFirst(["winrate"], ["score"]), ...(hasPriors ? ["visits", "prior"] : ["nodes"]), "line"], rows) : "");
}

/** @param {string[]} heads @param {Node[]} rows */
function table(heads, rows) {
  const cells = heads.map((head) => html("th", { scope: "col", class: ["candidate", "line", "played", "better", ""].includes(head) ? "text" : "" }, head && t(head)));
  return html("div", { class: "scroll" }, html("table", {}, html("thead", {}, html("tr", {}, ...cells)), html("tbody", {}, ...rows)));
}

/** @param {number} number of a move */
const badness = (number) => ["", "inaccuracy", "mistake", "blunder"].indexOf(review.moves[number].kind);

/** @param {number} number of a move */
const lost = (number) => (review.hasPoints ? review.moves[number].scoreLoss ?? 0 : review.moves[number].loss);

function drawMistakes() {
  const sorted = mistakes.slice().sort((a, b) => badness(b) - badness(a) || lost(b) - lost(a));
  const rows = sorted.map((number) => {
    const { move, side, loss, scoreLoss, kind } = review.moves[number], line = bestLine(number);
    const name = `${isGo ? `${sideName(side)} ` : ""}${moveName(positions[number], move)}`;
    return html("tr", { "data-number": String(number) },
      html("td", {}, String(number + 1)),
      html("td", { class: "text" }, button(name, () => goTo(number))),
      html("td", { class: `text ${kind}` }, t(kind)),
      ...scoresFirst([html("td", {}, percent(loss))], [html("td", {}, scoreLoss === null ? "" : scoreText(-scoreLoss))]),
      html("td", { class: "text" }, line.length ? button(`▶ ${moveName(positions[number], line[0])}`, () => showLine(number, line)) : ""));
  });
  byId("mistakes").replaceChildren(rows.length ? table(["move", "played", "", ...scoresFirst(["loss"], ["score"]), "better"], rows) : t("none"));
}

/** @param {number} number of a move */
const phaseOf = (number) => (number < review.phases[0] ? 0 : number < review.phases[1] ? 1 : 2);

function drawSummary() {
  const rows = [];
  for (const side of /** @type {("B" | "W")[]} */ (["B", "W"]))
    for (const phase of [-1, 0, 1, 2]) {
      const moves = review.moves.filter((move, number) => move.side === side && (phase < 0 || phaseOf(number) === phase));
      if (!moves.length) continue;
      const mean = (/** @type {(move: Move) => number} */ value) => moves.reduce((sum, move) => sum + value(move), 0) / moves.length;
      const count = (/** @type {string} */ kind) => html("td", { class: kind }, String(moves.filter((move) => move.kind === kind).length));
      rows.push(html("tr", {},
        html("td", { class: "text" }, phase < 0 ? `${sideName(side)}${review.names[side] ? ` ${review.names[side]}` : ""}` : `  ${t(PHASES[phase])}`),
        html("td", {}, String(moves.length)), html("td", {}, `${mean((move) => move.accuracy).toFixed(0)}`),
        html("td", {}, percent(mean((move) => Number(move.isBest)), 0)), html("td", {}, review.hasPoints ? mean((move) => move.scoreLoss ?? 0).toFixed(2) : percent(mean((move) => move.loss), 2)),
        count("blunder"), count("mistake"), count("inaccuracy")));
    }
  byId("summary").replaceChildren(table(["", "moves", "accuracy", "agreement", "meanLoss", "blunder", "mistake", "inaccuracy"], rows));
}

const GRAPH = { width: 600, height: 200, edge: 6 };
/** @param {number} turn */
const graphX = (turn) => GRAPH.edge + ((GRAPH.width - 2 * GRAPH.edge) * turn) / Math.max(1, review.turns.length - 1);
/** @param {number} share 0 to 1, from the bottom */
const graphY = (share) => GRAPH.height - GRAPH.edge - (GRAPH.height - 2 * GRAPH.edge) * share;

function drawGraph() {
  const scores = review.turns.map(({ score }) => Math.abs(score ?? 0)).sort((a, b) => a - b);
  // The scale fits nearly all scores: a lost endgame must not flatten the rest.
  const most = Math.max(isGo ? 10 : 500, scores[Math.floor(0.95 * (scores.length - 1))] ?? 0);
  const share = (/** @type {number | null} */ score) => 0.5 + 0.5 * Math.max(-1, Math.min(1, (score ?? 0) / most));
  const path = (/** @type {(turn: Turn) => number} */ value) =>
    review.turns.map((turn, number) => `${number ? "L" : "M"}${graphX(number).toFixed(1)} ${graphY(value(turn)).toFixed(1)}`).join("");
  const sheet = svg("svg", { viewBox: `0 0 ${GRAPH.width} ${GRAPH.height}`, role: "img", "aria-label": t("graph") });
  const line = { fill: "none", "stroke-width": 2, "stroke-linejoin": "round" };
  sheet.append(
    svg("path", { d: `M0 ${graphY(0.5)}H${GRAPH.width}`, stroke: "var(--line)" }),
    svg("path", { ...line, d: path(({ score }) => share(score)), stroke: "var(--mistake)", opacity: 0.75 }),
    svg("path", { ...line, d: path(({ winrate }) => winrate), stroke: "var(--accent)" }),
  );
  for (const number of mistakes) {
    const { kind } = review.moves[number], after = review.turns[number + 1];
    if (after) sheet.append(svg("circle", { cx: graphX(number + 1), cy: graphY(review.hasPoints ? share(after.score) : after.winrate), r: kind === "blunder" ? 5 : 3.5, fill: `var(--${kind})` }));
  }
  const small = { "font-size": 12, fill: "var(--soft)" };
  sheet.append(
    svg("text", { ...small, x: 8, y: 16 }, `${sideName("B")} 100% / ${scoreText(most)}`),
    svg("text", { ...small, x: 8, y: GRAPH.height - 8 }, `${sideName("W")} 100% / ${scoreText(-most)}`),
    svg("path", { id: "cursor", stroke: "var(--ink)", "stroke-width": 1 }),
  );
  sheet.addEventListener("click", (event) => {
    const { left, width } = sheet.getBoundingClientRect();
    goTo(Math.round(((event.clientX - left) / width) * (review.turns.length - 1)));
  });
  byId("graph").replaceChildren(sheet);
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
  drawGraph();
  drawMistakes();
  drawSummary();
  draw();
}

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
  if (target.closest("#slider, #quiz select, #answer input") || (event.key === "Enter" && target.closest("button, input"))) return;
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
