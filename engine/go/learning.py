"""Go for the learning loop: how games begin and end, and what is learned of their results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.clients.client import Evaluation
from engine.color import BLACK
from engine.go.datasets.games import parse_result
from engine.go.game import GoGame, score_text
from engine.go.referee import GoReferee, sgf_result
from engine.go.rules import Rules
from engine.go.scoring import owners, score
from engine.go.sgf import COUNTS, RULE_NAMES, GameRecord, SgfError, load_sgf_games
from engine.go.vertex import format_color
from engine.learning.learnable import Outcome
from engine.learning.replay import Recorded
from engine.learning.rows import counts_of, noted
from engine.option_row import OptionError
from engine.options import MAX_KOMI
from engine.version import VERSION
from native.go.board import PASS
from native.go.planes import policy_index
from native.go.spec import go_spec
from nets.metadata import KATAGO_FEATURES

if TYPE_CHECKING:
    from pathlib import Path

    from engine.learning.selfplay import Finished
    from engine.options import Options
    from engine.play import Ended
    from native.spec import GameSpec
    from nets.features import FeatureSet

KOMI_SPREAD = 1.0
"""Standard deviation of the komi around what is fair."""
WIDE_SHARE, WIDE_SPREAD = 0.15, 2.0
"""Share of the games whose komi is spread wider, and by how many of the board's sides: what is said of a game that one
side is far ahead in is learned, too."""


class LearnableGo:
    """See engine.learning.learnable.Learnable. Games are played to the end and scored as the board stands."""

    features = KATAGO_FEATURES
    network: Mapping[str, Any] = {"kind": "go", "blocks": 4, "channels": 48, "pooled": 16, "pooling_blocks": [1, 3]}
    suffix = ".sgf"
    points = True
    asked: Mapping[str, Any] = {}

    def __init__(self, options: Options) -> None:
        """Begin games by size and rules of the options; their komi is fair as far as the games of late tell it."""
        self._size, self._rules = options.size, Rules.parse(options.rules)
        self._rules_name = RULE_NAMES.get(self._rules.name or "", str(self._rules))
        self.spec = go_spec(self._size)
        self._referee = GoReferee(score)

    def begin(self, rng: np.random.Generator, lead: float) -> GoGame:
        """Return an empty board with a komi that is drawn."""
        spread = WIDE_SPREAD * self._size if rng.random() < WIDE_SHARE else KOMI_SPREAD
        komi = round(2.0 * rng.normal(lead, spread)) / 2.0
        return GoGame(self._size, self._rules, min(max(komi, -MAX_KOMI), MAX_KOMI))

    def again(self, game: GoGame) -> GoGame:
        """Return an empty board with the same komi."""
        return GoGame(game.size, game.rules, game.komi)

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

    def record(self, finished: Finished[GoGame], name: str) -> bytes:
        """Return SGF; a comment has winrate, lead and visits of each move, and COUNTS the policy that is learned."""
        game, name = finished.game, name.replace("\\", "\\\\").replace("]", "\\]")
        root = f"FF[4]GM[1]CA[UTF-8]AP[yomi:{VERSION}]SZ[{game.size}]KM[{game.komi:g}]RU[{self._rules_name}]"
        nodes = [f";{root}PB[{name}]PW[{name}]RE[{sgf_result(finished.ended)}]"]
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


def replay(path: Path, features: FeatureSet, size: int) -> tuple[GameSpec, list[Recorded[GoGame]]]:
    """See engine.game.Game.replay."""
    if features.name != KATAGO_FEATURES:
        raise OptionError(f"{path}: rows of {features.name} found, expected {KATAGO_FEATURES}")
    try:
        return go_spec(size), [_recorded(record) for record in load_sgf_games(path)]
    except SgfError as error:
        raise OptionError(f"{path}: {error}") from None


def _recorded(record: GameRecord) -> Recorded[GoGame]:
    """Return a recorded game, which is played through once."""
    winner, _, points = parse_result(record.result)
    moves = [move for _, move in record.game().moves]
    margin = None if math.isnan(points) else points if winner == BLACK else -points
    return Recorded(record.game(0), moves, winner if winner >= 0 else None, margin)
