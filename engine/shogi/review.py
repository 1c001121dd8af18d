"""Reviews games of shogi: searches every position of a record and annotates it."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from yomi.engine.color import BLACK, WHITE
from yomi.engine.mistakes import Thresholds
from yomi.engine.options import Options
from yomi.engine.play import MATE
from yomi.engine.players.request import Request
from yomi.engine.records import MATE_SCORE, Note, record_score
from yomi.engine.reviews.review import Opinion, Review, ReviewError, candidates_of, limited, reviewed_moves
from yomi.engine.reviews.scans import TRIAL_SHARE, Add, Judgement, Reviewer, Scan, part_of
from yomi.engine.search.types import Limits, MoveReport
from yomi.engine.shogi.descriptor import GAME
from yomi.engine.shogi.diagram import draw
from yomi.engine.shogi.game import ShogiGame, rules_of
from yomi.engine.shogi.notation import format_usi, japanese_line, parse_any
from yomi.engine.shogi.players.player import ShogiPlayer
from yomi.engine.shogi.records.files import load_records, to_bytes
from yomi.engine.shogi.records.japanese import sides_of
from yomi.engine.shogi.records.record import GameRecord, RecordError, format_usi_line
from yomi.engine.shogi.reviewed_record import PV_MOVES, annotate
from yomi.errors import reraised
from yomi.language import is_japanese, tr

# Shares of the limit, for alpha-beta: the search of all moves, and the search without the best and the played
FIRST_SHARE, OTHER_SHARE = 0.6, 0.15
CLEAR = 2.0  # searches that agree on this many times an inaccuracy need no more nodes
TRIAL_NODES = 5000  # of the first search that measures the speed of alpha-beta
PHASES = (30, 80)  # numbers of the first moves of middle game and endgame: a rough habit
# Suffix of the annotated record by the record's suffix; others become CSA. KI2 has no room for comments.
FORMS = {".csa": ".csa", ".kif": ".kif"} | dict.fromkeys((".kifu", ".ki2", ".ki2u", ".jkf", ".bod"), ".kifu")


@dataclass(slots=True, kw_only=True)
class ShogiReview(Review):
    record: GameRecord
    games: Sequence[ShogiGame]  # before each move, and after the last one
    suffix: str  # of the annotated record

    def files(self) -> dict[str, bytes]:
        annotate(self.record, self, japanese=self.suffix != ".csa")
        try:
            return {self.suffix: to_bytes([self.record], self.suffix)}
        except RecordError:
            if self.suffix != ".kif":
                raise
            return {".kifu": to_bytes([self.record], ".kifu")}  # a name that Shift JIS does not have

    def board(self, turn: int) -> str:
        return draw(self.games[turn], japanese=is_japanese())

    def parse(self, turn: int, text: str) -> int:
        game = self.games[turn]
        move = parse_any(text, game.placement, game.last_target, game.is_legal)
        if not game.is_legal(move):
            raise ValueError(tr("{move} is illegal here, expected a legal move such as 7g7f", move=text))
        return move


@dataclass(frozen=True, slots=True)
class Played:
    """The move that was played in a position, and the opinion after it."""

    move: int
    after: Opinion | None  # of the position after it; None if it is unknown
    thresholds: Thresholds


@dataclass(slots=True)
class LoadedRecord:
    """A record to review. Implements yomi.engine.reviews.scans.LoadedGame."""

    record: GameRecord
    suffix: str  # of the annotated record
    rules: Mapping[str, Any]  # of `ShogiGame`

    @property
    def positions(self) -> int:
        return len(self.record.moves) + 1

    @property
    def line(self) -> list[int]:
        return [recorded.move for recorded in self.record.moves]

    def games(self) -> list[ShogiGame]:
        """Return the game before each move, and after the last one."""
        return self.record.games(**self.rules)


def open_reviewer(options: Options, path: Path) -> "ShogiReviewer":
    return ShogiReviewer(ShogiPlayer(options))


class ShogiReviewer(Reviewer[LoadedRecord]):
    def __init__(self, player: ShogiPlayer) -> None:
        """Review with a player, within the limits of its options and without its book."""
        super().__init__(player.options.with_values({"own_book": False}))
        self.player = player
        self.unit = player.search.unit
        self._is_alpha_beta = self.unit == "nodes"
        if self._is_alpha_beta:
            self.trial_visits = TRIAL_NODES

    def read(self, path: str) -> list[LoadedRecord]:
        with reraised(RecordError, ReviewError):
            records = load_records(path, cut=True)
            if not all(record.moves for record in records):
                # Reading without `cut` raises the error of the first move.
                load_records(path)
        suffix = FORMS.get(Path(path).suffix.lower(), ".csa")
        return [LoadedRecord(record, suffix, rules_of(self.options)) for record in records]

    def try_search(self, loaded: LoadedRecord, options: Options) -> int:
        middle = loaded.positions // 2
        for index in sorted(range(loaded.positions), key=lambda index: abs(index - middle)):
            game = loaded.record.game(index, **loaded.rules)
            if len(game.searched_moves()) > 1:
                found = self.player.decide(Request(game, options)).report.visits
                self.player.clear()
                if found >= TRIAL_SHARE * (options.visits or 0):
                    return found
        return 0

    def search(self, loaded: LoadedRecord, scan: Scan, add: Add) -> None:
        games = loaded.games()
        self.player.new_game(games[0])
        # Backwards the table of alpha-beta knows what follows, and each search is compared with the search after the
        # move. Forwards the tree below the played move is kept.
        for index in sorted(scan.positions, reverse=self._is_alpha_beta):
            is_last, played = index == loaded.positions - 1, None
            if self._is_alpha_beta and not is_last:
                played = Played(loaded.line[index], scan.known.latest(index + 1), scan.thresholds)
            add(index, self._evaluate(games[index], scan.options, is_last=is_last, played=played))

    def annotate(self, loaded: LoadedRecord, opinions: list[Opinion]) -> ShogiReview:
        record, games, notes = loaded.record, loaded.games(), list(loaded.record.notes)
        if record.variations and loaded.suffix == ".csa":
            notes.append(Note(f"left out: the variations ({len(record.variations)}), which CSA does not have"))

        def line_in_japanese(turn: int, moves: Sequence[int]) -> list[str]:
            return japanese_line(moves, games[turn].placement, games[turn].last_target)

        return ShogiReview(
            game=GAME.name,
            score=GAME.score,
            engine=self.player.description,
            moves=reviewed_moves(loaded.line, opinions, format_usi, PV_MOVES),
            opinions=opinions,
            names={BLACK: record.black, WHITE: record.white},
            result=record.ending,
            date=record.info.get("START_TIME", "").partition(" ")[0],
            info={"position": format_usi_line(GameRecord(record.initial))},
            notes=notes,
            first_position={"sfen": games[0].sfen()},
            sides=sides_of(record.initial),
            phases=PHASES,
            format_move=format_usi,
            japanese_line=line_in_japanese,
            record=record,
            games=games,
            suffix=loaded.suffix,
        )

    def close(self) -> None:
        self.player.close()

    def _evaluate(self, game: ShogiGame, options: Options, *, is_last: bool, played: Played | None = None) -> Judgement:
        """Search a position. If `played` is given, an alpha-beta search also compares that move with the best move."""
        color = game.side_to_move
        outcome = game.outcome()
        if outcome is not None and (is_last or outcome.ending == MATE):
            winrate = 0.5 if not outcome.winner else float(outcome.winner == color)
            return self._opinion(color, winrate, mate=0 if outcome.ending == MATE else None), 0
        if not is_last and len(game.searched_moves()) == 1:
            return None, 0
        shared = options if played is None else part_of(options, FIRST_SHARE)
        decision = self.player.decide(Request(game, shared))
        evaluations = 0 if decision.win else self.player.search.evaluations
        if decision.win:
            return self._opinion(color, 1.0), 0
        if not decision.report.moves:  # a single visit
            return self._opinion(color, 0.5, best=decision.move), evaluations
        best, visits = decision.report.moves[0], decision.report.playouts
        opinion = self._opinion(color, best.winrate, best.move, best.pv, best.mate, visits)
        opinion = replace(opinion, candidates=candidates_of(decision.report, self._score))
        if decision.report.spread is not None:
            low, high = decision.report.spread
            scores = (record_score(winrate, None, options.centipawns) for winrate in (high, low))
            opinion = replace(opinion, noise=high - low, score_noise=float(operator.sub(*scores)))
        if played is None or (
            best.mate is not None and best.mate > 0
        ):  # against a mate, the search after the move decides
            return opinion, evaluations
        opinion, more = self._compare(game, options, opinion, played, decision.report.depth)
        return opinion, evaluations + more

    def _compare(
        self, game: ShogiGame, options: Options, opinion: Opinion, played: Played, depth: int
    ) -> tuple[Opinion, int]:
        """Search the best and the played move together to a depth, and then another move; return opinion and nodes.

        If the played move looks like a mistake, best and played move are searched deeper.
        """
        evaluations = 0

        def search(share: float, allow: Sequence[int] | None, avoid: Sequence[int], depth: int | None) -> None:
            nonlocal opinion, evaluations
            part = part_of(options, share).with_values({"multipv": len(allow or (1,)), "root_mate_search": 0})
            report = self.player.decide(
                Request(game, part, limits=Limits(depth=depth), allow=allow, avoid=avoid)
            ).report
            evaluations += self.player.search.evaluations
            found = candidates_of(report, self._score)
            old = [each for each in opinion.candidates if each.move not in [new.move for new in found]]
            if allow is None:
                opinion = replace(opinion, candidates=(*opinion.candidates[:1], *found, *old[1:]))
                return
            best = report.moves[0]
            better = self._opinion(opinion.color, best.winrate, best.move, best.pv, best.mate, opinion.visits)
            value = next((each for each in found if each.move == played.move), None)  # a mate ends a search early
            opinion = replace(
                better,
                candidates=(*found, *old),
                played_winrate=None if value is None else value.winrate,
                played_score=None if value is None else value.score,
                noise=opinion.noise,
                score_noise=opinion.score_noise,
            )

        best = opinion.best
        assert best is not None
        if best != played.move:
            search(1.0, (best, played.move), (), depth)
            if is_unclear(opinion, played):
                search(1.0, (best, played.move), (), None)
        search(OTHER_SHARE, None, tuple({best, played.move}), depth)
        return opinion, evaluations

    def _score(self, move: MoveReport) -> float:
        return float(record_score(move.winrate, move.mate, self.player.options.centipawns))

    def _opinion(
        self,
        color: int,
        winrate: float,
        best: int | None = None,
        pv: tuple[int, ...] = (),
        mate: int | None = None,
        visits: int = 0,
    ) -> Opinion:
        """Return an opinion on a position, with centipawns. A mate overrides the winrate."""
        if mate is not None:
            winrate = float(mate > 0)
        score = -float(MATE_SCORE) if mate == 0 else float(record_score(winrate, mate, self.player.options.centipawns))
        return Opinion(color, winrate, score, best, pv, mate, visits)


def is_unclear(opinion: Opinion, played: Played) -> bool:
    """Return whether a move may be a mistake, unless both searches agree that it is a bad move."""
    if opinion.played_winrate is None:
        return False
    after, color = opinion if played.after is None else played.after, opinion.color
    values = ((opinion.played_winrate, opinion.played_score), (after.winrate_for(color), after.score_for(color)))
    best = limited(opinion.score or 0.0, GAME.score.mean_limit)
    losses = [
        played.thresholds.loss(
            opinion.winrate - winrate, best - limited(score or 0.0, GAME.score.mean_limit), GAME.score
        )
        or 0.0
        for winrate, score in values
    ]
    least = played.thresholds.losses[0]
    return max(losses) >= 0.8 * least and min(losses) < CLEAR * least
