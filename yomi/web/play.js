// The page of `yomi serve`: sends moves to the server, draws what comes back. Boards are those of board.js.
// @ts-check
"use strict";

/**
 * @typedef {object} State a game, as the server sends it
 * @property {string} id
 * @property {number} version grows with each change
 * @property {"go" | "shogi"} game
 * @property {number} width Go
 * @property {number} height Go
 * @property {[string, string][]} stones of the first position, Go: color and vertex
 * @property {"B" | "W"} first who moves first, Go
 * @property {string} sfen of the first position, shogi
 * @property {boolean} isHandicap shogi: White gives pieces
 * @property {string} rules Go
 * @property {number} komi Go
 * @property {string[]} notes about the record that the game continues
 * @property {string[]} moves GTP or USI
 * @property {("B" | "W")[]} colors of the moves
 * @property {string[]} legal shogi: legal moves
 * @property {"black" | "white" | "both"} human
 * @property {"B" | "W"} toMove
 * @property {boolean} isHumansTurn
 * @property {{dead: string[] | null, result: string} | null} counting Go, after the last pass; dead: null before the proposal
 * @property {string[]} dead Go: stones marked as dead, also once the game has ended
 * @property {{B: Clock, W: Clock, increment: number, used: number} | null} clocks used: seconds of the current move
 * @property {boolean} isRecord whether the game continues a record
 * @property {Progress | null} review of the game
 * @property {string} result as in SGF
 * @property {{winner: "B" | "W" | "", reason: string, points: number | null} | null} ending
 * @property {number} level 0: full strength
 * @property {number} seconds of the engine's moves
 */

/** @typedef {{address: string, done: number, of: number, isFinished: boolean, detail: string}} Progress address of the page: first results, then the review; done and of: positions of this pass; detail: an error */
/** @typedef {{main: number, period: number, periods: number}} Clock seconds before the current move; overtime */
/**
 * @typedef {object} Opinion of the engine
 * @property {number} ply moves before the position
 * @property {number} visits
 * @property {"visits" | "nodes"} unit of visits
 * @property {number} winrate Black's
 * @property {number | null} score Black's lead
 * @property {[string, number, number, number, number | null, string[]][]} candidates move, visits, prior, the mover's winrate and lead, line
 * @property {number[] | null} ownership
 */

/** @type {State | null} */
let game = null;
let arrived = 0; // time of performance.now() at which `game` came
/** @type {Opinion | null} */
let hint = null;
let selected = ""; // shogi: the square or hand piece that was clicked first, such as "7g" or "P*"
let waiting = false;
let isLost = false; // the server does not answer
let message = "";
let lastMove = ""; // its number and name
/** Moves that wait for a choice of promotion. @type {string[]} */
let choice = [];
/** A move that may be a mistake: its loss of winrate and points. @type {{move: string, loss: number, points: number | null} | null} */
let warning = null;
let isPressed = false; // a click must end on the element on which it began: nothing is drawn meanwhile

// The address may bring a token and a game: #token=...&game=...
const hash = new URLSearchParams(location.hash.slice(1));
const token = hash.get("token") ?? "";

/** Send a request and return the answer. @param {string} path @param {object} [body] @param {AbortSignal} [signal] @returns {Promise<Response>} */
async function ask(path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = { "Accept-Language": language, ...(token && { Authorization: `Bearer ${token}` }) };
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(`/api/games${path}`, { method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body) })
    .catch((error) => {
      isLost = error instanceof TypeError; // otherwise the request was given up
      throw error;
    });
  isLost = false;
  if (answer.ok) return answer;
  const found = await answer.json().catch(() => ({ detail: answer.statusText }));
  const detail = typeof found.detail === "string" ? found.detail : JSON.stringify(found.detail);
  throw Object.assign(new Error(detail), { status: answer.status });
}

/** Do work of the server, and show a message meanwhile; nothing if other work is in progress. @param {string} text @param {() => Promise<void>} work */
async function busy(text, work) {
  if (waiting) return;
  waiting = true;
  message = text;
  try {
    draw();
    await work();
    message = "";
  } catch (error) {
    const fault = /** @type {Error & {status?: number}} */ (error);
    message = isLost ? "" : `${t("illegal")}: ${fault.message}`;
    if (game && fault.status === 409) await receive(ask(`/${game.id}`)).catch(() => {});
  }
  waiting = false;
  draw();
}

