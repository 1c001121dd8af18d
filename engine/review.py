"""Result of a review in all games: an opinion of every position, the loss of every move, text and picture.

The games' review modules search the records.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE, opponent
from yomi.engine.pictures import figure, png
from yomi.nets.errors import LineError

if TYPE_CHECKING:
    from yomi.engine.options import Options
    from yomi.engine.records import Note, Score

LETTERS = {BLACK: "B", WHITE: "W"}
MARK = "yomi: "  # begins a review's comments in a record; a new review replaces them

PV_MOVES = 6  # moves of a line in the table
WIDTH, HEIGHT = 10.0, 4.5  # inches
TRIAL_VISITS, MAX_TRIAL_VISITS, MAX_TRIALS, TRIAL_SECONDS = 50, 10**6, 8, 0.2
"""Searches that estimate the time of a review: first and greatest visits, number, and sufficient seconds."""
KEPT_VISITS = 0.4  # share of a search's visits that come from the search of the position before (Go)
MARKED = 3  # moves of each side that are marked
MIN_LOSS = 0.0005  # smaller losses are 0.0% in the table, and their moves are not listed


class ReviewError(LineError, ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Opinion:
    """Result of a position's search. Values are those of the best move, for the side to move."""

    color: int  # the side to move
    winrate: float  # [0, 1]
    score: float | None = None  # Go: lead in points; shogi: centipawns; None if the evaluator has no score
    best: int | None = None  # None if the game is over or won by declaration
    pv: tuple[int, ...] = ()  # principal variation, the best move first
    mate: int | None = None  # shogi: plies to the mate, negative for the side that is mated
    visits: int = 0  # shogi: playouts

    def winrate_for(self, color: int) -> float:
        return self.winrate if color == self.color else 1.0 - self.winrate

    def score_for(self, color: int) -> float | None:
        return self.score if self.score is None or color == self.color else -self.score

    def turned(self) -> Opinion:
        """Return the opinion of the position before, whose only move leads here."""
        mate = None if self.mate is None else -self.mate + (1 if self.mate <= 0 else -1)
        score = None if self.score is None else -self.score
        return Opinion(opponent(self.color), 1.0 - self.winrate, score, mate=mate, visits=self.visits)


@dataclass(frozen=True, slots=True)
class ReviewedMove:
    number: int  # from 1
    color: int
    move: int
    text: str  # GTP or USI
    best_text: str  # the best move; empty if there is none
    pv_text: tuple[str, ...]
    before: Opinion
    after: Opinion
    is_mirrored: bool = False  # whether a symmetry of the position maps it to the best move

    @property
    def is_best(self) -> bool:
        """Whether the engine would have played it, or a mirror image of it."""
        return self.move == self.before.best or self.is_mirrored

    @property
    def winrate_after(self) -> float:
        """Winrate, after the move, of the side that played it."""
        return self.after.winrate_for(self.color)

    @property
    def winrate_loss(self) -> float:
        """Loss of winrate against the best move; at least 0."""
        return 0.0 if self.is_best else max(0.0, self.before.winrate_for(self.color) - self.winrate_after)

    @property
    def score_loss(self) -> float | None:
        """Loss in points or centipawns; None without scores."""
        before, after = self.before.score_for(self.color), self.after.score_for(self.color)
        if before is None or after is None:
            return None
        return 0.0 if self.is_best else max(0.0, before - after)

    def limited_loss(self, limit: float) -> float | None:
        """Return `score_loss` for a mean: both scores and the loss count up to `limit`."""
        before, after = self.before.score_for(self.color), self.after.score_for(self.color)
        if before is None or after is None or self.is_best:
            return self.score_loss
        return min(limit, max(0.0, max(-limit, min(limit, before)) - max(-limit, min(limit, after))))


def reviewed_moves(
    moves: Sequence[int],
    opinions: Sequence[Opinion],
    name: Callable[[int], str],
    pv_moves: int,
    is_mirrored: Callable[[int, int, int], bool] = lambda *_: False,
) -> list[ReviewedMove]:
    """Return the moves of a record with the opinions before and after each move, the last one after the game.

    `name` formats a move. `is_mirrored` returns whether a symmetry of position n maps one move to another.
    """
    return [
        ReviewedMove(
            number=number,
            color=before.color,
            move=move,
            text=name(move),
            best_text="" if before.best is None else name(before.best),
            pv_text=tuple(map(name, before.pv[:pv_moves])),
            before=before,
            after=after,
            is_mirrored=before.best is not None and is_mirrored(number - 1, move, before.best),
        )
        for number, (move, before, after) in enumerate(zip(moves, opinions[:-1], opinions[1:], strict=True), 1)
    ]


