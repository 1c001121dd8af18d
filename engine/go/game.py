"""A game of Go: its position, its history and the commands that change it.

The kernels (yomi.native.go) implement the rules. This class adds undo, set-up, handicap, consecutive moves of one
color, and the result.
"""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from yomi.engine import screen
from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.go.points import (
    COLUMNS,
    STANDARD,
    Board,
    HandicapError,
    SetupError,
    board_of,
    check_free_handicap,
    fixed_handicap,
    handicap_stones,
    max_fixed_handicap,
    shown_color,
)
from yomi.engine.go.rules import PRESETS, Rules
from yomi.engine.options import MAX_KOMI, Options
from yomi.errors import IllegalMove
from yomi.language import encodes, tr
from yomi.native.go import board as native
from yomi.native.go import rules as kernels
from yomi.native.go.board import EMPTY, MAX_SIZE, MIN_SIZE, NO_POINT, PASS, POSITION_DTYPE
from yomi.nets.katago.human_profile import HumanProfile

SNAPSHOT_INTERVAL = 8  # moves between stored positions: undo replays at most 7 moves, and 400 moves use 1.4 MB

KO_RULES = {
    "SIMPLE": native.KO_SIMPLE,
    "POSITIONAL": native.KO_POSITIONAL,
    "SITUATIONAL": native.KO_SITUATIONAL,
}
SCORINGS = {"AREA": native.SCORING_AREA, "TERRITORY": native.SCORING_TERRITORY}
TAXES = {"NONE": native.TAX_NONE, "SEKI": native.TAX_SEKI, "ALL": native.TAX_ALL}


