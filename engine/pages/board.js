// Boards of Go and shogi: positions, moves, and drawings as SVG; and what the pages with boards share.
// Points of Go are indices, row by row from the top left. Squares of shogi are 9 * rank + column, seen from Black.
// @ts-check
"use strict";

const BLACK = 1, WHITE = 2;
const SVG = "http://www.w3.org/2000/svg";
const COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ";

/**
 * Return an SVG element.
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children
 * @returns {SVGElement}
 */
function svg(name, attributes, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, name));
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** A position of Go. Positions are never changed: `play` returns another. */
class GoPosition {
  /** @param {number} width @param {number} height @param {Uint8Array} stones */
  constructor(width, height, stones = new Uint8Array(width * height), toMove = BLACK) {
    this.width = width;
    this.height = height;
    this.stones = stones;
    this.toMove = toMove;
    /** Points to mark: the last move. @type {number[]} */
    this.last = [];
  }

  /** Return the index of a GTP vertex, or -1 for a pass. @param {string} vertex */
  point(vertex) {
    const column = COLUMNS.indexOf(vertex[0].toUpperCase()), row = this.height - Number(vertex.slice(1));
    return column < 0 || !(row >= 0 && row < this.height) ? -1 : row * this.width + column;
  }

  /** Return the GTP vertex of an index. @param {number} point */
  place(point) {
    return COLUMNS[point % this.width] + (this.height - Math.floor(point / this.width));
  }

  /** Return the owner of each point: +1 Black, -1 White, 0 nobody. @param {string[]} dead vertices of dead stones */
  territory(dead) {
    const stones = this.stones.slice(), owners = Array(stones.length).fill(0);
    for (const vertex of dead) stones[this.point(vertex)] = 0;
    const seen = new Set();
    stones.forEach((stone, first) => {
      if (stone || seen.has(first)) return;
      const region = [first], borders = new Set();
      seen.add(first);
      for (const point of region)
        for (const next of this.neighbours(point)) {
          if (stones[next]) borders.add(stones[next]);
          else if (!seen.has(next)) {
            seen.add(next);
            region.push(next);
          }
        }
      if (borders.size === 1) for (const point of region) owners[point] = borders.has(BLACK) ? 1 : -1;
    });
    return owners;
  }

  /** Return what is on a point, in words. @param {number} point @param {string} language */
  describe(point, language) {
    const words = language === "ja" ? ["空点", "黒石", "白石"] : ["empty", "Black", "White"];
    return `${this.place(point)} ${words[this.stones[point]]}`;
  }

  /** @param {number} point */
  neighbours(point) {
    const column = point % this.width, found = [];
    if (column > 0) found.push(point - 1);
    if (column < this.width - 1) found.push(point + 1);
    if (point >= this.width) found.push(point - this.width);
    if (point < this.stones.length - this.width) found.push(point + this.width);
    return found;
  }

  /** Return the chain of a point, and whether it has a liberty. @param {Uint8Array} stones @param {number} first */
  chain(stones, first) {
    const chain = [first], seen = new Set(chain);
    let isFree = false;
    for (const point of chain)
      for (const next of this.neighbours(point)) {
        if (stones[next] === 0) isFree = true;
        else if (stones[next] === stones[first] && !seen.has(next)) {
          seen.add(next);
          chain.push(next);
        }
      }
    return { chain, isFree };
  }

  /** Return the position after a legal move. @param {string} move a GTP vertex or "pass" @param {number} color */
  play(move, color = this.toMove) {
    const after = new GoPosition(this.width, this.height, this.stones.slice(), BLACK + WHITE - color);
    const point = move.toLowerCase() === "pass" ? -1 : this.point(move);
    if (point < 0) return after;
    after.stones[point] = color;
    after.last = [point];
    const around = this.neighbours(point).filter((next) => after.stones[next] === BLACK + WHITE - color);
    for (const start of [...around, point]) {
      if (!after.stones[start]) continue;
      const { chain, isFree } = this.chain(after.stones, start);
      if (!isFree) for (const each of chain) after.stones[each] = 0;
    }
    return after;
  }

  /** Return a move as players write it. @param {string} move @param {string} language */
  name(move, language = "en") {
    if (move.toLowerCase() !== "pass") return move.toUpperCase();
    return language === "ja" ? "パス" : "pass";
  }
}

