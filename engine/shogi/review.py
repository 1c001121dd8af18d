"""Reviews games of shogi: searches every position of a record and annotates it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from yomi.engine.color import BLACK, WHITE
from yomi.engine.options import Options
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
from yomi.engine.shogi.notation import csa_line, format_usi, japanese_line
from yomi.engine.shogi.placement import Placement, target_of
from yomi.engine.shogi.players.player import ShogiPlayer
from yomi.engine.shogi.records.files import load_records, to_bytes
from yomi.engine.shogi.records.japanese import csa_pv, japanese_pv
from yomi.engine.shogi.records.record import GameRecord, RecordedMove, RecordError, add_line, format_usi_line

PV_MOVES = 8  # moves of a line in an annotated record
# Suffix of the annotated record by the record's suffix; others become CSA. KI2 has no room for comments.
FORMS = {".csa": ".csa", ".kif": ".kif"} | dict.fromkeys((".kifu", ".ki2", ".ki2u", ".jkf", ".bod"), ".kifu")


@dataclass(slots=True)
class AnnotatedShogi:
    """A reviewed game. Implements yomi.engine.review.Annotated."""

    review: Review
    record: GameRecord
    suffix: str

    def files(self) -> dict[str, bytes]:
        annotate(self.record, self.review, japanese=self.suffix != ".csa")
        try:
            return {self.suffix: to_bytes([self.record], self.suffix)}
        except RecordError:
            if self.suffix != ".kif":
                raise
            return {".kifu": to_bytes([self.record], ".kifu")}  # a name that Shift JIS does not have


@dataclass(slots=True)
class LoadedRecord:
    record: GameRecord
    suffix: str  # of the annotated record


class ShogiReviewer:
    """Implements yomi.engine.review.Reviewer."""

    def __init__(self, player: ShogiPlayer) -> None:
        """Review with a player and the limits of its options, without its book."""
        self.player = player
        self._options = player.options.with_values({"own_book": False})

    def read(self, path: str) -> list[LoadedRecord]:
        try:
            records = load_records(path, cut=True)
            if not all(record.moves for record in records):
                # Reading without `cut` raises the error of the first move.
                load_records(path)
        except RecordError as error:
            raise ReviewError(str(error)) from None
        suffix = FORMS.get(Path(path).suffix.lower(), ".csa")
        return [LoadedRecord(record, suffix) for record in records]

    def length(self, loaded: LoadedRecord) -> int:
        return len(loaded.record.moves) + 1

    def visits_per_second(self, loaded: LoadedRecord) -> float:
        # The middle of a game is typical.
        record = loaded.record
        game = record.game(len(record.moves) // 2, entering_king=self.player.options.entering_king)

        def search(options: Options) -> int:
            # The tree is dropped, so that every measurement starts from nothing.
            found = self.player.decide(Request(game, options)).report.visits
            self.player.clear()
            return found

        return speed_of(search, self._options)

    def review(self, loaded: LoadedRecord, tick: Tick, known: KnownPositions | None = None) -> AnnotatedShogi:
        begin = time.monotonic()
        record, player, options = loaded.record, self.player, self.player.options
        game = record.game(0, entering_king=options.entering_king)
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
            moves=reviewed_moves([recorded.move for recorded in record.moves], opinions, format_usi, PV_MOVES),
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
        self.player.close()

    def _judge(self, game: ShogiGame, *, is_last: bool) -> Judgement:
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
        """Return an opinion with its centipawns. A mate overrides the winrate."""
        if mate is not None:
            winrate = float(mate > 0)
        score = -float(MATE_SCORE) if mate == 0 else float(record_score(winrate, mate, self.player.options.centipawns))
        return Opinion(color, winrate, score, best, pv, mate, visits)


def _notes(loaded: LoadedRecord) -> list[Note]:
    notes = list(loaded.record.notes)
    if loaded.record.variations and loaded.suffix == ".csa":
        notes.append(Note(f"left out: the variations ({len(loaded.record.variations)}), which CSA does not have"))
    return notes


def _with_forced(found: list[Opinion | None], record: GameRecord) -> list[Opinion]:
    # A position with one legal move was not searched: it gets the next position's opinion.
    opinions: list[Opinion] = []
    for index in range(len(found) - 1, -1, -1):
        opinion = found[index]
        if opinion is None:
            after, move = opinions[-1], record.moves[index].move
            opinion = replace(after.turned(), best=move, pv=(move, *after.pv))
        opinions.append(opinion)
    return opinions[::-1]


# -- the annotated record ------------------------------------------------------------------------------------------


def annotate(record: GameRecord, review: Review, *, japanese: bool) -> None:
    """Write a review into its record, in place of an earlier review.

    Each move gets an evaluation (of the position after it, for the side that played it), the line expected after it,
    and a comment with the better move and the loss. The record's own evaluation becomes a comment.
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
    """Turn the player's own evaluation into a comment, in centipawns for Black."""
    if recorded.score is None or MARK in recorded.comment:
        return
    score = recorded.score if before.side == BLACK else -recorded.score
    line = japanese_pv(recorded, before) if japanese else csa_pv(recorded, before)
    recorded.comment = add_line(recorded.comment, f"evaluation of the record: {score} {line}".rstrip())


def _with_comment(comment: str, text: str) -> str:
    kept = [line for line in comment.split("\n") if line and not line.startswith(MARK)]
    return "\n".join([*kept, MARK + text])


def _line(moves: Iterable[int], placement: Placement, previous: int | None, japanese: bool) -> str:
    target = None if previous is None else target_of(previous)
    return " ".join(japanese_line(moves, placement, target) if japanese else csa_line(moves, placement))


def describe(move: ReviewedMove, better: str) -> str:
    """Return a review's comment on a move in one line; `better` is the best line as text."""
    parts = [f"{100 * move.winrate_after:.1f}%"]
    if move.is_best:
        parts.append("the best move")
    elif better:
        parts.append(f"best {100 * move.before.winrate:.1f}%: {better}")
        parts.append(f"loss {100 * move.winrate_loss:.1f}%")
    return "; ".join(parts)
