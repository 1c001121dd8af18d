"""The result of a review: an opinion on every position, and the loss and class of every move. All games share it."""

import math
import operator
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE, opponent
from yomi.engine.mistakes import BOTH, CLASSES, DEFAULT, Thresholds
from yomi.engine.records import Note, Score
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.errors import LineError
from yomi.language import is_japanese, tr

JAPANESE_UNITS = {"visits": "探索", "nodes": "ノード", "playouts": "プレイアウト", "seconds": "秒", "depth": "手読み"}
LETTERS = {BLACK: "B", WHITE: "W"}
JAPANESE_SIDES = {"go": {BLACK: "黒", WHITE: "白"}, "shogi": {BLACK: "先手", WHITE: "後手"}}
MARK = "yomi: "  # begins a review's comments in a record; a new review replaces them

ONLY, SURPRISING = "only move", "surprising move"
OBVIOUS, UNEXPECTED = 0.5, 0.05  # priors: an only move above the first is no surprise; a best move below the second is
MIN_PRAISE_VISITS = 30  # of the search that praises a move
ALTERNATIVES, MIN_SHARE = 2, 0.1  # other good moves in a record, and their least share of the best move's visits
PHASES = ("opening", "middle game", "endgame")
CANDIDATES, PV_KEPT = 40, 12  # of a position's search: moves, and moves of their lines
MIN_LOSS = 0.0005  # smaller losses are 0.0% in the table, and their moves are not listed
FORCED = 0.9  # least share of the prior or of the visits of a forced move
NOISE_MOVES = 9  # best moves that show the noise of the searches around a move


