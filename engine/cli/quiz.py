"""`yomi review --quiz` in the terminal: next-move problems from the mistakes of a game."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from yomi.engine.cli.output import echo
from yomi.engine.mistakes import shown_class
from yomi.engine.review import Annotated, Review, ReviewedMove
from yomi.errors import printable
from yomi.language import tr

SHOW, LEAVE = ("?", "？", "show"), ("q", "quit", "終了")  # answers that are no moves
CORRECT, CORRECT_POINTS = 0.01, 0.5  # an answer that loses no more winrate and points is as good as the best move


def problems(review: Review, sides: Sequence[int]) -> list[ReviewedMove]:
    """Return the mistakes of some sides to which the search knows a better move, in the order of the game."""
    return [move for move in review.moves if move.color in sides and review.class_of(move) and move.before.candidates]


def ask_problems(name: str, annotated: Annotated, sides: Sequence[int], read: Callable[[], str | None]) -> bool:
    """Ask for the better move of each mistake. Return False if the user leaves.

    `read` returns a line of the user, or None at the end of the input.
    """
    review = annotated.review
    found = problems(review, sides)
    right = 0
    for number, move in enumerate(found, 1):
        echo(f"\n{annotated.board(move.number - 1)}")
        head = tr("{name}, problem {number} of {count}", name=printable(name), number=number, count=len(found))
        side = review.side(move.color)
        echo(tr("{problem}: {side} to move, move {number}", problem=head, side=side, number=move.number))
        while True:
            echo(tr("your move (? shows the answer, q leaves):"))
            line = read()
            if line is None or line.strip().lower() in LEAVE:
                return False
            if line.strip().lower() in SHOW:
                break
            try:
                answer = annotated.parse(move.number - 1, line.strip())
            except ValueError as error:
                echo(str(error))
                continue
            text, is_right = judge(review, move, answer)
            right += is_right
            echo(text)
            break
        echo(_answer(move, review))
    if found:
        echo("\n" + tr("{right} of {count} problems solved", right=right, count=len(found)))
    return True


def judge(review: Review, move: ReviewedMove, answer: int) -> tuple[str, bool]:
    """Return a sentence on an answer, and whether it is as good as the best move."""
    before = move.before
    if answer == before.best:
        return tr("Right: the best move."), True
    if answer == move.move:
        text = _loss(review, move.winrate_loss, move.score_loss)
        return tr("That is the move of the game: it loses {loss}.", loss=text), False
    known = next((each for each in before.candidates if each.move == answer), None)
    if known is None:
        return tr("The search did not consider this move."), False
    loss = max(0.0, before.winrate - known.winrate)
    points = None if before.score is None or known.score is None else max(0.0, before.score - known.score)
    text = _loss(review, loss, points)
    if loss <= CORRECT and not (review.has_points and (points or 0.0) > CORRECT_POINTS):
        return tr("Right: it loses {loss} only.", loss=text), True
    return tr("It loses {loss}.", loss=text), False


def _loss(review: Review, winrate: float, points: float | None) -> str:
    return tr(", ").join(review.losses(winrate, points if review.has_points else None))


def _answer(move: ReviewedMove, review: Review) -> str:
    line = review.better_line(move)
    return tr(
        "Best is {best}, {winrate}%: {line}. Played was {move}: {kind}, {loss}.",
        best=line[0] if line else move.best_text,
        winrate=f"{100 * move.before.winrate:.1f}",
        line=" ".join(line),
        move=review.played_text(move),
        kind=shown_class(review.class_of(move)),
        loss=_loss(review, move.winrate_loss, move.score_loss),
    )
