"""A game of Go: its position, its history and the commands that change it.

The kernels (yomi.native.go) implement the rules. This class adds undo, set-up, handicap, consecutive moves of one
color, and the result.
"""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.go.handicap import (
    HandicapError,
    check_free_handicap,
    fixed_handicap,
    handicap_stones,
    max_fixed_handicap,
)
from yomi.engine.go.rules import PRESETS, Rules
from yomi.engine.go.scoring import score
from yomi.engine.go.vertex import COLUMNS, board_points, format_color, format_vertex, point_at
from yomi.engine.option_row import OptionError
from yomi.engine.options import MAX_KOMI, Options
from yomi.errors import Error
from yomi.native.go import board
from yomi.native.go import rules as kernels
from yomi.native.go.board import EMPTY, MAX_SIZE, MIN_SIZE, NO_POINT, PASS, POSITION_DTYPE

SNAPSHOT_INTERVAL = 8  # moves between stored positions: undo replays at most 7 moves, and 400 moves use 1.4 MB

KO_RULES = {"SIMPLE": board.KO_SIMPLE, "POSITIONAL": board.KO_POSITIONAL, "SITUATIONAL": board.KO_SITUATIONAL}
SCORINGS = {"AREA": board.SCORING_AREA, "TERRITORY": board.SCORING_TERRITORY}
TAXES = {"NONE": board.TAX_NONE, "SEKI": board.TAX_SEKI, "ALL": board.TAX_ALL}


class IllegalMove(Error, ValueError):  # noqa: N818  (the name that Go players and GTP use)
    """A move that the rules forbid. The message is one line."""


class SetupError(OptionError):
    """An impossible board size, komi or set-up position."""