@dataclass(slots=True)
class Review:
    """A game and the engine's opinions."""

    game: str
    score: Score  # format of its scores
    engine: str  # the evaluator, on one line
    moves: list[ReviewedMove]
    opinions: list[Opinion]  # of the position before each move, and of the last position
    names: dict[int, str] = field(default_factory=dict)  # players by color, as far as the record names them
    result: str = ""
    evaluations: int = 0  # by the evaluator
    seconds: float = 0.0
    info: dict[str, Any] = field(default_factory=dict)  # for the JSON: size, komi, rules, initial position
    notes: list[Note] = field(default_factory=list)  # faults of the record
    limit: str = ""  # of each search, such as "100 visits"

    def heading(self) -> str:
        """Return players, rules, komi and the limit of each search, on one line."""
        players = [
            f"{self.names[color]} ({COLOR_NAMES[color]})" if self.names.get(color) else COLOR_NAMES[color]
            for color in (BLACK, WHITE)
        ]
        parts = [" against ".join(players)]
        if "rules" in self.info:
            parts.append(f"rules {self.info['rules']}")
        if "komi" in self.info:
            parts.append(f"komi {self.info['komi']:g}")
        return ", ".join([*parts, f"{self.limit} a position"] if self.limit else parts)

    def worst(self, color: int, count: int) -> list[ReviewedMove]:
        """Return the moves of a side that lost most winrate, worst first, without moves that lost nothing."""
        moves = [move for move in self.moves if move.color == color and move.winrate_loss >= MIN_LOSS]
        return sorted(moves, key=lambda move: (-move.winrate_loss, -(move.score_loss or 0.0), move.number))[:count]

    def summary(self, color: int) -> dict[str, Any]:
        """Return the number of a side's moves, the share of best moves, and mean losses."""
        moves = [move for move in self.moves if move.color == color]
        losses = [move.limited_loss(self.score.mean_limit) for move in moves]
        scores = [loss for loss in losses if loss is not None]
        return {
            "name": self.names.get(color, ""),
            "moves": len(moves),
            "best": sum(move.is_best for move in moves) / len(moves) if moves else None,
            "winrate_loss": statistics.fmean(move.winrate_loss for move in moves) if moves else None,
            "score_loss": statistics.fmean(scores) if scores else None,
        }

    def to_json(self) -> dict[str, Any]:
        """Return all results. Winrates and scores of positions are Black's."""
        return {
            "game": self.game,
            "engine": self.engine,
            **self.info,
            "black": self.summary(BLACK),
            "white": self.summary(WHITE),
            "result": self.result,
            "evaluations": self.evaluations,
            "seconds": round(self.seconds, 3),
            "notes": [str(note) for note in self.notes],
            "positions": [self._position(turn, opinion) for turn, opinion in enumerate(self.opinions)],
            "moves": [_move(move) for move in self.moves],
        }

    def _position(self, turn: int, opinion: Opinion) -> dict[str, Any]:
        return {
            "turn": turn,
            "side_to_move": LETTERS[opinion.color],
            "winrate": round(opinion.winrate_for(BLACK), 5),
            "score": _rounded(opinion.score_for(BLACK)),
            "mate": opinion.mate,
            "visits": opinion.visits,
        }


