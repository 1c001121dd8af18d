"""Self-play of Go: the records of `yomi selfplay`, and games for the learning loop."""

import functools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.clients.client import Evaluation
from yomi.engine.color import BLACK
from yomi.engine.go.game import GoGame, new_game
from yomi.engine.go.points import board_of, square
from yomi.engine.go.record_files import load_records
from yomi.engine.go.rules import Ko, Rules
from yomi.engine.go.scoring import GoReferee, final_score, owners, read_result, sgf_result
from yomi.engine.go.sgf import GameRecord, SgfError, to_sgf
from yomi.engine.learning.rows import Encoder, RecordedGame, counts_of, planes_of, plies_by_move
from yomi.engine.learning.selfplay import FinishedGame, Learnable, Outcome
from yomi.engine.options import MAX_KOMI, Options
from yomi.engine.play import Ended
from yomi.engine.players.request import Decision
from yomi.engine.reviews.review import LETTERS
from yomi.engine.search.types import Counts
from yomi.errors import reraised
from yomi.native.go.spec import go_spec
from yomi.native.spec import GameSpec
from yomi.nets.data.shards import Arrays
from yomi.nets.metadata import FEATURE_SETS, KATAGO_FEATURES, FeatureSet
from yomi.settings import OptionError

KOMI_SPREAD = 1.0  # standard deviation of the komi around the fair komi
# Ko rules drawn with `any_rules`. Under each of them every game ends with a score.
KO_RULES: tuple[Ko, ...] = ("POSITIONAL", "SITUATIONAL")
# Share of games with a wider spread of the komi, and that spread as a multiple of the board's side. Networks also need
# to learn one-sided games.
WIDE_SHARE, WIDE_SPREAD = 0.15, 2.0


