"""Descriptor of Go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yomi.engine.game import Game, lazy
from yomi.engine.options import ANALYSIS_DEFAULTS
from yomi.engine.records import Score

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yomi.engine.go.learning import LearnableGo
    from yomi.engine.go.settings import LearnGoSettings
    from yomi.engine.options import Options, Value


FAIR_KOMI = {5: 25.0, 6: 4.0, 7: 9.0}  # of small boards, by board size: the result of best play under area rules


class Go(Game[Any, Any]):
    name = "go"
    title = "Go"
    protocol = "gtp"
    networks = "KataGo .bin.gz or .txt.gz, or .onnx"
    default_evaluator = "rollouts"
    score = Score("points", 1, "Black's lead (points)", whole=30)
    suffixes = (".sgf", ".gib", ".ngf", ".ugf", ".ugi")
    rated_suffixes = suffixes
    save_suffixes = (".sgf",)
    flags_fixed_by_record = ("handicap", "size", "height", "komi")
    settings = lazy("yomi.engine.go.settings:SETTINGS")
    defaults: Mapping[str, Mapping[str, Value]] = {
        "selfplay": {"temperature_moves": 10, "root_symmetry_pruning": False},
        "learn": {"size": 7, "rules": "tromp-taylor"},
        "analyze": {"rules": "guess", **ANALYSIS_DEFAULTS},
    }
    # The weights of the policy are near fits to games of people: 15 kyu and below 0.65, 5 to 14 kyu 0.79, around 1 dan
    # 0.94, 9 dan 1.03. The rest, and levels 1 and 2, make the steps even.
    people_levels = (
        (1, 4, 0.5, 3.0), (2, 4, 0.54, 3.0), (5, 4, 0.66, 3.6), (6, 4, 0.73, 4.0), (8, 4, 0.88, 4.8), (9, 5, 0.93, 5.2),
        (10, 8, 0.98, 6.2), (12, 12, 1.17, 14.4), (13, 24, 1.3, 24.0), (19, 300, 1.6, 100.0),
    )  # fmt: skip
    formats = lazy("yomi.engine.go.networks:FORMATS")
    new_game = lazy("yomi.engine.go.game:new_game")
    make_player = lazy("yomi.engine.go.players.player:GoPlayer")
    matches = lazy("yomi.engine.go.matches:GoMatches")
    start_play = lazy("yomi.engine.go.terminal:start_play")
    resume_play = lazy("yomi.engine.go.terminal:resume_play")
    reviewer = lazy("yomi.engine.go.review:open_reviewer")
    replay = lazy("yomi.engine.go.learning:replay")
    terminal = lazy("yomi.engine.go.terminal:open_terminal")
    referee = lazy("yomi.engine.go.scoring:open_referee")
    format_opening = lazy("yomi.engine.go.game:format_opening")
    recorder = lazy("yomi.engine.go.learning:GoRecorder")
    make_dataset = lazy("yomi.engine.go.datasets.dataset:make_dataset")
    play_dataset = lazy("yomi.engine.go.datasets.played:play_dataset")
    benchmark_setup = lazy("yomi.engine.go.players.setup:measured")
    benchmark_positions = lazy("yomi.engine.go.players.setup:benchmark_positions")

    def __init__(self) -> None:
        self._learned: dict[str, Any] = {}  # further arguments of LearnableGo

    @property
    def pass_moves(self) -> tuple[int, ...]:
        from yomi.engine.go.points import PASS

        return (PASS,)

    def find_fault(self, options: Options) -> tuple[str, str] | None:
        from yomi.engine.go.rules import GUESS, Rules, RulesError

        try:
            if options.rules != GUESS:
                Rules.parse(options.rules)
        except RulesError as error:
            return "rules", str(error)
        return None

    def board_size(self, options: Options) -> int:
        from yomi.engine.go.points import board_of

        return board_of(options).side

    def fair(self, options: Options) -> Options:
        size = FAIR_KOMI.get(self.board_size(options)) if options.height is None else None
        has_komi = options.komi is not None or "komi" in options.rules
        return options if size is None or has_komi else options.with_values({"komi": size})

    def board_name(self, options: Options) -> str:
        from yomi.engine.go.points import board_of

        return f"{self.title} {board_of(options)}"

    def may_be_record(self, content: bytes) -> bool:
        from yomi.engine.go.record_files import reader_of

        return content.startswith(b"(") or reader_of(content) is not None

    def learnable(self, options: Options) -> LearnableGo:
        from yomi.engine.go.learning import LearnableGo

        return LearnableGo(options, **self._learned)

    def learning(self, settings: LearnGoSettings, network: Mapping[str, Any] | None) -> Go:
        other = Go()
        other._learned = {
            "sizes": settings.sizes, "handicap": settings.handicap_share, "any_rules": settings.any_rules,
        }  # fmt: skip
        return other


GAME = Go()
