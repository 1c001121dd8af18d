"""One game on a CSA server: the engine that plays it, position, clocks and record. All times are in seconds."""

import contextlib
import logging
import math
import re
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from yomi.engine.clients.client import TIMEOUT, EngineError, EngineMove
from yomi.engine.clients.usi import UsiClient, clock_words
from yomi.engine.clock import Clock, Clocks
from yomi.engine.color import BLACK, DRAW, WHITE, opponent
from yomi.engine.options import TABLE, OptionError
from yomi.engine.players.request import Decision, Request
from yomi.engine.records import CENTIPAWNS
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.engine.servers.connection import OutOfStepError
from yomi.engine.servers.game import EngineSeat, MoveTask, ServerGame, YomiSeat
from yomi.engine.servers.settings import Account
from yomi.engine.shogi.floodgate.codec import Summary, TimeRule
from yomi.engine.shogi.game import ShogiGame, new_game
from yomi.engine.shogi.notation import (
    NotationError,
    format_csa,
    format_usi,
    illegal_action,
    parse_csa,
    parse_usi,
    parse_usi_moves,
)
from yomi.engine.shogi.placement import DROP_PAWN_MATE, START_WORD, format_sfen
from yomi.engine.shogi.players.player import ShogiPlayer
from yomi.engine.shogi.records.files import load_records, to_bytes
from yomi.engine.shogi.records.record import LINE_MOVES, START, GameRecord, RecordedMove
from yomi.errors import reraised
from yomi.nets.files import write_atomically

log = logging.getLogger("yomi.servers")

RULE = "EnteringKingRule"  # the option of YaneuraOu and other USI engines


class YomiShogiSeat(YomiSeat[ShogiPlayer]):
    """yomi's player on a server. Calls must come one after the other, except `set_clocks`, which is thread-safe."""

    def __init__(self, player: ShogiPlayer) -> None:
        super().__init__(player)
        self._game = ShogiGame()

    @property
    def centipawns(self) -> float:
        return self._player.options.centipawns

    def begin(self, max_moves: int, entering_king: str | None = None) -> None:
        """Start a game by the server's rules.

        Args:
            max_moves: the game is drawn after this many moves; 0: unknown.
            entering_king: rule of the declaration win, a value of that option; None: unknown.
        """
        self._options = self._player.options.copy()
        own = self._options.entering_king
        if entering_king is not None and entering_king != own:
            log.info("the server's rule of the declaration win is %s: it replaces %s for this game", entering_king, own)
            self._options.set("entering_king", entering_king)
        # The user's own limit remains if the option does not accept the server's.
        with contextlib.suppress(OptionError):
            self._options.set("max_moves", max_moves)
        self._game = new_game(self._options)
        self._player.new_game(self._game)

    def think(self, turn: MoveTask) -> Decision:
        """Choose a move; block until it is chosen or the request is stopped."""
        self._game = turn.request.game = self._game.continued(turn.start, turn.moves)
        return self._player.decide(turn.request)


class UsiSeat(EngineSeat[UsiClient]):
    centipawns = CENTIPAWNS

    def __init__(self, account: Account) -> None:
        """Start the engine. Raises GaveUpError if it does not start, or lacks an option."""
        super().__init__(account, UsiClient, options=account.usi_options)
        self._limit = account.go
        # The user's and the current value of the engine's option; None if it has no such option.
        default = re.search(r"default (\S+)", self._client.options.get(RULE, ""))
        self._own_rule = self._rule = account.usi_options.get(RULE, default[1]) if default else None
        self.ponders = account.usi_options.get("USI_Ponder") == "true"

    def begin(self, max_moves: int, entering_king: str | None = None) -> None:
        # The engine's options decide how long a game may be.
        wanted = self._own_rule if entering_king is None else TABLE["entering_king"].format_usi(entering_king)
        if self._rule is not None and wanted is not None and wanted != self._rule:
            if wanted not in self._client.options[RULE].split():
                log.warning("%s has no %s %s, the server's rule: it plays by %s", self.name, RULE, wanted, self._rule)
            else:
                log.info("%s %s replaces %s for this game", RULE, wanted, self._rule)
                self._client.set_option(RULE, wanted)
                self._rule = wanted
        self._client.new_game()

    def think(self, turn: MoveTask) -> Decision:
        request = turn.request
        words = go_words(request, self._limit)
        search = self._client.start(turn.start, turn.moves, words, allowed(request), request.start)

        def forward() -> None:
            if request.is_stopped:
                search.stop()
            elif request.ponder and not request.is_pondering:
                search.ponderhit(allowed(request), request.start)

        request.listen(forward)
        forward()  # what changed before anybody listened
        try:
            return decision_of(search.wait())
        finally:
            request.listen(None)

    def end(self, result: str) -> None:
        if result in ("win", "lose", "draw"):
            self._client.game_over(result)


ShogiSeat = YomiShogiSeat | UsiSeat