/**
 * What is drawn over a board.
 * @typedef {object} Overlay
 * @property {{move: string, label: string, detail: string, share: number}[]} [candidates] best first
 * @property {number[] | null} [ownership] by point, +1: Black's
 * @property {number[] | null} [policy] by point, [0, 1]
 * @property {string} [played] the move of the game, if it was a mistake
 * @property {string[]} [numbers] moves to number: a variation. Go: all are on the board; shogi: they may be still to come
 * @property {string[]} [targets] candidates that the pointer can find; their areas have the attribute data-move
 * @property {string[]} [marked] squares to mark: where a piece can go
 * @property {string[]} [dead] vertices of dead stones
 * @property {number} [bottom] the color whose side is at the bottom (default: Black)
 * @property {string} [cursor] vertex or square of the keyboard's cursor; it is seen while the board has the focus
 * @property {(kind: string) => void} [onHand] called with the letter of a clicked piece in the hand of the side to move
 * @property {(place: string) => void} [onPlace] called with the vertex or square that was clicked
 */

const CURSOR = { class: "cursor", fill: "none", stroke: "#b3131b", "stroke-width": 4, rx: 4 };
const STARS = new Map([[9, [2, 4, 6]], [13, [3, 6, 9]], [19, [3, 9, 15]]]);

/** Draw a goban. @param {GoPosition} position @param {Overlay} overlay @param {string} title */
function drawGo(position, overlay, title) {
  const { width, height } = position, cell = 40, edge = 44;
  const seen = (/** @type {number} */ point) => (overlay.bottom === WHITE ? width * height - 1 - point : point);
  const x = (/** @type {number} */ point) => edge + cell * (seen(point) % width);
  const y = (/** @type {number} */ point) => edge + cell * Math.floor(seen(point) / width);
  const right = edge + cell * (width - 1), bottom = edge + cell * (height - 1);
  const sheet = svg("svg", { viewBox: `0 0 ${right + edge} ${bottom + edge}`, role: "img", class: "board" });
  sheet.append(svg("title", {}, title), svg("rect", { width: "100%", height: "100%", fill: "#e6bf76", rx: 6 }));
  let lines = "";
  for (let column = 0; column < width; column++) lines += `M${edge + cell * column} ${edge}V${bottom}`;
  for (let row = 0; row < height; row++) lines += `M${edge} ${edge + cell * row}H${right}`;
  sheet.append(svg("path", { d: lines, stroke: "#3b2a14", fill: "none", "stroke-linecap": "square" }));
  for (const column of STARS.get(width) ?? [])
    for (const row of STARS.get(height) ?? []) {
      // Boards below 19x19 have four star points and the center.
      if (width < 19 && (column === (width - 1) / 2) !== (row === (height - 1) / 2)) continue;
      sheet.append(svg("circle", { cx: edge + cell * column, cy: edge + cell * row, r: 4, fill: "#3b2a14" }));
    }
  const text = { "text-anchor": "middle", fill: "#3b2a14", "font-size": 15 };
  for (let column = 0; column < width; column++)
    for (const at of [22, bottom + 32])
      sheet.append(svg("text", { ...text, x: x(column), y: at }, COLUMNS[column]));
  for (let row = 0; row < height; row++)
    for (const at of [16, right + 28])
      sheet.append(svg("text", { ...text, x: at, y: y(width * row) + 5 }, String(height - row)));
  const taken = new Set((overlay.candidates ?? []).map(({ move }) => position.point(move)));
  const dead = new Set((overlay.dead ?? []).map((vertex) => position.point(vertex)));
  position.stones.forEach((stone, point) => {
    if (stone) {
      const fill = stone === BLACK ? "#111" : "#fafafa", opacity = dead.has(point) ? 0.45 : 1;
      sheet.append(svg("circle", { cx: x(point), cy: y(point), r: 18.5, fill, stroke: "#111", opacity }));
    }
    const share = overlay.policy?.[point] ?? 0;
    if (share > 0.002 && !stone) {
      const attributes = { x: x(point) - 18, y: y(point) - 18, width: 36, height: 36, fill: "#b3131b" };
      sheet.append(svg("rect", { ...attributes, opacity: Math.min(0.85, 0.12 + share), rx: 4 }));
    }
    const owner = overlay.ownership?.[point] ?? 0;
    if (Math.abs(owner) > 0.15 && !taken.has(point)) {
      const side = 22 * Math.sqrt(Math.abs(owner)), fill = owner > 0 ? "#111" : "#fff";
      const square = { x: x(point) - side / 2, y: y(point) - side / 2, width: side, height: side, fill };
      sheet.append(svg("rect", { ...square, stroke: owner > 0 ? "#fff" : "#111", "stroke-width": 0.8, opacity: 0.75 }));
    }
  });
  for (const point of position.last) {
    const stroke = position.stones[point] === BLACK ? "#fff" : "#111";
    sheet.append(svg("circle", { cx: x(point), cy: y(point), r: 9, fill: "none", stroke, "stroke-width": 3 }));
  }
  (overlay.candidates ?? []).forEach(({ move, label, detail, share }, order) => {
    const point = move.toLowerCase() === "pass" ? -1 : position.point(move);
    if (point < 0 || position.stones[point]) return;
    const [fill, ink] = order === 0 ? ["#1565a9", "#fff"] : ["#7bc67e", "#111"], at = { x: x(point), "text-anchor": "middle", fill: ink };
    sheet.append(
      svg("circle", { cx: x(point), cy: y(point), r: 18, fill, stroke: "#1b5e20", opacity: order === 0 ? 1 : 0.3 + 0.7 * Math.sqrt(share) }),
      svg("text", { ...at, y: y(point) - 1, "font-size": 13, "font-weight": 700 }, label),
      svg("text", { ...at, y: y(point) + 12, "font-size": 10.5 }, detail),
    );
  });
  const numbers = overlay.numbers ?? [];
  numbers.forEach((move, place) => {
    const point = position.point(move), again = numbers.lastIndexOf(move) > place;
    if (point < 0 || again || move === "pass" || !position.stones[point]) return; // captured, or taken again later
    const isBlack = position.stones[point] === BLACK, size = place > 8 ? 16 : 19;
    sheet.append(
      svg("circle", { cx: x(point), cy: y(point), r: 15, fill: isBlack ? "#111" : "#fafafa" }),
      svg("text", { x: x(point), y: y(point) + 6.5, "text-anchor": "middle", "font-size": size, "font-weight": 700, fill: isBlack ? "#fff" : "#111" }, String(place + 1)),
    );
  });
  const played = overlay.played ? position.point(overlay.played) : -1;
  if (played >= 0) {
    const ring = { cx: x(played), cy: y(played), r: 19, fill: "none", stroke: "#c62828", "stroke-width": 3, "stroke-dasharray": "5 4" };
    sheet.append(svg("circle", ring));
  }
  if (overlay.cursor) {
    const point = position.point(overlay.cursor);
    sheet.append(svg("rect", { ...CURSOR, x: x(point) - 18, y: y(point) - 18, width: 36, height: 36 }));
  }
  const onPlace = overlay.onPlace;
  if (onPlace)
    position.stones.forEach((_, point) => {
      const area = { x: x(point) - 20, y: y(point) - 20, width: 40, height: 40, fill: "transparent" };
      const vertex = position.place(point);
      const target = svg("rect", { ...area, "data-place": vertex });
      target.addEventListener("click", () => onPlace(vertex));
      sheet.append(target);
    });
  for (const move of overlay.targets ?? []) {
    const point = move === "pass" ? -1 : position.point(move);
    if (point >= 0) sheet.append(svg("rect", { x: x(point) - 20, y: y(point) - 20, width: 40, height: 40, fill: "transparent", "data-move": move }));
  }
  return sheet;
}

