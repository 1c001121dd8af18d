"""The search for a mate at the root: df-pn in a thread of its own, beside the search or alone for `go mate`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from yomi.native.shogi.dfpn import MATE, MAX_PLY, NO_MATE, NODES, make_solver, prove

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from yomi.engine.shogi.game import ShogiGame

DEFAULT_MEMORY = 64 * 2**20
"""Bytes of the table: two million positions."""
SHORTENING = 2
"""A mate is searched for a shorter one as long as that costs at most so many times the nodes it took, ..."""
MIN_SHORTENING = 5_000
"""... but these in any case."""


@dataclass(frozen=True, slots=True)
class MateAnswer:
    """What a search for a mate has found."""

    moves: tuple[int, ...] = ()
    """The mate; empty where none was found."""
    is_refuted: bool = False
    """There is no mate. Neither this nor moves: the search was ended first."""


def can_be_played(game: ShogiGame, line: Sequence[int]) -> bool:
    """Whether a line does not end the game before its last move, by a repetition or the limit of moves.

    The search for a mate knows nothing of the game so far: its check may be the last of a perpetual check, which loses.
    """
    game = game.copy()
    for move in line:
        if game.is_over:
            return False
        game.play(move)
    return True


class MateSearch:
    """Looks for a mate by the side to move. One thread calls its methods; `interrupt` and `answer` are for any."""

    def __init__(self, memory: int = DEFAULT_MEMORY) -> None:
        """Allocate a table of at most `memory` bytes."""
        self._solver = make_solver(memory)
        self._variation: NDArray[np.uint16] = np.zeros(MAX_PLY + 1, np.uint16)
        self._thread: threading.Thread | None = None
        self._answer = MateAnswer()
        self._error: BaseException | None = None
        self._finished = threading.Event()
        self._finished.set()
        self.nodes = 0
        """Positions searched since `start`, as far as they are counted: after each of its searches."""

    @property
    def answer(self) -> MateAnswer:
        """What is known so far; a mate may still be replaced by a shorter one."""
        return self._answer

    @property
    def is_running(self) -> bool:
        """Whether the search is at work."""
        return not self._finished.is_set()

    def start(self, position: np.void, *, max_ply: int, nodes: int, moves: Sequence[int] | None = None) -> None:
        """Begin to search a position, and return.

        Args:
            position: POSITION_DTYPE; copied.
            max_ply: plies that the mate may take.
            nodes: positions that may be searched for the first mate; shortening it may take as many again.
            moves: the only ones that the mate may begin with; None for all. A refutation is then one of these alone.
        """
        self.stop()
        self._answer = MateAnswer()
        self.nodes = 0
        self._solver.stop[0] = 0
        self._finished.clear()
        root = position.copy()  # np.array of a record would share its memory
        arguments = (root, max_ply, nodes, moves)
        self._thread = threading.Thread(target=self._run, args=arguments, name="mate-search", daemon=True)
        self._thread.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the search has ended by itself; False where `timeout` seconds did not suffice."""
        return self._finished.wait(timeout)

    def interrupt(self) -> None:
        """Ask the search to end, without waiting."""
        self._solver.stop[0] = 1

    def stop(self) -> MateAnswer:
        """End the search, which takes microseconds, and return what it has found.

        Raises:
            BaseException: what was raised in the search's thread; once.
        """
        self.interrupt()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self._answer

    def solve(self, position: np.void, *, max_ply: int, nodes: int, shorten: bool = True) -> MateAnswer:
        """Search a position in the calling thread, until an answer is found, the nodes are used up or `interrupt`."""
        self.stop()
        self._solver.stop[0] = 0
        self._answer = MateAnswer()
        self.nodes = 0
        self._search(position, max_ply, nodes, None, shorten)
        return self._answer

    def _run(self, position: np.void, max_ply: int, nodes: int, moves: Sequence[int] | None) -> None:
        try:
            self._search(position, max_ply, nodes, moves, True)
        except BaseException as error:  # handed to the thread that calls `stop`
            self._error = error
        finally:
            self._finished.set()

    def _search(self, position: np.void, max_ply: int, nodes: int, moves: Sequence[int] | None, shorten: bool) -> None:
        budget = nodes
        allowed = np.array(moves or (), np.uint16)
        while True:
            self._solver.positions[0] = position
            state, length = prove(self._solver, allowed, budget, max_ply, self._variation)
            spent = int(self._solver.counters[NODES])
            self.nodes += spent
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
