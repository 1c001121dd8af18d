"""The games of visitors."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import yomi
from yomi.engine import play
from yomi.engine.color import DRAW
from yomi.engine.go.game import score_text
from yomi.engine.go.points import Board
from yomi.engine.go.scoring import chains
from yomi.engine.mistakes import WARNING_SECONDS, WARNING_VISITS, is_worth_warning
from yomi.engine.play import Ended
from yomi.engine.shogi.game import csa_ending
from yomi.language import tr
from yomi.library.position import Position
from yomi.library.values import Report
from yomi.web.engines import Engines
from yomi.web.games import MAX_MOVES, Clocks, UnknownIdError, begin, letter, opinion, result_text

if TYPE_CHECKING:
    from yomi.web.reviews import PageReview, Reviews

MAX_TABLES = 200  # games that are kept; the oldest ones are dropped
MAX_TABLES_PER_VISITOR = 50
MAX_FOLLOWERS = 20  # of a game
LOOK_SECONDS = 0.2  # between two looks for a change
HEARTBEAT_SECONDS = 8.0  # between two lines: a page that gets none has lost the connection
MAX_DROPPED = 10_000  # ids of dropped games that are remembered

Sides = Literal["black", "white", "both"]
SIDES = {"black": yomi.BLACK, "white": yomi.WHITE}


class StaleError(yomi.Error):
    """A page does not show the game's last move."""

    status = 409