/** Show the game that a request returns; then let the engine do its part. @param {() => Promise<Response>} request */
const follow = (request) => busy(t("wait"), async () => {
  selected = "";
  choice = [];
  hint = warning = null;
  draw();
  await receive(request());
  remember();
  if (game && !game.result && !game.counting && !game.isHumansTurn) {
    message = t("thinking");
    draw();
    await receive(ask(`/${game.id}/engine`, {}));
  }
  if (game?.counting && !game.counting.dead) {
    message = t("counted");
    draw();
    await receive(ask(`/${game.id}/dead`, {}));
  }
});

/** @param {Promise<Response>} answer */
async function receive(answer) {
  take(/** @type {State} */ (await (await answer).json()));
}

/** Take a state of the game, unless a newer one is known. @param {State} state */
function take(state) {
  if (game?.id === state.id && game.version > state.version) return;
  game = state;
  arrived = performance.now();
}

/** Return the end of the address of a request that changes the game: the server refuses it if the game has changed. @param {State} state */
const seen = (state) => `?after=${state.moves.length}`;

function remember() {
  if (!game) return;
  hash.set("game", game.id);
  history.replaceState(null, "", `#${hash}`);
}

// -- the position ------------------------------------------------------------------------------------------------------

/** Return the positions of the game, the first before move 1. @param {State} state */
function positionsOf(state) {
  const found = replay(state, state.moves, state.colors);
  found[found.length - 1].toMove = state.toMove === "B" ? BLACK : WHITE;
  return found;
}

const canMove = () => game !== null && game.isHumansTurn && !game.result && !game.counting && !waiting && !isLost;

/** Play a move, if it is the visitor's turn. @param {string} move @param {boolean} isChecking whether to ask before a mistake */
async function play(move, isChecking = isChecked("warn")) {
  if (!game || !canMove()) return;
  const { id } = game, path = `/${id}/move${seen(game)}`;
  warning = null;
  if (isChecking)
    await busy(t("checking"), async () => {
      const { loss, points, warns } = await (await ask(`/${id}/check`, { move })).json();
      if (warns) warning = { move, loss, points };
    });
  if (warning) /** @type {HTMLElement} */ (document.querySelector("[data-do=reconsider]")).focus();
  else follow(() => ask(path, { move }));
}

/** A point of Go was clicked: play there, or mark its stones as dead. @param {string} vertex */
function clickPoint(vertex) {
  if (!game?.counting) play(vertex);
  else if (!waiting) {
    const path = `/${game.id}/dead${seen(game)}`;
    busy(t("wait"), () => receive(ask(path, { stone: vertex })));
  }
}

/** A piece in the hand of shogi was chosen. @param {string} kind */
function clickHand(kind) {
  if (!canMove()) return;
  selected = `${kind}*`;
  choice = [];
  draw();
}

/** A square of shogi was clicked: first a piece, then where it goes. @param {string} square */
function clickSquare(square) {
  if (!game || !canMove()) return;
  const moves = game.legal.filter((move) => selected && move.startsWith(selected) && move.slice(2, 4) === square);
  if (moves.length > 1) {
    choice = moves;
    draw();
    /** @type {HTMLElement} */ (document.querySelector("[data-do=promote]")).focus();
    return;
  }
  if (moves.length === 1) {
    play(moves[0]);
    return;
  }
  choice = [];
  selected = game.legal.some((move) => move.startsWith(square)) ? square : "";
  draw();
}

// -- drawing -----------------------------------------------------------------------------------------------------------