class GoGame:
    """An initial position and the moves since.

    All attributes are read-only. `position` (POSITION_DTYPE) and `history` (uint64[MAX_HISTORY]) change in place.
    """

    size: int
    rules: Rules
    komi: float  # without compensation for handicap stones, which `position["komi"]` includes
    moves: list[tuple[int, int]]  # (color, move) since the initial position
    setup: list[tuple[int, int]]  # (color, point) of the initial position's stones with handicap stones, in board order
    handicap: int  # number of stones from `place_handicap`
    initial_side: int  # side to move in the initial position
    position: Any
    history: "np.ndarray[tuple[int], np.dtype[np.uint64]]"

    def __init__(self, size: int = 19, rules: Rules = PRESETS["chinese"], komi: float | None = None) -> None:
        """Start on an empty board. The default komi is that of the rules.

        Raises:
            SetupError: a size outside 2 to 19, or an impossible komi.
        """
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise SetupError(f"unacceptable size {size}: expected {MIN_SIZE} to {MAX_SIZE}")
        self.size = size
        self.rules = rules
        self.komi = _checked_komi(rules.komi if komi is None else komi)
        self.moves = []
        self.setup = []
        self.handicap = 0
        self.initial_side = BLACK
        self._initial_prisoners = (0, 0)
        self._kept_handicap: int | None = None
        self._hides_moves = False
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
        return [(int(colors[point]), point) for point in board_points(self.size) if colors[point] != EMPTY]

    @property
    def search_key(self) -> object:
        """Games with equal keys differ only in their moves, so they may share a search tree."""
        komi = float(self.position["komi"])
        initial = (tuple(self.setup), self.initial_side, self._initial_prisoners)
        return (self.size, self.rules, komi, *initial, self._hides_moves)

    def captures(self, color: int) -> int:
        """Return the number of stones that `color` has captured."""
        return int(self.position["prisoners"][opponent(color)])

    @property
    def handicap_bonus(self) -> int:
        """Points that the rules give White for handicap stones."""
        return self.rules.handicap_bonus(self._handicap_stones)

    # -- playing -------------------------------------------------------------------------------------------------

    def is_legal(self, color: int, move: int) -> bool:
        """Whether `color` may play `move` now, even if it is the other side's turn. Passing is always legal."""
        return self.why_illegal(color, move) is None

    def why_illegal(self, color: int, move: int, *, strict: bool = True) -> str | None:
        """Return a short reason why `color` may not play `move` now, or None. See `play`."""
        if self.is_full:
            return "the game is too long"
        if move == PASS:
            return None
        if not 0 < move < board.MAX_POINTS or self.position["color"][move] == board.BORDER:
            return "off the board"
        if self.position["color"][move] != EMPTY:
            return "occupied"
        pos = self.position
        if not strict:
            is_single = board.is_suicide(pos, move, color) and board.is_single_stone_suicide(pos, move, color)
            return "suicide" if is_single else None
        ko = int(pos["simple_ko"])
        if color != self.side_to_move:
            pos["simple_ko"] = NO_POINT  # the ban is on the other side only
        found = kernels.legality(pos, self.history, move, color)
        pos["simple_ko"] = ko
        if found == kernels.ALLOWED:
            return None
        if found == kernels.BANNED:
            return "superko"
        return "ko" if move == ko and color == self.side_to_move else "suicide"

    def legal_moves(self) -> list[int]:
        """Return the legal moves of the side to move, PASS last."""
        moves = np.zeros(board.MAX_AREA + 1, np.uint16)
        count = kernels.legal_moves(self.position, self.history, moves)
        return [int(move) for move in moves[:count]]

    def play(self, color: int, move: int, *, strict: bool = True) -> None:
        """Play a move. Colors need not alternate, and a game may continue after its end.

        Args:
            color: BLACK or WHITE.
            move: a point or PASS.
            strict: check ko and multi-stone suicide. Records of games under other rules need False.

        Raises:
            IllegalMove: nothing has changed.
        """
        why = self.why_illegal(color, move, strict=strict)
        if why is not None:
            raise IllegalMove(f"illegal move {format_color(color)} {self._name(move)}: {why}")
        self._apply(color, move)
        self.moves.append((color, move))
        if len(self.moves) % SNAPSHOT_INTERVAL == 0:
            self._snapshots.append(self._record.copy())
        self._refresh_komi()

    def undo(self) -> None:
        """Undo the last move, or raise IllegalMove if there is none."""
        if not self.moves:
            raise IllegalMove("cannot undo")
        self.moves.pop()
        self._rewind()

    @property
    def ply(self) -> int:
        """Number of moves since the initial position."""
        return len(self.moves)

    def push(self, move: int) -> None:
        """Play a move of the side to move, or raise IllegalMove."""
        self.play(self.side_to_move, move)

    def turn_to(self, color: int) -> None:
        """Set the side to move, without recording a move. `undo` forgets it; `play` sets it by itself."""
        kernels.turn_to(self.position, color)

    def hide_history(self) -> None:
        """Hide the moves so far and the ladders of earlier boards from the network (KataGo's ignorePreRootHistory).

        Ko, superko and passes still use the whole history. Meant for copies that are searched: undo and changes of the
        position make the moves visible again.
        """
        self.position["recent_valid"] = 0
        self._hides_moves = True

    @property
    def is_over(self) -> bool:
        """Whether the game has ended: by passes, by a repetition without result, or because the history is full.

        Under simple ko it also ends if a side passes twice in the same position.
        """
        return self.is_full or int(self.position["finished"]) != board.NOT_FINISHED

    @property
    def is_full(self) -> bool:
        """Whether the history is full. The search ends games at the same length."""
        return int(self.position["history_length"]) + 1 >= kernels.MAX_HISTORY

    @property
    def is_no_result(self) -> bool:
        """Whether the position occurs for the third time since the last pass (rules with simple ko only)."""
        return int(self.position["finished"]) == board.THIRD_REPETITION

    # -- setting up ------------------------------------------------------------------------------------------------

    def set_komi(self, komi: float) -> None:
        """Change the komi (without handicap compensation), or raise SetupError."""
        self.komi = _checked_komi(komi)
        self._refresh_komi()

    def set_rules(self, rules: Rules) -> None:
        """Change the rules. Moves and komi stay, even if moves are illegal now."""
        self.rules = rules
        self._restart()

    def set_position(
        self, stones: Iterable[tuple[int, int]], side: int = BLACK, *, prisoners: tuple[int, int] = (0, 0)
    ) -> None:
        """Set the initial position and drop all moves.

        Args:
            stones: (color, point) in any order.
            side: the side to move.
            prisoners: (black stones, white stones) captured before.

        Raises:
            SetupError: see `check_setup`; nothing has changed.
        """
        self._set_initial(list(stones), side, prisoners, 0)

    def edit(self, changes: Iterable[tuple[int, int]], side: int | None = None) -> None:
        """Change stones on the current board, which becomes the initial position (SGF's AB, AW, AE and PL).

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
        check_free_handicap(list(points), self.size)
        self._set_initial([(BLACK, point) for point in points], WHITE, (0, 0), len(points))

    def copy(self) -> "GoGame":
        """Return an independent copy, with undo."""
        other = copy.copy(self)
        other.moves, other.setup, other._snapshots = list(self.moves), list(self.setup), list(self._snapshots)
        other._record, other.history = self._record.copy(), self.history.copy()
        other.position = other._record[0]
        return other

    # -- the result ------------------------------------------------------------------------------------------------

    def final_score(self, dead: Iterable[int] = ()) -> float:
        """Return Black's points minus White's, with komi and handicap compensation; see `scoring.score`."""
        return score(self, dead)

    def __str__(self) -> str:
        return draw(self)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _name(self, move: int) -> str:
        return format_vertex(move, self.size) if move == PASS or move in board_points(self.size) else f"point {move}"

    @property
    def _handicap_stones(self) -> int:
        """Stones that count as handicap. An edit in mid-game keeps the earlier count."""
        return handicap_stones(self.setup, self.moves) if self._kept_handicap is None else self._kept_handicap

    def _apply(self, color: int, move: int) -> None:
        self.turn_to(color)
        kernels.play(self.position, self.history, move)

    def _rewind(self) -> None:
        """Rebuild the position from `moves` and drop snapshots beyond them."""
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
        board.clear(pos, self.size)
        for color, point in self.setup:
            board.place_stone(pos, point, color)
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
        check_setup(stones, self.size)
        self.setup = sorted(stones, key=lambda stone: stone[1])
        self.moves = []
        self.handicap = handicap
        self.initial_side = side
        self._initial_prisoners = prisoners
        self._kept_handicap = kept_handicap
        self._restart()


def check_setup(stones: Iterable[tuple[int, int]], size: int) -> None:
    """Check that stones (color, point) form a legal position.

    Raises:
        SetupError: two stones on one point, a point off the board, or a chain without liberties.
    """
    colors = dict.fromkeys(board_points(size), EMPTY)
    for color, point in stones:
        if point not in colors:
            raise SetupError(f"set-up stone on point {point}: not on a {size}x{size} board")
        if colors[point] != EMPTY:
            raise SetupError(f"two set-up stones on {format_vertex(point, size)}")
        colors[point] = color
    alive = {point for point, color in colors.items() if color == EMPTY}
    frontier = list(alive)
    while frontier:
        point = frontier.pop()
        for neighbor in (point - 1, point + 1, point - size - 1, point + size + 1):
            if neighbor not in alive and neighbor in colors and colors[point] in (EMPTY, colors[neighbor]):
                alive.add(neighbor)
                frontier.append(neighbor)
    for point in colors:
        if point not in alive:
            raise SetupError(f"set-up stone on {format_vertex(point, size)} has no liberties")


def _checked_komi(komi: float) -> float:
    if not abs(komi) <= MAX_KOMI:
        raise SetupError(f"unacceptable komi {komi}: expected a number from -{MAX_KOMI:g} to {MAX_KOMI:g}")
    return float(komi)


def new_game(options: Options) -> GoGame:
    """Return an empty board for the options. Raises RulesError or SetupError."""
    return GoGame(options.size, Rules.parse(options.rules), options.komi)


def score_text(score: float) -> str:
    """Return a score (Black minus White) as in GTP and SGF: "B+3.5", "W+0.5", "0" for a draw."""
    if score == 0:
        return "0"
    return f"{'B' if score > 0 else 'W'}+{abs(score):g}"


SYMBOLS = {EMPTY: ".", BLACK: "X", WHITE: "O"}


def draw(game: "GoGame") -> str:
    """Return the board (X Black, O White, + star points), then the side to move, captures and rules."""
    size = game.size
    most = max_fixed_handicap(size)
    stars = set(fixed_handicap(most, size)) if most else set()
    last = game.last_move[1] if game.last_move else None
    header = "    " + " ".join(COLUMNS[:size])
    lines = [header]
    for row in range(size):
        cells = []
        for column in range(size):
            point = point_at(column, row, size)
            symbol = SYMBOLS[game.color_at(point)]
            cells.append(symbol if symbol != "." or point not in stars else "+")
        text = "".join(
            (")" if last == point_at(column - 1, row, size) else "(" if last == point_at(column, row, size) else " ")
            + cells[column]
            for column in range(size)
        )
        text += ")" if last == point_at(size - 1, row, size) else " "
        lines.append(f" {size - row:2}{text}{size - row}")
    lines.append(header)
    return "\n".join(lines + _facts(game))


def _facts(game: "GoGame") -> list[str]:
    side = "Black (X)" if game.side_to_move == BLACK else "White (O)"
    last = ""
    if game.last_move:
        color, move = game.last_move
        last = f", last move {format_color(color)} {format_vertex(move, game.size)}"
    bonus = f" + {game.handicap_bonus} for handicap" if game.handicap_bonus else ""
    return [
        f"{side} to move, {len(game.moves)} played{last}",
        f"Captured by Black: {game.captures(BLACK)}, by White: {game.captures(WHITE)}",
        f"Rules: {game.rules}, komi {game.komi:g}{bonus}",
    ]