const KANJI = { P: "歩", L: "香", N: "桂", S: "銀", G: "金", B: "角", R: "飛", K: "玉" };
const PROMOTED = { P: "と", L: "杏", N: "圭", S: "全", B: "馬", R: "龍" };
const PROMOTED_NAMES = { P: "と", L: "成香", N: "成桂", S: "成銀", B: "馬", R: "龍" };
const PIECES = { P: "pawn", L: "lance", N: "knight", S: "silver", G: "gold", B: "bishop", R: "rook", K: "king" };
const RANKS = "一二三四五六七八九", FILES = "１２３４５６７８９", HAND = "RBGSNLP";
const COUNTS = ["", "", "二", "三", "四", "五", "六", "七", "八", "九", "十"];

/** A piece: its letter, color, and whether it is promoted. @typedef {{kind: string, color: number, isPromoted: boolean}} Piece */

/** A position of shogi. Positions are never changed: `play` returns another. */
class ShogiPosition {
  /**
   * @param {(Piece | null)[]} squares
   * @param {Record<string, number>[]} hands by color; entry 0 is unused
   * @param {number} toMove
   */
  constructor(squares, hands, toMove) {
    this.squares = squares;
    this.hands = hands;
    this.toMove = toMove;
    /** Squares to mark: source and target of the last move, or the target of a drop. @type {number[]} */
    this.last = [];
  }

  /** @param {string} sfen */
  static parse(sfen) {
    const [board, turn, hands] = sfen.split(" ");
    /** @type {(Piece | null)[]} */
    const squares = [];
    for (const [, plus, letter, gap] of board.matchAll(/(\+?)([A-Za-z])|(\d)/g)) {
      if (gap) squares.push(...Array(Number(gap)).fill(null));
      else squares.push({ kind: letter.toUpperCase(), color: letter < "a" ? BLACK : WHITE, isPromoted: plus === "+" });
    }
    /** @type {Record<string, number>[]} */
    const held = [{}, {}, {}];
    for (const [, count, letter] of hands.matchAll(/(\d*)([A-Za-z])/g))
      held[letter < "a" ? BLACK : WHITE][letter.toUpperCase()] = Number(count || 1);
    return new ShogiPosition(squares, held, turn === "b" ? BLACK : WHITE);
  }

