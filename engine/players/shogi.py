"""The player of shogi: a game and a search, and the decisions between them. Begin reading at `ShogiPlayer.think`."""

from __future__ import annotations

import contextlib
import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.evaluators.base import EvaluatorError
from engine.games.shogi.book import Book, BookError
from engine.games.shogi.book import choose as choose_from_book
from engine.games.shogi.game import ShogiGame
from engine.games.shogi.notation import parse_usi
from engine.games.shogi.scores import winrate_of
from engine.games.shogi.sfen import START_WORD, STARTPOS
from engine.options import OptionError
from engine.players.shogi_base import Line, LoadingError, MateAnswer, Progress, ShogiDecision, Task
from engine.players.shogi_mate import MateSearch, can_be_played
from engine.players.shogi_setup import (
    NetworkDefaults,
    book_settings,
    features_of,
    loading_key,
    make_book,
    make_queue,
    search_settings,
)
from engine.players.shogi_time import find_budget, time_left
from engine.players.thinking import (
    DEFAULT_SECONDS,
    PATIENCE,
    POLL,
    Lateness,
    LostMoves,
    Schedule,
    choose,
    end_search,
    release,
    temperature_at,
    wait_for_end,
    warm_up,
    watch,
)
from engine.players.tuning import tuned
from engine.search.limits import Limits
from engine.search.report import MoveReport, SearchReport
from engine.search.search import Search
from native.shogi.dfpn import MAX_PLY
from native.shogi.position import BLACK
from native.shogi.spec import shogi_spec
from nets.dlshogi.network import SIDE
from nets.errors import NetworkError

if TYPE_CHECKING:
    from engine.options import Options

log = logging.getLogger("yomi.shogi")

MIN_INTERVAL = 0.01
"""Seconds between reports, at least."""
MATE_NODES = 10**9
"""Positions that `go mate` may look at; its time ends it long before."""