def go_words(request: Request[Any], limit: str = "") -> str:
    """Return the words after `go`: `limit` and the clocks. A request without clocks gets a long byo-yomi."""
    clocks = request.clocks or dict.fromkeys((BLACK, WHITE), Clock.of(0.0, TIMEOUT))
    words = limit or clock_words(clocks)
    return f"ponder {words}" if request.ponder else words


def allowed(request: Request[Any]) -> float:
    """Return the seconds that the clocks allow a request; infinity while pondering or without clocks."""
    if request.clocks is None or request.is_pondering:
        return math.inf
    return max(clock.main + clock.settings.increment + clock.settings.period for clock in request.clocks.values())


def decision_of(found: EngineMove) -> Decision:
    """Convert an engine's move to a decision. Raises EngineError if it is not a move."""
    if found.move in ("resign", "win"):
        return Decision(None, resign=found.move == "resign", win=found.move == "win")
    with reraised(NotationError, EngineError, "bestmove: "):
        move = parse_usi(found.move)
    expected = parse_usi_moves([found.reply])
    report = SearchReport()
    evaluation = found.evaluation
    if evaluation is not None and evaluation.winrate is not None:
        has_line = evaluation.pv[:1] == (found.move,)
        line = parse_usi_moves(evaluation.pv[:LINE_MOVES]) if has_line else (move,)
        best = MoveReport(move, winrate=evaluation.winrate, pv=line, mate=evaluation.mate)
        report = SearchReport(winrate=evaluation.winrate, playouts=evaluation.visits or 1, moves=(best,))
    return Decision(move, ponder=expected[0] if expected else None, report=report)


# -- the game ---------------------------------------------------------------------------------------------------------


class CsaClock:
    """The remaining times of both sides, computed from the time that the server charges for each move.

    The server in Ruby adds the increment after a move, and a side may already use the next increment: a move may take
    the remaining time and one increment. `clocks` excludes this increment, because engines add it themselves.
    """

    def __init__(self, rules: Mapping[int, TimeRule]) -> None:
        self.rules = dict(rules)
        self.left = {color: rules[color].total for color in (BLACK, WHITE)}

    @property
    def is_limited(self) -> bool:
        return any(rule.is_limited for rule in self.rules.values())

    def charge(self, color: int, units: int | None) -> float | None:
        """Charge a move and return its seconds, or None if the server sent no time."""
        rule = self.rules[color]
        seconds = None if units is None else units * rule.unit
        self.left[color] = max(self.left[color] + rule.increment - (seconds or 0.0), 0.0)
        return seconds

    def allowed(self, color: int) -> float:
        """Return the maximum duration of a side's next move."""
        rule = self.rules[color]
        return self.left[color] + rule.byoyomi + rule.increment + rule.delay

    def clocks(self, color: int, spent: float = 0.0) -> Clocks | None:
        """Return the clocks for a move of `color`, or None without a time limit.

        `spent` are seconds of the last move of `color`, which the server will charge. If the server rounds up, the last
        unit is excluded, because a move that ends in it counts in full.
        """
        if not self.is_limited:
            return None
        rule = self.rules[color]
        last = rule.unit if rule.is_rounded_up else 0.0
        left = dict(self.left)
        if spent:
            left[color] = max(left[color] + rule.increment - spent, 0.0)  # as `charge` will
        if not rule.byoyomi:
            left[color] = max(left[color] - last, 0.0)
        byoyomi = max(rule.byoyomi - last, 0.0)
        return {side: Clock.of(left[side], byoyomi, self.rules[side].increment) for side in (BLACK, WHITE)}


# CSA's endings in records by the server's words. `#OUTE_SENNICHITE` depends on the loser: see `finish`.
SERVER_ENDINGS = {
    "RESIGN": "TORYO",
    "TIME_UP": "TIME_UP",
    "ILLEGAL_MOVE": "ILLEGAL_MOVE",
    "SENNICHITE": "SENNICHITE",
    "JISHOGI": "KACHI",
    "MAX_MOVES": "MAX_MOVES",
}
# Results for us by the server's words; CHUDAN has none. See yomi.engine.servers.client.OUTCOME_NAMES.
OUTCOMES = {"WIN": 1, "LOSE": -1, "DRAW": 0, "CENSORED": 0}