  /** Return the index of a square such as "7g". @param {string} text */
  square(text) {
    return 9 * (text.charCodeAt(1) - 97) + 9 - Number(text[0]);
  }

  /** Return the name of a square such as "7g". @param {number} square */
  place(square) {
    return `${9 - (square % 9)}${"abcdefghi"[Math.floor(square / 9)]}`;
  }

  /** Return what is on a square, in words. @param {number} square @param {string} language */
  describe(square, language) {
    const piece = this.squares[square], isJapanese = language === "ja";
    const place = isJapanese ? `${9 - (square % 9)}${RANKS[Math.floor(square / 9)]}` : this.place(square);
    if (!piece) return isJapanese ? `${place}（空き）` : `${place} empty`;
    const names = /** @type {Record<string, string>} */ (isJapanese ? (piece.isPromoted ? PROMOTED_NAMES : KANJI) : PIECES);
    if (isJapanese) return `${place} ${piece.color === BLACK ? "先手" : "後手"}${names[piece.kind]}`;
    return `${place} ${piece.color === BLACK ? "Sente's" : "Gote's"} ${piece.isPromoted ? "promoted " : ""}${names[piece.kind]}`;
  }

  /** Return the position after a legal move. @param {string} move in USI */
  play(move) {
    const squares = this.squares.slice(), hands = this.hands.map((hand) => ({ ...hand }));
    const after = new ShogiPosition(squares, hands, BLACK + WHITE - this.toMove), hand = hands[this.toMove];
    const target = move[1] === "*" || move.length >= 4 ? this.square(move.slice(2, 4)) : -1;
    if (target < 0) return after;
    if (move[1] === "*") {
      hand[move[0]] -= 1;
      squares[target] = { kind: move[0], color: this.toMove, isPromoted: false };
      after.last = [target];
      return after;
    }
    const source = this.square(move), piece = squares[source], taken = squares[target];
    if (taken) hand[taken.kind] = (hand[taken.kind] ?? 0) + 1;
    if (piece) squares[target] = { ...piece, isPromoted: piece.isPromoted || move[4] === "+" };
    squares[source] = null;
    after.last = [source, target];
    return after;
  }

  /**
   * Return a move as players write it: ▲７六歩, △同銀, ▲５八金右 in Japanese, P-7f in English.
   * @param {string} move in USI
   * @param {string} language
   */
  name(move, language = "en") {
    const isDrop = move[1] === "*";
    if (!isDrop && move.length < 4) return move;
    const target = this.square(move.slice(2, 4)), source = isDrop ? -1 : this.square(move);
    const piece = isDrop ? { kind: move[0], isPromoted: false } : this.squares[source] ?? { kind: "?", isPromoted: false };
    if (language !== "ja") {
      const letter = (piece.isPromoted ? "+" : "") + piece.kind, promotes = move[4] === "+" ? "+" : "";
      if (isDrop) return `${letter}*${move.slice(2)}`;
      const isOne = !this.squares.some((other, square) =>
        other && square !== source && other.kind === piece.kind && other.color === this.toMove);
      const origin = isOne || piece.kind === "P" ? "" : move.slice(0, 2);
      return `${letter}${origin}${this.squares[target] ? "x" : "-"}${move.slice(2, 4)}${promotes}`;
    }
    const mark = this.toMove === BLACK ? "▲" : "△";
    const isSame = this.last.length > 0 && this.last[this.last.length - 1] === target;
    const place = isSame ? "同" : FILES[Number(move[2]) - 1] + RANKS[Math.floor(target / 9)];
    const names = /** @type {Record<string, string>} */ (piece.isPromoted ? PROMOTED_NAMES : KANJI);
    const name = names[piece.kind] ?? piece.kind, others = this.reaching(piece, target).filter((other) => other !== source);
    // 同成銀 could be read as a silver that promotes, hence the wide blank
    const start = mark + place + (isSame && name.length === 2 ? "　" : "") + name;
    if (isDrop) return start + (others.length ? "打" : "");
    const zone = (/** @type {number} */ square) => (this.toMove === BLACK ? square < 27 : square >= 54);
    const isFree = !piece.isPromoted && "PLNSBR".includes(piece.kind) && (zone(source) || zone(target));
    return start + this.which(source, target, piece, others) + (move[4] === "+" ? "成" : isFree ? "不成" : "");
  }

