"""Mate search at the root by df-pn: in a thread beside the search, or alone for `go mate`."""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from yomi.engine.players.request import Adviser
from yomi.engine.search.base import SearchThreads
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.engine.shogi.game import ShogiGame
from yomi.native.shogi.dfpn import MATE, MAX_PLY, NO_MATE, NODES, make_solver, prove

DEFAULT_MEMORY = 64 * 2**20  # bytes of the table: two million positions
# After a mate, a shorter one is searched with at most SHORTENING times the nodes of the first, but at least
# MIN_SHORTENING.
SHORTENING = 2
MIN_SHORTENING = 5_000
MAX_REST = 20_000  # positions of a search for the rest of a mate
LEAF_MATE = 8  # plies of a mate that a tree has found at a leaf, beyond the least


@dataclass(frozen=True, slots=True)
class MateAnswer:
    """The result of a mate search. With no moves and `is_refuted` False, nobody knows whether there is a mate."""

    moves: tuple[int, ...] = ()  # the mate; empty if none was found
    is_refuted: bool = False  # there is no mate


def can_be_played(game: ShogiGame, line: Sequence[int]) -> bool:
    """Return whether all moves of `line` can be played before a repetition or the move limit ends the game.

    The mate search ignores the game's history. One of its checks may complete a perpetual check, which loses the game.
    """
    game = game.copy()
    for move in line:
        if game.is_over:
            return False
        game.play(move)
    return True


def whole_mate(game: ShogiGame, line: Sequence[int], plies: int, solver: "MateSearch") -> tuple[int, ...]:
    """Extend a line to the mate, with at most `plies` plies in total. Return an empty line if no mate is found."""
    game, left = game.copy(), plies - len(line)
    for move in line:
        if game.is_over:
            return ()
        game.play(move)
    ends: list[tuple[int, ...]] = []
    for reply in ((),) if left % 2 else ((move,) for move in game.legal_moves()):
        after = game.copy()
        for move in reply:
            after.play(move)
        found = solver.solve(after.position, max_ply=left - len(reply), nodes=MAX_REST).moves
        if not found:
            return ()
        ends.append((*line, *reply, *found))
    whole = max(ends, key=len, default=())
    return whole if can_be_played(game, whole[len(line) :]) else ()


class MateSearch(SearchThreads):
    """Searches for a mate by the side to move. `interrupt` and `answer` are thread-safe."""

    description = thread_name = "mate-search"

    def __init__(self, memory: int = DEFAULT_MEMORY) -> None:
        """Allocate a table of at most `memory` bytes."""
        super().__init__()
        self._solver = make_solver(memory)
        self._variation: NDArray[np.uint16] = np.zeros(MAX_PLY + 1, np.uint16)
        self._answer = MateAnswer()
        self.nodes = 0  # positions searched since `start`; updated after each search

    @property
    def answer(self) -> MateAnswer:
        """The result so far. If it is a mate, a shorter mate may still replace it."""
        return self._answer

    def start(self, position: np.void, *, max_ply: int, nodes: int, moves: Collection[int] | None = None) -> None:
        """Start to search a copy of a position (POSITION_DTYPE) for a mate of at most `max_ply` plies.

        `nodes` limits the positions for the first mate. Shortening it may take as many again. `moves` are the allowed
        first moves (None: all); a refutation then concerns these moves only.
        """
        self._reset()
        self._finished.clear()
        # np.array of a record would share its memory, which the caller may change during the search.
        root = position.copy()
        self._start_threads([partial(self._search, root, max_ply, nodes, moves, True)])

    def _reset(self) -> None:
        self.stop()
        self._solver.stop[0] = 0
        self._answer = MateAnswer()
        self.nodes = 0

    def interrupt(self) -> None:
        """Ask the search to end; do not wait for that."""
        self._request_end()

    def _request_end(self) -> None:
        self._solver.stop[0] = 1

    def solve(self, position: np.void, *, max_ply: int, nodes: int, shorten: bool = True) -> MateAnswer:
        """Search in the calling thread until the answer is known, `nodes` are used up, or `interrupt` is called."""
        self._reset()
        self._search(position, max_ply, nodes, (), shorten)
        return self._answer

    def _search(
        self, position: np.void, max_ply: int, nodes: int, moves: Collection[int] | None, shorten: bool
    ) -> None:
        budget = nodes
        allowed = np.array(list(moves or ()), np.uint16)
        while True:
            self._solver.positions[0] = position
            state, length = prove(self._solver, allowed, budget, max_ply, self._variation)
            spent = int(self._solver.counters[NODES])
            self.nodes += spent
            # A failed attempt to shorten a mate keeps the mate.
            if state != MATE:
                if not self._answer.moves:
                    self._answer = MateAnswer(is_refuted=state == NO_MATE)
                return
            if self._answer.moves and length >= len(self._answer.moves):
                return
            self._answer = MateAnswer(tuple(self._variation[:length].tolist()))
            # Mates in three are found as the shortest; one move may be the beginning of a mate that was not followed.
            if not shorten or length <= 3:
                return
            max_ply = length - 2
            budget = min(nodes, max(SHORTENING * spent, MIN_SHORTENING))


