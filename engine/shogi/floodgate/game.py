"""One game on a CSA server, as its client knows it: position, clocks, and what is recorded."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from yomi.engine.color import BLACK, DRAW, WHITE, opponent
from yomi.engine.players.request import Decision
from yomi.engine.servers.connection import OutOfStepError
from yomi.engine.servers.reporter import RecordFile
from yomi.engine.shogi.floodgate.clock import CsaClock
from yomi.engine.shogi.floodgate.codec import Summary
from yomi.engine.shogi.floodgate.yomi_seat import Turn
from yomi.engine.shogi.notation import NotationError, format_csa, format_usi, illegal_action, parse_csa
from yomi.engine.shogi.placement import DROP_PAWN_MATE
from yomi.engine.shogi.records.files import load_records, to_bytes
from yomi.engine.shogi.records.record import START, GameRecord, RecordedMove, RecordError
from yomi.engine.shogi.sfen import START_WORD, format_sfen

log = logging.getLogger("yomi.servers")

ENDINGS = {
    "RESIGN": "TORYO",
    "TIME_UP": "TIME_UP",
    "ILLEGAL_MOVE": "ILLEGAL_MOVE",
    "SENNICHITE": "SENNICHITE",
    "JISHOGI": "KACHI",
    "MAX_MOVES": "MAX_MOVES",
}
"""CSA's names of endings in records by the server's words; `#OUTE_SENNICHITE` names the loser, see `finish`."""
OUTCOMES = {"WIN": 1, "LOSE": -1, "DRAW": 0, "CENSORED": 0}
"""For us, by the server's words; CHUDAN has none. See yomi.engine.servers.client.OUTCOME_NAMES."""


class CsaGame:
    """A game in hand."""

    def __init__(self, summary: Summary, records: Path) -> None:
        """Begin a game, or take up one that goes on.

        Raises:
            OSError: the folder of the records cannot be made.
        """
        self.id = summary.game_id
        self.color = summary.color
        self.names = summary.names
        self.max_moves = summary.max_moves
        self.is_running = False
        """The clock runs: both sides have agreed."""
        self.may_move = False
        """The server has started it on the present connection, and takes moves."""
        self.reason = ""
        """The server's word for why the game is over."""
        self.turn: Turn | None = None
        """What the engine thinks about, ahead or for our move."""
        self.turn_ply = -1
        self.decided: tuple[int, Decision] | None = None
        """Our last decision and the ply that it was for."""
        self.sent_at: float | None = None
        """When our move was sent; None where the server has confirmed it."""
        self.asked_at = time.monotonic()
        """When our clock started."""
        self.max_seconds = 0.0
        """The longest that one of our moves took, as seen from here."""
        self.file = RecordFile(records, f"{time.strftime('%Y%m%d')}-{summary.game_id}", ".csa")
        self.record = GameRecord()
        self._started = time.strftime("%Y/%m/%d %H:%M:%S")
        if summary.record.moves:
            self._take_up_record(summary)
        self.resume(summary)

    def _take_up_record(self, summary: Summary) -> None:
        """Go on with the record that was written before this program was started; `resume` keeps what it says."""
        known = [move.move for move in summary.record.moves]
        for path in self.file.of_all_days():
            try:
                record = load_records(path)[0]
            except RecordError as error:
                log.warning("the record of the game so far is passed over: %s", error)
                continue
            played = [move.move for move in record.moves]
            names = {BLACK: record.black, WHITE: record.white}
            is_same = record.initial == summary.record.initial and names == self.names
            count = min(len(known), len(played))
            # the server may lack our last move
            if is_same and not record.ending and len(played) <= len(known) + 1 and played[:count] == known[:count]:
                self.record, self.file.path = record, path
                self._started = record.info.get("START_TIME", self._started)
                return

    def resume(self, summary: Summary) -> None:
        """Bring the game to what the server says, which may lack our last move."""
        old = self.record.moves
        given = summary.record
        self.record = GameRecord(given.initial, black=self.names[BLACK], white=self.names[WHITE])
        self.record.info = {"EVENT": self.id, "START_TIME": self._started}
        self.placement = given.initial
        self.clock = CsaClock(summary.rules)
        self.usi: list[str] = []
        for index, move in enumerate(given.moves):
            kept = old[index] if index < len(old) and old[index].move == move.move else None
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
        """Moves since the initial position."""
        return len(self.usi)

    @property
    def is_our_turn(self) -> bool:
        """Whether we are to move."""
        return self.placement.side == self.color

    @property
    def sfen(self) -> str:
        """The initial position as the engine gets it."""
        return START_WORD if self.record.initial == START else format_sfen(self.record.initial)

    @property
    def opponent(self) -> str:
        """The other side's name."""
        return self.names[opponent(self.color)]

    def play_own(self, note: RecordedMove) -> str:
        """Play our move; return it in CSA's form."""
        text = format_csa(note.move, self.placement)
        self._append(note)
        return text

    def play_theirs(self, text: str) -> str:
        """Play the opponent's move; return it in USI's form.

        Raises:
            OutOfStepError: it cannot be played.
        """
        try:
            move = parse_csa(text, self.placement)
        except NotationError as error:
            raise OutOfStepError(f"move {self.ply + 1}: {error}") from None
        why = self.placement.why_not(move)
        if why is None and self.placement.is_drop_pawn_mate(move):
            why = DROP_PAWN_MATE
        if why is not None:
            raise OutOfStepError(f"move {self.ply + 1} {text}: {why}")
        self._append(RecordedMove(move))
        return self.usi[-1]

    def is_last(self, text: str) -> bool:
        """Whether a move in CSA's form is the last one played."""
        if not self.record.moves:
            return False
        before = self.record.placements()[-2]
        return text == format_csa(self.record.moves[-1].move, before)

    def charge(self, color: int, units: int | None) -> None:
        """Charge the last move to a side's clock and note it in the record."""
        seconds = self.clock.charge(color, units)
        if seconds is not None:
            self.record.moves[-1].seconds = seconds

    def finish(self, result: str) -> int | None:
        """Complete the record; return +1 where we have won, -1 lost, 0 drawn, None without result.

        A move of ours that the server has not confirmed when it says how the game ended was not taken.
        """
        outcome = OUTCOMES.get(result)
        if self.sent_at is not None and outcome is not None:
            self.record.moves.pop()
            self.usi.pop()
            self.sent_at = None
        self.record.ending = ENDINGS.get(self.reason, "")
        if self.reason == "OUTE_SENNICHITE" and outcome:
            loser = self.color if outcome < 0 else opponent(self.color)
            self.record.ending = illegal_action(loser)
        elif not self.record.ending:
            self.record.ending = "HIKIWAKE" if outcome == 0 else "CHUDAN"
        winner = {1: self.color, -1: opponent(self.color), 0: DRAW, None: None}[outcome]
        if winner != self.record.winner:
            self.record.comment = f"#{self.reason} #{result}: the server's words, for {self.names[self.color]}"
        return outcome

    def save(self) -> None:
        """Write the record.

        Raises:
            OSError: it cannot be written.
        """
        self.file.write(to_bytes([self.record], ".csa"))