  /** Return the squares from which pieces of the side to move reach a square. Pins do not count. @param {{kind: string, isPromoted: boolean}} piece @param {number} target */
  reaching({ kind, isPromoted }, target) {
    const forward = this.toMove === BLACK ? -1 : 1, isGold = isPromoted && !"BR".includes(kind);
    const steps = isGold ? PIECE_STEPS.G : [...(PIECE_STEPS[kind] ?? []), ...(isPromoted ? PIECE_STEPS.K : [])];
    const slides = isGold ? [] : SLIDES[kind] ?? [], found = [];
    for (let source = 0; source < 81; source++) {
      const piece = this.squares[source];
      if (!piece || piece.color !== this.toMove || piece.kind !== kind || piece.isPromoted !== isPromoted) continue;
      const right = (target % 9) - (source % 9), up = forward * (Math.floor(target / 9) - Math.floor(source / 9));
      const distance = Math.max(Math.abs(right), Math.abs(up));
      const step = distance ? 9 * forward * (up / distance) + right / distance : 0;
      const isClear = () => Array.from({ length: distance - 1 }, (_, number) => source + step * (number + 1)).every((square) => !this.squares[square]);
      const isStep = steps.some(([x, y]) => x === right && y === up);
      if (isStep || (distance && slides.some(([x, y]) => x * distance === right && y * distance === up) && isClear())) found.push(source);
    }
    return found;
  }

  /**
   * Return the words that distinguish a piece from others that reach the target, by the rules of the Japanese Shogi
   * Association, as engine/shogi/notation.py does.
   * @param {number} source @param {number} target @param {{kind: string, isPromoted: boolean}} piece @param {number[]} others
   */
  which(source, target, piece, others) {
    if (!others.length) return "";
    const forward = this.toMove === BLACK ? 1 : -1, isLong = "BR".includes(piece.kind);
    const up = (/** @type {number} */ square) => forward * (Math.floor(square / 9) - Math.floor(target / 9));
    const motion = (/** @type {number} */ square) => (up(square) > 0 ? "上" : up(square) < 0 ? "引" : "寄");
    const left = (/** @type {number} */ square, /** @type {number} */ other) => forward * ((other % 9) - (square % 9));
    const isOn = (/** @type {string} */ word, /** @type {number} */ square) => {
      const sign = word === "左" ? 1 : -1;
      return isLong ? [source, ...others].every((other) => sign * left(square, other) >= 0) : sign * left(square, target) > 0;
    };
    const own = motion(source);
    if (others.every((other) => motion(other) !== own)) return own;
    if (!(isLong && piece.isPromoted) && left(source, target) === 0 && own === "上") return "直";
    for (const word of "左右") if (isOn(word, source)) return others.some((other) => isOn(word, other)) ? word + own : word;
    return own;
  }
}

// -- moves of pieces, as their side sees them: to the right (of Black's board), forward
/** @type {[number, number][]} */
const STRAIGHT = [[0, 1], [0, -1], [1, 0], [-1, 0]], DIAGONAL = [[1, 1], [-1, 1], [1, -1], [-1, -1]];
/** @type {Record<string, [number, number][]>} */
const PIECE_STEPS = { P: [[0, 1]], N: [[1, 2], [-1, 2]], S: [[0, 1], ...DIAGONAL], G: [...STRAIGHT, [1, 1], [-1, 1]], K: [...STRAIGHT, ...DIAGONAL] };
/** @type {Record<string, [number, number][]>} */
const SLIDES = { L: [[0, 1]], B: DIAGONAL, R: STRAIGHT };