class CsaGame(ServerGame[Decision]):
    suffix = ".csa"

    def __init__(self, summary: Summary, records: Path) -> None:
        """Start or resume a game. Raises OSError if the folder of the records cannot be made."""
        super().__init__(summary.game_id, summary.color, summary.names, records, summary.game_id)
        self.max_moves, self.declaration = summary.max_moves, summary.declaration
        self.is_running = False  # both sides have agreed: the clock runs
        self.may_move = False  # the server has started the game on the current connection and accepts moves
        self.reason = ""  # the server's word for the game's end
        self.sent_at: float | None = None  # send time of our last move; None once the server has confirmed it
        self.clock_start = time.monotonic()  # start time of our clock
        self.record = GameRecord()
        self._started = time.strftime("%Y/%m/%d %H:%M:%S")
        # `resume` keeps the comments of a record that an earlier run wrote.
        begun = bool(summary.record.moves)
        record = self.find_record(lambda path: load_records(path)[0], partial(self._is_ours, summary), has_moves=begun)
        if record is not None:
            self.record, self._started = record, record.info.get("START_TIME", self._started)
        self.resume(summary)

    def _is_ours(self, summary: Summary, record: GameRecord) -> bool:
        """Return whether a record is an unfinished record of this game. Our last move may be missing on the server."""
        known, played = ([move.move for move in one.moves] for one in (summary.record, record))
        is_same = record.initial == summary.record.initial and {BLACK: record.black, WHITE: record.white} == self.names
        count = min(len(known), len(played))
        return is_same and not record.ending and len(played) <= len(known) + 1 and played[:count] == known[:count]

    def resume(self, summary: Summary) -> None:
        """Adapt the game to the server's summary, which may lack our last move."""
        old = self.record.moves
        given = summary.record
        self.record = GameRecord(given.initial, black=self.names[BLACK], white=self.names[WHITE])
        self.record.info = {"EVENT": self.id, "START_TIME": self._started}
        self.placement = given.initial
        self.clock = CsaClock(summary.rules)
        self.usi: list[str] = []
        for index, move in enumerate(given.moves):
            kept = old[index] if index < len(old) and old[index].move == move.move else None
            # In summaries, T counts units and not seconds.
            units = None if move.seconds is None else int(move.seconds)
            seconds = self.clock.charge(self.placement.side, units)
            kept = kept or RecordedMove(move.move)
            kept.seconds = seconds if kept.seconds is None else kept.seconds
            self._append(kept)
        for color, rule in summary.rules.items():
            # moves before the start of a game are not charged by every server: what is safe is the lesser
            self.clock.left[color] = summary.remaining.get(color, min(self.clock.left[color], rule.total))
        self.sent_at = None

    def _append(self, note: RecordedMove) -> None:
        self.record.moves.append(note)
        self.usi.append(format_usi(note.move))
        self.placement = self.placement.after(note.move)

    @property
    def ply(self) -> int:
        return len(self.usi)

    @property
    def is_our_turn(self) -> bool:
        return self.placement.side == self.color

    @property
    def asked_at(self) -> float | None:
        return self.clock_start if self.may_move and self.is_our_turn else None

    def task(self, request: Request[Any], *guess: str) -> MoveTask:
        start = START_WORD if self.record.initial == START else format_sfen(self.record.initial)
        return MoveTask(start, (*self.usi, *guess), request, self.ply + len(guess))

    def clocks(self, spent: float = 0.0) -> Clocks | None:
        return self.clock.clocks(self.color, spent)

    def play_own(self, note: RecordedMove) -> str:
        text = format_csa(note.move, self.placement)
        self._append(note)
        return text

    def play_theirs(self, text: str) -> str:
        """Play the opponent's move and return it in USI. Raises OutOfStepError if it is illegal."""
        with reraised(NotationError, OutOfStepError, f"move {self.ply + 1}: "):
            move = parse_csa(text, self.placement)
        why = self.placement.why_not(move)
        if why is None and self.placement.is_drop_pawn_mate(move):
            why = DROP_PAWN_MATE
        if why is not None:
            raise OutOfStepError(f"move {self.ply + 1} {text}: {why}")
        self._append(RecordedMove(move))
        return self.usi[-1]

    def is_last(self, text: str) -> bool:
        if not self.record.moves:
            return False
        before = self.record.placements()[-2]
        return text == format_csa(self.record.moves[-1].move, before)

    def charge(self, color: int, units: int | None) -> None:
        """Charge the last move to a side's clock, and write its time into the record."""
        seconds = self.clock.charge(color, units)
        if seconds is not None:
            self.record.moves[-1].seconds = seconds

    def finish(self, result: str) -> int | None:
        """Complete the record. Return +1 for our win, -1 for a loss, 0 for a draw, or None without a result.

        If the server ends the game before it confirms our last move, the move was not accepted and is removed.
        """
        outcome = OUTCOMES.get(result)
        if self.sent_at is not None and outcome is not None:
            self.record.moves.pop()
            self.usi.pop()
            self.sent_at = None
        self.record.ending = SERVER_ENDINGS.get(self.reason, "")
        if self.reason == "OUTE_SENNICHITE" and outcome:
            loser = self.color if outcome < 0 else opponent(self.color)
            self.record.ending = illegal_action(loser)
        elif not self.record.ending:
            self.record.ending = "HIKIWAKE" if outcome == 0 else "CHUDAN"
        winner = {1: self.color, -1: opponent(self.color), 0: DRAW, None: None}[outcome]
        # CSA has no word for this end, so the server's words become the comment.
        if winner != self.record.winner:
            self.record.comment = f"#{self.reason} #{result}: the server's words, for {self.names[self.color]}"
        return outcome

    def save(self) -> None:
        write_atomically(self.path, to_bytes([self.record], self.suffix))
