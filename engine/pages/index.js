// The page that lists reviews, in an order that the reader chooses.
// @ts-check
"use strict";

/** Of one player: moves, accuracy in percent, share of best moves, mean loss. @typedef {[number, number | null, number | null, number | null]} Result */
/**
 * @typedef {object} Entry
 * @property {string} name
 * @property {string} address of its page
 * @property {"go" | "shogi"} game
 * @property {string} date
 * @property {{B: string, W: string}} names
 * @property {string} result
 * @property {"B" | "W"} toMove after the last move
 * @property {boolean} hasPoints whether mean losses are points, not shares of winrate
 * @property {{B: Result, W: Result}} results
 */

/** @type {Record<string, Record<string, string>>} */
const TEXTS = {
  en: {
    reviews: "Reviews", order: "Order", given: "as reviewed", game: "Game", date: "Date", result: "Result", moves: "Moves",
    accuracy: "Accuracy", accuracyB: "Accuracy of {}", accuracyW: "Accuracy of {}", loss: "mean loss {}", best: "as the engine {}", points: " points",
  },
  ja: {
    reviews: "検討一覧", order: "並べ方", given: "検討順", game: "棋譜", date: "日付", result: "結果", moves: "手数",
    accuracy: "精度", accuracyB: "{}の精度", accuracyW: "{}の精度", loss: "平均損失 {}", best: "一致率 {}", points: "目",
  },
};

/** An entry may have a name and an address only. @type {Entry[]} */
const entries = JSON.parse(byId("data").textContent ?? "").map((/** @type {Partial<Entry>} */ entry) => ({
  game: "go", date: "", names: { B: "", W: "" }, result: "", toMove: "B", results: { B: [0, null, null, null], W: [0, null, null, null] }, ...entry,
}));
/** @param {Entry} entry */
const countMoves = ({ results }) => results.B[0] + results.W[0];
/** How a column is sorted first: 1 from small to large. @type {Record<string, [number, (entry: Entry) => string | number | null]>} */
const ORDERS = {
  given: [1, (entry) => entries.indexOf(entry)], game: [1, ({ name }) => name], date: [-1, ({ date }) => date],
  B: [1, ({ names }) => names.B], accuracyB: [-1, ({ results }) => results.B[1]], W: [1, ({ names }) => names.W],
  accuracyW: [-1, ({ results }) => results.W[1]], result: [1, ({ result }) => result], moves: [-1, countMoves],
};
const order = { key: "given", sign: 1 };

/** Return the name of a side in all games of the list. @param {string} side */
const sideName = (side) => [...new Set(entries.map(({ game }) => t(game + side)))].join(language === "ja" ? "・" : " or ");

/** Return the name of a column or order. @param {string} key */
const title = (key) => ("BW".includes(key) ? sideName(key) : t(key).replace("{}", sideName(key.slice(-1))));

/** Entries without a value come last. @param {Entry} first @param {Entry} second */
function compare(first, second) {
  const [one, other] = [first, second].map(ORDERS[order.key][1]), isNone = (/** @type {unknown} */ value) => value === null || value === "";
  if (isNone(one) || isNone(other)) return Number(isNone(one)) - Number(isNone(other));
  if (typeof one === "number" && typeof other === "number") return order.sign * (one - other);
  return order.sign * String(one).localeCompare(String(other), language, { numeric: true });
}

/** @param {Entry} entry @param {"B" | "W"} side */
function resultOf({ results, hasPoints }, side) {
  const [, accuracy, best, loss] = results[side];
  if (accuracy === null || best === null || loss === null) return [""];
  const lost = hasPoints ? `${loss.toFixed(2)}${t("points")}` : percent(loss, 2);
  const more = [t("loss").replace("{}", lost), t("best").replace("{}", percent(best, 0))];
  return [`${accuracy.toFixed(0)}%`, html("small", { class: "soft" }, more[0]), html("small", { class: "soft" }, more[1])];
}

/** @param {string} key @param {number} sign */
function sortBy(key, sign) {
  Object.assign(order, { key, sign });
  drawAll();
}

function drawAll() {
  drawLabels();
  document.title = `${t("reviews")} – yomi`;
  byId("title").textContent = `${t("reviews")} (${entries.length})`;
  const choice = /** @type {HTMLSelectElement} */ (byId("order"));
  choice.replaceChildren(...Object.keys(ORDERS).map((key) => html("option", { value: key }, title(key))));
  choice.value = order.key;
  const heads = Object.keys(ORDERS).slice(1).map((key) => {
    const sorting = html("button", { type: "button", "data-sort": key }, title(key));
    sorting.addEventListener("click", () => {
      sortBy(key, order.key === key ? -order.sign : ORDERS[key][0]); // a second time the other way round
      /** @type {HTMLElement} */ (document.querySelector(`[data-sort=${key}]`)).focus();
    });
    return html("th", { scope: "col", ...(order.key === key ? { "aria-sort": order.sign > 0 ? "ascending" : "descending" } : {}) }, sorting);
  });
  const rows = entries.slice().sort(compare).map((entry) => {
    const cells = {
      game: [html("a", { href: entry.address }, entry.name)], date: [entry.date], B: [entry.names.B], accuracyB: resultOf(entry, "B"),
      W: [entry.names.W], accuracyW: resultOf(entry, "W"), result: [resultText(entry.result, entry.toMove, (side) => t(entry.game + side))], moves: [String(countMoves(entry) || "")],
    };
    return html("tr", {}, ...Object.entries(cells).map(([key, texts]) =>
      html("td", { class: `cell-${key}`, "data-title": key.startsWith("accuracy") ? t("accuracy") : title(key) }, ...texts)));
  });
  byId("reviews").replaceChildren(html("table", {}, html("thead", {}, html("tr", {}, ...heads)), html("tbody", {}, ...rows)));
}

byId("order").addEventListener("change", (event) => {
  const { value } = /** @type {HTMLSelectElement} */ (event.target);
  sortBy(value, ORDERS[value][0]);
});
offerLanguages(drawAll);
drawAll();