/** Draw a shogi board with hands. @param {ShogiPosition} position @param {Overlay} overlay @param {string} title */
function drawShogi(position, overlay, title) {
  const wide = 42, high = 46, left = 66, top = 28, font = "'Noto Serif CJK JP','Hiragino Mincho ProN','Yu Mincho',serif";
  const right = left + 9 * wide, bottom = top + 9 * high;
  const below = overlay.bottom ?? BLACK;
  const seen = (/** @type {number} */ square) => (below === WHITE ? 80 - square : square);
  const x = (/** @type {number} */ square) => left + wide * ((seen(square) % 9) + 0.5);
  const y = (/** @type {number} */ square) => top + high * (Math.floor(seen(square) / 9) + 0.5);
  const sheet = svg("svg", { viewBox: `0 0 ${right + 88} ${bottom + 14}`, role: "img", class: "board", lang: "ja" });
  sheet.append(svg("title", {}, title), svg("rect", { width: "100%", height: "100%", fill: "#e6bf76", rx: 6 }));
  const middle = { "text-anchor": "middle", fill: "#3b2a14", "font-family": font };
  position.last.forEach((square, number) => {
    const fill = number === position.last.length - 1 ? "#f2a04a" : "#f3dc9f";
    sheet.append(svg("rect", { x: x(square) - wide / 2, y: y(square) - high / 2, width: wide, height: high, fill }));
  });
  let lines = "";
  for (let line = 0; line < 10; line++) {
    lines += `M${left} ${top + high * line}H${right}`;
    lines += `M${left + wide * line} ${top}V${bottom}`;
  }
  sheet.append(svg("path", { d: lines, stroke: "#3b2a14", fill: "none" }));
  for (let line = 0; line < 9; line++) {
    sheet.append(svg("text", { ...middle, x: x(line), y: 20, "font-size": 14 }, String(9 - line)));
    sheet.append(svg("text", { ...middle, x: right + 13, y: y(9 * line) + 5, "font-size": 14 }, RANKS[line]));
  }
  /** @param {Piece} piece @param {number} cx @param {number} cy */
  const draw = (piece, cx, cy) => {
    const turn = piece.color === below ? "" : " rotate(180)";
    const names = /** @type {Record<string, string>} */ (piece.isPromoted ? PROMOTED : KANJI);
    const label = { ...middle, y: 10, "font-size": 24, "font-weight": 600, fill: piece.isPromoted ? "#b3131b" : "#20160a" };
    const shape = { points: "0,-19 12,-14 16,18 -16,18 -12,-14", fill: "#fbeecb", stroke: "#3b2a14" };
    const group = svg("g", { transform: `translate(${cx} ${cy})${turn}` }, svg("polygon", shape));
    group.append(svg("text", label, piece.kind === "K" && piece.color === WHITE ? "王" : names[piece.kind] ?? "?"));
    sheet.append(group);
  };
  position.squares.forEach((piece, square) => piece && draw(piece, x(square), y(square)));
  for (const color of [BLACK, WHITE]) {
    const isBelow = color === below, cx = isBelow ? right + 54 : 30;
    let cy = isBelow ? bottom - 20 : top + 20;
    if (position.toMove === color) sheet.append(svg("circle", { cx, cy, r: 17, fill: "#f28c28" }));
    sheet.append(svg("text", { ...middle, x: cx, y: cy + 7, "font-size": 20 }, color === BLACK ? "☗" : "☖"));
    for (const kind of HAND) {
      const count = position.hands[color][kind] ?? 0;
      if (!count) continue;
      cy += isBelow ? -high : high;
      draw({ kind, color, isPromoted: false }, cx, cy);
      const onHand = overlay.onHand;
      if (onHand && color === position.toMove) {
        const target = svg("rect", { x: cx - 20, y: cy - 22, width: 40, height: 44, fill: "transparent", "data-hand": kind });
        target.addEventListener("click", () => onHand(kind));
        sheet.append(target);
      }
      if (count > 1) sheet.append(svg("text", { ...middle, x: cx + 24, y: cy + 6, "font-size": 15 }, String(count)));
    }
  }
  const isBoardMove = (/** @type {string} */ move) => move[1] === "*" || move.length >= 4;
  /** Draw a move: an arrow, or a ring for a drop. @param {string} move @param {string} stroke @param {number} width @param {number} opacity */
  const arrow = (move, stroke, width, opacity) => {
    const target = position.square(move.slice(2, 4));
    if (move[1] === "*") return sheet.append(svg("circle", { cx: x(target), cy: y(target), r: 19, fill: "none", stroke, "stroke-width": 4, opacity }));
    const source = position.square(move), dx = x(target) - x(source), dy = y(target) - y(source);
    const length = Math.hypot(dx, dy), ux = dx / length, uy = dy / length, tip = 8;
    const ex = x(target) - ux * tip, ey = y(target) - uy * tip;
    sheet.append(
      svg("path", { d: `M${x(source)} ${y(source)}L${ex} ${ey}`, stroke, "stroke-width": width, opacity }),
      svg("polygon", { points: `${x(target)},${y(target)} ${ex - 9 * uy - 6 * ux},${ey + 9 * ux - 6 * uy} ${ex + 9 * uy - 6 * ux},${ey - 9 * ux - 6 * uy}`, fill: stroke, opacity }),
    );
  };
  (overlay.candidates ?? []).slice().reverse().forEach(({ move, label, share }, reversed, all) => {
    const order = all.length - 1 - reversed, stroke = order === 0 ? "#1565a9" : "#23703f";
    if (!isBoardMove(move)) return;
    const target = position.square(move.slice(2, 4)), opacity = order === 0 ? 0.9 : 0.25 + 0.6 * Math.sqrt(share);
    arrow(move, stroke, order === 0 ? 6 : 4, opacity);
    sheet.append(
      svg("rect", { x: x(target) - 19, y: y(target) - 25, width: 38, height: 14, rx: 3, fill: stroke }),
      svg("text", { x: x(target), y: y(target) - 14, "text-anchor": "middle", fill: "#fff", "font-size": 12 }, label),
    );
  });
  const numbered = (overlay.numbers ?? []).filter(isBoardMove), squares = numbered.map((move) => move.slice(2, 4));
  const sides = ["#8c2f00", "#0b3c6f"]; // of the numbers: the first mover's moves, and the answers
  numbered.forEach((move, place) => arrow(move, sides[place % 2], 3, 0.55));
  for (const square of new Set(squares)) {
    const places = squares.flatMap((each, place) => (each === square ? [place] : [])), label = places.map((place) => place + 1).join(" ");
    const at = { x: x(position.square(square)), y: y(position.square(square)) - 10 }, wide = 9 + 8 * label.length;
    sheet.append(
      svg("rect", { x: at.x - wide / 2, y: at.y - 10, width: wide, height: 19, rx: 9, fill: sides[places[0] % 2], stroke: "#fff" }),
      svg("text", { x: at.x, y: at.y + 4.5, "text-anchor": "middle", fill: "#fff", "font-size": 14, "font-weight": 700 }, label),
    );
  }
  for (const square of (overlay.marked ?? []).map((text) => position.square(text)))
    sheet.append(svg("circle", { cx: x(square), cy: y(square), r: 7, fill: "#1f6fb5", opacity: 0.7 }));
  const played = overlay.played ?? "";
  if (played[1] === "*" || played.length >= 4) {
    const target = position.square(played.slice(2, 4)), size = { width: wide - 4, height: high - 4, fill: "none" };
    const place = { x: x(target) - wide / 2 + 2, y: y(target) - high / 2 + 2 };
    sheet.append(svg("rect", { ...size, ...place, stroke: "#c62828", "stroke-width": 3, "stroke-dasharray": "6 4" }));
  }
  if (overlay.cursor) {
    const square = position.square(overlay.cursor), size = { width: wide - 4, height: high - 4 };
    sheet.append(svg("rect", { ...CURSOR, ...size, x: x(square) - wide / 2 + 2, y: y(square) - high / 2 + 2 }));
  }
  const onPlace = overlay.onPlace;
  if (onPlace)
    position.squares.forEach((_, square) => {
      const area = { x: x(square) - wide / 2, y: y(square) - high / 2, width: wide, height: high, fill: "transparent" };
      const place = position.place(square);
      const target = svg("rect", { ...area, "data-place": place });
      target.addEventListener("click", () => onPlace(place));
      sheet.append(target);
    });
  const found = new Set(); // of some candidates with one target, the pointer finds the best
  for (const move of (overlay.targets ?? []).filter(isBoardMove)) {
    const square = position.square(move.slice(2, 4));
    if (found.has(square)) continue;
    found.add(square);
    const area = { x: x(square) - wide / 2, y: y(square) - high / 2, width: wide, height: high, fill: "transparent" };
    sheet.append(svg("rect", { ...area, "data-move": move }));
  }
  return sheet;
}

