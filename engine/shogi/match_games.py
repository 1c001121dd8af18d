"""Games of shogi between two USI engines, with this program as the referee."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.clients.client import EngineClient
from engine.clients.limits import GameClock
from engine.clients.process import EngineError, RefusedError
from engine.clients.usi import UsiClient
from engine.color import BLACK, WHITE, opponent
from engine.matches.adjudicate import RefereeSettings
from engine.matches.results import Blame, Forfeit, MatchError, PlayedGame
from engine.play import (
    ADJUDICATION,
    DECLARATION,
    ILLEGAL,
    RESIGNATION,
    TIME,
    Ended,
)
from engine.shogi.game import IllegalMove, ShogiGame
from engine.shogi.notation import NotationError, csa_line, format_usi, parse_usi, parse_usi_moves
from engine.shogi.players.notes import LINE_MOVES
from engine.shogi.records.files import to_bytes
from engine.shogi.records.record import RecordedMove, RecordError, parse_usi_line, record_of
from engine.shogi.referee import ShogiReferee, csa_ending
from engine.shogi.sfen import START_WORD, format_sfen

if TYPE_CHECKING:
    from engine.clients.answers import EngineMove

MAX_MOVES_DEFAULT = 512


@dataclass(frozen=True, slots=True)
class ShogiSettings:
    """What all games of a match have in common."""

    max_moves: int = MAX_MOVES_DEFAULT
    """Moves after which a game is drawn."""
    entering_king: str = "27"
    """Rule by which a win may be declared: 27, 24 or none."""
    referee: RefereeSettings = field(default_factory=RefereeSettings)


class ShogiHost:
    """Plays one game after the other, in one thread."""

    client: type[EngineClient] = UsiClient

    def __init__(self, settings: ShogiSettings) -> None:
        """Play under these settings."""
        self.settings, self.timeout = settings, settings.referee.timeout

    def play(self, clients: Mapping[int, UsiClient], opening: str, event: str) -> PlayedGame:
        """Play a game between the engines of both colors.

        Raises:
            MatchError: the opening is not legal.
        """
        played = _ShogiGame(self.settings, clients, opening)
        try:
            played.begin()
            ended = played.run()
        except Forfeit as forfeit:
            ended = Ended(opponent(forfeit.color), forfeit.ending, forfeit.detail)
        played.announce(ended)
        return played.finish(ended, event)

    def close(self) -> None:
        """Nothing is held besides the players."""


class _ShogiGame:
    """One game while it is played."""

    def __init__(self, settings: ShogiSettings, clients: Mapping[int, UsiClient], opening: str) -> None:
        self.settings, self.clients = settings, clients
        self.clocks = {
            color: GameClock(clients[color].spec.limits.clock(increment_first=True), settings.referee.margin)
            for color in (BLACK, WHITE)
        }
        self.adjudicator = settings.referee.adjudicator()
        try:
            record = parse_usi_line(opening or START_WORD)
            sfen = format_sfen(record.initial)
            self.game = ShogiGame(sfen, entering_king=settings.entering_king, max_moves=settings.max_moves)
            self.start = START_WORD if not opening or opening.startswith(START_WORD) else sfen
            for recorded in record.moves:
                self.game.play(recorded.move)
        except (RecordError, IllegalMove) as error:
            raise MatchError(f"opening '{opening[:80]}': {error}") from None
        self.words = [format_usi(move) for _, move in self.game.moves]
        self.notes = [RecordedMove(move, comment="opening") for _, move in self.game.moves]
        self.chosen = {BLACK: 0, WHITE: 0}
        self.last_seconds: float | None = None
        """Time of an answer that was no move."""

    def begin(self) -> None:
        """Prepare both engines."""
        for color, client in self.clients.items():
            with Blame(color):
                try:
                    client.new_game()
                except RefusedError as error:
                    raise MatchError(f"player {client.spec.name}: {error}") from None

    def run(self) -> Ended:
        """Play until the game ends."""
        game, referee = self.game, ShogiReferee()
        while (ended := referee.judge(game)) is None:
            color = game.side_to_move
            with Blame(color):
                answer = self.clients[color].go(self.start, self.words, color, self.clocks)
            self.chosen[color] += 1
            clock = self.clocks[color]
            limit = clock.allowed()
            if not clock.spend(answer.seconds):
                raise Forfeit(color, TIME, f"{answer.move} after {answer.seconds:.3f} s, {limit:.3f} s were left")
            if answer.move == "resign":
                self.last_seconds = answer.seconds
                return Ended(opponent(color), RESIGNATION)
            if answer.move == "win":
                self.last_seconds = answer.seconds
                return self._declare(color)
            self._play(color, answer)
            if loser := self.adjudicator.loser(color, answer.evaluation):
                return Ended(opponent(loser), ADJUDICATION, f"both below {self.settings.referee.resign_below:g}")
        return ended

    def _declare(self, color: int) -> Ended:
        if not self.game.can_declare:
            raise Forfeit(color, ILLEGAL, f"declared a win that is none (rule {self.settings.entering_king})")
        return Ended(color, DECLARATION)

    def _play(self, color: int, answer: EngineMove) -> None:
        game = self.game
        try:
            move = parse_usi(answer.move)
            placement = game.placement
            game.play(move)
        except (NotationError, IllegalMove) as error:
            raise Forfeit(color, ILLEGAL, f"at move {len(game.moves) + 1}: {error}"[:200]) from None
        note = RecordedMove(move, answer.seconds)
        if answer.evaluation is not None and answer.evaluation.score is not None:
            note.score = round(answer.evaluation.score)
            expected = parse_usi_moves(answer.evaluation.pv[:LINE_MOVES])
            note.pv = " ".join(csa_line(expected, placement)[1:])
        self.notes.append(note)
        self.words.append(answer.move)

    def announce(self, ended: Ended) -> None:
        """Tell both engines how the game ended; one that has gone meanwhile is noticed in the next game."""
        for color, client in self.clients.items():
            result = "draw" if not ended.winner else "win" if ended.winner == color else "lose"
            with contextlib.suppress(EngineError):
                client.game_over(result)

    def finish(self, ended: Ended, event: str) -> PlayedGame:
        """Return the game with its records."""
        game = self.game
        record = record_of(
            game,
            self.notes,
            black=self.clients[BLACK].spec.name,
            white=self.clients[WHITE].spec.name,
            ending=csa_ending(ended, game),
        )
        record.ending_seconds = self.last_seconds
        record.info = {"EVENT": f"yomi match {event}", "START_TIME": time.strftime("%Y/%m/%d %H:%M:%S")}
        titles = " - ".join(self.clients[color].title for color in (BLACK, WHITE))
        record.comment = f"{titles}\n{ended.ending} {ended.detail}".strip()
        files = {suffix: to_bytes([record], suffix) for suffix in (".csa", ".kifu")}
        seconds = (self.clocks[BLACK].used, self.clocks[WHITE].used)
        words = tuple(format_usi(move) for _, move in game.moves)
        return PlayedGame(ended, words, seconds, (self.chosen[BLACK], self.chosen[WHITE]), files)