function draw() {
  drawLabels();
  byId("promotion").hidden = choice.length === 0;
  byId("counting").hidden = !game?.counting;
  byId("warning").hidden = !warning;
  byId("actions").hidden = !game || Boolean(game.counting);
  byId("switches").hidden = byId("enter").hidden = !game || Boolean(game.counting || game.ending);
  for (const button of document.querySelectorAll("[data-do]"))
    button.setAttribute("aria-disabled", String(waiting)); // `disabled` would take the focus away
  const isGo = game?.game === "go", hasEnded = Boolean(game?.ending);
  show("#territory", isGo);
  show("[data-do=pass]", isGo && !hasEnded);
  show("[data-do=hint], [data-do=resign]", !hasEnded);
  show("#actions [data-do=undo]", hasEnded || Boolean(game?.moves.length));
  byId("status").classList.toggle("ended", hasEnded && !message && !isLost);
  /** @type {HTMLInputElement} */ (document.querySelector("[name=komi]")).placeholder = t("byRules");
  byId("keys").textContent = t("keys") + (game?.game === "shogi" ? ` ${t("drops")}` : "");
  byId("board").setAttribute("aria-label", t("board"));
  if (game) drawGame(game);
  if (game && warning) {
    const points = warning.points === null || warning.points < 0.5 ? "" : put(t("points"), warning.points.toFixed(1));
    byId("warning-text").textContent = put(t("warning"), shownPosition(game).name(warning.move, language), percent(warning.loss, 0), points);
  }
  announce("status", isLost ? t("lost") : message || statusText());
  byId("notes").textContent = game?.notes.join("; ") ?? "";
  drawClocks();
  drawReview();
  updateStream();
  updateAnalysis();
}

/** Show or hide elements. @param {string} selector @param {boolean} isShown */
function show(selector, isShown) {
  for (const element of document.querySelectorAll(selector)) /** @type {HTMLElement} */ (element).hidden = !isShown;
}

/** Write a text that screen readers announce when it changes. @param {string} id @param {string} text */
function announce(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

/** @param {State} state */
const shownPosition = (state) => /** @type {GoPosition | ShogiPosition} */ (positionsOf(state).pop());

/** @param {State} state */
function drawGame(state) {
  noteResult(state);
  const positions = positionsOf(state), position = positions[positions.length - 1];
  const names = state.moves.map((move, number) => `${number + 1}. ${positions[number].name(move, language)}`);
  lastMove = names[names.length - 1] ?? "";
  const most = hint?.candidates[0]?.[1] || 1;
  /** @type {Overlay} */
  const overlay = { cursor: cursor, bottom: bottomColor(state), candidates: (hint?.candidates ?? []).map(([move, visits, , winrate]) => ({
    move, label: String(Math.round(100 * winrate)), detail: short(visits), share: visits / most })) };
  if (position instanceof GoPosition) {
    overlay.onPlace = clickPoint;
    overlay.ownership = isChecked("ownership") ? hint?.ownership ?? null : null;
    if (state.counting || state.ending?.reason === "score") {
      overlay.dead = state.dead;
      overlay.ownership = position.territory(overlay.dead);
    }
    byId("board").replaceChildren(drawGo(position, overlay, statusText()));
  } else {
    overlay.onPlace = clickSquare;
    overlay.onHand = clickHand;
    overlay.marked = targets(state);
    byId("board").replaceChildren(drawShogi(position, overlay, statusText()));
  }
  placeChoice();
  byId("played").textContent = names.join("  ");
  const known = [t(state.game), `${t("level")} ${state.level || t("full")}`];
  byId("facts").textContent = [...known, ...(state.rules ? [t(state.rules), `${t("komi")} ${state.komi}`] : [])].join(" · ");
  byId("captured").textContent = position instanceof GoPosition && state.moves.length ? capturedText(state, positions[0], position) : "";
  byId("opinion").textContent = hint ? opinionText(state, hint) : "";
  const rows = (hint?.candidates ?? []).map(([, visits, , winrate, lead, line]) => {
    const text = lineNames(position, line);
    return `${text[0]} ${percent(winrate)}${lead === null ? "" : ` ${lead > 0 ? "+" : ""}${lead.toFixed(1)}`} (${visits}): ${text.slice(1, 8).join(" ")}`;
  });
  byId("moves").replaceChildren(...rows.map((row) => html("p", {}, row)));
}

/** Put the choice of promotion over the target square, inside the board. */
function placeChoice() {
  const target = choice.length ? document.querySelector(`[data-place="${choice[0].slice(2, 4)}"]`) : null, box = byId("promotion");
  if (!target) return;
  const board = byId("table").getBoundingClientRect(), square = target.getBoundingClientRect(), half = box.offsetWidth / 2;
  const middle = square.x + square.width / 2 - board.x;
  box.style.left = `${Math.max(half, Math.min(board.width - half, middle))}px`;
  box.style.top = `${square.y + square.height / 2 - board.y}px`;
}
addEventListener("resize", placeChoice);
byId("promotion").addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  selected = "";
  choice = [];
  byId("board").focus();
  draw();
});

