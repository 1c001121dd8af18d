"""Shogi's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yomi.engine.game import Game, lazy
from yomi.engine.records import Score
from yomi.engine.shogi.commands import EXAMPLES, FLAGS, make_dataset, play_dataset

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping
    from pathlib import Path

    from yomi.engine.evaluators.network import FileEvaluator
    from yomi.engine.game import BenchmarkPositions, Say
    from yomi.engine.learning.replay import Recorded, Show
    from yomi.engine.options import Options, Value
    from yomi.engine.players.precision import Sampling
    from yomi.engine.shogi.game import ShogiGame
    from yomi.engine.shogi.learning import LearnableShogi
    from yomi.engine.shogi.players.player import ShogiPlayer
    from yomi.engine.shogi.referee import ShogiReferee
    from yomi.engine.shogi.review import ShogiReviewer
    from yomi.engine.shogi.selfplay import ShogiRecorder
    from yomi.engine.shogi.terminal import ShogiTerminalGame
    from yomi.native.spec import GameSpec
    from yomi.nets.data.shards import Dataset
    from yomi.nets.data.sparse import SparseEncoder
    from yomi.nets.features import FeatureSet

LEAF_MATES = (0, 0, 0, 0, 1, 1, 3, 3, 3, 3)
ROOT_MATES, ROOT_MATES_OF_NETWORKS = (0, 0, 0, 1, 3, 5, 7, 9, 11, 33), (0, 0, 1, 3, 3, 5, 7, 9, 11, 33)
"""Plies of the mate searches at leaves and at the root, by level."""
MATERIAL_VISITS = {8: 1000, 9: 3000, 10: 10000}
"""Of levels that have others than those of Go with rollouts."""


class Shogi(Game["ShogiGame", "ShogiPlayer"]):
    """Shogi."""

    name = "shogi"
    title = "shogi"
    protocol = "usi"
    networks = "dlshogi's .onnx, nn.bin"
    default_evaluator = "material"
    # A mate would flatten all else.
    score = Score("cp", 0, "Black's evaluation (centipawns)", limit=3000, mean_limit=2000)
    suffixes = (".csa", ".kif", ".kifu", ".ki2", ".ki2u", ".jkf", ".bod", ".usi", ".sfen")
    rated_suffixes = (".csa", ".kif", ".kifu", ".ki2", ".ki2u", ".jkf")
    save_suffixes = (".kifu", ".kif", ".csa", ".usi", ".sfen")
    flags_fixed_by_record = ("sfen",)
    examples = EXAMPLES
    flags = FLAGS
    defaults: Mapping[str, Mapping[str, Value]] = {
        "selfplay": {"temperature_moves": 20, "max_moves": 320},
        "duel": {"max_moves": 320},
        "learn": {"max_moves": 320, "leaf_mate_depth": 1},
    }
    formats = lazy("yomi.engine.shogi.networks:FORMATS")
    new_game = lazy("yomi.engine.shogi.game:new_game")
    make_player = lazy("yomi.engine.shogi.players.player:ShogiPlayer")
    matches = lazy("yomi.engine.shogi.matches:ShogiMatches")
    start_play = lazy("yomi.engine.shogi.terminal:start_play")
    network_defaults = lazy("yomi.engine.shogi.players.setup:network_defaults")
    benchmark_setup = lazy("yomi.engine.shogi.measuring:measured")

    def __init__(self) -> None:
        """Learn from the usual position."""
        self._learned: dict[str, Any] = {}
        """Arguments of LearnableShogi."""

    def board_size(self, options: Options) -> int:
        """Return 9."""
        return 9

    def level_options(self, level: int, *, has_network: bool) -> Mapping[str, Value]:
        """Return the depth of the mate searches: shorter ones for weaker levels."""
        roots = ROOT_MATES_OF_NETWORKS if has_network else ROOT_MATES
        mates: dict[str, Value] = {"leaf_mate_depth": LEAF_MATES[level - 1], "root_mate_search": roots[level - 1]}
        if not has_network and level in MATERIAL_VISITS:
            mates["visits"] = MATERIAL_VISITS[level]
        return mates

    def referee(self, player: ShogiPlayer) -> ShogiReferee:
        """Return a referee, who needs no player's verdict."""
        from yomi.engine.shogi.referee import ShogiReferee

        return ShogiReferee()

    def format_opening(self, game: ShogiGame) -> str:
        """Return `startpos moves ...` in USI."""
        from yomi.engine.shogi.notation import format_usi
        from yomi.engine.shogi.sfen import START_WORD

        return f"{START_WORD} moves {' '.join(format_usi(move) for _, move in game.moves)}"

    def terminal(
        self, player: ShogiPlayer, game: ShogiGame, args: Namespace, advice: Mapping[str, Value]
    ) -> ShogiTerminalGame:
        """Return shogi in the terminal."""
        from yomi.engine.shogi.terminal import open_terminal

        return open_terminal(player, game, args.board, advice)

    def may_be_record(self, content: bytes) -> bool:
        """See whether it is anything but SGF: the forms of records of shogi have no beginning in common."""
        return not content.startswith(b"(")

    def reviewer(self, options: Options, path: Path) -> ShogiReviewer:
        """Return a reviewer of all forms of records."""
        from yomi.engine.shogi.review import ShogiReviewer

        return ShogiReviewer(self.make_player(options))

    def recorder(self, args: Namespace, options: Options) -> ShogiRecorder:
        """Return what writes the forms of records that are wanted."""
        from yomi.engine.shogi.selfplay import ShogiRecorder

        return ShogiRecorder(options, args.format, args.openings)

    def make_dataset(self, args: Namespace, say: Say) -> Dataset:
        """See Game."""
        return make_dataset(self, args, say)

    def encoder(self, features: str) -> SparseEncoder | None:
        """See Game; of shogi-board."""
        from yomi.engine.shogi.datasets.encoder import ShogiEncoder
        from yomi.nets.features import SHOGI_BOARD

        return ShogiEncoder() if features == SHOGI_BOARD else None

    def play_dataset(self, args: Namespace, say: Say) -> str:
        """See Game; positions are kept as hcpe, of which `yomi dataset make` makes a set."""
        return play_dataset(self, args, say)

    def learnable(self, options: Options) -> LearnableShogi:
        """See Game."""
        from yomi.engine.shogi.learning import LearnableShogi

        return LearnableShogi(options, **self._learned)

    def learning(self, args: Namespace, network: Mapping[str, Any] | None) -> Shogi:
        """See Game; openings are read once."""
        from yomi.engine.datasets.sources import named
        from yomi.engine.shogi.selfplay import read_openings

        other, openings = Shogi(), read_openings(args.openings)
        name = named(args.openings) if args.openings else ""
        other._learned = {"openings": openings, "named": name, "network": network}
        return other

    def replay(self, path: Path, features: FeatureSet, size: int) -> tuple[GameSpec, Show, list[Recorded[ShogiGame]]]:
        """See Game."""
        from yomi.engine.shogi.learning import replay

        return replay(path, features)

    def benchmark_positions(self, options: Options) -> BenchmarkPositions:
        """Return shogi with the options' mate search at leaves."""
        from yomi.engine.shogi.measuring import shogi_subject

        return shogi_subject(mate_depth=options.leaf_mate_depth)

    def sampling(self, network: FileEvaluator, options: Options) -> Sampling[ShogiGame]:
        """See Game."""
        from yomi.engine.shogi.players.setup import shogi_sampling

        return shogi_sampling(network)


GAME = Shogi()