/**
 * Return the positions of a game, the first before move 1.
 * @param {{width?: number, height?: number, stones?: [string, string][], first?: string, sfen?: string}} start first: who moves, Go
 * @param {string[]} moves GTP or USI
 * @param {string[]} [colors] of the moves, Go; without them colors alternate
 */
function replay(start, moves, colors) {
  /** @type {GoPosition | ShogiPosition} */
  let position;
  if (start.sfen) position = ShogiPosition.parse(start.sfen);
  else {
    position = new GoPosition(start.width ?? 19, start.height ?? 19);
    for (const [color, vertex] of start.stones ?? []) position.stones[position.point(vertex)] = color === "B" ? BLACK : WHITE;
    position.toMove = start.first === "W" ? WHITE : BLACK;
  }
  const found = [position];
  moves.forEach((move, number) => {
    const color = colors && (colors[number] === "B" ? BLACK : WHITE);
    position = position instanceof GoPosition ? position.play(move, color) : position.play(move);
    found.push(position);
  });
  return found;
}

// -- pages -------------------------------------------------------------------------------------------------------------

/** Texts of every page. @type {Record<string, Record<string, string>>} */
const COMMON = {
  en: {
    goB: "Black", goW: "White", shogiB: "Sente", shogiW: "Gote", other: "日本語", candidates: "Candidates",
    ownership: "Territory", moves: "Moves", turn: "Turn the board",
  },
  ja: {
    goB: "黒", goW: "白", shogiB: "先手", shogiW: "後手", other: "English", candidates: "候補手", ownership: "地", moves: "手数",
    turn: "盤を反転",
  },
};