def mate_in(move: MoveReport) -> int | None:
    """Return the plies to a move's proven mate, negative if the mover is mated, or None without a proof.

    A proof by the mate search at a leaf has no known length. It counts as one ply.
    """
    if move.mate is not None or move.proven == 0:
        return move.mate
    length = len(move.pv)
    # The winner makes the last move, which decides whether the plies are odd or even.
    return length | 1 if move.proven > 0 else -(length + length % 2)


class MateAdviser(Adviser):
    """Finds mates in one position: by a mate search beside the search, and by extending lines that lead to a mate.

    Its answers are valid until the next position, which uses the same mate searches.
    """

    def __init__(
        self,
        search: MateSearch,
        rest: MateSearch,
        root: ShogiGame,
        moves: Collection[int] | None,
        plies: int,
        nodes: int,
    ) -> None:
        """Prepare for a position.

        Args:
            search: the mate search that runs beside the search.
            rest: the mate search that finds the ends of lines.
            root: the position.
            moves: the allowed first moves; None: all.
            plies: maximum plies of mates for `search`; 0: do not use it.
            nodes: see `MateSearch.start`.
        """
        self._search, self._rest, self._root = search, rest, root
        self._moves, self._plies, self._nodes = moves, plies, nodes
        self._checked: tuple[int, ...] = ()
        self._is_playable = False  # whether the game lets `_checked` be played
        self._whole: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._lock = threading.RLock()  # held while `rest` searches and `_checked` changes: any thread may report

    def start(self) -> None:
        if self._plies:
            self._search.start(self._root.position, max_ply=self._plies, nodes=self._nodes, moves=self._moves)

    def stop(self) -> None:
        self._search.stop()

    @property
    def line(self) -> tuple[int, ...]:
        """The mate found so far. A mate is ignored if a repetition or the move limit would end the game before."""
        with self._lock:
            line = self._search.answer.moves if self._plies else ()
            if line != self._checked:
                self._checked, self._is_playable = line, can_be_played(self._root, line)
            return line if self._is_playable else ()

    @property
    def is_done(self) -> bool:
        """Whether a mate that can be played is found, and no search for a shorter one is running."""
        return not self._search.is_running and bool(self.line)

    def annotate(self, report: SearchReport) -> SearchReport:
        """Return a report with the lengths and all moves of mates. The mate search's line comes first."""
        with self._lock:
            moves, line = [self._with_mate(move) for move in report.moves], self.line
        if line:
            mate = MoveReport(line[0], winrate=1.0, pv=line, mate=len(line))
            moves = [mate, *(move for move in moves if move.move != line[0])]
        return replace(report, moves=tuple(moves))

    def _with_mate(self, move: MoveReport) -> MoveReport:
        """Return a move's report with the length of its mate, and with all moves if a search finds the missing ones."""
        mate = mate_in(move)
        if mate is None or mate == 0 or move.bound or len(move.pv) >= abs(mate):
            return replace(move, mate=mate)
        if (line := self._whole.get(move.pv)) is None:
            # A tree knows a mate at the end of a line, but not its length.
            plies = abs(mate) + (LEAF_MATE if move.mate is None else 0)
            line = self._whole[move.pv] = whole_mate(self._root, move.pv, plies, self._rest)
        if not line:
            return replace(move, mate=mate)
        return replace(move, mate=len(line) if mate > 0 else -len(line), pv=line)
