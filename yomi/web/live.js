// The clocks, and the analysis while the visitor thinks.
// @ts-check
"use strict";

/** Show the clocks; ask the server once the visitor's time is over. */
function drawClocks() {
  byId("clocks").hidden = !game?.clocks;
  if (!game?.clocks) return;
  const state = game, clocks = game.clocks;
  byId("clocks").replaceChildren(.../** @type {("B" | "W")[]} */ (["B", "W"]).map((side) => {
    const isRunning = side === state.toMove && !state.result && !state.counting;
    const { main, period, periods } = clocks[side];
    let left = main - (isRunning ? clocks.used + (performance.now() - arrived) / 1000 : 0), count = periods;
    if (left <= 0 && period) {
      count -= Math.floor(-left / period);
      left = count > 0 ? period - (-left % period) : 0;
    }
    if (left <= 0 && isRunning && state.isHumansTurn && !waiting) follow(() => ask(`/${state.id}`));
    const seconds = Math.max(0, Math.ceil(left)), overtime = period && count > 0 ? ` (${period} × ${count})` : "";
    const added = clocks.increment ? ` +${clocks.increment}` : "";
    const text = `${sideName(state, side)} ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}${overtime}${added}`;
    return html("span", { class: `${isRunning ? "running" : ""} ${isRunning && seconds <= 10 ? "late" : ""}` }, text);
  }));
}
setInterval(drawClocks, 250);

/** The running analysis. @type {{key: string, abort: AbortController} | null} */
let analysis = null;

/** Begin or end the analysis, as the switches and the position demand. Warnings read the server's newest report. */
function updateAnalysis() {
  const isWanted = canMove() && (isChecked("analyse") || isChecked("warn"));
  const key = game && isWanted ? `${game.id} ${game.moves.join(" ")}` : "";
  if (key === (analysis?.key ?? "")) return;
  analysis?.abort.abort();
  analysis = null;
  if (!game || !key) return;
  analysis = { key, abort: new AbortController() };
  readAnalysis(game, analysis);
}

/** Show an error of a stream. A TypeError is the browser's word for a lost connection. @param {unknown} error */
function complain(error) {
  if (!(error instanceof TypeError)) announce("status", `${t("illegal")}: ${/** @type {Error} */ (error).message}`);
}

/** Pass the newest line of each part of an answer in lines of JSON; null if all are empty. @param {Response} answer @param {(newest: any) => void} use */
async function readLines(answer, use) {
  const reader = /** @type {ReadableStream<BufferSource>} */ (answer.body).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (text + part.value).split("\n");
    text = lines.pop() ?? "";
    if (lines.length) use(JSON.parse(lines.findLast(Boolean) ?? "null"));
  }
}

/** @param {State} state @param {NonNullable<typeof analysis>} own */
async function readAnalysis(state, own) {
  try {
    await readLines(await ask(`/${state.id}/analysis`, {}, own.abort.signal), (newest) => {
      if (newest.detail) throw new Error(newest.detail);
      if (own !== analysis || isPressed || !isChecked("analyse")) return;
      hint = newest;
      drawGame(state);
    });
  } catch (error) {
    if (own === analysis) complain(error);
  }
}

// -- changes in other windows, and a lost connection -------------------------------------------------------------------

const SILENCE = 20_000; // milliseconds without a line after which the connection is lost: the server sends one every 8 s

/** The stream of the game's changes. @type {{id: string, abort: AbortController, heard: number} | null} */
let stream = null;

/** Follow the game while the page is visible. A browser has few connections to a server for all its tabs. */
function updateStream() {
  const id = game && document.visibilityState === "visible" ? game.id : "";
  if (id === (stream?.id ?? "")) return;
  stream?.abort.abort();
  stream = null;
  if (!id) return;
  stream = { id, abort: new AbortController(), heard: 0 };
  readStream(stream);
}
document.addEventListener("visibilitychange", updateStream);
setInterval(() => stream && performance.now() - stream.heard > SILENCE && stream.abort.abort(), 1000);

/** Read the stream of a game, and connect again when it ends. @param {NonNullable<typeof stream>} own */
async function readStream(own) {
  for (let pause = 500; own === stream; pause = Math.min(2 * pause, 8000)) {
    let isFirst = true;
    own.abort = new AbortController();
    own.heard = performance.now();
    try {
      await readLines(await ask(`/${own.id}/events`, undefined, own.abort.signal), (newest) => {
        if (own !== stream) return;
        own.heard = performance.now();
        pause = 500;
        if (isLost) {
          isLost = false;
          draw();
        }
        if (newest && !waiting) {
          if (game && newest.version > game.version) showChange(newest);
          // this page was away: it may have to ask for the engine's move
          if (isFirst && engineHasToMove(newest)) follow(async () => new Response(JSON.stringify(newest)));
        }
        isFirst = false;
      });
    } catch (error) {
      if (own !== stream) return;
      const { status, message: text } = /** @type {Error & {status?: number}} */ (error);
      if (status) { // the server has dropped the game
        message = `${t("illegal")}: ${text}`;
        draw();
        return;
      }
    }
    if (own !== stream) return;
    isLost = true;
    draw();
    await new Promise((done) => setTimeout(done, pause));
  }
}

/** @param {State} state */
const engineHasToMove = (state) => !state.ending && (state.counting ? !state.counting.dead : !state.isHumansTurn);

/** Show a game that was changed in another window. @param {State} state */
function showChange(state) {
  take(state);
  selected = message = "";
  choice = [];
  hint = warning = null;
  draw();
}

// -- the review --------------------------------------------------------------------------------------------------------

let followed = ""; // id and moves of the game whose review is followed

/** Begin the review of a game, or follow it if it has begun. @param {State} state */
async function followReview(state) {
  const key = `${state.id} ${state.moves.join(" ")}`;
  if (followed === key) return;
  followed = key;
  const isCurrent = () => game?.id === state.id && key === `${game.id} ${game.moves.join(" ")}`;
  try {
    await readLines(await ask(`/${state.id}/review`, {}), (progress) => {
      if (!game || !isCurrent()) return;
      game.review = progress;
      drawReview();
    });
  } catch (error) {
    if (isCurrent()) complain(error);
  }
  if (followed === key) followed = "";
}

function drawReview() {
  const progress = game?.review;
  byId("review").hidden = !progress;
  show("#actions [data-do=review]", Boolean(game && (!progress || progress.detail) && game.moves.length && (game.ending || game.isRecord)));
  if (!game || !progress) return;
  const { address, done, of, isFinished, detail } = progress, link = /** @type {HTMLAnchorElement} */ (byId("review-link"));
  link.hidden = !address;
  link.href = address;
  link.textContent = t(isFinished ? "openReview" : "firstReview");
  byId("review-share").hidden = isFinished || Boolean(detail);
  if (of) byId("review-share").setAttribute("value", String(done / of));
  const text = of ? put(t(address ? "reviewingMore" : "reviewing"), String(done), String(of)) : t("reviewWaits");
  announce("review-text", detail ? `${t("illegal")}: ${detail}` : isFinished ? "" : text);
  if (!isFinished && !detail) followReview(game); // a page that was loaded again
}