class LearnableGo(Learnable["GoGame"]):
    """Go for the learning loop. Games are played to the end, and the final board is scored without removing stones."""

    features = KATAGO_FEATURES
    network: Mapping[str, Any] = {"kind": "go", "blocks": 4, "channels": 48, "pooled": 16, "pooling_blocks": [1, 3]}
    suffix = ".sgf"
    has_score = True

    def __init__(
        self, options: Options, sizes: Sequence[int] = (), handicap: float = 0.0, *, any_rules: bool = False
    ) -> None:
        """Begin games with the options' size and rules.

        `sizes` are further board sizes. `handicap` is the share of games in which Black gets a few stones at random
        points. `any_rules` draws superko and suicide for each game.
        """
        super().__init__(GoReferee(final_score))
        self.fixed_settings: Mapping[str, Any] = {"sizes": list(sizes), "handicap": handicap, "any_rules": any_rules}
        self._board = square(board_of(options).side)
        self.boards: Sequence[Mapping[str, Any]] = [{"size": size} for size in dict.fromkeys((options.size, *sizes))]
        self._rules = Rules.parse(options.rules)
        self._handicap, self._any_rules = handicap, any_rules
        self.spec = go_spec(options.size)

    def new_game(self, rng: np.random.Generator, lead: float) -> GoGame:
        """Return a board with a random komi around `lead`, and possibly handicap stones and other rules."""
        spread = WIDE_SPREAD * self._board.side if rng.random() < WIDE_SHARE else KOMI_SPREAD
        komi = round(2.0 * rng.normal(lead, spread)) / 2.0
        rules = self._rules
        if self._any_rules:
            ko = KO_RULES[int(rng.integers(len(KO_RULES)))]
            rules = replace(rules, ko=ko, suicide=bool(rng.random() < 0.5))
        game = GoGame(self._board, rules, min(max(komi, -MAX_KOMI), MAX_KOMI))
        if rng.random() < self._handicap:
            most = max(2, self._board.side // 3)
            points = rng.choice(game.legal_moves()[:-1], int(rng.integers(2, most + 1)), replace=False)
            game.place_handicap([int(point) for point in points])
        return game

    def restart(self, game: GoGame) -> GoGame:
        """Return a new board with the komi, rules and handicap stones of `game`."""
        other = GoGame(game.board, game.rules, game.komi)
        if game.handicap:
            other.place_handicap([point for _, point in game.setup])
        return other

    def first_position(self, game: GoGame) -> dict[str, Any]:
        start, board = self.restart(game), game.board
        stones = [(LETTERS[color], board.vertex(point)) for color, point in start.stones()]
        return {"width": board.width, "height": board.height, "stones": stones, "first": LETTERS[start.side_to_move]}

    def outcome(self, game: GoGame, ended: Ended) -> Outcome:
        """Return winner, margin and owner of each point; only the winner if the final board was not counted."""
        if ended.score != final_score(game):  # not scored, or after dead stones were removed
            return Outcome(ended.winner)
        owned = np.zeros(game.board.area, np.float32)
        for point, color in owners(game).items():
            owned[game.board.index(point)] = 1.0 if color == BLACK else -1.0
        return Outcome(ended.winner, ended.score, owned)

    def komi(self, game: GoGame) -> float:
        return float(game.position["komi"])

    def encode(self, positions: npt.NDArray[np.void], history: npt.NDArray[Any]) -> Arrays:
        """Return KataGo's planes and numbers."""
        return planes_of(positions, history, self.spec, FEATURE_SETS[self.features])

    def record(self, finished: FinishedGame[GoGame], name: str) -> bytes:
        """Return the game as SGF. Comments contain winrate, lead and visits of each move; COUNTS the learned policy."""
        black, white = finished.names(name)
        comments, counts = [""], []
        for ply in plies_by_move(finished):
            found = None if ply is None else ply.found
            evaluation = None if found is None else Evaluation(0.5 + found.value / 2.0, found.score, found.visits)
            comments.append(str(evaluation or ""))
            counts.append(() if ply is None else counts_of(ply))
        result = sgf_result(finished.ended)
        return to_sgf(finished.game, comments, counts, black=black, white=white, result=result).encode("utf-8")


def replay(path: Path, features: FeatureSet, size: int) -> tuple[GameSpec, Encoder, list[RecordedGame[GoGame]]]:
    if features.name != KATAGO_FEATURES:
        raise OptionError(f"{path}: rows of {features.name} found, expected {KATAGO_FEATURES}")
    with reraised(SgfError, OptionError, f"{path}: "):
        spec = go_spec(size)
        show = functools.partial(planes_of, spec=spec, features=features)
        return spec, show, [_recorded(record) for record in load_records(path)]


def _recorded(record: GameRecord) -> RecordedGame[GoGame]:
    """Return a record as a game for the learning loop. This plays through it once."""
    winner, _, points = read_result(record.result)
    moves = [move for _, move in record.game().moves]
    margin = None if math.isnan(points) else points if winner == BLACK else -points
    return RecordedGame(record.game(0), moves, winner, margin)


class GoRecorder:
    """Starts games on an empty board and writes SGF."""

    row_bytes: Mapping[str, int] = {}

    def __init__(self, settings: object, options: Options) -> None:
        self._options = options
        self._comments = [""]
        self._counts: list[Counts] = []

    def begin(self, number: int) -> GoGame:
        self._comments, self._counts = [""], []
        return new_game(self._options)

    def record(self, game: GoGame, decision: Decision, seconds: float) -> None:
        """Store winrate, lead and visits for the move's comment, and the visits of all moves."""
        report = decision.report
        self._comments.append(str(Evaluation(report.winrate, report.score_lead, report.visits)))
        self._counts.append(report.counts)

    def files(self, game: GoGame, ended: Ended, name: str) -> dict[str, bytes]:
        date, result = time.strftime("%Y-%m-%d"), sgf_result(ended)
        text = to_sgf(game, self._comments, self._counts, black=name, white=name, result=result, date=date)
        return {".sgf": text.encode("utf-8")}
