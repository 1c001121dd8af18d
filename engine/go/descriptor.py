"""Go's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yomi.engine.game import Game
from yomi.engine.go.commands import EXAMPLES, FLAGS, make_dataset, play_dataset
from yomi.engine.options import ANALYSIS_DEFAULTS
from yomi.engine.records import Score

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from yomi.engine.evaluators.network import FileEvaluator, FileFormat
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.game import Say, Subject
    from yomi.engine.go.game import GoGame
    from yomi.engine.go.learning import LearnableGo
    from yomi.engine.go.matches import GoMatches
    from yomi.engine.go.players.player import GoPlayer
    from yomi.engine.go.referee import GoReferee
    from yomi.engine.go.review import GoReviewer
    from yomi.engine.go.selfplay import GoRecorder
    from yomi.engine.go.terminal import GoTerminalGame
    from yomi.engine.learning.replay import Recorded, Show
    from yomi.engine.options import Options, Value
    from yomi.engine.players.precision import Sampling
    from yomi.engine.search.settings import SearchSettings
    from yomi.native.spec import GameSpec
    from yomi.nets.data.shards import Dataset
    from yomi.nets.features import FeatureSet


class Go(Game["GoGame", "GoPlayer"]):
    """Go on boards of all sizes."""

    name = "go"
    title = "Go"
    protocol = "gtp"
    networks = "KataGo .bin.gz or .txt.gz, or .onnx"
    plain_evaluator = "rollouts"
    score = Score("points", 1, "Black's lead (points)")
    suffixes = (".sgf", ".gib", ".ngf")
    rated = suffixes
    saved = (".sgf",)
    recorded = ("handicap", "size", "komi")
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

    def __init__(self) -> None:
        """Learn on one board, from games without handicap."""
        self._learned: dict[str, Any] = {}
        """Further arguments of LearnableGo."""

    @property
    def formats(self) -> tuple[type[FileFormat], ...]:
        """See Game."""
        from yomi.engine.go.networks import FORMATS

        return FORMATS

    @property
    def idle_moves(self) -> tuple[int, ...]:
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

    def new_game(self, options: Options) -> GoGame:
        """Return an empty board."""
        from yomi.engine.go.game import new_game

        return new_game(options)

    def make_player(self, options: Options) -> GoPlayer:
        """Return a player of Go."""
        from yomi.engine.go.players.player import GoPlayer

        return GoPlayer(options)

    def referee(self, player: GoPlayer) -> GoReferee:
        """Return a referee that takes dead stones off as the player judges them, if the rules have agreement."""
        from yomi.engine.go.referee import GoReferee
        from yomi.engine.go.scoring import removed_stones

        return GoReferee(lambda game: game.final_score(removed_stones(game, lambda: player.final_ownership(game))))

    def format_opening(self, game: GoGame) -> str:
        """Return the vertices of the moves."""
        from yomi.engine.go.vertex import format_vertex

        return " ".join(format_vertex(move, game.size) for _, move in game.moves)

    def matches(self) -> GoMatches:
        """See Game."""
        from yomi.engine.go.matches import GoMatches

        return GoMatches()

    def start_play(self, args: Namespace, options: Options) -> tuple[GoGame, tuple[str, str]]:
        """Return an empty board, with handicap stones, or the game of a record."""
        from yomi.engine.go.terminal import start_play

        return start_play(args, options)

    def terminal(self, player: GoPlayer, game: GoGame, args: Namespace, advice: Mapping[str, Value]) -> GoTerminalGame:
        """Return Go in the terminal."""
        from yomi.engine.go.terminal import GoTerminalGame

        return GoTerminalGame(player, game, advice)

    def may_be_record(self, content: bytes) -> bool:
        """Return whether it begins as SGF, GIB or NGF does."""
        from yomi.engine.go.gib_ngf import looks_like_gib, looks_like_ngf

        return content.startswith(b"(") or looks_like_gib(content) or looks_like_ngf(content)

    def reviewer(self, options: Options, path: Path) -> GoReviewer:
        """Return a reviewer of records of Go."""
        from yomi.engine.go.review import open_reviewer

        return open_reviewer(options, path)

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

    def replay(self, path: Path, features: FeatureSet, size: int) -> tuple[GameSpec, Show, list[Recorded[GoGame]]]:
        """See Game."""
        from yomi.engine.go.learning import replay

        return replay(path, features, size)

    def subject(self, options: Options) -> Subject:
        """Return boards of the options' size."""
        from yomi.engine.go.measuring import go_subject

        return go_subject(options.size)

    def measured(self, options: Options) -> AbstractContextManager[tuple[Subject, EvaluationQueue, SearchSettings]]:
        """See Game; the rules are Tromp's and Taylor's."""
        from yomi.engine.go.measuring import measured

        return measured(options)

    def sampling(self, network: FileEvaluator, options: Options) -> Sampling[GoGame]:
        """See Game; the rules are Tromp's and Taylor's."""
        from yomi.engine.go.players.setup import go_sampling
        from yomi.engine.go.rules import PRESETS

        return go_sampling(options.size, PRESETS["tromp-taylor"], network)


GAME = Go()