/** Return the stones that each side has captured. @param {State} state @param {GoPosition | ShogiPosition} first @param {GoPosition} now */
function capturedText(state, first, now) {
  const taken = /** @type {("B" | "W")[]} */ (["B", "W"]).map((side) => {
    const other = side === "B" ? "W" : "B", color = side === "B" ? WHITE : BLACK;
    const count = (/** @type {GoPosition | ShogiPosition} */ position) =>
      position instanceof GoPosition ? position.stones.filter((stone) => stone === color).length : 0;
    const played = state.moves.filter((move, number) => state.colors[number] === other && move.toLowerCase() !== "pass").length;
    return `${sideName(state, side)} ${count(first) + played - count(now)}`;
  });
  return put(t("captured"), taken.join(" · "));
}

/** Return the color at the bottom of the board: the visitor's, unless it was turned by hand. @param {State} state */
const bottomColor = (state) => bottomFor(state.human === "white" ? WHITE : BLACK);

/** Return where the selected piece can go. @param {State} state */
const targets = (state) => (selected ? state.legal.filter((move) => move.startsWith(selected)).map((move) => move.slice(2, 4)) : []);

// -- actions -----------------------------------------------------------------------------------------------------------

/** @type {Record<string, (state: State) => unknown>} */
const ACTIONS = {
  pass: () => play("pass"),
  undo: (state) => follow(() => ask(`/${state.id}/undo${seen(state)}`, {})),
  resign: (state) => follow(() => ask(`/${state.id}/resign`, {})),
  promote: () => choose(true),
  keep: () => choose(false),
  agree: (state) => follow(() => ask(`/${state.id}/agree${seen(state)}`, {})),
  anyway: () => {
    byId("board").focus();
    play(warning?.move ?? "", false);
  },
  reconsider: () => {
    warning = null;
    selected = "";
    byId("board").focus();
    draw();
  },
  hint: (state) => busy(t("thinking"), async () => {
    const found = await (await ask(`/${state.id}/hint`, { seconds: 2 })).json();
    if (found.ply === state.moves.length) hint = found;
  }),
  review: followReview,
  save: (state) => busy(t("wait"), async () => {
    const answer = await ask(`/${state.id}/record`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await answer.blob());
    link.download = state.game === "go" ? "yomi.sgf" : "yomi.kif";
    link.click();
    URL.revokeObjectURL(link.href);
  }),
};
/** Play the move that was chosen, with or without promotion. @param {boolean} promotes */
function choose(promotes) {
  const move = choice.find((each) => each.endsWith("+") === promotes) ?? "";
  choice = [];
  byId("board").focus();
  play(move);
}

for (const element of document.querySelectorAll("[data-do]"))
  element.addEventListener("click", () => game && !waiting && ACTIONS[element.getAttribute("data-do") ?? ""](game));
for (const element of document.querySelectorAll("#switches input"))
  element.addEventListener("change", () => {
    if (!isChecked("analyse")) hint = null;
    draw();
  });
offerLanguages(draw);
offerTurning(draw);
addEventListener("pointerdown", () => (isPressed = true));
for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => (isPressed = false));

byId("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  const entry = /** @type {HTMLInputElement} */ (/** @type {HTMLFormElement} */ (byId("enter")).elements.namedItem("move"));
  const move = entry.value.trim();
  entry.value = "";
  if (move) play(game?.game === "shogi" ? move.replace(/^[plnsgbr]\*[1-9]/, (drop) => drop.toUpperCase()) : move);
});

