"""Descriptor of shogi."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.default_network import alpha_beta_file, has_network
from yomi.engine.game import Game, lazy
from yomi.engine.levels import between
from yomi.engine.records import Score

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yomi.engine.options import Options, Value
    from yomi.engine.shogi.selfplay import LearnableShogi
    from yomi.engine.shogi.settings import LearnShogiSettings

# Plies of the mate searches at leaves and at the root, by pair of levels.
LEAF_MATES = (0, 0, 0, 0, 1, 1, 3, 3, 3, 3)
ROOT_MATES, ROOT_MATES_OF_NETWORKS = (0, 0, 0, 1, 3, 5, 7, 9, 11, 33), (0, 0, 1, 3, 3, 5, 7, 9, 11, 33)
MATERIAL_VISITS = ((15, 1000), (17, 3000), (19, 10000))  # levels at which material needs others than Go's rollouts


class Shogi(Game[Any, Any]):
    name = "shogi"
    title = "shogi"
    protocol = "usi"
    networks = "dlshogi's .onnx, nn.bin"
    default_evaluator = "material"
    # The limits keep a mate from flattening the rest of a chart.
    score = Score("cp", 0, "Black's evaluation (centipawns)", limit=3000, mean_limit=2000)
    suffixes = (".csa", ".kif", ".kifu", ".ki2", ".ki2u", ".jkf", ".bod", ".usi", ".sfen")
    rated_suffixes = (".csa", ".kif", ".kifu", ".ki2", ".ki2u", ".jkf")
    save_suffixes = (".kifu", ".kif", ".csa", ".usi", ".sfen")
    flags_fixed_by_record = ("sfen", "handicap")
    settings = lazy("yomi.engine.shogi.settings:SETTINGS")
    defaults: Mapping[str, Mapping[str, Value]] = {
        "selfplay": {"temperature_moves": 20, "max_moves": 320},
        "duel": {"max_moves": 320},
        "learn": {"max_moves": 320, "leaf_mate_depth": 1},
    }
    people_levels = (
        (1, 4, 0.6, 2.0), (2.4, 4, 0.7, 2.5), (3.4, 4, 0.8, 3.0), (4.2, 4, 0.9, 3.5), (5.8, 4, 1.0, 4.0),
        (6.8, 8, 1.15, 5.0), (7.6, 8, 1.3, 8.0), (8.6, 16, 1.55, 12.0), (9.6, 16, 1.7, 15.0), (11, 24, 2.1, 22.0),
        (19, 1000, 2.1, 100.0),
    )  # fmt: skip
    people_levels_of_nodes = (
        (1, 200, 0.6, 1.0), (2, 200, 0.63, 2.1), (5, 200, 0.9, 5.0), (6, 280, 1.0, 8.0), (8, 1050, 1.0, 21.0),
        (11, 4700, 1.0, 43.0), (19, 150_000, 1.0, 110.0),
    )  # fmt: skip
    formats = lazy("yomi.engine.shogi.networks:FORMATS")
    new_game = lazy("yomi.engine.shogi.game:new_game")
    make_player = lazy("yomi.engine.shogi.players.player:ShogiPlayer")
    matches = lazy("yomi.engine.shogi.matches:ShogiMatches")
    start_play = lazy("yomi.engine.shogi.terminal:start_play")
    resume_play = lazy("yomi.engine.shogi.terminal:resume_play")
    terminal = lazy("yomi.engine.shogi.terminal:open_terminal")
    referee = lazy("yomi.engine.shogi.game:open_referee")
    format_opening = lazy("yomi.engine.shogi.game:format_opening")
    reviewer = lazy("yomi.engine.shogi.review:open_reviewer")
    recorder = lazy("yomi.engine.shogi.selfplay:ShogiRecorder")
    make_dataset = lazy("yomi.engine.shogi.datasets.dataset:make_dataset")
    play_dataset = lazy("yomi.engine.shogi.datasets.played:play_dataset")
    replay = lazy("yomi.engine.shogi.selfplay:replay")
    encoder = lazy("yomi.engine.shogi.datasets.encoder:encoder_of")
    network_defaults = lazy("yomi.engine.shogi.players.setup:network_defaults")
    benchmark_setup = lazy("yomi.engine.shogi.players.setup:benchmark_setup")
    benchmark_positions = lazy("yomi.engine.shogi.players.setup:benchmark_positions")

    def __init__(self) -> None:
        self._learned: dict[str, Any] = {}  # keyword arguments of LearnableShogi

    def board_size(self, options: Options) -> int:
        return 9

    def level_options(self, level: int, options: Options) -> Mapping[str, Value]:
        network, pair = has_network(options), (level - 1) // 2
        found: dict[str, Value] = {"root_mate_search": (ROOT_MATES_OF_NETWORKS if network else ROOT_MATES)[pair]}
        if alpha_beta_file(options, self.name) is None:
            found["leaf_mate_depth"] = LEAF_MATES[pair]
        if not network and level >= MATERIAL_VISITS[0][0]:
            found["visits"] = between(MATERIAL_VISITS, level)[0]
        return found

    def may_be_record(self, content: bytes) -> bool:
        return not content.startswith(b"(")

    def learnable(self, options: Options) -> LearnableShogi:
        from yomi.engine.shogi.selfplay import LearnableShogi

        return LearnableShogi(options, **self._learned)

    def learning(self, settings: LearnShogiSettings, network: Mapping[str, Any] | None) -> Shogi:
        from yomi.engine.shogi.selfplay import read_openings
        from yomi.nets.files import name_with_digest

        other, path = Shogi(), Path(settings.openings) if settings.openings else None
        openings = read_openings(path)
        other._learned = {"openings": openings, "named": name_with_digest(path) if path else "", "network": network}
        return other


GAME = Shogi()
