"""Go for the learning loop: how games begin and end, and what is learned of their results."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from yomi import __version__
from yomi.engine.clients.client import Evaluation
from yomi.engine.color import BLACK
from yomi.engine.go.datasets.games import parse_result
from yomi.engine.go.game import GoGame, score_text
from yomi.engine.go.record_files import load_records
from yomi.engine.go.referee import GoReferee, sgf_result
from yomi.engine.go.rules import Ko, Rules
from yomi.engine.go.scoring import owners, score
from yomi.engine.go.sgf import COUNTS, RULE_NAMES, GameRecord, SgfError
from yomi.engine.go.vertex import format_color
from yomi.engine.learning.learnable import Outcome
from yomi.engine.learning.replay import Recorded
from yomi.engine.learning.rows import counts_of, noted, planes_of
from yomi.engine.option_row import OptionError
from yomi.engine.options import MAX_KOMI
from yomi.native.go.board import PASS
from yomi.native.go.planes import policy_index
from yomi.native.go.spec import go_spec
from yomi.nets.features import FEATURE_SETS
from yomi.nets.metadata import KATAGO_FEATURES

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from yomi.engine.learning.replay import Show
    from yomi.engine.learning.selfplay import Finished
    from yomi.engine.options import Options
    from yomi.engine.play import Ended
    from yomi.native.spec import GameSpec
    from yomi.nets.data.shards import Arrays
    from yomi.nets.features import FeatureSet

KOMI_SPREAD = 1.0
"""Standard deviation of the komi around what is fair."""
KO_RULES: tuple[Ko, ...] = ("POSITIONAL", "SITUATIONAL")
"""That rules are drawn of: those by which every game ends with a score."""
WIDE_SHARE, WIDE_SPREAD = 0.15, 2.0
"""Share of the games whose komi is spread wider, and by how many of the board's sides: what is said of a game that one
side is far ahead in is learned, too."""


class LearnableGo:
    """See yomi.engine.learning.learnable.Learnable. Games are played to the end and scored as the board stands."""

    features = KATAGO_FEATURES
    network: Mapping[str, Any] = {"kind": "go", "blocks": 4, "channels": 48, "pooled": 16, "pooling_blocks": [1, 3]}
    suffix = ".sgf"
    points = True

    def __init__(
        self, options: Options, sizes: Sequence[int] = (), handicap: float = 0.0, *, any_rules: bool = False
    ) -> None:
        """Begin games by size and rules of the options; their komi is fair as far as the games of late tell it.

        Args:
            options: the options.
            sizes: of further boards.
            handicap: share of the games in which Black has a few stones at random points before White's first move.
            any_rules: draw superko and suicide of each game, in place of the options'.
        """
        self.asked: Mapping[str, Any] = {"sizes": list(sizes), "handicap": handicap, "any_rules": any_rules}
        self.boards: Sequence[Mapping[str, Any]] = [{"size": size} for size in dict.fromkeys((options.size, *sizes))]
        self._size, self._rules = options.size, Rules.parse(options.rules)
        self._handicap, self._any_rules = handicap, any_rules
        self.spec = go_spec(self._size)
        self._referee = GoReferee(score)

    def begin(self, rng: np.random.Generator, lead: float) -> GoGame:
        """Return a board with a komi that is drawn, perhaps with handicap stones and other rules."""
        spread = WIDE_SPREAD * self._size if rng.random() < WIDE_SHARE else KOMI_SPREAD
        komi = round(2.0 * rng.normal(lead, spread)) / 2.0
        rules = self._rules
        if self._any_rules:
            ko = KO_RULES[int(rng.integers(len(KO_RULES)))]
            rules = replace(rules, ko=ko, suicide=bool(rng.random() < 0.5))
        game = GoGame(self._size, rules, min(max(komi, -MAX_KOMI), MAX_KOMI))
        if rng.random() < self._handicap:
            most = max(2, self._size // 3)
            points = rng.choice(game.legal_moves()[:-1], int(rng.integers(2, most + 1)), replace=False)
            game.place_handicap([int(point) for point in points])
        return game

    def again(self, game: GoGame) -> GoGame:
        """Return a board with the same komi, rules and handicap stones."""
        other = GoGame(game.size, game.rules, game.komi)
        if game.handicap:
            other.place_handicap([point for _, point in game.setup])
        return other

    def judge(self, game: GoGame) -> Ended | None:
        """Return how a game has ended; None while it goes on."""
        return self._referee.judge(game)

    def outcome(self, game: GoGame, ended: Ended) -> Outcome:
        """Return winner, margin and the owner of every point; the winner alone where the board has another."""
        margin = score(game)
        if score_text(margin) != ended.detail:
            return Outcome(ended.winner)
        owned = np.zeros(game.size**2, np.float32)
        for point, color in owners(game).items():
            owned[policy_index(game.size, point, 0)] = 1.0 if color == BLACK else -1.0
        return Outcome(ended.winner, margin, owned)

    def komi(self, game: GoGame) -> float:
        """Return the komi."""
        return float(game.position["komi"])

    def show(self, positions: npt.NDArray[np.void], history: npt.NDArray[Any]) -> Arrays:
        """Return KataGo's planes and numbers."""
        return planes_of(positions, history, self.spec, FEATURE_SETS[self.features])

    def record(self, finished: Finished[GoGame], name: str) -> bytes:
        """Return SGF; a comment has winrate, lead and visits of each move, and COUNTS the policy that is learned."""
        game = finished.game
        black, white = (each.replace("\\", "\\\\").replace("]", "\\]") for each in finished.names(name))
        rules = RULE_NAMES.get(game.rules.name or "", str(game.rules))
        root = f"FF[4]GM[1]CA[UTF-8]AP[yomi:{__version__}]SZ[{game.size}]KM[{game.komi:g}]RU[{rules}]"
        if game.handicap:
            stones = "".join(f"[{_sgf_point(point, game.size)}]" for _, point in game.setup)
            root += f"HA[{game.handicap}]AB{stones}"
        nodes = [f";{root}PB[{black}]PW[{white}]RE[{sgf_result(finished.ended)}]"]
        for (color, move), ply in zip(game.moves, noted(finished), strict=True):
            node = f";{format_color(color)}[{_sgf_point(move, game.size)}]"
            if ply is not None and ply.found is not None:
                found = ply.found
                node += f"C[{Evaluation(0.5 + found.value / 2.0, found.score, found.visits)}]"
                counts = "".join(f"[{_sgf_point(each, game.size)}:{n}]" for each, n in counts_of(ply))
                node += f"{COUNTS}{counts}" if counts else ""
            nodes.append(node)
        return f"({''.join(nodes)})\n".encode()


def _sgf_point(move: int, size: int) -> str:
    """Return a move as SGF writes it; a pass is empty. (With sgfmill a record takes a tenth of a small game's time.)"""
    if move == PASS:
        return ""
    index = policy_index(size, move, 0)
    return chr(ord("a") + index % size) + chr(ord("a") + index // size)


def replay(path: Path, features: FeatureSet, size: int) -> tuple[GameSpec, Show, list[Recorded[GoGame]]]:
    """See yomi.engine.game.Game.replay."""
    if features.name != KATAGO_FEATURES:
        raise OptionError(f"{path}: rows of {features.name} found, expected {KATAGO_FEATURES}")
    try:
        spec = go_spec(size)
        show = functools.partial(planes_of, spec=spec, features=features)
        return spec, show, [_recorded(record) for record in load_records(path)]
    except SgfError as error:
        raise OptionError(f"{path}: {error}") from None


def _recorded(record: GameRecord) -> Recorded[GoGame]:
    """Return a recorded game, which is played through once."""
    winner, _, points = parse_result(record.result)
    moves = [move for _, move in record.game().moves]
    margin = None if math.isnan(points) else points if winner == BLACK else -points
    return Recorded(record.game(0), moves, winner if winner >= 0 else None, margin)