@dataclass(eq=False)
class Table:
    """One game: its position, its clocks, and who plays."""

    position: Position[Any]
    human: Sides
    level: int  # of the engine; 0: full strength
    seconds: float  # of the engine's moves without clocks
    first: dict[str, Any]  # the first position, for the page
    clocks: Clocks | None = None
    visitor: str = ""  # address
    names: dict[int, str] = field(default_factory=dict)  # of the players of the record that the game continues
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    ended: Ended | None = None  # by resignation, time, agreement or declaration
    dead: set[str] | None = None  # Go: marked as dead after the last pass; None before the proposal
    lock: threading.Lock = field(default_factory=threading.Lock)
    analyses: int = 0  # that were begun
    opinion: tuple[list[str], Report] | None = None  # the newest report of an analysis, and the moves before it
    review: tuple[list[str], PageReview] | None = None  # of the game with these moves

    followers: int = 0  # pages that follow the game
    _version: int = 0
    _seen: object = None  # of `version`

    @property
    def version(self) -> int:
        """A number that grows with each change of the game."""
        now = (self.position.moves, self.ended, self._dead())
        if now != self._seen:
            self._seen = now
            self._version += 1
        return self._version

    async def follow(self, engines: Engines) -> AsyncGenerator[dict[str, Any] | None, None]:
        """Yield the state of the game after each change, and None from time to time, until the server ends."""
        if self.followers >= MAX_FOLLOWERS:
            raise yomi.Error(tr("too many windows show this game: close some"))
        self.followers += 1
        try:
            seen, silent = -1, 0.0
            while not engines.is_ending:
                now = self.version
                if now != seen or silent >= HEARTBEAT_SECONDS:
                    yield None if now == seen else self.state()
                    seen, silent = now, 0.0  # the game may have changed again meanwhile
                silent += LOOK_SECONDS
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self.followers -= 1

    @property
    def is_humans_turn(self) -> bool:
        return self.human == "both" or SIDES[self.human] == self.position.side_to_move

    @property
    def is_counting(self) -> bool:
        """Go: whether both sides have passed and must now agree on dead stones."""
        raw = self.position._raw
        if self.ended or self.position.game != "go" or not self.position.is_over:
            return False
        return raw.rules.has_agreement and not raw.is_no_result

    def state(self) -> dict[str, Any]:
        """Return the game for the page; play.js describes the fields (type State)."""
        with self.lock:
            self._check_time()
            position, ended = self.position, self._final()
            return {
                "id": self.id,
                "version": self.version,
                "game": position.game,
                **self.first,
                "moves": position.moves,
                # Records of Go have moves out of turn: handicap stones, or a first move of White.
                "colors": [letter(color) for color, _ in position._raw.moves],
                "legal": position.legal_moves() if not ended and position.game == "shogi" else [],
                "human": self.human,
                "level": self.level,
                "seconds": self.seconds,
                "toMove": letter(position.side_to_move),
                "isHumansTurn": self.is_humans_turn,
                "counting": {"dead": self._dead(), "result": score_text(self._lead())} if self.is_counting else None,
                "dead": self._dead() or [],
                "clocks": self.clocks and self.clocks.state(is_running=self.is_humans_turn and not ended),
                "review": self.review[1].state() if self.review and self.review[0] == position.moves else None,
                "result": result_text(ended),
                "ending": ended and {"winner": letter(ended.winner), "reason": ended.ending, "points": ended.score},
            }

    def play(self, move: str) -> None:
        """Play a visitor's move, or raise Error if the game is over or the move is illegal."""
        with self.lock:
            self._expect_open()
            if len(self.position.moves) >= MAX_MOVES:
                text = tr("{n} moves have been played: take moves back, resign or begin another game", n=MAX_MOVES)
                raise yomi.Error(text)
            color = self.position.side_to_move
            self.position.play(move)
            if self.clocks:
                self.clocks.move(color, self.clocks.used)

    def undo(self) -> None:
        """Take back a result or a move, then further moves until a visitor is to move. Clocks are set back, too."""
        with self.lock:
            self._check_time()
            if not self.ended:
                self._undo_move()
            self.ended = None
            while not self.is_humans_turn and self.position.moves:
                self._undo_move()
            if self.clocks:
                self.clocks.restart()

    def resign(self) -> None:
        """Resign for the visitor, even while the engine thinks; if visitors play both sides, for the side to move."""
        with self.lock:
            self._expect_open()
            self.ended = self._lost_by(SIDES.get(self.human, self.position.side_to_move), play.RESIGNATION)

    async def answer(self, engines: Engines) -> None:
        """Let the engine move if it is its turn. Its move is dropped if the position has changed meanwhile."""
        with self.lock:
            if self.is_humans_turn or self._final() or self.position.is_over:
                return
            before, count = self.position.copy(), self.position.ply
            limit = self.clocks.limit() if self.clocks else yomi.Limit(seconds=self.seconds)
        async with engines.use(before, self.level, self.visitor) as engine:
            decision = await engine.aplay(before, limit)
        with self.lock:
            if self.position.ply != count or self.position.moves != before.moves or self.ended:
                return
            color = before.side_to_move
            # The clock counts the search only: the engine may have waited for other visitors.
            used = decision.report.seconds if self.clocks else 0.0
            if self.clocks and self.clocks.has_run_out(color, used):
                self.ended = self._lost_by(color, play.TIME)
            elif decision.win:  # shogi: by entering king
                self.ended = Ended(color, play.DECLARATION)
            elif decision.resign or decision.move is None:
                self.ended = self._lost_by(color, play.RESIGNATION)
            else:
                self.position.play(decision.move)
                if self.clocks:
                    self.clocks.move(color, used)

    # -- the end of a game of Go ---------------------------------------------------------------------------------------

    async def propose_dead(self, engines: Engines) -> None:
        """Mark the stones that the engine considers dead."""
        with self.lock:
            self._expect_counting()
            position: Any = self.position.copy()
        async with engines.use(position, 0, self.visitor) as engine:
            dead = await asyncio.to_thread(engine.dead_stones, position)
        with self.lock:
            if self.is_counting and self.position.moves == position.moves:
                self.dead = set(dead)

    def mark(self, vertex: str) -> None:
        """Toggle the mark of a stone and the stones connected to it between dead and alive."""
        with self.lock:
            self._expect_counting()
            raw, point = self.position._raw, self.position._code(vertex)
            chain = next((chain for _, chain in chains(raw) if point in chain), None)
            if chain is None:
                raise yomi.Error(tr("no stone on {vertex}: expected a stone that is dead or alive", vertex=vertex))
            self.dead = (self.dead or set()) ^ {raw.board.vertex(each) for each in chain}

    def agree(self) -> None:
        """End the game with the score that follows from the marks."""
        with self.lock:
            self._expect_counting()
            lead = self._lead()
            self.ended = Ended(yomi.BLACK if lead > 0 else yomi.WHITE if lead < 0 else DRAW, play.SCORE, score=lead)

    def _dead(self) -> list[str] | None:
        return None if self.dead is None else sorted(self.dead)

    def _lead(self) -> float:
        position: Any = self.position
        return float(position.lead(self.dead or ()))

    # -- help ----------------------------------------------------------------------------------------------------------

    async def hint(self, engines: Engines, seconds: float) -> dict[str, Any]:
        """Return the engine's evaluation of the position at full strength."""
        return opinion(*await self._search(engines, yomi.Limit(seconds=seconds)))

    async def analyse(self, engines: Engines) -> AsyncGenerator[dict[str, Any], None]:
        """Yield evaluations until the position changes or another analysis of this game begins."""
        with self.lock:
            position = self.position.copy()
            self.analyses += 1
            number, moves = self.analyses, position.moves
        async with contextlib.aclosing(engines.analyse(position, self.visitor)) as reports:
            async for report in reports:
                with self.lock:
                    if number != self.analyses or self.position.moves != moves:
                        return
                    self.opinion = moves, report
                yield opinion(position, report)

    async def check(self, engines: Engines, move: str) -> dict[str, Any]:
        """Return a move's loss of winrate and points, and whether to warn. An earlier analysis saves a search.

        Raises IllegalMove.
        """
        with self.lock:
            self._expect_open()
            position, known = self.position.copy(), self.opinion
        position.copy().play(move)  # an error says why the move is illegal
        if known and known[0] == position.moves:
            report = known[1]
        else:
            _, report = await self._search(engines, yomi.Limit(seconds=WARNING_SECONDS))
        visited = next((each for each in report.moves if each.move.lower() == move.lower()), None)
        if visited and visited.visits >= WARNING_VISITS:
            after = visited.score
        else:
            _, other = await self._search(engines, yomi.Limit(seconds=WARNING_SECONDS), allow=[move])
            after = other.score
        best = report.best.score if report.best else report.score
        points = None if best.lead is None or after.lead is None else best.lead - after.lead
        loss = max(0.0, best.winrate - after.winrate)
        return {"loss": loss, "points": points, "warns": is_worth_warning(loss, points)}

    async def _search(
        self, engines: Engines, limit: yomi.Limit, allow: list[str] | None = None
    ) -> tuple[Position[Any], Report]:
        with self.lock:
            position = self.position.copy()
        async with engines.use(position, 0, self.visitor) as engine:
            return position, await engine.aanalyse(position, limit, allow=allow)

    # -- records and results -------------------------------------------------------------------------------------------

    def record(self) -> tuple[str, str]:
        """Return the game as a record, and the suffix of its file."""
        with self.lock:
            names = {color: self.names.get(side) or self._player(side) for color, side in SIDES.items()}
            position: Any = self.position
            ended = self._final()
            if position.game == "go":
                return position.to_sgf(**names, result=result_text(ended)), ".sgf"
            ending = csa_ending(ended, position._raw) if ended else ""
            return position.to_text("kif", **names, ending=ending), ".kif"

    def begin_review(self, reviews: Reviews) -> PageReview:
        """Return the review of these moves, begun if there is none. Raises Error if no move is played or many wait."""
        moves = self.position.moves
        if self.review and self.review[0] == moves and self.review[1] in reviews and not self.review[1].error:
            return self.review[1]
        if not moves:
            raise yomi.Error(tr("a review needs a game with moves: play some, or open a record"))
        self.review = moves, reviews.begin(*self.record())
        return self.review[1]

    def _player(self, side: int) -> str:
        return "" if SIDES.get(self.human, side) == side else "yomi"

    def _final(self) -> Ended | None:
        """Return the end of the game, or None if it continues."""
        if self.ended or not self.position.is_over or self.is_counting:
            return self.ended
        position: Any = self.position
        if position.game == "shogi":
            outcome: Ended = position._raw.outcome()
            return outcome
        result = position.result()
        return Ended(result.winner, play.NO_RESULT if result.text == "Void" else play.SCORE, score=self._lead())

    def _undo_move(self) -> None:
        self.position.undo()
        self.dead = None
        if self.clocks:
            self.clocks.undo()

    def _check_time(self) -> None:
        """End the game if the visitor has run out of time."""
        color = self.position.side_to_move
        is_running = self.is_humans_turn and not self.ended and not self.position.is_over
        if self.clocks and is_running and self.clocks.has_run_out(color, self.clocks.used):
            self.ended = self._lost_by(color, play.TIME)

    def _expect_open(self) -> None:
        self._check_time()
        if self.position.is_over or self.ended:
            raise yomi.Error(tr("the game is over: take a move back or begin another game"))

    def _expect_counting(self) -> None:
        if not self.is_counting:
            raise yomi.Error(tr("dead stones are marked when both sides have passed: pass first"))

    @staticmethod
    def _lost_by(color: int, reason: str) -> Ended:
        return Ended(yomi.BLACK + yomi.WHITE - color, reason)


