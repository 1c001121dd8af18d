// Texts of the page of `yomi serve`, and what they say about a game.
// @ts-check
"use strict";

/** @type {Record<string, Record<string, string>>} */
const TEXTS = {
  en: {
    pass: "Pass", undo: "Take back", hint: "Hint", resign: "Resign", save: "Save", promote: "Promote", keep: "Do not promote",
    newGame: "New game", game: "Game", go: "Go", shogi: "Shogi", size: "Board", handicap: "Handicap", you: "You play",
    both: "both sides", level: "Level", full: "full strength", auto: "follows you", seconds: "Seconds per move", record: "Continue a record",
    begin: "Begin", thinking: "yomi thinks …", yours: "your turn", illegal: "Not possible", wait: "loading …",
    enter: "Move by keyboard", toMove: "{} to move", analyse: "Analyse", warn: "Warn before mistakes", visits: "visits", nodes: "nodes",
    main: "Clock: minutes", byoyomi: "byo-yomi seconds", periods: "Byo-yomi periods", increment: "seconds added per move",
    mark: "Click dead stones", agree: "Agree: count the board", resume: "Play on", board: "Board",
    warning: "{} may lose {} of the winrate{}.", points: " and {} points", reconsider: "Take back", anyway: "Play it",
    checking: "checking the move …", canMove: "can move here", chosen: "{}: choose the target", counted: "counting …",
    keys: "Keys on the board: arrows move the cursor, Enter plays, F turns the board.", drops: "Enter chooses a piece, then its target. P L N S G B R take a piece from the hand. Escape leaves it.",
    winsBy: "{} wins by {} points", leadsBy: "{} leads by {} points", "wins resignation": "{} wins by resignation", "wins time": "{} wins on time", "wins mate": "{} wins by checkmate",
    "wins declaration": "{} wins by entering king", "wins try": "{} wins by a try", "wins perpetual check": "{} wins: perpetual check", "draw score": "Draw",
    "draw repetition": "Draw by repetition", "draw max moves": "Draw: limit of moves", "draw no result": "No result",
    rules: "Rules", komi: "Komi", byRules: "usual", gives: "Handicap", takesB: "Shitate", takesW: "Uwate", captured: "Captured stones: {}",
    chinese: "Chinese", japanese: "Japanese", aga: "AGA", "new-zealand": "New Zealand", "tromp-taylor": "Tromp-Taylor", even: "even", lance: "Lance", bishop: "Bishop", rook: "Rook", "rook-lance": "Rook and lance", "2-piece": "2 pieces", "4-piece": "4 pieces", "6-piece": "6 pieces", "8-piece": "8 pieces", "10-piece": "10 pieces",
    pasted: "Or paste a record, or a link of OGS or lishogi. Files can be dropped anywhere",
    lost: "The connection is lost. Trying again …",
    review: "Review this game", openReview: "Open the review", firstReview: "First results", reviewWaits: "The review waits or loads …",
    reviewing: "Reviewing: {} of {} positions", reviewingMore: "A closer look: {} of {} positions",
  },
  ja: {
    pass: "パス", undo: "待った", hint: "ヒント", resign: "投了", save: "棋譜を保存", promote: "成る", keep: "成らない",
    newGame: "新しい対局", game: "ゲーム", go: "囲碁", shogi: "将棋", size: "盤", handicap: "置石", you: "あなた",
    both: "両者（自分で指す）", level: "レベル", full: "最強", auto: "自動（勝敗に合わせる）", seconds: "一手の考慮時間（秒）", record: "棋譜から続ける",
    begin: "開始", moves: "手順", thinking: "考慮中…", yours: "あなたの番です", illegal: "できません", wait: "読み込み中…",
    enter: "手を入力", toMove: "{}の番", analyse: "検討", warn: "悪手を警告", visits: "探索", nodes: "ノード",
    main: "持ち時間（分）", byoyomi: "秒読み（秒）", periods: "秒読みの回数", increment: "一手ごとの加算（秒）",
    mark: "死石をクリックしてください", agree: "合意して終局", resume: "対局を続ける", board: "盤",
    warning: "{}だと勝率が約{}{}下がります。", points: "、{}目", reconsider: "考え直す", anyway: "このまま続ける",
    checking: "確認中…", canMove: "動かせます", chosen: "{}：移動先を選んでください", counted: "整地中…",
    keys: "盤のキー操作：矢印で移動、Enterで着手、Fで盤を反転。", drops: "Enterで駒を選び、次に移動先を選びます。P L N S G B Rは持ち駒、Escapeで取り消し。",
    winsBy: "{}の{}勝ち", leadsBy: "{}が{}リード", "go wins resignation": "{}の中押し勝ち", "wins resignation": "{}の勝ち（投了）", "wins time": "{}の勝ち（時間切れ）", "wins mate": "{}の勝ち（詰み）",
    "wins declaration": "{}の勝ち（入玉宣言）", "wins try": "{}の勝ち（トライ）", "wins perpetual check": "{}の勝ち（連続王手の千日手）", "draw score": "持碁",
    "draw repetition": "千日手（引き分け）", "draw max moves": "手数制限（引き分け）", "draw no result": "無勝負",
    rules: "ルール", komi: "コミ", byRules: "標準", gives: "手合割", takesB: "下手", takesW: "上手", captured: "アゲハマ：{}",
    chinese: "中国", japanese: "日本", aga: "AGA", "new-zealand": "ニュージーランド", "tromp-taylor": "トロンプ・テイラー", even: "平手", lance: "香落ち", bishop: "角落ち", rook: "飛車落ち", "rook-lance": "飛香落ち", "2-piece": "二枚落ち", "4-piece": "四枚落ち", "6-piece": "六枚落ち", "8-piece": "八枚落ち", "10-piece": "十枚落ち",
    pasted: "棋譜、またはOGS・lishogiのリンクを貼り付け（ファイルは画面にドロップ）",
    lost: "接続が切れました。再接続しています…",
    review: "この対局を検討", openReview: "検討を開く", firstReview: "最初の結果を開く", reviewWaits: "検討の準備中…",
    reviewing: "検討中：{}／{}局面", reviewingMore: "詳しく検討中：{}／{}局面",
  },
};

