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

/** Pass the newest line of each part of an answer in lines of JSON. @param {Response} answer @param {(newest: any) => void} take */
async function readLines(answer, take) {
  const reader = /** @type {ReadableStream<BufferSource>} */ (answer.body).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (text + part.value).split("\n");
    text = lines.pop() ?? "";
    if (lines.length) take(JSON.parse(lines[lines.length - 1]));
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
    if (own === analysis) announce("status", `${t("illegal")}: ${/** @type {Error} */ (error).message}`);
  }
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
    if (isCurrent()) announce("status", `${t("illegal")}: ${/** @type {Error} */ (error).message}`);
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