class Tables:
    """The games by id, in the order of their last use."""

    def __init__(self) -> None:
        self._tables: OrderedDict[str, Table] = OrderedDict()
        self._dropped: OrderedDict[str, None] = OrderedDict()  # ids
        self._lock = threading.Lock()

    def add(self, table: Table) -> list[str]:
        """Keep a game. Drop this visitor's oldest games if there are too many, and return their ids."""
        with self._lock:
            self._tables[table.id] = table
            own = [each for each, other in self._tables.items() if other.visitor == table.visitor]
            dropped = own[:-MAX_TABLES_PER_VISITOR]
            others = [each for each in self._tables if each not in dropped]
            for each in (*dropped, *others[:-MAX_TABLES]):
                del self._tables[each]
                self._dropped[each] = None
            while len(self._dropped) > MAX_DROPPED:
                self._dropped.popitem(last=False)
        return dropped

    def get(self, name: str, number: int | None = None) -> Table:
        """Return a game.

        Raises:
            UnknownIdError: there is no such game.
            StaleError: the game does not have this number of moves. None: any number.
        """
        with self._lock:
            if name in self._dropped:
                raise UnknownIdError(
                    f"this game was closed for later ones: {MAX_TABLES_PER_VISITOR} games of one address are kept, "
                    f"{MAX_TABLES} in all; begin another game"
                )
            if name not in self._tables:
                raise UnknownIdError(tr("this game is not known here any more: begin another game"))
            self._tables.move_to_end(name)
            if number not in (None, len(self._tables[name].position.moves)):
                raise StaleError(tr("the game has changed in another window: this page now shows it as it is"))
            return self._tables[name]


def new_table(
    game: str,
    *,
    size: int,
    height: int | None = None,
    record: str | None,
    handicap: int,
    rules: str = "chinese",
    komi: float | None = None,
    gives: str = "",
    clock: dict[str, Any] | None = None,
    **fields: Any,
) -> Table:
    """Return a game from the beginning, or from the end of a record's main line. `fields` are those of `Table`.

    Raises:
        Error: the record cannot be read, a setting of the game is unknown or does not fit the board, or the clock has
            no time.
    """
    board = Board(size, height or size)
    position, first, names = begin(game, board, record, handicap=handicap, rules=rules, komi=komi, gives=gives)
    return Table(position, first=first, names=names, clocks=Clocks(game, **clock) if clock else None, **fields)
