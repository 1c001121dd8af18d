"""Annotated record of a review of shogi: evaluations, comments and, in KIF, variations."""

import itertools
from collections.abc import Iterable, Sequence

from yomi.engine.color import BLACK
from yomi.engine.mistakes import JAPANESE
from yomi.engine.reviews.review import MARK, ONLY, SURPRISING, Review, ReviewedMove, reviewed_by
from yomi.engine.shogi.notation import csa_line, japanese_line
from yomi.engine.shogi.placement import Placement, target_of
from yomi.engine.shogi.records.japanese import csa_pv, japanese_pv
from yomi.engine.shogi.records.record import GameRecord, RecordedMove

PV_MOVES = 8  # moves of a line
TEXTS = {  # English, Japanese
    "best move": ("the best move", "最善手"),
    "best": ("best {}: {}", "最善 {}: {}"),
    "loss": ("loss {}", "損失 {}"),
    "missed": ("missed mate in {}", "{}手詰めを逃す"),
    "record": ("evaluation of the record: {}", "棋譜の評価値: {}"),
}
VERDICTS = {**JAPANESE, ONLY: "唯一の好手", SURPRISING: "意外な好手"}


def annotate(record: GameRecord, review: Review, *, japanese: bool) -> None:
    """Write a review into its record, replacing an earlier review.

    Each move gets an evaluation (of the position after it, for the side that played it), the line expected after it,
    and a comment with the better move and the loss. The record's own evaluation becomes a comment. In Japanese records
    (KIF) a mistake gets better moves and its refutation as variations.
    """
    record.comment = _with_comment(record.comment, reviewed_by(review, japanese=japanese))
    placements, previous = record.placements(), None
    record.variations = _own(record.variations)
    added: list[GameRecord] = []
    for index, (recorded, move) in enumerate(zip(record.moves, review.moves, strict=True)):
        before, after = placements[index], placements[index + 1]
        _keep_score(recorded, before, japanese)
        recorded.is_review = True
        score = move.after.score_for(move.color)
        recorded.score = None if score is None else round(score)
        recorded.pv = _line(move.after.pv[:PV_MOVES], after, recorded.move, japanese)
        better = _line(move.before.pv[:PV_MOVES], before, previous, japanese)
        recorded.comment = _with_comment(recorded.comment, describe(move, review.verdict_of(move), better, japanese))
        previous = recorded.move
        if japanese and review.class_of(move):
            reply = record.moves[index + 1].move if index + 1 < len(record.moves) else None
            added += [*_better(review, move, before), *_refutation(move, after, reply)]
    record.variations = _ordered(record.variations, added)


def _keep_score(recorded: RecordedMove, before: Placement, japanese: bool) -> None:
    """Convert the player's own evaluation to a comment, in centipawns for Black."""
    if recorded.score is None or MARK in recorded.comment:
        return
    score = recorded.score if before.side == BLACK else -recorded.score
    line = japanese_pv(recorded, before) if japanese else csa_pv(recorded, before)
    text = TEXTS["record"][japanese].format(f"{score} {line}".rstrip())
    recorded.comment = f"{recorded.comment}\n{text}" if recorded.comment else text


def _with_comment(comment: str, text: str) -> str:
    kept = [line for line in comment.split("\n") if line and not line.startswith(MARK)]
    return "\n".join([*kept, MARK + text])


def _line(moves: Iterable[int], placement: Placement, previous: int | None, japanese: bool) -> str:
    target = None if previous is None else target_of(previous)
    return " ".join(japanese_line(moves, placement, target) if japanese else csa_line(moves, placement))


def describe(move: ReviewedMove, verdict: str, better: str, japanese: bool) -> str:
    """Return the comment of a review on a move, on one line. `verdict` and `better` (the best line) are texts in it."""
    parts = [VERDICTS.get(verdict, "") if japanese else verdict] if verdict else []
    parts.append(_percent(move.winrate_after))
    if move.is_best:
        parts.append(TEXTS["best move"][japanese])
    elif better:
        parts.append(TEXTS["best"][japanese].format(_percent(move.before.winrate), better))
        parts.append(TEXTS["loss"][japanese].format(_percent(move.winrate_loss)))
    if move.missed_mate is not None:
        parts.append(TEXTS["missed"][japanese].format(move.missed_mate))
    return "; ".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


# -- variations ----------------------------------------------------------------------------------------------------


def _own(variations: Sequence[GameRecord]) -> list[GameRecord]:
    """Return the user's variations, and those of an earlier review from which a variation of the user branches off."""
    return [
        variation
        for variation, following in itertools.zip_longest(variations, variations[1:])
        if not variation.moves[0].comment.startswith(MARK)
        or (following is not None and following.initial.number > variation.initial.number)
    ]


def _better(review: Review, move: ReviewedMove, before: Placement) -> list[GameRecord]:
    """Return the better line and other good moves as variations of the position before a mistake."""
    found = _variation(before, move.before.pv, move.before.score, "最善 {}", move.before.winrate)
    for each in review.alternatives(move):
        found += _variation(before, each.pv, each.score, "次善 {}", each.winrate)
    return found


def _refutation(move: ReviewedMove, after: Placement, reply: int | None) -> list[GameRecord]:
    """Return the best answer to a mistake as a variation, if the game continued with a different move (`reply`)."""
    opinion = move.after
    if reply is None or opinion.pv[:1] in ((), (reply,)):
        return []
    return _variation(after, opinion.pv, opinion.score, "とがめる手 {}", opinion.winrate)


def _variation(
    start: Placement, line: Sequence[int], score: float | None, text: str, winrate: float
) -> list[GameRecord]:
    """Return a line as a variation, up to a move that cannot be played. If that is the first move, return an empty
    list.

    The first move gets the evaluation and a comment.
    """
    variation, placement = GameRecord(start), start
    for move in line[:PV_MOVES]:
        if placement.why_not(move) is not None:
            break
        placement = variation.add(placement, move)
    if not variation.moves:
        return []
    first = variation.moves[0]
    first.score, first.is_review = None if score is None else round(score), True
    first.comment = MARK + text.format(_percent(winrate))
    return [variation]


def _ordered(own: Sequence[GameRecord], added: Sequence[GameRecord]) -> list[GameRecord]:
    """Return all variations in KIF's order: a variation that branches off late comes first.

    A variation of the record that branches off another variation stays behind that variation.
    """
    blocks: list[list[GameRecord]] = []
    for variation in own:
        # A later start than the block's leaves a variation of the block.
        if blocks and variation.initial.number > blocks[-1][0].initial.number:
            blocks[-1].append(variation)
        else:
            blocks.append([variation])
    known = {(variation.initial, variation.moves[0].move) for variation in own}
    for variation in added:
        # The refutation of a mistake may also be the better line of the next mistake.
        if (first := (variation.initial, variation.moves[0].move)) not in known:
            known.add(first)
            blocks.append([variation])
    blocks.sort(key=lambda block: -block[0].initial.number)
    return [variation for block in blocks for variation in block]