/** Put values in place of {}. @param {string} text @param {...string} values */
const put = (text, ...values) => values.reduce((done, value) => done.replace("{}", value), text);

/** Return a number in at most four letters. @param {number} count */
const short = (count) => (count < 1000 ? String(count) : count < 99500 ? `${(count / 1000).toPrecision(2)}k` : `${Math.round(count / 1000)}k`);

/** @param {State} state @param {"B" | "W"} side */
const sideName = (state, side) => t((state.isHandicap ? "takes" : state.game) + side);

/** Return winrate and lead of the side that is ahead, and the visits or nodes. @param {State} state @param {Opinion} opinion */
function opinionText(state, { winrate, score, visits, unit }) {
  const side = winrate >= 0.5 ? "B" : "W", sign = side === "B" ? 1 : -1;
  const lead = score === null ? "" : ` · ${sign * score > 0 ? "+" : ""}${(sign * score).toFixed(1)}`;
  return `${sideName(state, side)} ${percent(Math.max(winrate, 1 - winrate))}${lead} · ${visits} ${t(unit)}`;
}

function statusText() {
  if (!game) return "";
  if (game.counting) return `${resultText(game, sgfEnding(game.counting.result), "leadsBy")} · ${t("mark")}`;
  const parts = game.ending
    ? [resultText(game, game.ending)]
    : [put(t("toMove"), sideName(game, game.toMove)), game.isHumansTurn ? t("yours") : ""];
  return [lastMove, ...parts].filter(Boolean).join(" · ");
}

/** Return the ending of a counted game. @param {string} result "B+3.5" or "0" @returns {NonNullable<State["ending"]>} */
function sgfEnding(result) {
  const winner = /** @type {"B" | "W" | ""} */ (result === "0" ? "" : result[0]);
  return { winner, reason: "score", points: Number(result.slice(2)) };
}

/** Return a result in words. @param {State} state @param {NonNullable<State["ending"]>} ending */
function resultText(state, { winner, reason, points }, sentence = "winsBy") {
  if (!winner) return t(`draw ${reason}`);
  const name = sideName(state, winner);
  if (points === null) return put(TEXTS[language][`${state.game} wins ${reason}`] ?? t(`wins ${reason}`), name);
  const size = Math.abs(points), whole = Math.floor(size);
  // Japanese counts half points: 3目半
  const amount = language === "ja" ? `${whole ? `${whole}目` : ""}${size > whole ? "半" : ""}` : String(size);
  return put(t(sentence), name, amount);
}
