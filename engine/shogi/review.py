"""Reviewing games of shogi: every position of a record (CSA, KIF, KI2, USI) is searched, and the record annotated."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.engine.color import BLACK, WHITE
from yomi.engine.players.request import Request
from yomi.engine.records import MATE_SCORE, Note, record_score
from yomi.engine.review import (
    MARK,
    Judgement,
    KnownPositions,
    Opinion,
    Review,
    ReviewedMove,
    ReviewError,
    Tick,
    limit_text,
    reviewed_moves,
    speed_of,
)
from yomi.engine.shogi.descriptor import GAME
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.moves import target_of
from yomi.engine.shogi.notation import csa_line, format_usi, japanese_line
from yomi.engine.shogi.placement import Placement
from yomi.engine.shogi.records.evaluation import csa_pv, japanese_pv
from yomi.engine.shogi.records.files import load_records, to_bytes
from yomi.engine.shogi.records.record import GameRecord, RecordedMove, RecordError, format_usi_line, joined
from yomi.engine.shogi.sfen import format_sfen

if TYPE_CHECKING:
    from yomi.engine.options import Options
    from yomi.engine.shogi.players.player import ShogiPlayer

PV_MOVES = 8
"""Moves of a line that a record gets."""
FORMS = {".csa": ".csa", ".kif": ".kif"} | dict.fromkeys((".kifu", ".ki2", ".ki2u", ".jkf", ".bod"), ".kifu")
"""Suffix of the annotated record by the suffix of the record; all others become CSA. KI2 has no room for comments."""


@dataclass(slots=True)
class AnnotatedShogi:
    """See yomi.engine.review.Annotated."""

    review: Review
    record: GameRecord
    suffix: str

    def files(self) -> dict[str, bytes]:
        """Return the record in its form."""
        annotate(self.record, self.review, japanese=self.suffix != ".csa")
        try:
            return {self.suffix: to_bytes([self.record], self.suffix)}
        except RecordError:
            if self.suffix != ".kif":
                raise
            return {".kifu": to_bytes([self.record], ".kifu")}  # a name that Shift JIS does not have


@dataclass(slots=True)
class Loaded:
    """A game of a file."""

    record: GameRecord
    suffix: str
    """Of the file that its annotated record goes to."""


class ShogiReviewer:
    """See yomi.engine.review.Reviewer."""

    def __init__(self, player: ShogiPlayer) -> None:
        """Review with a player, by the limits of its options; it does without its book."""
        self.player = player
        self._options = player.options.with_values({"own_book": False})

    def read(self, path: str) -> list[Loaded]:
        """Return the games of a file."""
        try:
            records = load_records(path, cut=True)
            if not all(record.moves for record in records):
                load_records(path)  # says what is wrong where the first move is
        except RecordError as error:
            raise ReviewError(str(error)) from None
        suffix = FORMS.get(Path(path).suffix.lower(), ".csa")
        return [Loaded(record, suffix) for record in records]

    def length(self, loaded: Loaded) -> int:
        """Return the positions of a game."""
        return len(loaded.record.moves) + 1

    def visits_per_second(self, loaded: Loaded) -> float:
        """Return the visits of a search in the middle of a game."""
        moves = loaded.record.moves
        game = ShogiGame(format_sfen(loaded.record.initial), entering_king=self.player.options.entering_king)
        for recorded in moves[: len(moves) // 2]:
            game.play(recorded.move)

        def search(options: Options) -> int:
            found = self.player.decide(Request(game, options)).report.visits
            self.player.clear()
            return found

        return speed_of(search, self._options)

    def review(self, loaded: Loaded, tick: Tick, known: KnownPositions | None = None) -> AnnotatedShogi:
        """Search every position of a game."""
        begin = time.monotonic()
        record, player, options = loaded.record, self.player, self.player.options
        game = ShogiGame(format_sfen(record.initial), entering_king=options.entering_king)
        player.new_game(game)
        known = known or KnownPositions()
        for index, recorded in enumerate((*record.moves, None)):
            if index not in known.found:
                known.add(index, self._judge(game, is_last=recorded is None))
            tick()
            if recorded is not None:
                game.play(recorded.move)
        found = [known.found[index] for index in range(len(record.moves) + 1)]
        opinions = _with_forced([opinion for opinion, _ in found], record)
        review = Review(
            game=GAME.name,
            score=GAME.score,
            engine=player.description,
            moves=reviewed_moves([each.move for each in record.moves], opinions, format_usi, PV_MOVES),
            opinions=opinions,
            names={BLACK: record.black, WHITE: record.white},
            result=record.ending,
            evaluations=sum(count for _, count in found),
            seconds=time.monotonic() - begin,
            info={"position": format_usi_line(GameRecord(record.initial))},
            notes=_notes(loaded),
            limit=limit_text(options),
        )
        return AnnotatedShogi(review, record, loaded.suffix)

    def close(self) -> None:
        """Release the engine."""
        self.player.close()

    def _judge(self, game: ShogiGame, *, is_last: bool) -> Judgement:
        """Return the judgement of a position."""
        color = game.side_to_move
        outcome = game.outcome()
        if outcome is not None and (is_last or outcome.ending == "TSUMI"):
            winrate = 0.5 if not outcome.winner else float(outcome.winner == color)
            return self._opinion(color, winrate, mate=0 if outcome.ending == "TSUMI" else None), 0
        if not is_last and len(game.searched_moves()) == 1:
            return None, 0
        decision = self.player.decide(Request(game, self._options))
        evaluations = 0 if decision.win else self.player.search.evaluations
        if decision.win:
            return self._opinion(color, 1.0), 0
        if not decision.report.moves:  # a single visit
            return self._opinion(color, 0.5, best=decision.move), evaluations
        best, visits = decision.report.moves[0], decision.report.playouts
        return self._opinion(color, best.winrate, best.move, best.pv, best.mate, visits), evaluations

    def _opinion(
        self,
        color: int,
        winrate: float,
        best: int | None = None,
        pv: tuple[int, ...] = (),
        mate: int | None = None,
        visits: int = 0,
    ) -> Opinion:
        """Return an opinion with its centipawns; a mate goes before a winrate."""
        if mate is not None:
            winrate = float(mate > 0)
        score = -float(MATE_SCORE) if mate == 0 else float(record_score(winrate, mate, self.player.options.centipawns))
        return Opinion(color, winrate, score, best, pv, mate, visits)


def _notes(loaded: Loaded) -> list[Note]:
    """Return the faults of the record, and the parts that the annotated record will not have."""
    notes = list(loaded.record.notes)
    if loaded.record.variations and loaded.suffix == ".csa":
        notes.append(Note(f"left out: the variations ({len(loaded.record.variations)}), which CSA does not have"))
    return notes


def _with_forced(found: list[Opinion | None], record: GameRecord) -> list[Opinion]:
    """Return the opinions with those filled in of positions that have one legal move: what follows says it."""
    opinions: list[Opinion] = []
    for index in range(len(found) - 1, -1, -1):
        opinion = found[index]
        if opinion is None:
            after = opinions[-1]
            move = record.moves[index].move
            turned = after.turned()
            opinion = Opinion(
                turned.color, turned.winrate, turned.score, move, (move, *after.pv), turned.mate, turned.visits
            )
        opinions.append(opinion)
    return opinions[::-1]


# -- the annotated record ------------------------------------------------------------------------------------------


def annotate(record: GameRecord, review: Review, *, japanese: bool) -> None:
    """Write a review into its record. It replaces an earlier review.

    Each move gets an evaluation (of the position after it, for the side that played it), the line expected after it,
    and a comment with the better move and the loss. The record's own evaluation becomes a comment.

    Args:
        record: the game.
        review: of the game.
        japanese: write moves in Japanese, otherwise in CSA.
    """
    record.comment = _with_comment(record.comment, f"reviewed by {review.engine}")
    placements, previous = record.placements(), None
    for index, (recorded, move) in enumerate(zip(record.moves, review.moves, strict=True)):
        before, after = placements[index], placements[index + 1]
        _keep_score(recorded, before, japanese)
        recorded.is_review = True
        score = move.after.score_for(move.color)
        recorded.score = None if score is None else round(score)
        recorded.pv = _line(move.after.pv[:PV_MOVES], after, recorded.move, japanese)
        better = _line(move.before.pv[:PV_MOVES], before, previous, japanese)
        recorded.comment = _with_comment(recorded.comment, describe(move, better))
        previous = recorded.move


def _keep_score(recorded: RecordedMove, before: Placement, japanese: bool) -> None:
    """Turn the record's own evaluation, if it has one that is not an earlier review's, into a comment.

    Its centipawns are for Black, as in all records.
    """
    if recorded.score is None or MARK in recorded.comment:
        return
    score = recorded.score if before.side == BLACK else -recorded.score
    line = japanese_pv(recorded, before) if japanese else csa_pv(recorded, before)
    recorded.comment = joined(recorded.comment, f"evaluation of the record: {score} {line}".rstrip())


def _with_comment(comment: str, text: str) -> str:
    kept = [line for line in comment.split("\n") if line and not line.startswith(MARK)]
    return "\n".join([*kept, MARK + text])


def _line(moves: Iterable[int], placement: Placement, previous: int | None, japanese: bool) -> str:
    target = None if previous is None else target_of(previous)
    return " ".join(japanese_line(moves, placement, target) if japanese else csa_line(moves, placement))


def describe(move: ReviewedMove, better: str) -> str:
    """Return what a review says of a move, on one line; `better` is the best line in words."""
    parts = [f"{100 * move.winrate_after:.1f}%"]
    if move.is_best:
        parts.append("the best move")
    elif better:
        parts.append(f"best {100 * move.before.winrate:.1f}%: {better}")
        parts.append(f"loss {100 * move.winrate_loss:.1f}%")
    return "; ".join(parts)