class ReviewError(LineError, ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Candidate:
    """A move that the search considered. Values are those of the side to move."""

    move: int
    visits: int
    prior: float
    winrate: float
    score: float | None
    pv: tuple[int, ...]  # this move first


@dataclass(frozen=True, slots=True)
class Opinion:
    """The result of a position's search. Values are those of the best move, for the side to move."""

    color: int  # the side to move
    winrate: float  # [0, 1]
    score: float | None = None  # Go: lead in points; shogi: centipawns; None if the evaluator has no score
    best: int | None = None  # None if the game is over or won by declaration
    pv: tuple[int, ...] = ()  # principal variation, the best move first
    mate: int | None = None  # shogi: plies to the mate, negative for the side that is mated
    visits: int = 0  # shogi: playouts
    candidates: tuple[Candidate, ...] = ()  # best first
    ownership: str = ""  # Go: a letter for each point, row by row from the top left; see `ownership_letters`
    # The played move's values in the same search, if it has compared them with the best move's
    played_winrate: float | None = None
    played_score: float | None = None
    noise: float = 0.0  # how much the winrate changed in the last depths of the search
    score_noise: float = 0.0

    def winrate_for(self, color: int) -> float:
        return self.winrate if color == self.color else 1.0 - self.winrate

    def score_for(self, color: int) -> float | None:
        return self.score if self.score is None or color == self.color else -self.score

    def turned(self) -> "Opinion":
        """Return the opinion that follows for the position before, if the move to this one was forced."""
        mate = None if self.mate is None else -self.mate + (1 if self.mate <= 0 else -1)
        score = None if self.score is None else -self.score
        return Opinion(opponent(self.color), 1.0 - self.winrate, score, mate=mate, visits=self.visits)


def candidates_of(report: SearchReport, score: Callable[[MoveReport], float | None]) -> tuple[Candidate, ...]:
    """Return the visited moves of a report, best first. `score` returns the score of each."""
    return tuple(
        Candidate(move.move, move.visits, round(move.prior, 4), round(move.winrate, 4), score(move), move.pv[:PV_KEPT])
        for move in report.moves[:CANDIDATES]
    )


def ownership_letters(ownership: NDArray[np.float32] | None) -> str:
    """Return Black's ownership of each point (-1 to +1) as letters from A to z, or an empty text without ownership."""
    if ownership is None:
        return ""
    steps = np.rint((np.clip(ownership, -1.0, 1.0) + 1.0) * 0.5 * (ord("z") - ord("A"))).astype(int)
    return "".join(chr(ord("A") + step) for step in steps)


def ownership_values(letters: str) -> NDArray[np.float32]:
    """Return the ownership that `ownership_letters` has converted to letters."""
    codes = np.frombuffer(letters.encode("ascii"), np.uint8).astype(np.float32)
    return (codes - ord("A")) / np.float32(0.5 * (ord("z") - ord("A"))) - 1


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
    answered: Opinion | None = None  # the opinion after the answer; see `with_answers`
    is_mirrored: bool = False  # whether a symmetry of the position maps it to the best move
    noise: float = 0.0  # of a loss of score: see `with_noise`

    @property
    def is_best(self) -> bool:
        """Whether this is the engine's best move, or a mirror image of it."""
        return self.move == self.before.best or self.is_mirrored

    @property
    def _loses_nothing(self) -> bool:
        """Whether the move is as good as the best move, or leads to a certain mate."""
        return self.is_best or (self.after.mate is not None and self.after.mate <= 0)

    @property
    def settled(self) -> Opinion:
        """The opinion after the move, with the values after the answer if these are better for the mover."""
        if self.answered is None:
            return self.after
        values = [(each.winrate_for(self.color), each.score_for(self.color)) for each in (self.after, self.answered)]
        (winrate, score), (later, later_score) = values
        score = None if score is None or later_score is None else max(score, later_score)
        found = Opinion(self.color, max(winrate, later), score)
        side = self.after.color
        return replace(self.after, winrate=found.winrate_for(side), score=found.score_for(side))

    @property
    def winrate_after(self) -> float:
        """Winrate of the mover after the move: the winrate before it minus the loss, if one search has valued both."""
        after, loss = self.settled.winrate_for(self.color), self.winrate_loss
        if self._loses_nothing or self.before.played_winrate is None:
            return after
        expected = self.before.winrate_for(self.color) - loss
        return expected if loss else max(after, expected)  # the search after the move may find more

    @property
    def winrate_loss(self) -> float:
        """Loss of winrate against the best move; at least 0."""
        if self._loses_nothing:
            return 0.0
        best, played = self.before.winrate_for(self.color), self.before.played_winrate
        after = best - self.settled.winrate_for(self.color)
        return agreed_loss(after, after if played is None else best - played, max(self.before.noise, self.after.noise))

    @property
    def score_loss(self) -> float | None:
        """Loss in points or centipawns; None without scores."""
        return self.limited_loss(math.inf)

    @property
    def missed_mate(self) -> int | None:
        """Plies of a mate that existed before the move but not after it; None if no mate was missed."""
        mate, after = self.before.mate, self.after.mate
        is_missed = mate is not None and mate > 0 and not self.is_best and (after is None or after > 0)
        return mate if is_missed else None

    def limited_loss(self, limit: float) -> float | None:
        """Return `score_loss` computed with scores between -limit and limit. The loss is at most `limit`, too."""
        change = replace(self, after=self.settled).change(limit)
        if change is None or self._loses_nothing:
            return None if change is None else 0.0
        before, played = self.before.score_for(self.color), self.before.played_score
        inside = change if before is None or played is None else limited(before, limit) - limited(played, limit)
        return min(limit, agreed_loss(change, inside, max(self.before.score_noise, self.after.score_noise)))

    def change(self, limit: float) -> float | None:
        """Return the score before the move minus the score after it, both limited to +-`limit`; None without scores."""
        before, after = self.before.score_for(self.color), self.after.score_for(self.color)
        return None if before is None or after is None else limited(before, limit) - limited(after, limit)


def limited(score: float, limit: float) -> float:
    return max(-limit, min(limit, score))


def agreed_loss(after: float, inside: float, noise: float) -> float:
    """Return a move's loss, at least 0: the lesser of two searches' losses, or the greater minus `noise` if that is
    more.

    Args:
        after: loss by the search after the move.
        inside: loss by the search before the move, which has valued the played move beside the best one.
        noise: change of value that means nothing.
    """
    return max(0.0, min(after, inside), max(after, inside) - noise)


def reviewed_moves(
    moves: Sequence[int],
    opinions: Sequence[Opinion],
    name: Callable[[int], str],
    pv_moves: int,
    is_mirrored: Callable[[int, int, int], bool] = lambda *_: False,
) -> list[ReviewedMove]:
    """Return the moves of a record with the opinions before and after each move; the last opinion is on the final
    position.

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


def with_answers(moves: Sequence[ReviewedMove]) -> list[ReviewedMove]:
    """Return the moves with the opinions after their answers, if these were the best moves.

    Such a search looks a move further than the search before it. A loss counts as far as both see it.
    """
    found = []
    for move, answer in zip_longest(moves, moves[1:]):
        best = move.after.candidates[0].visits if move.after.candidates else math.inf
        is_answer = answer is not None and answer.is_best and answer.color != move.color
        is_deeper = answer is not None and answer.after.visits >= best
        found.append(replace(move, answered=answer.after) if answer is not None and is_answer and is_deeper else move)
    return found


def carried_back(found: Sequence[Opinion | None], moves: Sequence[int]) -> list[Opinion]:
    """Return the opinions, in which a position before a forced move gets the value of the position after it.

    The later search looks deeper. None is the opinion on a position with one legal move, which was not searched.
    """
    opinions: list[Opinion] = []
    for index in range(len(found) - 1, -1, -1):
        opinion = found[index]
        if opinion is None:
            after = opinions[-1]
            opinion = replace(after.turned(), best=moves[index], pv=(moves[index], *after.pv))
        elif opinions and _is_forced(opinion, moves[index], opinions[-1]):
            turned = opinions[-1].turned()
            opinion = replace(opinion, winrate=turned.winrate, score=turned.score, mate=turned.mate)
        opinions.append(opinion)
    return opinions[::-1]


def _is_forced(opinion: Opinion, move: int, after: Opinion) -> bool:
    """Return whether a move was nearly the only one, and the search after it has more visits than it had before."""
    if not opinion.candidates or opinion.candidates[0].move != move or opinion.color == after.color:
        return False
    best, visits = opinion.candidates[0], sum(each.visits for each in opinion.candidates)
    by_visits = best.prior > 0.0 and visits >= MIN_PRAISE_VISITS and best.visits >= FORCED * visits  # not alpha-beta
    return after.visits >= max(1, best.visits) and (best.prior >= FORCED or by_visits)


def with_noise(moves: Sequence[ReviewedMove], limit: float) -> list[ReviewedMove]:
    """Return the moves with their noise: the median change of score over the nearest moves that were the best.

    A perfect search would see no change at a best move. If there are too few best moves, the noise is 0.
    """
    # equal scores were carried back
    changes = [(move.number, abs(change)) for move in moves if move.is_best and (change := move.change(limit))]
    if len(changes) < NOISE_MOVES:
        return list(moves)

    def noise(number: int) -> float:
        nearest = sorted(changes, key=lambda each: abs(each[0] - number))[:NOISE_MOVES]
        return statistics.median(change for _, change in nearest)

    return [replace(move, noise=noise(move.number)) for move in moves]


@dataclass(slots=True)
class Review:
    """A game with the engine's opinions. Each kind of game has a subclass that adds the record."""

    game: str
    score: Score  # format of its scores
    engine: str  # the evaluator, on one line
    moves: list[ReviewedMove]
    opinions: list[Opinion]  # of the position before each move, and of the last position
    names: dict[int, str] = field(default_factory=dict)  # players by color, as far as the record names them
    result: str = ""
    date: str = ""
    evaluations: int = 0  # by the evaluator
    seconds: float = 0.0
    info: dict[str, Any] = field(default_factory=dict)  # for the JSON: size, komi, rules, initial position
    notes: list[Note] = field(default_factory=list)  # faults of the record
    limit: str = ""  # of each search, such as "100 visits"
    first_position: dict[str, Any] = field(default_factory=dict)  # for the page: see review.js, type Review
    sides: dict[int, str] = field(default_factory=dict)  # in Japanese, if they are not JAPANESE_SIDES
    phases: tuple[int, int] = (0, 0)  # numbers of the first moves of middle game and endgame, from 0
    format_move: Callable[[int], str] = str  # to GTP or USI
    japanese_line: Callable[[int, Sequence[int]], Sequence[str]] | None = None  # moves after a number of moves
    thresholds: Thresholds = DEFAULT

    @property
    def has_points(self) -> bool:
        """Whether both winrate and points decide the class of a move. Tables and pages then show points first."""
        return math.isfinite(self.score.whole) and all(opinion.score is not None for opinion in self.opinions)

    def files(self) -> dict[str, bytes]:
        """Return the annotated record as files by suffix. Raises ReviewError if it cannot be written."""
        raise NotImplementedError

    def board(self, turn: int) -> str:
        """Return the position after `turn` moves as text."""
        raise NotImplementedError

    def parse(self, turn: int, text: str) -> int:
        """Read a move in the position after `turn` moves. Raises ValueError, with one line, if it is not legal."""
        raise NotImplementedError

    def played_text(self, move: ReviewedMove) -> str:
        """Return a played move in the user's notation."""
        line = self.japanese_line if is_japanese() else None
        return move.text if line is None else "".join(line(move.number - 1, [move.move]))

    def better_line(self, move: ReviewedMove) -> Sequence[str]:
        """Return the best line before a move in the user's notation."""
        line = self.japanese_line if is_japanese() else None
        return move.pv_text if line is None else line(move.number - 1, move.before.pv[: len(move.pv_text)])

    def side(self, color: int) -> str:
        """Return the name of a side in the user's language."""
        return (self.sides or JAPANESE_SIDES[self.game])[color] if is_japanese() else COLOR_NAMES[color]

    def loss_of(self, move: ReviewedMove) -> float | None:
        """Return a move's loss in the unit of the thresholds; None if that is points and the scores are missing."""
        return self.thresholds.loss(move.winrate_loss, self._points(move), self.score)

    def _points(self, move: ReviewedMove) -> float | None:
        """Return a move's loss of score, reduced by the noise."""
        points = move.limited_loss(self.score.mean_limit)
        return None if points is None else max(0.0, points - move.noise)

    def accuracy_of(self, move: ReviewedMove) -> float:
        """Return a move's accuracy in percent. Lichess's formula is applied to the greater of both losses."""
        return min(100.0, max(0.0, 103.1668 * math.exp(-4.354 * self._share_of(move)) - 3.1669))

    def _share_of(self, move: ReviewedMove) -> float:
        """Return the greater loss, of winrate or of points, as a share of a won game: 0 to 1."""
        return 0.01 * (DEFAULT.loss(move.winrate_loss, self._points(move), self.score) or 0.0)

    def is_unclear(self, move: ReviewedMove) -> bool:
        """Return whether the value changes by half an inaccuracy, up or down: a search was too short."""
        points = max(0.0, abs(move.change(self.score.mean_limit) or 0.0) - move.noise)
        winrates = (opinion.winrate_for(move.color) for opinion in (move.before, move.after))
        change = self.thresholds.loss(abs(operator.sub(*winrates)), points, self.score)
        return (change or 0.0) >= 0.5 * self.thresholds.losses[0]

    def class_of(self, move: ReviewedMove) -> str:
        """Return "blunder", "mistake", "inaccuracy" or an empty text. A missed mate is an inaccuracy at least."""
        slack = "" if move.missed_mate is None else CLASSES[0]
        return self.thresholds.class_of(self.loss_of(move) or 0.0) or slack

    def verdict_of(self, move: ReviewedMove) -> str:
        """Return the review's remark on a move: the class of a mistake, ONLY, SURPRISING or no text."""
        if kind := self.class_of(move):
            return kind
        before = move.before
        if not move.is_best or before.visits < MIN_PRAISE_VISITS or not before.candidates:
            return ""
        prior = before.candidates[0].prior
        if prior < OBVIOUS and self.is_only_move(before):
            return ONLY
        return SURPRISING if 0.0 < prior < UNEXPECTED else ""  # alpha-beta has no priors

    def is_only_move(self, opinion: Opinion) -> bool:
        """Whether every other move that the search visited would be a mistake."""
        if opinion.visits < MIN_PRAISE_VISITS or len(opinion.candidates) < 2:
            return False
        loss = min(self._candidate_loss(opinion, each) for each in opinion.candidates[1:])
        return self.thresholds.class_of(loss) in CLASSES[1:]

    def alternatives(self, move: ReviewedMove) -> list[Candidate]:
        """Return other good moves instead of a mistake, best first: visited moves that are no mistakes."""
        first, *others = move.before.candidates or (None,)
        good = [
            each
            for each in others
            if first is not None
            and each.move != move.move
            and each.visits >= MIN_SHARE * first.visits
            and self.thresholds.class_of(self._candidate_loss(move.before, each)) not in CLASSES[1:]
        ]
        return good[:ALTERNATIVES]

    def _candidate_loss(self, opinion: Opinion, candidate: Candidate) -> float:
        """Return the loss of a candidate against the best move, in the unit of the thresholds."""
        best = opinion.candidates[0]  # the opinion's own value may have been carried back
        points = (best.score or 0.0) - (candidate.score or 0.0)
        return self.thresholds.loss(best.winrate - candidate.winrate, points, self.score) or 0.0

    def losses(self, winrate: float, points: float | None, more_digits: int = 0) -> list[str]:
        """Return a loss of winrate and of score as texts for the user, the more important one first."""
        texts = [f"{100 * winrate:.{1 + more_digits}f}%"]
        if points is not None:
            shown = f"{points:.{self.score.digits + more_digits}f}"
            texts.append(tr("{loss} points" if self.score.unit == "points" else "{loss} cp", loss=shown))
        return texts[::-1] if self.has_points else texts

    def phase_of(self, move: ReviewedMove) -> int:
        return sum(move.number > first for first in self.phases)

    def facts(self) -> str:
        """Return rules, komi, the limit of each search and the evaluator, on one line."""
        return tr(", ").join(filter(None, (*self._settings(), short_engine(self.engine))))

    def heading(self) -> str:
        """Return players, rules, komi and the limit of each search, on one line."""
        players = []
        for color in (BLACK, WHITE):
            name, side = self.names.get(color), self.side(color)
            players.append(tr("{name} ({side})", name=name, side=side) if name else side)
        return tr(", ").join([tr(" against ").join(players), *self._settings()])

    def _settings(self) -> list[str]:
        parts = []
        if "rules" in self.info:
            parts.append(tr("rules {rules}", rules=self.info["rules"]))
        if "komi" in self.info:
            parts.append(tr("komi {komi}", komi=f"{self.info['komi']:g}"))
        if self.thresholds != DEFAULT:
            parts.append(tr("thresholds {thresholds}", thresholds=self.thresholds))
        if self.limit:
            parts.append(tr("{limit} a position", limit=shown_limit(self.limit)))
        return parts

    def worst(self, color: int, count: int) -> list[ReviewedMove]:
        """Return the moves of a side that lost most, worst first. Moves that lost nothing are omitted.

        In games with points the class of a move decides first, then its loss of points.
        """
        moves = [
            move
            for move in self.moves
            if move.color == color and (self._share_of(move) >= MIN_LOSS or self.class_of(move))
        ]
        return sorted(moves, key=self._badness)[:count]

    def _badness(self, move: ReviewedMove) -> tuple[float, float, float, int]:
        if self.has_points and self.thresholds.unit == BOTH:
            rank = ("", *CLASSES).index(self.class_of(move))
            return -rank, -(move.score_loss or 0.0), -move.winrate_loss, move.number
        return -(self.loss_of(move) or 0.0), -move.winrate_loss, -(move.score_loss or 0.0), move.number

    def summary(self, color: int, phase: int | None = None) -> dict[str, Any]:
        """Return the number of a side's moves, the share of best moves, mean losses and the number of each class.

        `phase` is an index in PHASES; None for the whole game.
        """
        moves = [move for move in self.moves if move.color == color and phase in (None, self.phase_of(move))]
        losses = [move.limited_loss(self.score.mean_limit) for move in moves]
        scores = [loss for loss in losses if loss is not None]
        classes = [self.class_of(move) for move in moves]
        return {
            "moves": len(moves),
            "best": sum(move.is_best for move in moves) / len(moves) if moves else None,
            "accuracy": statistics.fmean(map(self.accuracy_of, moves)) if moves else None,
            "winrate_loss": statistics.fmean(move.winrate_loss for move in moves) if moves else None,
            "score_loss": statistics.fmean(scores) if scores else None,
            "classes": {name: classes.count(name) for name in CLASSES},
            "missed_mates": sum(move.missed_mate is not None for move in moves),
        }

    def _side(self, color: int) -> dict[str, Any]:
        phases = {name: self.summary(color, phase) for phase, name in enumerate(PHASES)}
        return {"name": self.names.get(color, ""), **self.summary(color), "phases": phases}

    def to_json(self) -> dict[str, Any]:
        """Return all results as JSON. Winrates and scores of positions are Black's."""
        return {
            "game": self.game,
            "engine": self.engine,
            **self.info,
            "thresholds": self.thresholds.text(self.score),
            "black": self._side(BLACK),
            "white": self._side(WHITE),
            "result": self.result,
            "evaluations": self.evaluations,
            "seconds": round(self.seconds, 3),
            "notes": [str(note) for note in self.notes],
            "positions": [self._position(turn, opinion) for turn, opinion in enumerate(self.opinions)],
            "moves": [self._move(move) for move in self.moves],
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

    def _move(self, move: ReviewedMove) -> dict[str, Any]:
        return {
            "number": move.number,
            "color": LETTERS[move.color],
            "move": move.text,
            "best": move.best_text or None,
            "pv": list(move.pv_text),
            "is_best": move.is_best,
            "class": self.class_of(move) or None,
            "winrate_before": round(move.before.winrate_for(move.color), 5),
            "winrate_after": round(move.winrate_after, 5),
            "winrate_loss": round(move.winrate_loss, 5),
            "score_loss": _rounded(move.score_loss),
            "missed_mate": move.missed_mate,
        }


def shown_limit(limit: str) -> str:
    """Return the text of a limit, such as "8 visits to 100 visits", in the user's language."""
    if is_japanese():
        limit = re.sub(r"([\d,]+) (\w+) to ([\d,]+) \2", r"\1〜\3 \2", limit).replace(" to ", "〜")  # the unit once
        for word, japanese in JAPANESE_UNITS.items():
            limit = limit.replace(f" {word}", f" {japanese}")
    return limit


def reviewed_by(review: Review, *, japanese: bool = False) -> str:
    """Return the first comment of an annotated record, which names the reviewer."""
    begin, limits = ("検討：", "、基準 ") if japanese else ("reviewed by ", ", thresholds ")
    thresholds = "" if review.thresholds == DEFAULT else f"{limits}{review.thresholds}"
    return f"{begin}{short_engine(review.engine)}{thresholds}"


def short_engine(engine: str) -> str:
    """Shorten an evaluator's description, such as `b10c384h6nbttflrs on cpu (...)`, to `yomi (b10c384)`."""
    name = engine.partition(" on ")[0]
    size = re.match(r"b\d+c\d+(nbt)?", name)
    return f"yomi ({size[0] if size else name})"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