class ShogiPlayer:
    """See engine.players.shogi_base.ShogiThinker for what each method promises."""

    def __init__(self, options: Options) -> None:
        """Load the network, or what judges without one.

        Raises:
            LoadingError: it cannot be loaded, or the options do not go together.
        """
        self.options = options
        self.game = ShogiGame()
        self._given: tuple[str, list[str]] = (START_WORD, [])
        self._lost = LostMoves()
        self._rng = np.random.default_rng(options.seed)
        self._book_rng = random.Random(options.seed)
        self._network_defaults = NetworkDefaults()
        self._book: Book | None = None
        self._mate = MateSearch()
        self._seeks_mate = False
        self._judged_mate: tuple[int, ...] = ()
        self._is_mate = False
        """Whether `_judged_mate` can be played in this game."""
        self._lateness = Lateness()
        self._loaded: object = None
        self._rules: object = None
        self._is_closed = False
        self.load()

    # -- loading ---------------------------------------------------------------------------------------------------

    @property
    def description(self) -> str:
        """What plays."""
        return self._search.queue.evaluator.description

    @property
    def search(self) -> Search:
        """The search in use."""
        return self._search

    @property
    def needs_loading(self) -> bool:
        """Whether options were changed that take effect with `load`."""
        return loading_key(self.options) != self._loaded

    def load(self) -> None:
        """Load what the options name, as far as it is not loaded; what was loaded stays where this fails."""
        if not self.needs_loading:
            return
        with contextlib.ExitStack() as opened:
            try:
                self._network_defaults.apply(self.options)
                key = loading_key(self.options)
                book = make_book(self.options)
                if book is not None:
                    opened.callback(book.close)
                options = tuned(self.options, "shogi", SIDE)
                queue = make_queue(options)
                opened.callback(queue.close)
                settings = search_settings(options, queue)
                search = Search(shogi_spec(*features_of(queue)), queue, settings)
                self._warm_up(search)
            except (NetworkError, EvaluatorError, OptionError, BookError) as error:
                raise LoadingError(str(error)) from None
            except MemoryError:
                wanted = f"memory {self.options.memory} and cache_size {self.options.cache_size}"
                raise LoadingError(f"{wanted}: the system has not as much, expected fewer bytes") from None
            opened.pop_all()
        self._release()
        self._book = book
        self._search, self._settings = search, settings
        self._rng = np.random.default_rng(self.options.seed)
        self._book_rng = random.Random(self.options.seed)
        self._rules = None
        self._loaded = key

    def _warm_up(self, search: Search) -> None:
        """Load what a search and a mate search need before a clock runs."""
        game = ShogiGame()
        warm_up(search, game, game.play)
        self._mate.solve(ShogiGame().position, max_ply=1, nodes=10)

    def _release(self) -> None:
        if self._loaded is not None:
            release(self._search)
        self._close_book()

    def _close_book(self) -> None:
        if self._book is not None:
            self._book.close()
            self._book = None

    def close(self) -> None:
        """Stop everything and release devices and threads."""
        if not self._is_closed:
            self._is_closed = True
            self._mate.stop()
            self._release()

    # -- the game --------------------------------------------------------------------------------------------------

    def set_position(self, sfen: str, moves: Sequence[str]) -> None:
        """Take up a position and the moves from it on; what goes on from the last game is played on it."""
        given_sfen, given_moves = self._given
        count = len(given_moves)
        if sfen == given_sfen and list(moves[:count]) == given_moves and len(self.game.moves) == count:
            game = self.game.copy()
        else:
            game, count = ShogiGame(STARTPOS if sfen == START_WORD else sfen), 0
        for number, text in enumerate(moves[count:], count + 1):
            try:
                game.play(parse_usi(text))
            except ValueError as error:
                raise ValueError(f"move {number}: {error}") from None
        self.game = game
        self._given = (sfen, list(moves))

    def diagram(self) -> str:
        """Return the position as text of several lines."""
        return f"{self.game}\n{self.game.sfen()}"

    def legal_moves(self) -> Sequence[int]:
        """Return the legal moves."""
        return self.game.legal_moves()

    def new_game(self) -> None:
        """Forget what belongs to the last game."""
        self._lost = LostMoves()
        self.clear()

    def clear(self) -> None:
        """Forget the tree and all evaluations."""
        self._search.clear()

    # -- thinking --------------------------------------------------------------------------------------------------

    def go(self) -> ShogiDecision:
        """Choose a move for the side to move without playing it; without a limit it takes DEFAULT_SECONDS."""
        return self.think(Task(), None)

    def think(self, task: Task, on_report: Callable[[Progress], None] | None) -> ShogiDecision:
        """Choose a move; block until it is chosen or the task is stopped."""
        if not self.game.legal_moves():
            return ShogiDecision(None)
        self._end_background()
        self._prepare(task)
        moves = self.game.searched_moves()
        allowed = [move for move in moves if task.moves is None or move in task.moves] or moves
        if not task.infinite:
            if self.game.can_declare and task.moves is None:
                return ShogiDecision(None, win=True, note="declaration of the win")
            decision = self._from_book(allowed)
            if decision is not None:
                return decision
        if task.is_pondering and self.options.stochastic_ponder and self.game.moves and not task.infinite:
            decision = self._ponder_before(task, allowed, on_report)
            if decision is not None:
                return decision
        return self._search_move(task, moves, allowed, on_report)

    def find_mate(self, task: Task) -> MateAnswer | None:
        """Search for a mate until one is found or refuted, the time is over or the task is stopped."""
        end = math.inf if task.limits.seconds is None else task.start + task.limits.seconds
        self._mate.start(self.game.position, max_ply=MAX_PLY, nodes=MATE_NODES, moves=task.moves)
        task.on_change = self._mate.interrupt
        try:
            while not task.is_stopped and (now := time.monotonic()) < end:
                if self._mate.wait(min(POLL, end - now)):
                    break
        finally:
            task.on_change = None
            answer = self._mate.stop()
        return answer

    def _from_book(self, allowed: list[int]) -> ShogiDecision | None:
        """Return a move of the book, if it has one; a book that turns out to be broken is not used any more."""
        options = self.options
        if self._book is None or not options.own_book or not options.book_moves:
            return None
        try:
            found = choose_from_book(
                self._book,
                self.game.placement,
                self._book_rng,
                lambda move: move in allowed,
                book_settings(options),
            )
        except BookError as error:
            log.warning("%s; the game goes on without the book", error)
            self._close_book()
            return None
        if found is None:
            return None
        line = (found.move,) if found.ponder is None else (found.move, found.ponder)
        winrate = 0.5 if found.score is None else winrate_of(found.score, options.centipawns)
        progress = Progress((Line(line, winrate),))
        return ShogiDecision(found.move, ponder=found.ponder, progress=progress, note="book move")

    def _ponder_before(
        self, task: Task, allowed: list[int], on_report: Callable[[Progress], None] | None
    ) -> ShogiDecision | None:
        """Search the position before the expected move, until `ponderhit` (returns None) or `stop`.

        All moves of the opponent are so thought about, and the tree is of use whatever comes. What is reported is the
        expected move's part of it, a line that begins with an `allowed` move.
        """
        expected = self.game.moves[-1][1]

        def below(report: SearchReport) -> Progress:
            return self._below(report, expected, allowed)

        before = self.game.copy()
        before.undo()
        self._seeks_mate = False
        self._search.set_position(before)
        try:
            self._start(task, Limits(visits=self.options.visits), ())
        except Exception as error:  # what an evaluator raised; the position itself is tried all the same
            log.error("no pondering: %s", error, exc_info=not isinstance(error, EvaluatorError))
        try:
            watch(
                self._search,
                Schedule,
                is_stopped=lambda: task.is_stopped or not task.is_pondering,
                on_report=None if on_report is None else lambda report: on_report(below(report)),
                interval=self._report_interval,
            )
            while not task.is_stopped and task.is_pondering:  # the tree is full, or the evaluator has failed
                task.wait(1.0)
        except BaseException:
            self._end_background()
            raise
        finally:
            task.on_change = None
        progress = Progress(())
        try:
            progress = below(end_search(self._search, PATIENCE))
        except Exception as error:  # likewise; nothing was found until then
            log.error("the pondering ended early: %s", error, exc_info=not isinstance(error, EvaluatorError))
        if not task.is_stopped:
            return None
        line = progress.lines[0].pv if progress.lines else (allowed[0],)
        return ShogiDecision(line[0], ponder=line[1] if len(line) > 1 else None, progress=progress)

    def _search_move(
        self, task: Task, moves: list[int], allowed: list[int], on_report: Callable[[Progress], None] | None
    ) -> ShogiDecision:
        """Choose an `allowed` one of the `moves` of the root by search."""
        self._search.set_position(self.game)
        is_forced = len(moves) == 1 and not task.infinite
        only = allowed if len(allowed) < len(moves) else None
        self._seeks_mate = self.options.root_mate_search > 0 and not is_forced
        self._judged_mate = ()
        if self._seeks_mate:
            self._mate.start(
                self.game.position,
                max_ply=self.options.root_mate_search,
                nodes=self.options.root_mate_nodes,
                moves=only,
            )
        self._start(task, self._limits(task, is_forced), only)
        try:
            lateness = watch(
                self._search,
                lambda: self._schedule(task, is_forced),
                is_stopped=lambda: task.is_stopped or self._has_mate(task),
                has_enough=self._has_enough(task),
                pv_length=min(self._depths(task), default=0),
                on_report=None if on_report is None else lambda report: on_report(self._progress(report)),
                interval=self._report_interval,
            )
            self._lateness.note(lateness)
            report = end_search(self._search, PATIENCE)
            if not report.moves and self._search.is_running and len(allowed) > 1 and not self._mate_line():
                report = self._wait_for_move(task)
        except BaseException:
            self._search.stop()
            raise
        finally:
            task.on_change = None
            self._mate.stop()
        return self._decide(task, report, allowed)

    def _wait_for_move(self, task: Task) -> SearchReport:
        """Return the report of a search that has to end before it has a move: any clock is given the time it has."""
        if task.times is None:
            return wait_for_end(self._search)
        options, reserve = self.options, self._lateness.reserve
        left = time_left(task.times, self.game.side_to_move, options.lag, options.byoyomi_margin, reserve)
        return end_search(self._search, max(0.0, task.start + left - time.monotonic()))

    @property
    def _report_interval(self) -> float:
        """Seconds between reports."""
        return max(MIN_INTERVAL, self.options.report_interval)

    def _mate_line(self) -> tuple[int, ...]:
        """Return the mate that was found beside the search, so far; none that the game would end before."""
        line = self._mate.answer.moves if self._seeks_mate else ()
        if line != self._judged_mate:
            self._judged_mate, self._is_mate = line, can_be_played(self.game, line)
        return line if self._is_mate else ()

    def _has_mate(self, task: Task) -> bool:
        """Whether a mate is found that may be played, and no shorter one is looked for."""
        line = self._mate_line()
        return not (task.infinite or task.is_pondering or not line or self._mate.is_running)

    def _end_background(self) -> None:
        """End a search that nobody waits for; how it failed goes to the log."""
        try:
            self._search.stop()
        except Exception as error:
            log.error("an earlier search ended early: %s", error, exc_info=not isinstance(error, EvaluatorError))

    def _start(self, task: Task, limits: Limits, allowed: Sequence[int] | None) -> None:
        self._search.start(limits, allow=allowed or None, noise=self.options.root_noise > 0.0)
        task.on_change = self._search.interrupt if not task.is_pondering else None

    def _decide(self, task: Task, report: SearchReport, allowed: list[int]) -> ShogiDecision:
        """Choose from what the search has found; it may have had time for nothing."""
        progress = self._progress(report)
        mate = self._mate_line()
        if mate:
            return ShogiDecision(mate[0], ponder=mate[1] if len(mate) > 1 else None, progress=progress, note="mate")
        if not report.moves:
            move = self._search.likeliest()
            return ShogiDecision(move if move in allowed else allowed[0], progress=progress)
        options = self.options
        heat = temperature_at(self.game.ply, options.temperature, options.temperature_moves)
        move = choose(report, heat, self._rng)
        line = next(each.pv for each in report.moves if each.move == move)
        best = report.moves[0].winrate
        resigns = False
        if not task.infinite and not task.is_pondering:
            count = self._lost.count(self.game.side_to_move, self.game.ply, best < options.resign_threshold)
            resigns = options.resign and count >= options.resign_moves
        return ShogiDecision(move, resign=resigns, ponder=line[1] if len(line) > 1 else None, progress=progress)

    # -- settings and limits ---------------------------------------------------------------------------------------

    def _prepare(self, task: Task) -> None:
        """Bring search and game in line with the options; a tree that was grown under other rules is dropped."""
        options, game = self.options, self.game
        settings = search_settings(tuned(options, "shogi", SIDE), self._search.queue)
        if settings != self._settings:
            self._search.configure(settings)
            self._settings = settings
        draw = options.draw_value_black if game.side_to_move == BLACK else 1.0 - options.draw_value_white
        game.position["all_moves"] = options.all_legal_moves
        if task.moves is not None and not set(task.moves).issubset(game.searched_moves()):
            game.position["all_moves"] = True
        is_all = bool(game.position["all_moves"])
        rules = (options.entering_king, options.max_moves or 0, options.leaf_mate_depth, is_all, draw)
        game.set_rules(entering_king=options.entering_king, max_moves=options.max_moves or 0)
        game.position["mate_depth"] = options.leaf_mate_depth
        game.position["draw_value"] = (2.0 * draw - 1.0, 1.0 - 2.0 * draw)
        if rules != self._rules:
            self._rules = rules
            self._search.clear()

    def _limits(self, task: Task, is_forced: bool) -> Limits:
        """Return what ends the search by itself; the watch adds what may change with `ponderhit`."""
        options = self.options
        if task.infinite:
            return Limits()
        if task.is_pondering:
            return Limits(visits=options.visits)
        playouts = [each for each in (options.playouts, task.limits.playouts) if each is not None]
        hard = self._schedule(task, is_forced).hard
        seconds = None if hard == math.inf else max(0.0, hard - time.monotonic())
        return Limits(options.visits, min(playouts, default=None), seconds)

    def _schedule(self, task: Task, is_forced: bool) -> Schedule:
        """Return the limits of time as they are now."""
        if task.infinite or task.is_pondering:
            return Schedule()
        if is_forced:
            return Schedule(task.start, task.start, task.start)
        options, limits = self.options, task.limits
        seconds = [each for each in (options.seconds, limits.seconds) if each is not None]
        if task.times is None:
            has_limit = seconds or task.depth or options.depth or limits.playouts or options.playouts or options.visits
            hard = min(seconds, default=math.inf if has_limit else DEFAULT_SECONDS)
            return Schedule(task.start, hard=task.start + hard)
        lag = options.lag + self._search.latency
        game = self.game
        budget = find_budget(
            task.times, game.side_to_move, game.ply, lag, options.byoyomi_margin, self._lateness.reserve
        )
        hard = min([budget.hard, *seconds])
        return Schedule(task.start, task.start + min(budget.soft, hard), task.start + hard)

    def _depths(self, task: Task) -> list[int]:
        return [each for each in (task.depth, self.options.depth) if each is not None]

    def _has_enough(self, task: Task) -> Callable[[SearchReport], bool] | None:
        """Return the test whether a search may end: at a proof, a depth, or playouts, those made while pondering too.

        None where only `stop` ends the search.
        """
        depths = self._depths(task)
        playouts = [each for each in (task.limits.playouts, self.options.playouts) if each is not None]
        if task.infinite:
            return None

        def has_enough(report: SearchReport) -> bool:
            if task.is_pondering:
                return False
            if report.proven:
                return True
            deep = bool(depths and report.moves) and len(report.moves[0].pv) >= min(depths)
            return deep or bool(playouts and report.playouts >= min(playouts))

        return has_enough

    # -- reports ---------------------------------------------------------------------------------------------------

    def _progress(self, report: SearchReport) -> Progress:
        lines = [Line(move.pv, move.winrate, mate_in(move)) for move in report.moves]
        mate = self._mate_line()
        if mate:
            lines = [Line(mate, 1.0, len(mate)), *(line for line in lines if line.pv[0] != mate[0])]
        shown = tuple(lines[: self.options.multipv])
        return Progress(shown, report.seconds, report.playouts, self._search.deepest, self._search.fullness)

    def _below(self, report: SearchReport, expected: int, allowed: list[int]) -> Progress:
        """Return the part of a report on the opponent's position that follows the expected move, for our side."""
        found = next((move for move in report.moves if move.move == expected and len(move.pv) > 1), None)
        lines = () if found is None or found.pv[1] not in allowed else (Line(found.pv[1:], 1.0 - found.winrate),)
        depth = max(0, self._search.deepest - 1)
        return Progress(lines, report.seconds, report.playouts, depth, self._search.fullness)


def mate_in(move: MoveReport) -> int | None:
    """Return the plies to the mate that is proven of a move, negative for the side that is mated; None without proof.

    Where the proof ends with a mate search at a leaf its length is not known: one ply, the least, is counted for it.
    """
    if move.proven == 0:
        return None
    length = len(move.pv)
    if move.proven > 0:
        return length if length % 2 else length + 1
    return -(length if length % 2 == 0 else length + 1)