const form = /** @type {HTMLFormElement} */ (byId("new"));
const level = /** @type {HTMLSelectElement} */ (form.elements.namedItem("level"));
for (let number = 0; number <= 20; number++) {
  const option = new Option(number ? String(number) : "", String(number), number === 3, number === 3);
  if (!number) option.setAttribute("data-label", "full");
  level.add(option);
}
const auto = new Option("", "auto");
auto.setAttribute("data-label", "auto");
level.add(auto);
form.addEventListener("change", showForm);
/** Level auto in this browser: level, the visitor's wins in a row (negative: losses), id of the game that counts. @param {string} name @returns {[number, number, string]} */
const follower = (name) => JSON.parse(localStorage.getItem(`level-${name}`) ?? '[5, 0, ""]');
/** @param {string} name @param {number} number @param {number} run @param {string} id */
const setFollower = (name, number, run, id) => localStorage.setItem(`level-${name}`, JSON.stringify([number, run, id]));
/** Level auto: up after three wins in a row, down after three losses. @param {State} state */
function noteResult(state) {
  const [number, run, id] = follower(state.game), winner = state.ending?.winner;
  if (!winner || state.id !== id || state.human === "both") return;
  const won = (winner === "B") === (state.human === "black"), next = won ? Math.max(run, 0) + 1 : Math.min(run, 0) - 1;
  if (Math.abs(next) < 3) setFollower(state.game, number, next, "");
  else setFollower(state.game, Math.min(20, Math.max(1, number + Math.sign(next))), 0, "");
}
function showForm() {
  const values = new FormData(form), isGo = values.get("game") === "go";
  const sides = isGo ? "go" : values.get("gives") ? "takes" : "shogi";
  show(".go", isGo);
  show(".shogi", !isGo);
  for (const side of ["B", "W"])
    document.querySelector(`[name=human] option[value=${side === "B" ? "black" : "white"}]`)?.setAttribute("data-label", sides + side);
  drawLabels();
}
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const values = new FormData(form), file = /** @type {File} */ (values.get("record"));
  const record = file.size ? await textOf(file) : String(values.get("pasted")).trim();
  begin(values, record);
  for (const name of ["record", "pasted"]) // the next game begins without it
    /** @type {HTMLInputElement} */ (form.elements.namedItem(name)).value = "";
});

/** Begin a game, or continue a record. @param {FormData} values of the form @param {string} record */
function begin(values, record) {
  const name = kindOf(record) || String(values.get("game")), isShogi = name === "shogi";
  const number = (/** @type {string} */ key) => Number(values.get(key));
  cursor = "";
  setTurned(false);
  return follow(async () => {
    const isAuto = values.get("level") === "auto", [kept, run] = follower(name);
    const answer = await ask("", {
      game: name, size: number("size"), handicap: isShogi || record ? 0 : number("handicap"),
      rules: values.get("rules"), komi: values.get("komi") ? number("komi") : null, gives: isShogi ? values.get("gives") : "",
      human: values.get("human"), level: isAuto ? kept : number("level"), seconds: number("seconds"),
      clock: number("main") || number("byoyomi") || number("increment")
        ? { main: 60 * number("main"), byoyomi: number("byoyomi"), periods: number("periods"), increment: number("increment") } : null,
      record: record || null,
    });
    if (isAuto) setFollower(name, kept, run, (await answer.clone().json()).id);
    return answer;
  });
}

// -- records that are dropped or pasted anywhere: both sides are the visitor's -----------------------------------------

/** Return the game of a record, or an empty text if its form does not show it. @param {string} text */
function kindOf(text) {
  if (/^\s*(\w+:\/\/online-go\.com\/|\(\s*;|\\HS|\[Header\])/.test(text)) return "go";
  return /^\s*(\w+:\/\/lishogi\.org\/|position |startpos|sfen |V[23]|PI|P1|N[+-]|')|手合割|手数|先手|後手|▲|△/.test(text) ? "shogi" : "";
}

/** @param {string} text */
function openRecord(text) {
  const values = new FormData(form), name = kindOf(text);
  values.set("human", "both");
  if (name) {
    /** @type {HTMLSelectElement} */ (form.elements.namedItem("game")).value = name;
    showForm();
  }
  begin(values, text);
}
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", async (event) => {
  event.preventDefault();
  const [file] = event.dataTransfer?.files ?? [], text = file ? await textOf(file) : event.dataTransfer?.getData("text") ?? "";
  if (text.trim()) openRecord(text);
});
addEventListener("paste", (event) => {
  const text = event.clipboardData?.getData("text") ?? "";
  if (!text.trim() || /** @type {HTMLElement} */ (event.target).closest?.("input, textarea")) return;
  event.preventDefault();
  openRecord(text);
});

/** Return the text of a file. Many records of shogi are Shift JIS. @param {File} file */
async function textOf(file) {
  const bytes = await file.arrayBuffer();
  for (const encoding of ["utf-8", "shift_jis"])
    try {
      const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
      if (encoding === "utf-8" || kindOf(text) === "shogi") return text;
    } catch {
      // the next encoding
    }
  return new TextDecoder().decode(bytes);
}

showForm();
const before = hash.get("game");
if (before) follow(() => ask(`/${encodeURIComponent(before)}`));
else follow(() => ask("", { game: "go", size: 9, level: 3, human: "black" }));
