"""The interface of all searches: a position, threads that search it, and reports at any time.

`yomi.engine.search.search.Search` searches a tree, `yomi.engine.search.alphabeta.AlphaBetaSearch` by alpha-beta.
"""

import abc
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from yomi.engine.color import opponent
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.search.types import ALL_MOVES, Limits, RootMoves, SearchReport, SearchSettings
from yomi.native.spec import GameSpec

# seconds until an interrupted search counts as hanging; large networks need some for a batch on a CPU
SEARCH_HANG = 30.0


@dataclass(frozen=True, slots=True)
class Root:
    """The identity of a searched position: its game, its moves and its side to move."""

    key: object
    moves: tuple[tuple[int, int], ...]
    side_to_move: int

    @classmethod
    def of(cls, game: Any) -> "Root":
        return cls(game.search_key, tuple(game.moves), int(game.position["side_to_move"]))

    def line_to(self, other: "Root") -> list[int] | None:
        """Return the moves that lead from this root to `other`. Return None if there are no such moves.

        The sides must alternate: a side that moves twice in a row also gives None.
        """
        count = len(self.moves)
        if self.key != other.key or other.moves[:count] != self.moves:
            return None
        side = self.side_to_move
        line = []
        for color, move in other.moves[count:]:
            if color != side:
                return None
            line.append(move)
            side = opponent(side)
        return line if side == other.side_to_move else None


class SearchThreads(abc.ABC):
    """Threads that run one search at a time."""

    thread_name = "search"  # a number follows

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._running = 0
        self._count_lock = threading.Lock()
        self._error: Exception | None = None
        self._finished = threading.Event()
        self._finished.set()
        self._start_time = self._end_time = time.perf_counter()

    @property
    @abc.abstractmethod
    def description(self) -> str:
        """Name of the search in messages."""

    @property
    def is_running(self) -> bool:
        return not self._finished.is_set()

    @property
    def seconds(self) -> float:
        """Duration of the current or last search in seconds."""
        return (time.perf_counter() if self.is_running else self._end_time) - self._start_time

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the search has ended. Return False if `timeout` seconds have passed before."""
        return self._finished.wait(timeout)

    def stop(self) -> None:
        """End the search. Return when all threads are idle, which takes at most one evaluation.

        Raises:
            EvaluatorError: an evaluation does not end. The search can be used again once it has ended.
            Exception: an evaluator or a thread failed during the search. Raised once.
        """
        self._request_end()
        end = time.monotonic() + SEARCH_HANG
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))
                if thread.is_alive():
                    found = f"{self.description} has not answered for {SEARCH_HANG:g} s"
                    raise EvaluatorError(f"{found}: expected the end of its search")
        had_threads, self._threads = bool(self._threads), []
        self._finished.set()  # also if the system refused one of the threads
        error, self._error = self._error, None
        if had_threads:
            self._end(has_failed=error is not None)
        if error is not None:
            raise error

    def _start_threads(self, works: Sequence[Callable[[], None]]) -> None:
        """Start a thread for each function. The search has ended when all of them have returned."""
        self._running, self._threads = len(works), []
        for number, work in enumerate(works):
            name = f"{self.thread_name}-{number}"
            thread = threading.Thread(target=self._run, args=(work,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)  # not before: a thread that the system refuses cannot be joined

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # raised again by stop()
            self._error = error
            self._request_end()
        finally:  # even if a search of one's own calls sys.exit
            with self._count_lock:
                self._running -= 1
                is_last = not self._running
            if is_last:
                self._end_time = time.perf_counter()
                self._finished.set()

    @abc.abstractmethod
    def _request_end(self) -> None:
        """Ask the threads to end now. Thread-safe."""

    def _end(self, *, has_failed: bool) -> None:  # noqa: B027  # a search may have nothing to clean up
        """Clean up after a search, when all threads are idle."""


class PositionSearch(SearchThreads):
    """Searches one position at a time, in threads. Only `report` and `interrupt` are thread-safe."""

    latency = 0.0  # seconds: how late a search may end
    title = "custom search"
    unit = "visits"  # of counts and limits: visits, or nodes
    unused: Collection[str] = ()  # options without effect
    instead = ""  # what makes them work

    def __init__(self, spec: GameSpec, queue: EvaluationQueue, settings: SearchSettings) -> None:
        """Set up the search. No thread runs before `start`."""
        super().__init__()
        self.spec, self.queue, self.settings = spec, queue, settings
        self._position: Root | None = None

    @property
    def description(self) -> str:
        return self.queue.evaluator.description

    @property
    def batch_rows(self) -> int:
        """Number of rows of the evaluator's batches."""
        return max(self.settings.rows_per_leaf, self.queue.evaluator.batch_size)

    def start(self, limits: Limits, moves: RootMoves = ALL_MOVES) -> None:
        """Search the current position in threads, and return at once. Errors: see `stop`."""
        self.stop()
        assert self._position is not None, "set_position comes first"
        self._start_time = self._end_time = time.perf_counter()
        works = self._begin(limits, moves)
        self._finished.clear()
        self._start_threads(works)

    def run(self, limits: Limits, moves: RootMoves = ALL_MOVES) -> SearchReport:
        """Search the current position to the limits. Errors: see `stop`."""
        self.start(limits, moves)
        self.wait()
        self.stop()
        return self.report()

    # -- each search -----------------------------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def evaluations(self) -> int:
        """Positions evaluated since the search started."""

    @property
    def moves_made(self) -> int:
        """Moves made on a board since the search started."""
        return self.evaluations

    def configure(self, settings: SearchSettings) -> None:
        """End the search and apply settings, but not memory, workers, cache size and seed. Errors: see `stop`."""
        self.stop()
        self.settings = settings

    @abc.abstractmethod
    def set_position(self, game: Any, *, keep_tree: bool = True, hide_history: bool = False) -> None:
        """End the search, and make `game` the root. Implementations set `_position`.

        Args:
            game: the position and its moves, a SearchableGame.
            keep_tree: use the results of earlier searches; otherwise only cached evaluations may be kept.
            hide_history: the network reads the root differently from an inner node of the tree, without its history.

        Raises:
            Exception: an evaluator failed.
        """

    @abc.abstractmethod
    def clear(self) -> None:
        """End the search. Drop the position and all results."""

    def rehearse(self) -> None:
        """Do everything that takes longer the first time, and measure `latency`. The results are dropped."""
        self.stop()

    def interrupt(self) -> None:
        """Ask the search to end once it has a move; do not wait. Thread-safe."""
        self._request_end()

    @abc.abstractmethod
    def report(self, *, pv_length: int = 60) -> SearchReport:
        """Return a report of the current or last search; it is empty without a position. Thread-safe."""

    def priors(self) -> dict[int, float]:
        """Return the priors of the allowed moves; empty without a policy, or before the root is evaluated."""
        return {}

    @abc.abstractmethod
    def first_move(self) -> int | None:
        """Return a move for a search that had no time at all; None if no move is known."""

    @abc.abstractmethod
    def _begin(self, limits: Limits, moves: RootMoves) -> Sequence[Callable[[], None]]:
        """Prepare a search. Return the functions that its threads run."""