let language = navigator.language.startsWith("ja") ? "ja" : "en";

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** Return a text of the page, in its language. @param {string} key */
const t = (key) => TEXTS[language][key] ?? COMMON[language][key] ?? key;
/** @param {number} share */
const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
/** @param {string} name */
const isChecked = (name) => /** @type {HTMLInputElement} */ (document.querySelector(`[name=${name}]`)).checked;

/** Return an element with children. @param {string} name @param {Record<string, string>} attributes @param {...(Node | string)} children */
function html(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Write the labels of the page in its language. */
function drawLabels() {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-label]")) element.textContent = t(element.getAttribute("data-label") ?? "");
  for (const element of document.querySelectorAll("[data-text]")) element.setAttribute("aria-label", t(element.getAttribute("data-text") ?? ""));
  byId("language").textContent = t("other");
}

/** Change the language with its button. @param {() => void} draw */
function offerLanguages(draw) {
  byId("language").addEventListener("click", () => {
    language = language === "ja" ? "en" : "ja";
    draw();
  });
}

let isTurned = false; // by hand

/** Return the color at the bottom of the board, for a color that belongs there. @param {number} color */
const bottomFor = (color) => (isTurned ? BLACK + WHITE - color : color);

/** @param {boolean} value */
function setTurned(value) {
  isTurned = value;
  byId("turn").setAttribute("aria-pressed", String(value));
}

/** Turn the board with its button, or with the key F. @param {() => void} draw */
function offerTurning(draw) {
  const turn = () => {
    setTurned(!isTurned);
    draw();
  };
  byId("turn").addEventListener("click", turn);
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key.toLowerCase() !== "f" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!target.closest("select, textarea, input:not([type=checkbox], [type=range])")) turn();
  });
}

/** Return the names of a line's moves. @param {GoPosition | ShogiPosition} position @param {string[]} line */
function lineNames(position, line) {
  const names = [];
  for (const move of line) {
    names.push(position.name(move, language));
    position = position.play(move);
  }
  return names;
}

/** Endings of CSA: the side to move loses or wins, or nobody wins; in words of both languages. @type {Record<string, [string, string, string]>} */
const ENDINGS = {
  TORYO: ["loses", "resignation", "投了"], TSUMI: ["loses", "checkmate", "詰み"], TIME_UP: ["loses", "time", "時間切れ"],
  ILLEGAL_MOVE: ["loses", "an illegal move", "反則"], KACHI: ["wins", "declaration", "入玉宣言"], SENNICHITE: ["", "Draw by repetition", "千日手"],
  JISHOGI: ["", "Draw by impasse", "持将棋"], HIKIWAKE: ["", "Draw", "引き分け"], MAX_MOVES: ["", "Draw: move limit", "引き分け（手数の上限）"],
  CHUDAN: ["", "Interrupted", "中断"], MATTA: ["", "Interrupted", "中断"], ERROR: ["", "Interrupted", "中断"], FUZUMI: ["", "No mate", "不詰"],
  "+ILLEGAL_ACTION": ["W", "a breach of the rules", "反則"], "-ILLEGAL_ACTION": ["B", "a breach of the rules", "反則"],
};
/** @type {Record<string, [string, string]>} */
const GO_ENDINGS = { R: ["resignation", "中押し"], T: ["time", "時間切れ"], F: ["forfeit", "反則"] };

/**
 * Return the result of a record in words, or its own text if that has another form.
 * @param {string} result of SGF (`B+3.5`), or an ending of CSA
 * @param {string} toMove the side to move at the end
 * @param {(side: string) => string} name of a side
 */
function resultText(result, toMove, name) {
  const isJapanese = language === "ja", ending = ENDINGS[result], [, side, how] = result.match(/^([BW])\+(.*)$/i) ?? [];
  if (ending) {
    const [who, english, japanese] = ending, other = toMove === "B" ? "W" : "B", winner = { wins: toMove, loses: other }[who] ?? who;
    if (!winner) return isJapanese ? japanese : english;
    return isJapanese ? `${name(winner)}の勝ち（${japanese}）` : `${name(winner)} wins by ${english}`;
  }
  if (/^(0|draw|jigo)$/i.test(result)) return isJapanese ? "持碁" : "Draw";
  if (!side) return result;
  const winner = name(side.toUpperCase()), points = Number(how), words = GO_ENDINGS[how.charAt(0).toUpperCase()];
  if (how && points > 0) {
    const half = points % 1 === 0.5, whole = Math.floor(points);
    const japanese = half ? `${whole ? `${whole}目` : ""}半${whole ? "" : "目"}` : `${points}目`;
    return isJapanese ? `${winner}の${japanese}勝ち` : `${winner} wins by ${points} points`;
  }
  if (!words) return isJapanese ? `${winner}の勝ち` : `${winner} wins`;
  return isJapanese ? `${winner}の${words[1]}勝ち` : `${winner} wins by ${words[0]}`;
}