def _move(move: ReviewedMove) -> dict[str, Any]:
    return {
        "number": move.number,
        "color": LETTERS[move.color],
        "move": move.text,
        "best": move.best_text or None,
        "pv": list(move.pv_text),
        "is_best": move.is_best,
        "winrate_before": round(move.before.winrate_for(move.color), 5),
        "winrate_after": round(move.winrate_after, 5),
        "winrate_loss": round(move.winrate_loss, 5),
        "score_loss": _rounded(move.score_loss),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


class Annotated(Protocol):
    review: Review

    def files(self) -> dict[str, bytes]:
        """Return the annotated record by file suffix, or raise ReviewError if it cannot be written."""


Tick = Callable[[], None]  # called after every position
Judgement = tuple[Opinion | None, int]  # opinion (None if one move is forced), and the evaluations that it took


class KnownPositions:
    """The searched positions of a game. A review adds to them, one after another."""

    def __init__(self, found: Mapping[int, Judgement] | None = None) -> None:
        """Begin with the judgements of some positions, by their numbers from 0."""
        self.found = dict(found or {})

    def add(self, index: int, judgement: Judgement) -> None:
        """Add a position. Threads may call this, one at a time."""
        self.found[index] = judgement


def limit_text(options: Options) -> str:
    """Return the limits of a search as text, such as "100 visits"."""
    given = {name: options.get(name) for name in ("visits", "playouts", "seconds", "depth")}
    return ", ".join(f"{value:,} {name}" for name, value in given.items() if value is not None)


def speed_of(search: Callable[[Options], int], options: Options) -> float:
    """Return the visits per second of a search that is long enough to measure.

    `search` starts from an empty tree and returns its visits. With a seed the number of searches does not depend on the
    clock.
    """
    wanted = min(n for n in (options.visits, options.playouts, MAX_TRIAL_VISITS) if n is not None)
    visits, speed = min(wanted, TRIAL_VISITS), 0.0
    for number in range(MAX_TRIALS if options.seed is None else 2):
        begin = time.monotonic()
        found = search(options.with_values({"visits": visits, "playouts": None, "seconds": None}))
        seconds = max(time.monotonic() - begin, 1e-9)
        speed = found / seconds
        if options.seed is None and seconds > (TRIAL_SECONDS if number else 5 * TRIAL_SECONDS):  # the first one is slow
            break
        visits = min(wanted, 4 * visits)
    return speed


class Reviewer(Protocol):
    def read(self, path: str) -> Sequence[Any]:
        """Return the games of a file, or raise ReviewError if the file cannot be read or contains an illegal move."""

    def length(self, record: Any) -> int:
        """Return the number of positions to search."""

    def visits_per_second(self, record: Any) -> float:
        """Return the speed of short searches of a position of the game. The tree is dropped afterwards."""

    def review(self, record: Any, tick: Tick, known: KnownPositions | None = None) -> Annotated:
        """Search every unknown position of a game, and add it to the known ones."""

    def close(self) -> None: ...


# -- as text -------------------------------------------------------------------------------------------------------


def table(review: Review, count: int) -> str:
    """Return the worst `count` moves of each side as a table, below a summary of the side."""
    blocks = []
    for color in (BLACK, WHITE):
        blocks.append("\n".join([_headline(review, color), *_rows(review, review.worst(color, count))]))
    return "\n\n".join(blocks)


def _headline(review: Review, color: int) -> str:
    summary, score = review.summary(color), review.score
    name = f" ({summary['name']})" if summary["name"] else ""
    if not summary["moves"]:
        return f"{COLOR_NAMES[color]}{name}: no moves"
    parts = [
        f"{summary['moves']} moves",
        f"{100 * summary['best']:.0f}% as the engine",
        f"mean loss {100 * summary['winrate_loss']:.2f}%",
    ]
    if summary["score_loss"] is not None:
        parts.append(f"{summary['score_loss']:.{score.digits + 1}f} {score.unit}")
    return f"{COLOR_NAMES[color]}{name}: {', '.join(parts)}"


def _rows(review: Review, moves: list[ReviewedMove]) -> list[str]:
    if not moves:
        return ["  no move that lost anything"]
    lines = [f"  {'move':>4}  {'played':7} {'loss':>6}  {review.score.unit:>7}  {'before':>6}  {'after':>6}  better"]
    for move in moves:
        score = "" if move.score_loss is None else f"{move.score_loss:.{review.score.digits}f}"
        lines.append(
            f"  {move.number:>4}  {move.text:7} {100 * move.winrate_loss:>5.1f}%  {score:>7}"
            f"  {100 * move.before.winrate_for(move.color):>5.1f}%  {100 * move.winrate_after:>5.1f}%"
            f"  {' '.join(move.pv_text[:PV_MOVES])}"
        )
    return lines


# -- as a picture --------------------------------------------------------------------------------------------------


def draw(review: Review, title: str) -> bytes:
    """Return a PNG of a review, or raise PlotError."""
    drawn = figure(WIDTH, HEIGHT)
    axes = drawn.add_subplot()
    turns = range(len(review.opinions))
    winrates = [100.0 * opinion.winrate_for(BLACK) for opinion in review.opinions]
    axes.plot(turns, winrates, color="black", linewidth=1.4)
    axes.fill_between(turns, winrates, 50.0, color="0.85")
    axes.axhline(50.0, color="0.5", linewidth=0.8)
    for color, marker, fill in ((BLACK, "v", "black"), (WHITE, "^", "white")):
        for move in review.worst(color, MARKED):
            axes.plot(move.number, winrates[move.number], marker, color=fill, markeredgecolor="black")
            axes.annotate(
                f"{move.number}", (move.number, winrates[move.number]), textcoords="offset points", xytext=(4, 4)
            )
    axes.set(xlim=(0, max(1, len(winrates) - 1)), ylim=(0, 100), xlabel="move", ylabel="Black's winrate (%)")
    axes.set_title(title if title.isascii() else title.encode("ascii", "replace").decode("ascii"))
    scores = [opinion.score_for(BLACK) for opinion in review.opinions]
    if all(score is not None for score in scores):
        limit = review.score.limit
        shown = [max(-limit, min(limit, score or 0.0)) for score in scores]
        other = axes.twinx()
        other.plot(turns, shown, color="tab:blue", linewidth=0.9, alpha=0.7)
        widest = 1.1 * max(1.0, *map(abs, shown))
        other.set(ylim=(-widest, widest), ylabel=review.score.axis)
    return png(drawn)
