"""Go's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yomi.engine.game import Game, lazy
from yomi.engine.go.commands import EXAMPLES, FLAGS, make_dataset, play_dataset
from yomi.engine.options import ANALYSIS_DEFAULTS
from yomi.engine.records import Score

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from yomi.engine.evaluators.network import FileEvaluator
    from yomi.engine.game import BenchmarkPositions, Say
    from yomi.engine.go.game import GoGame
    from yomi.engine.go.learning import LearnableGo
    from yomi.engine.go.players.player import GoPlayer
    from yomi.engine.go.referee import GoReferee
    from yomi.engine.go.selfplay import GoRecorder
    from yomi.engine.go.terminal import GoTerminalGame
    from yomi.engine.options import Options, Value
    from yomi.engine.players.precision import Sampling
    from yomi.nets.data.shards import Dataset


class Go(Game["GoGame", "GoPlayer"]):
    """Go on boards of all sizes."""

    name = "go"
    title = "Go"
    protocol = "gtp"
    networks = "KataGo .bin.gz or .txt.gz, or .onnx"
    default_evaluator = "rollouts"
    score = Score("points", 1, "Black's lead (points)")
    suffixes = (".sgf", ".gib", ".ngf")
    rated_suffixes = suffixes
    save_suffixes = (".sgf",)
    flags_fixed_by_record = ("handicap", "size", "komi")
    examples = EXAMPLES
    flags = FLAGS
    defaults: Mapping[str, Mapping[str, Value]] = {
        "selfplay": {"temperature_moves": 10, "root_symmetry_pruning": False},
        "learn": {"size": 7, "rules": "tromp-taylor"},
        "analyze": {
            "rules": "chinese",
            **ANALYSIS_DEFAULTS,
        },
        # Rules of records that name none: people do not play dead stones out.
    }
    formats = lazy("yomi.engine.go.networks:FORMATS")
    new_game = lazy("yomi.engine.go.game:new_game")
    make_player = lazy("yomi.engine.go.players.player:GoPlayer")
    matches = lazy("yomi.engine.go.matches:GoMatches")
    start_play = lazy("yomi.engine.go.terminal:start_play")
    reviewer = lazy("yomi.engine.go.review:open_reviewer")
    replay = lazy("yomi.engine.go.learning:replay")
    benchmark_setup = lazy("yomi.engine.go.measuring:measured")

    def __init__(self) -> None:
        """Learn on one board, from games without handicap."""
        self._learned: dict[str, Any] = {}
        """Further arguments of LearnableGo."""

    @property
    def pass_moves(self) -> tuple[int, ...]:
        """The pass."""
        from yomi.native.go.board import PASS

        return (PASS,)

    def find_fault(self, options: Options) -> tuple[str, str] | None:
        """Look at the rules."""
        from yomi.engine.go.rules import Rules, RulesError

        try:
            Rules.parse(options.rules)
        except RulesError as error:
            return "rules", str(error)
        return None

    def board_size(self, options: Options) -> int:
        """Return that of the options."""
        return options.size

    def board_name(self, options: Options) -> str:
        """Return Go 9x9, for example."""
        return f"{self.title} {options.size}x{options.size}"

    def referee(self, player: GoPlayer) -> GoReferee:
        """Return a referee that takes dead stones off as the player judges them, if the rules have agreement."""
        from yomi.engine.go.referee import GoReferee
        from yomi.engine.go.scoring import removed_stones

        return GoReferee(lambda game: game.final_score(removed_stones(game, lambda: player.final_ownership(game))))

    def format_opening(self, game: GoGame) -> str:
        """Return the vertices of the moves."""
        from yomi.engine.go.vertex import format_vertex

        return " ".join(format_vertex(move, game.size) for _, move in game.moves)

    def terminal(self, player: GoPlayer, game: GoGame, args: Namespace, advice: Mapping[str, Value]) -> GoTerminalGame:
        """Return Go in the terminal."""
        from yomi.engine.go.terminal import GoTerminalGame

        return GoTerminalGame(player, game, advice)

    def may_be_record(self, content: bytes) -> bool:
        """Return whether it begins as SGF, GIB or NGF does."""
        from yomi.engine.go.gib_ngf import looks_like_gib, looks_like_ngf

        return content.startswith(b"(") or looks_like_gib(content) or looks_like_ngf(content)

    def recorder(self, args: Namespace, options: Options) -> GoRecorder:
        """Return what writes SGF."""
        from yomi.engine.go.selfplay import GoRecorder

        return GoRecorder(options)

    def make_dataset(self, args: Namespace, say: Say) -> Dataset:
        """See Game."""
        return make_dataset(self, args, say)

    def play_dataset(self, args: Namespace, say: Say) -> Dataset:
        """See Game."""
        return play_dataset(self, args, say)

    def learnable(self, options: Options) -> LearnableGo:
        """See Game."""
        from yomi.engine.go.learning import LearnableGo

        return LearnableGo(options, **self._learned)

    def learning(self, args: Namespace, network: Mapping[str, Any] | None) -> Go:
        """See Game."""
        other = Go()
        other._learned = {"sizes": args.sizes, "handicap": args.handicap_share, "any_rules": args.any_rules}
        return other

    def benchmark_positions(self, options: Options) -> BenchmarkPositions:
        """Return boards of the options' size."""
        from yomi.engine.go.measuring import go_subject

        return go_subject(options.size)

    def sampling(self, network: FileEvaluator, options: Options) -> Sampling[GoGame]:
        """See Game; the rules are Tromp's and Taylor's."""
        from yomi.engine.go.players.setup import go_sampling
        from yomi.engine.go.rules import PRESETS

        return go_sampling(options.size, PRESETS["tromp-taylor"], network)


GAME = Go()