class GoGame:
    """An initial position and the moves played since.

    All attributes are read-only. `position` (POSITION_DTYPE) and `history` (uint64[MAX_HISTORY]) change in place.
    """

    board: Board
    rules: Rules
    komi: float  # without compensation for handicap stones, which `position["komi"]` includes
    moves: list[tuple[int, int]]  # (color, move) since the initial position
    setup: list[tuple[int, int]]  # (color, point) of the initial position's stones with handicap stones, in board order
    handicap: int  # number of stones from `place_handicap`
    initial_side: int  # side to move in the initial position
    human_profile: HumanProfile | None  # the players that a human-SL network imitates; see `imitate`
    doubling_advantage: float  # see `expect_advantage`
    position: Any
    history: "np.ndarray[tuple[int], np.dtype[np.uint64]]"

    def __init__(self, board: Board = STANDARD, rules: Rules = PRESETS["chinese"], komi: float | None = None) -> None:
        """Start on an empty board. Without `komi` the komi is that of the rules.

        Raises:
            SetupError: a board that is not from 2x2 to 19x19; an impossible komi.
        """
        for side in (board.width, board.height):
            if not MIN_SIZE <= side <= MAX_SIZE:
                size = side if board.is_square else board
                raise SetupError(f"unacceptable size {size}: expected {MIN_SIZE} to {MAX_SIZE}")
        self.board = board
        self.rules = rules
        self.komi = _checked_komi(rules.komi if komi is None else komi)
        self.moves = []
        self.setup = []
        self.handicap = 0
        self.initial_side = BLACK
        self._initial_prisoners = (0, 0)
        self._kept_handicap: int | None = None
        self._hides_moves = False
        self.human_profile = None
        self.doubling_advantage = 0.0
        self._record = np.zeros(1, POSITION_DTYPE)
        self._snapshots: list[Any] = []
        self.position = self._record[0]
        self.history = np.zeros(kernels.MAX_HISTORY, np.uint64)
        self._restart()

    # -- the position -----------------------------------------------------------------------------------------

    @property
    def side_to_move(self) -> int:
        return int(self.position["side_to_move"])

    @property
    def last_move(self) -> tuple[int, int] | None:
        """(color, move) of the last move; None at the initial position."""
        return self.moves[-1] if self.moves else None

    def color_at(self, point: int) -> int:
        return int(self.position["color"][point])

    def stones(self) -> list[tuple[int, int]]:
        """Return (color, point) of every stone, row by row from the top left corner."""
        colors = self.position["color"]
        return [(int(colors[point]), point) for point in self.board.points if colors[point] != EMPTY]

    @property
    def search_key(self) -> object:
        """Games with equal keys differ only in their moves, so they may share a search tree."""
        komi = float(self.position["komi"])
        initial = (tuple(self.setup), self.initial_side, self._initial_prisoners)
        return (self.board, self.rules, komi, *initial, self._hides_moves, self.human_profile, self.doubling_advantage)

    def captures(self, color: int) -> int:
        """Return the number of stones that `color` has captured."""
        return int(self.position["prisoners"][opponent(color)])

    @property
    def handicap_bonus(self) -> int:
        """Points that the rules give White for handicap stones."""
        return self.rules.handicap_bonus(self._handicap_stones)

    # -- playing -------------------------------------------------------------------------------------------------

    def is_legal(self, color: int, move: int) -> bool:
        """Return whether `color` may play `move` now, even if it is the other side's turn. Passing is always legal."""
        return self.why_illegal(color, move) is None

    def why_illegal(self, color: int, move: int, *, strict: bool = True) -> str | None:
        """Return a short reason why `color` may not play `move` now; None if it is legal. For `strict` see `play`."""
        if self.is_full:
            return tr("the game is too long")
        if move == PASS:
            return None
        if not 0 < move < native.MAX_POINTS or self.position["color"][move] == native.BORDER:
            return tr("off the board")
        if self.position["color"][move] != EMPTY:
            return tr("occupied")
        pos = self.position
        if not strict:
            is_single = native.is_suicide(pos, move, color) and native.is_single_stone_suicide(pos, move, color)
            return tr("suicide") if is_single else None
        ko = int(pos["simple_ko"])
        if color != self.side_to_move:
            pos["simple_ko"] = NO_POINT  # the ban is on the other side only
        found = kernels.legality(pos, self.history, move, color)
        pos["simple_ko"] = ko
        if found == kernels.ALLOWED:
            return None
        if found == kernels.BANNED:
            return tr("superko")
        return tr("ko") if move == ko and color == self.side_to_move else tr("suicide")

    def legal_moves(self) -> list[int]:
        """Return the legal moves of the side to move, PASS last."""
        moves = np.zeros(native.MAX_AREA + 1, np.uint16)
        count = kernels.legal_moves(self.position, self.history, moves)
        return [int(move) for move in moves[:count]]

    def play(self, color: int, move: int, *, strict: bool = True) -> None:
        """Play a move. Colors need not alternate, and a game may continue after its end.

        Without `strict`, ko and multi-stone suicide are allowed, as in records of games under other rules.

        Raises:
            IllegalMove: nothing has changed.
        """
        why = self.why_illegal(color, move, strict=strict)
        if why is not None:
            name = f"{shown_color(color)} {self._name(move)}"
            raise IllegalMove(tr("illegal move {move}: {why}", move=name, why=why))
        self._apply(color, move)
        self.moves.append((color, move))
        if len(self.moves) % SNAPSHOT_INTERVAL == 0:
            self._snapshots.append(self._record.copy())
        self._refresh_komi()

    def undo(self) -> None:
        """Undo the last move, or raise IllegalMove if there is none."""
        if not self.moves:
            raise IllegalMove(tr("cannot undo"))
        self.moves.pop()
        self._rewind()

    @property
    def ply(self) -> int:
        """Number of moves since the initial position."""
        return len(self.moves)

    def push(self, move: int) -> None:
        """Play a move of the side to move, or raise IllegalMove."""
        self.play(self.side_to_move, move)

    def imitate(self, profile: HumanProfile | None) -> None:
        """Set the players that human-SL networks imitate. Use this on copies for a search, like `hide_history`."""
        self.human_profile = profile
        pos = self.position
        pos["human_source"] = 0 if profile is None else profile.source
        if profile is not None:
            pos["human_rank"], pos["human_date"] = (profile.black_rank, profile.white_rank), profile.days

    def expect_advantage(self, doublings: float) -> None:
        """Make networks assume that Black has 2 ** doublings times White's playouts. Use it on copies for a search."""
        self.doubling_advantage = self.position["doubling_advantage"] = doublings

    def turn_to(self, color: int) -> None:
        """Set the side to move without recording a move. `undo` forgets the color; `play` needs no call of this."""
        kernels.turn_to(self.position, color)

    def hide_history(self) -> None:
        """Hide the moves so far and the ladders of earlier boards from the network (KataGo's ignorePreRootHistory).

        Ko, superko and passes still use the whole history. Use this on copies for a search: undo and changes of the
        position make the moves visible again.
        """
        self.position["recent_valid"] = 0
        self._hides_moves = True

    @property
    def is_over(self) -> bool:
        """Whether the game has ended: by passes, by a repetition without result, or because the history is full.

        Under simple ko it also ends if a side passes twice in the same position.
        """
        return self.is_full or int(self.position["finished"]) != native.NOT_FINISHED

    @property
    def is_full(self) -> bool:
        """Whether the history is full. The search ends games at this length, too."""
        return int(self.position["history_length"]) + 1 >= kernels.MAX_HISTORY

    @property
    def is_no_result(self) -> bool:
        """Whether the position occurs for the third time since the last pass (rules with simple ko only)."""
        return int(self.position["finished"]) == native.THIRD_REPETITION

    # -- setting up ------------------------------------------------------------------------------------------------

    def set_komi(self, komi: float) -> None:
        """Change the komi (without handicap compensation), or raise SetupError."""
        self.komi = _checked_komi(komi)
        self._refresh_komi()

    def set_rules(self, rules: Rules) -> None:
        """Change the rules. Moves and komi stay, even if moves are illegal now."""
        self.rules = rules
        self._restart()

    def set_position(self, stones: Iterable[tuple[int, int]], side: int = BLACK) -> None:
        """Set the initial position and drop all moves. Stones are (color, point).

        Raises:
            SetupError: see `check_setup`; nothing has changed.
        """
        self._set_initial(list(stones), side, (0, 0), 0)

    def edit(self, changes: Iterable[tuple[int, int]], side: int | None = None) -> None:
        """Change stones on the current board. The result is the new initial position (SGF's AB, AW, AE and PL).

        Prisoners stay, and so does White's handicap compensation once White has played a stone.

        Args:
            changes: (BLACK, WHITE or EMPTY, point).
            side: the side to move; None for no change.

        Raises:
            SetupError: see `check_setup`; nothing has changed.
        """
        stones = {point: color for color, point in self.stones()}
        for color, point in changes:
            stones[point] = color
        left = [(color, point) for point, color in stones.items() if color != EMPTY]
        kept = self.position["prisoners"]
        prisoners = (int(kept[BLACK]), int(kept[WHITE]))
        kept_handicap = self._kept_handicap
        if any(color == WHITE and move != PASS for color, move in self.moves):
            kept_handicap = self._handicap_stones
        self._set_initial(left, side or self.side_to_move, prisoners, self.handicap, kept_handicap)

    def place_handicap(self, points: Sequence[int]) -> None:
        """Place handicap stones on an empty board, or raise HandicapError. White is to move next."""
        if self.moves or self.setup:
            raise HandicapError("board not empty")
        check_free_handicap(points, self.board)
        self._set_initial([(BLACK, point) for point in points], WHITE, (0, 0), len(points))

    def copy(self) -> "GoGame":
        other = copy.copy(self)
        other.moves, other.setup, other._snapshots = list(self.moves), list(self.setup), list(self._snapshots)
        other._record, other.history = self._record.copy(), self.history.copy()
        other.position = other._record[0]
        return other

    def __str__(self) -> str:
        return draw(self)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _name(self, move: int) -> str:
        return self.board.vertex(move) if move == PASS or move in self.board.points else f"point {move}"

    @property
    def _handicap_stones(self) -> int:
        """Number of handicap stones. An edit in mid-game keeps the earlier number."""
        return handicap_stones(self.setup, self.moves) if self._kept_handicap is None else self._kept_handicap

    def _apply(self, color: int, move: int) -> None:
        self.turn_to(color)
        kernels.play(self.position, self.history, move)

    def _rewind(self) -> None:
        """Rebuild the position after `moves`, which has become shorter, and drop the snapshots of later positions."""
        del self._snapshots[len(self.moves) // SNAPSHOT_INTERVAL + 1 :]
        self._record[...] = self._snapshots[-1]
        for color, move in self.moves[(len(self._snapshots) - 1) * SNAPSHOT_INTERVAL :]:
            self._apply(color, move)
        self._refresh_komi()

    def _restart(self) -> None:
        """Rebuild the position from the initial stones and all moves, under the current rules."""
        pos = self.position
        self._record[...] = np.zeros(1, POSITION_DTYPE)
        pos["ko_rule"] = KO_RULES[self.rules.ko]
        pos["scoring"] = SCORINGS[self.rules.scoring]
        pos["tax"] = TAXES[self.rules.tax]
        pos["suicide"] = self.rules.suicide
        pos["friendly_pass"] = self.rules.friendly_pass_ok
        native.clear(pos, self.board.width, self.board.height)
        for color, point in self.setup:
            native.place_stone(pos, point, color)
        pos["side_to_move"] = self.initial_side
        pos["prisoners"][BLACK], pos["prisoners"][WHITE] = self._initial_prisoners
        if self.rules.scoring == "TERRITORY":
            # KataGo counts the stones of a set-up position, on the board or captured, as moves
            placed = sum(1 if color == BLACK else -1 for color, _ in self.setup)
            pos["white_bonus"] = placed + self._initial_prisoners[0] - self._initial_prisoners[1]
        kernels.begin(pos, self.history)
        self._snapshots = [self._record.copy()]
        for count, (color, move) in enumerate(self.moves, 1):
            self._apply(color, move)
            if count % SNAPSHOT_INTERVAL == 0:
                self._snapshots.append(self._record.copy())
        self._refresh_komi()

    def _refresh_komi(self) -> None:
        self.position["komi"] = self.komi + self.handicap_bonus

    def _set_initial(
        self,
        stones: list[tuple[int, int]],
        side: int,
        prisoners: tuple[int, int],
        handicap: int,
        kept_handicap: int | None = None,
    ) -> None:
        check_setup(stones, self.board)
        self.setup = sorted(stones, key=lambda stone: stone[1])
        self.moves = []
        self.handicap = handicap
        self.initial_side = side
        self._initial_prisoners = prisoners
        self._kept_handicap = kept_handicap
        self._restart()


def check_setup(stones: Iterable[tuple[int, int]], board: Board) -> None:
    """Check that stones (color, point) form a legal position.

    Raises:
        SetupError: two stones on one point, a point off the board, or a chain without liberties.
    """
    colors = dict.fromkeys(board.points, EMPTY)
    for color, point in stones:
        if point not in colors:
            raise SetupError(f"set-up stone on point {point}: not on a {board} board")
        if colors[point] != EMPTY:
            raise SetupError(f"two set-up stones on {board.vertex(point)}")
        colors[point] = color
    for color in (BLACK, WHITE):
        for chain in board.components(point for point in colors if colors[point] == color):
            if all(colors.get(beside) != EMPTY for point in chain for beside in board.neighbors(point)):
                raise SetupError(f"set-up stone on {board.vertex(min(chain))} has no liberties")


def _checked_komi(komi: float) -> float:
    if not abs(komi) <= MAX_KOMI:
        raise SetupError(f"unacceptable komi {komi}: expected a number from -{MAX_KOMI:g} to {MAX_KOMI:g}")
    return float(komi)


def new_game(options: Options) -> GoGame:
    """Return an empty board with the options' size, rules and komi. Raises RulesError or SetupError."""
    return GoGame(board_of(options), Rules.parse(options.rules), options.komi)


def format_opening(game: GoGame) -> str:
    """Return the moves of a game as vertices, separated by blanks."""
    return " ".join(game.board.vertex(move) for _, move in game.moves)


def score_text(score: float) -> str:
    """Return a score (Black minus White) as in GTP and SGF: "B+3.5", "W+0.5", "0" for a draw."""
    if score == 0:
        return "0"
    return f"{'B' if score > 0 else 'W'}+{abs(score):g}"


SYMBOLS = {EMPTY: ".", BLACK: "X", WHITE: "O"}
DISC = "●"


def draw(game: "GoGame", *, colored: bool = False) -> str:
    """Return the board as text (X Black, O White, + star points), then the side to move, captures and rules.

    With `colored`, a terminal's control sequences set colors and the places of the stones.
    """
    board, last = game.board, game.last_move
    most = max_fixed_handicap(board)
    stars = fixed_handicap(most, board) if most else []
    header = "    " + " ".join(COLUMNS[: board.width])
    lines = [header]
    for number, points in zip(range(board.height, 0, -1), board.rows(board.points), strict=True):
        colors = {point: game.color_at(point) for point in points}
        cells = ["+" if point in stars and color == EMPTY else SYMBOLS[color] for point, color in colors.items()]
        at = points.index(last[1]) if last and last[1] in points else None
        lines.append(f" {number:2}{_colored(cells, at) if colored else _bracketed(cells, at)}{number}")
    return "\n".join([*lines, header, *_facts(game)])


def _bracketed(cells: Sequence[str], last: int | None) -> str:
    text = f" {' '.join(cells)} "
    return text if last is None else f"{text[: 2 * last]}({cells[last]}){text[2 * last + 3 :]}"


def _colored(cells: Sequence[str], last: int | None) -> str:
    # Terminals of East Asia may draw a stone in two columns. So each stone gets its column by number, after the board
    # has been painted.
    def at(cell: int) -> str:
        return screen.column(5 + 2 * cell)

    text = f"{screen.WOOD}{' ' * (2 * len(cells) + 1)}"
    if last is not None:
        text += f"{screen.column(4 + 2 * last)}{screen.LAST}   {screen.WOOD}"
    disc = encodes(DISC)
    for cell, symbol in enumerate(cells):
        ink = {"X": screen.BLACK_INK, "O": screen.WHITE_INK}.get(symbol)
        background = screen.LAST if cell == last else screen.WOOD
        text += f"{at(cell)}{background}{ink or screen.LINES}{DISC if ink and disc else symbol}"
    return f"{text}{screen.PLAIN}{at(len(cells))}"


def _facts(game: "GoGame") -> list[str]:
    side = tr("Black (X)") if game.side_to_move == BLACK else tr("White (O)")
    last, bonus = "", ""
    if game.last_move:
        color, move = game.last_move
        last = tr(", last move {color} {vertex}", color=shown_color(color), vertex=game.board.vertex(move))
    if game.handicap_bonus:
        bonus = tr(" + {points} for handicap", points=game.handicap_bonus)
    black, white = game.captures(BLACK), game.captures(WHITE)
    return [
        tr("{side} to move, {n} played{last}", side=side, n=len(game.moves), last=last),
        tr("Captured by Black: {black}, by White: {white}", black=black, white=white),
        tr("Rules: {rules}, komi {komi}{bonus}", rules=game.rules, komi=f"{game.komi:g}", bonus=bonus),
    ]
