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

/** @param {State} state @param {NonNullable<typeof analysis>} own */
async function readAnalysis(state, own) {
  try {
    const answer = await ask(`/${state.id}/analysis`, {}, own.abort.signal);
    const reader = /** @type {ReadableStream<BufferSource>} */ (answer.body).pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (text + part.value).split("\n");
      text = lines.pop() ?? "";
      const newest = lines.length ? JSON.parse(lines[lines.length - 1]) : null;
      if (newest?.detail) throw new Error(newest.detail);
      if (!newest || own !== analysis || isPressed || !isChecked("analyse")) continue;
      hint = newest;
      drawGame(state);
    }
  } catch (error) {
    if (own === analysis) announce("status", `${t("illegal")}: ${/** @type {Error} */ (error).message}`);
  }
}
