"""One table of options: flags, the TOML file, GTP parameters, USI options and docs/OPTIONS.md are all made from it.

The table is the class `Options`: a field is an option, its type annotation the type that the program sees, its
metadata (made by `option`) everything else. `python -m yomi.engine.options` prints the reference.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yomi.engine.option_row import Option, OptionError, Usi, Value, did_you_mean, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["TABLE", "Option", "OptionError", "Options", "Value", "find"]

NETWORK, LIMITS, SEARCH, PLAY, GAME = "Network", "Limits", "Search", "Play", "Game"
REPORTS, LOG = "Reports", "Log"
GROUPS = (NETWORK, LIMITS, SEARCH, PLAY, GAME, REPORTS, LOG)
"""In the order of the reference."""

NOT_FOR_ANALYSIS = (
    *("analysis_ignore_pre_root_history", "analysis_wide_root_noise"),
    *("ponder", "resign", "resign_threshold", "resign_moves", "temperature", "temperature_moves", "cleanup", "lag"),
    *("root_noise", "root_noise_total", "level"),
)
"""Options that mean nothing where positions are analysed and no games are played."""

ANALYSIS_DEFAULTS: dict[str, Value] = {"ignore_pre_root_history": True, "wide_root_noise": 0.04}
"""Of Go where positions are analysed and no games are played: as in KataGo's analysis engine."""

MAX_KOMI = 400.0

SHOGI_C_PUCT = 2.88
"""Twice dlshogi's 1.44, as values go from -1 to 1 here; also what none means in shogi."""


@dataclass
class SearchOptions:
    """The options that the search itself goes by: SearchSettings has them all, and what they leave open filled in."""

    symmetry: str = option(
        "random",
        "choice",
        "symmetry of the board that the network sees: a random one each time, none, or the average over all eight",
        SEARCH,
        choices=("random", "none", "average"),
        games=("go",),
    )
    cache_size: int = option(
        64 * 2**20, "memory", "memory for evaluations of positions seen before", SEARCH, low=0, high=2**40, live=False
    )
    memory: int = option(
        2**30,
        "memory",
        "memory for the search tree; 2 ** 32 moves (17G on 19×19) are all that it uses",
        SEARCH,
        low=2**20,
        high=2**44,
        live=False,
        usi=Usi("USI_Hash", scale=2.0**-20),
    )
    workers: int | None = option(
        None,
        "int",
        "search workers (threads) on one tree; none: one per core, which is also the most on a processor",
        SEARCH,
        low=1,
        high=256,
        katago="numSearchThreads",
        live=False,
        usi=Usi("UCT_Threads", "Threads"),
    )
    batches_in_flight: int | None = option(
        None,
        "int",
        "batches that a worker keeps under way; none: what suits the device",
        SEARCH,
        low=1,
        high=64,
        live=False,
    )
    c_puct: float | None = option(
        None,
        "real",
        "exploration: constant part of the factor; none: what suits the evaluator (Go: 1.0 with a network, 1.8 with"
        " rollouts; shogi: 2.88, twice dlshogi's 1.44, as values go from -1 to 1 here)",
        SEARCH,
        low=0,
        high=100,
        katago="cpuctExploration",
        defaults={"shogi": SHOGI_C_PUCT},
        usi=Usi("C_init", scale=50),
    )
    c_puct_log: float = option(
        0.45,
        "real",
        "exploration: part that grows with log((visits + c_puct_base) / c_puct_base)",
        SEARCH,
        low=0,
        high=100,
        katago="cpuctExplorationLog",
        defaults={"shogi": 2.0},
    )
    c_puct_base: float = option(
        500.0,
        "real",
        "exploration: visits at which the logarithm starts to count",
        SEARCH,
        low=1,
        high=10**9,
        katago="cpuctExplorationBase",
        defaults={"shogi": 28288.0},
        usi=Usi("C_base"),
    )
    root_c_puct: float | None = option(
        None,
        "real",
        "c_puct at the root; none: the same",
        SEARCH,
        low=0,
        high=100,
        games=("shogi",),
        usi=Usi("C_init_root", scale=50),
    )
    root_c_puct_base: float | None = option(
        None,
        "real",
        "c_puct_base at the root; none: the same",
        SEARCH,
        low=1,
        high=10**9,
        games=("shogi",),
        usi=Usi("C_base_root"),
    )
    fpu_reduction: float = option(
        0.2,
        "real",
        "first-play urgency: what an unvisited move loses against its parent's value",
        SEARCH,
        low=0,
        high=2,
        katago="fpuReductionMax",
        defaults={"shogi": 0.54},
        usi=Usi("C_fpu_reduction", scale=50),
    )
    root_fpu_reduction: float = option(
        0.1,
        "real",
        "the same at the root",
        SEARCH,
        low=0,
        high=2,
        katago="rootFpuReductionMax",
        defaults={"shogi": 0.0},
        usi=Usi("C_fpu_reduction_root", scale=50),
    )
    virtual_loss: float = option(
        1.0,
        "real",
        "losses that a playout under way counts for",
        SEARCH,
        low=0,
        high=100,
        katago="numVirtualLossesPerThread",
    )
    score_utility: float = option(
        0.1,
        "real",
        "weight of the score beside winning and losing (1), measured from zero",
        SEARCH,
        low=0,
        high=2,
        katago="staticScoreUtilityFactor",
        games=("go",),
    )
    dynamic_score_utility: float = option(
        0.3,
        "real",
        "weight of the score, measured from the score that the search expects",
        SEARCH,
        low=0,
        high=2,
        katago="dynamicScoreUtilityFactor",
        games=("go",),
    )
    uncertainty: bool = option(
        True,
        "flag",
        "weigh evaluations by how sure the network is of them, where it says so (KataGo's from version 9 on)",
        SEARCH,
        katago="useUncertainty",
        games=("go",),
    )
    bias_correction: float = option(
        0.45,
        "real",
        "correct evaluations by this share of what searches have found below positions with the same last two moves"
        " and surroundings; 0: none",
        SEARCH,
        low=0,
        high=1,
        katago="subtreeValueBiasFactor",
        defaults={"shogi": 0.0},
    )
    noise_pruning: float = option(
        0.0,
        "real",
        "leave evaluations out of a mean that noise or few visits led to: those beyond twice a move's prior, if it"
        " looks worse than the moves of greater prior by so much utility or more; 0: never",
        SEARCH,
        low=0,
        high=10,
        katago="noisePruneUtilityScale",
    )
    value_weighting: float = option(
        0.0,
        "real",
        "count moves in the mean of a position by this power of the probability that they are better than it; 0: as"
        " they were searched",
        SEARCH,
        low=0,
        high=2,
        katago="valueWeightExponent",
    )
    policy_temperature: float = option(
        1.0,
        "real",
        "temperature of the network's policy; above 1 flatter",
        SEARCH,
        low=0.01,
        high=100,
        katago="nnPolicyTemperature",
        defaults={"shogi": 1.74},
        usi=Usi("Softmax_Temperature", scale=100),
    )
    root_policy_temperature: float | None = option(
        1.0,
        "real",
        "the same at the root; none: no other",
        SEARCH,
        low=0.01,
        high=100,
        katago="rootPolicyTemperature",
        defaults={"shogi": None},
    )
    graph: bool = option(
        True,
        "flag",
        "lines that come to the same position share what is known of it, unless it may soon be repeated",
        SEARCH,
        katago="useGraphSearch",
    )
    renew_root: bool = option(
        True,
        "flag",
        "have the network judge a position anew that is reached with the tree of an earlier search, so that its moves"
        " have the priors of a root",
        SEARCH,
    )
    root_noise: float = option(
        0.0,
        "real",
        "share of Dirichlet noise in the root's policy (self-play: 0.25)",
        SEARCH,
        low=0,
        high=1,
        katago="rootDirichletNoiseWeight",
    )
    root_noise_total: float = option(
        10.83,
        "real",
        "sum of the concentrations of that noise over the legal moves",
        SEARCH,
        low=0.01,
        high=1000,
        katago="rootDirichletNoiseTotalConcentration",
    )
    wide_root_noise: float = option(
        0.0,
        "real",
        "explore the root more widely, by a flatter policy and noise in the utilities of its moves; at 1 all moves get"
        " about as much (where positions are analysed and records reviewed: 0.04)",
        SEARCH,
        low=0,
        high=5,
        katago="wideRootNoise",
        games=("go",),
    )
    root_symmetry_pruning: bool = option(
        True,
        "flag",
        "where the board is symmetric, search only one of the moves that are the same by symmetry (self-play: false)",
        SEARCH,
        katago="rootSymmetryPruning",
        games=("go",),
    )
    prune_useless_moves: bool = option(
        True,
        "flag",
        "do not play inside territory that is safe whatever its owner does, unless dead stones count there",
        SEARCH,
        katago="rootPruneUselessMoves",
        games=("go",),
    )
    use_lcb: bool = option(
        True,
        "flag",
        "choose among the most visited moves by the lower confidence bound",
        SEARCH,
        katago="useLcbForSelection",
    )
    seed: int | None = option(
        None,
        "int",
        "seed of all random choices; with one worker the search repeats itself exactly; none: a new one each start",
        SEARCH,
        low=0,
        high=2**62,
    )


@dataclass
class Options(SearchOptions):
    """Every setting of the engine, with its value."""

    net: str | None = option(
        None,
        "file",
        "network: a name of `yomi net list`, fast, or a file; files are KataGo's .bin.gz or .txt.gz, dlshogi's .onnx, "
        "an NNUE evaluation (nn.bin), yomi's own .onnx or .safetensors; a file goes before a name; none: the bundled "
        "one for the device",
        NETWORK,
        live=False,
        usi=Usi("DNN_Model"),
    )
    value_net: str | None = option(
        None,
        "file",
        "second network: values are its, moves those of --net; if neither has values (Aya's policy network alone), "
        "rollouts judge positions; shogi: an NNUE evaluation (nn.bin), with a search at each leaf",
        NETWORK,
        live=False,
    )
    fv_scale: int = option(
        24,
        "int",
        "divisor of an NNUE evaluation's output; the file's author names it (SuishoPetite, Suisho5: 24)",
        NETWORK,
        low=1,
        high=128,
        live=False,
        games=("shogi",),
        usi=Usi("FV_SCALE"),
    )
    leaf_nodes: int = option(
        100,
        "int",
        "nodes of the alpha-beta search at each leaf, with an NNUE evaluation",
        NETWORK,
        low=1,
        high=10**6,
        live=False,
        games=("shogi",),
        usi=Usi("Leaf_Nodes"),
    )
    leaf_value_scale: float = option(
        450.0,
        "real",
        "value of an NNUE evaluation, a pawn being 90, at which the winrate is 1 / (1 + 1 / e) = 73%",
        NETWORK,
        low=1,
        high=10**4,
        live=False,
        games=("shogi",),
        usi=Usi("Leaf_Value_Scale"),
    )
    leaf_weight: float = option(
        1.0,
        "real",
        "weight of the leaf search's value; the rest is the value of the network that has the moves",
        NETWORK,
        low=0,
        high=1,
        live=False,
        games=("shogi",),
        usi=Usi("Leaf_Weight", scale=100),
    )
    leaf_boost: float = option(
        0.0,
        "real",
        "what the logit of the leaf search's best move gains",
        NETWORK,
        low=0,
        high=10,
        live=False,
        games=("shogi",),
        usi=Usi("Leaf_Boost", scale=100),
    )
    evaluator: str = option(
        "auto",
        "choice",
        "what judges positions; auto: the network, as onnx (whatever computes it); rollouts (Go) and material (shogi) "
        "play without one; uniform: no opinion, for tests",
        NETWORK,
        choices=("auto", "onnx", "rollouts", "material", "uniform"),
        live=False,
    )
    device: str = option(
        "auto",
        "choice",
        "where the network runs",
        NETWORK,
        choices=("auto", "cpu", "cuda", "tensorrt", "webgpu", "webgpu:software", "rtx"),
        live=False,
        usi=Usi("Device"),
    )
    devices: str | None = option(
        None,
        "text",
        "GPUs that share the batches, by number, such as 0,1; none: the first",
        NETWORK,
        live=False,
        usi=Usi("Devices"),
    )
    device_workers: int | None = option(
        None, "int", "evaluation workers on each GPU; none: two", NETWORK, low=1, high=16, live=False
    )
    backend: str = option(
        "auto",
        "choice",
        "what computes the network; auto: yomi's own kernels on a processor where they can, TensorRT itself for device "
        "tensorrt where it is installed, else onnxruntime",
        NETWORK,
        choices=("auto", "native", "onnx", "tensorrt"),
        live=False,
    )
    precision: str = option(
        "auto",
        "choice",
        "numbers that the network computes with; auto: bf16 on a processor with AMX, else int16, int8 in transformers "
        "on one with VNNI, fp16 on a GPU, if they agree with fp32, which is tried once for each network",
        NETWORK,
        choices=("auto", "fp32", "fp16", "int16", "int8", "bf16"),
        live=False,
    )
    visits: int | None = option(
        None,
        "int",
        "visits for a move; those of the root that are kept from earlier searches count",
        LIMITS,
        low=1,
        high=10**12,
        katago="maxVisits",
        usi=Usi("UCT_NodeLimit"),
    )
    playouts: int | None = option(
        None,
        "int",
        "playouts for a move",
        LIMITS,
        low=1,
        high=10**12,
        katago="maxPlayouts",
        usi=Usi("NodesLimit", "Const_Playout"),
    )
    depth: int | None = option(
        None,
        "int",
        "length of the principal variation at which the search for a move ends",
        LIMITS,
        low=1,
        high=1000,
        games=("shogi",),
        usi=Usi("DepthLimit"),
    )
    seconds: float | None = option(
        None,
        "real",
        "time for a move; on a clock, the most for a move (without any limit and without a clock: 5 seconds)",
        LIMITS,
        low=0,
        high=10**7,
        unit="s",
        katago="maxTime",
    )
    lag: float = option(
        0.2,
        "real",
        "time kept in reserve for each move against delays on the way to the clock",
        LIMITS,
        low=0,
        high=60,
        unit="s",
        katago="lagBuffer",
        usi=Usi("NetworkDelay", "Time_Margin", scale=1000),
    )
    byoyomi_margin: float = option(
        0.1,
        "real",
        "further time kept in reserve for each move that is played in byo-yomi",
        LIMITS,
        low=0,
        high=60,
        unit="s",
        games=("shogi",),
        usi=Usi("ByoyomiMargin", "Byoyomi_Margin", scale=1000),
    )

    batch_size: int | None = option(
        None,
        "int",
        "positions evaluated at once; none: what suits the device",
        SEARCH,
        low=1,
        high=4096,
        live=False,
        usi=Usi("DNN_Batch_Size"),
    )
    rollout_weight: float = option(
        0.0,
        "real",
        "share of rollouts in the value of a position; the rest is the network's",
        SEARCH,
        low=0,
        high=1,
        games=("go",),
    )
    ignore_pre_root_history: bool = option(
        False,
        "flag",
        "the network is not told the moves before the position that is searched (where positions are analysed and "
        "records reviewed: true unless it is changed there)",
        SEARCH,
        katago="ignorePreRootHistory",
        games=("go",),
    )
    analysis_ignore_pre_root_history: bool = option(
        True,
        "flag",
        "the same for GTP's analyze, lz-analyze and kata-analyze",
        SEARCH,
        katago="analysisIgnorePreRootHistory",
        games=("go",),
    )
    analysis_wide_root_noise: float = option(
        0.04,
        "real",
        "wide_root_noise for GTP's analyze, lz-analyze and kata-analyze",
        SEARCH,
        low=0,
        high=5,
        katago="analysisWideRootNoise",
        games=("go",),
    )
    leaf_mate_depth: int = option(
        3,
        "int",
        "plies of the search for a mate at every leaf: 1, 3 or 5; 0: none",
        SEARCH,
        low=0,
        high=5,
        games=("shogi",),
        usi=Usi("Leaf_Mate_Search"),
    )
    root_mate_search: int = option(
        33,
        "int",
        "plies of the mate that a thread of its own looks for at the root; 0: none",
        SEARCH,
        low=0,
        high=255,
        games=("shogi",),
        usi=Usi("Mate_Root_Search"),
    )
    root_mate_nodes: int = option(
        300_000,
        "int",
        "positions that this search may look at",
        SEARCH,
        low=1000,
        high=10**9,
        games=("shogi",),
        usi=Usi("Mate_Root_Nodes"),
    )
    all_legal_moves: bool = option(
        False,
        "flag",
        "search also promotions waived by pawns, bishops, rooks, and lances on the second rank where that cannot help;"
        " without it only such as decide whether the drop of a pawn mates",
        SEARCH,
        games=("shogi",),
        usi=Usi("GenerateAllLegalMoves"),
    )
    ponder: bool = option(
        False, "flag", "think in the opponent's time", PLAY, katago="ponderingEnabled", usi=Usi("USI_Ponder")
    )
    stochastic_ponder: bool = option(
        True,
        "flag",
        "think about all moves of the opponent while pondering, not only about the expected one",
        PLAY,
        games=("shogi",),
        usi=Usi("Stochastic_Ponder"),
    )
    resign: bool = option(
        True,
        "flag",
        "resign lost games; where Black has an advantage from the start (handicap stones, komi), White does so later",
        PLAY,
        katago="allowResignation",
    )
    resign_threshold: float = option(
        0.05,
        "real",
        "winrate below which a move counts as lost",
        PLAY,
        low=0,
        high=1,
        katago="resignThreshold",
        defaults={"shogi": 0.01},
        usi=Usi("Resign_Threshold", scale=1000),
    )
    resign_moves: int = option(
        3,
        "int",
        "own moves in a row below the threshold before the engine resigns",
        PLAY,
        low=1,
        high=1000,
        katago="resignConsecTurns",
    )
    level: int = option(
        0,
        "int",
        "strength, from 1 (a beginner's) to 10, or 0: full strength; a level chooses network, visits, temperature and "
        "noise, except those that the command line or the file names",
        PLAY,
        low=0,
        high=10,
        usi=Usi("Level"),
        words={"max": 0, "off": 0},
    )
    temperature: float = option(
        0.0,
        "real",
        "temperature of the choice among the visited moves; 0 takes the best",
        PLAY,
        low=0,
        high=10,
        katago="chosenMoveTemperature",
    )
    temperature_moves: int = option(
        0,
        "int",
        "moves from the start of the game that the temperature is used for; after them the best is taken; 0: all",
        PLAY,
        low=0,
        high=10000,
    )
    cleanup: bool = option(
        False,
        "flag",
        "capture all dead stones before passing (servers that score the board as it stands, such as CGOS)",
        PLAY,
        games=("go",),
    )
    own_book: bool = option(
        True,
        "flag",
        "play from the book, where one is given",
        PLAY,
        games=("shogi",),
        usi=Usi("OwnBook", "USI_OwnBook"),
    )
    book_file: str | None = option(
        None,
        "file",
        "book of openings: YaneuraOu's text form (.db) or Apery's (.bin)",
        PLAY,
        live=False,
        games=("shogi",),
        usi=Usi("BookFile", "Book_File"),
    )
    book_moves: int = option(
        24,
        "int",
        "moves from the start that the book is used for",
        PLAY,
        low=0,
        high=10000,
        games=("shogi",),
        usi=Usi("BookMoves"),
    )
    book_ignore_rate: float = option(
        0.0,
        "real",
        "probability that the book is passed over where it has a move",
        PLAY,
        low=0,
        high=1,
        games=("shogi",),
        usi=Usi("BookIgnoreRate", scale=100),
    )
    book_ignore_ply: bool = option(
        True,
        "flag",
        "find positions of a text book (.db) at any move of the game, not only at the one that the book says",
        PLAY,
        live=False,
        games=("shogi",),
        usi=Usi("IgnoreBookPly"),
    )
    book_flipped: bool = option(
        True,
        "flag",
        "find positions of the book with the colors exchanged as well",
        PLAY,
        live=False,
        games=("shogi",),
        usi=Usi("FlippedBook"),
    )
    book_counts: bool = option(
        True,
        "flag",
        "choose among the book's moves by how often they were played; else all alike",
        PLAY,
        games=("shogi",),
        usi=Usi("ConsiderBookMoveCount"),
    )
    narrow_book: bool = option(
        False,
        "flag",
        "leave out moves of the book that were played less than one time in ten",
        PLAY,
        games=("shogi",),
        usi=Usi("NarrowBook"),
    )
    book_depth_limit: int = option(
        0,
        "int",
        "pass the book over where the search behind its best move was less deep than this",
        PLAY,
        low=0,
        high=99_999,
        games=("shogi",),
        usi=Usi("BookDepthLimit"),
    )
    book_eval_diff: int = option(
        30,
        "int",
        "leave out moves of the book that are worse than its best one by more centipawns than this",
        PLAY,
        low=0,
        high=99_999,
        games=("shogi",),
        usi=Usi("BookEvalDiff"),
    )
    book_eval_black_limit: int = option(
        -99_999,
        "int",
        "leave out moves of the book that are worth less than this for Black (sente), in centipawns",
        PLAY,
        low=-99_999,
        high=99_999,
        games=("shogi",),
        usi=Usi("BookEvalBlackLimit"),
    )
    book_eval_white_limit: int = option(
        -99_999,
        "int",
        "the same for White (gote)",
        PLAY,
        low=-99_999,
        high=99_999,
        games=("shogi",),
        usi=Usi("BookEvalWhiteLimit"),
    )

    size: int = option(
        19, "int", "board size; GTP changes it by boardsize", GAME, low=2, high=19, live=False, games=("go",)
    )
    rules: str = option(
        "tromp-taylor",
        "text",
        "tromp-taylor, chinese, japanese, korean, aga, new-zealand; also other names of KataGo's, and its JSON form",
        GAME,
        live=False,
        games=("go",),
    )
    komi: float | None = option(
        None,
        "real",
        "komi; GTP may change it; in reviews it replaces that of the records; none: that of the rules",
        GAME,
        low=-MAX_KOMI,
        high=MAX_KOMI,
        live=False,
        games=("go",),
    )
    entering_king: str = option(
        "27",
        "choice",
        "rule of the declaration win: 27 points, 24 points, or no such rule; h: in handicap games White (uwate) needs"
        " less by the points that it has given",
        GAME,
        choices=("none", "24", "24h", "27", "27h"),
        games=("shogi",),
        usi=Usi("EnteringKingRule", choices=("NoEnteringKing", "CSARule24", "CSARule24H", "CSARule27", "CSARule27H")),
    )
    max_moves: int | None = option(
        None,
        "int",
        "moves after which a game is drawn; none: never",
        GAME,
        low=1,
        high=10000,
        games=("shogi",),
        usi=Usi("MaxMovesToDraw", "Draw_Ply"),
    )
    draw_value_black: float = option(
        0.5,
        "real",
        "winrate that a draw counts as where the engine plays Black (sente)",
        GAME,
        low=0,
        high=1,
        games=("shogi",),
        usi=Usi("Draw_Value_Black", "DrawValueBlack", scale=1000),
    )
    draw_value_white: float = option(
        0.5,
        "real",
        "the same for White (gote)",
        GAME,
        low=0,
        high=1,
        games=("shogi",),
        usi=Usi("Draw_Value_White", "DrawValueWhite", scale=1000),
    )

    multipv: int = option(
        1,
        "int",
        "moves that are reported while the engine thinks",
        REPORTS,
        low=1,
        high=593,
        games=("shogi",),
        usi=Usi("MultiPV"),
    )
    report_interval: float = option(
        0.5,
        "real",
        "time between reports",
        REPORTS,
        low=0,
        high=3600,
        unit="s",
        games=("shogi",),
        usi=Usi("PvInterval", "PV_Interval", scale=1000),
    )
    centipawns: float = option(
        756.0,
        "real",
        "centipawns for a winrate p: this times ln(p / (1 - p))",
        REPORTS,
        low=1,
        high=10000,
        games=("shogi",),
        usi=Usi("Eval_Coef"),
    )

    log_file: str | None = option(
        None, "file", "write the log there (appended); none: warnings and errors to stderr", LOG, live=False
    )
    log_level: str = option(
        "info",
        "choice",
        "what the log file receives; debug: every line of the protocol",
        LOG,
        choices=("debug", "info", "warning", "error"),
        live=False,
    )

    @classmethod
    def for_game(cls, game: str) -> Options:
        """Return the defaults in a game ; `Options()` are those in Go."""
        return cls(**{row.name: row.default_for(game) for row in TABLE.values()})  # type: ignore[arg-type]

    def set(self, name: str, value: object) -> None:
        """Check `value` and put it in force.

        Raises:
            OptionError: There is no such option, or the value does not suit it.
        """
        row = find(name)
        setattr(self, row.name, row.check(value))

    def get(self, name: str) -> Value:
        """Return the value in force."""
        value: Value = getattr(self, find(name).name)
        return value

    def copy(self) -> Options:
        """Return an independent copy."""
        return dataclasses.replace(self)

    def with_values(self, values: Mapping[str, Value]) -> Options:
        """Return a copy with other values of some options.

        Raises:
            OptionError: see `set`.
        """
        other = self.copy()
        for name, value in values.items():
            other.set(name, value)
        return other


_ROWS: list[Option] = [row.metadata["option"](row.name) for row in dataclasses.fields(Options)]
TABLE: dict[str, Option] = {row.name: row for group in GROUPS for row in _ROWS if row.group == group}
"""Every option by name, in the order of the reference."""

ALIASES = {row.katago.lower(): row.name for row in TABLE.values() if row.katago}


USI_NAMES = {name.lower(): row for row in TABLE.values() if row.usi is not None for name in row.usi.names}
"""The rows that USI knows, by their names in lower case."""


def rows_for(game: str) -> list[Option]:
    """Return the rows that mean anything to a game, in the order of the reference."""
    return [row for row in TABLE.values() if row.is_for(game)]


def find(name: str, game: str | None = None) -> Option:
    """Return the row of an option by its name (dashes or underscores) or KataGo's name for it.

    Args:
        name: The name.
        game: The only game whose options there are; None for those of all.

    Raises:
        OptionError: There is none.
    """
    rows = TABLE if game is None else {row.name: row for row in rows_for(game)}
    key = name.replace("-", "_").lower()
    key = ALIASES.get(name.lower(), key)
    if key not in rows:
        raise OptionError(f"unknown option {name!r}{did_you_mean(key, rows)}")
    return rows[key]


def read_config(path: Path, game: str = "") -> dict[str, Value]:
    """Read a TOML file of options: those for all games, then those in the table of this game.

    Raises:
        OptionError: The file cannot be read or is not TOML, or a key or a value is not in the table.
    """
    tables = read_tables(path, (game,))
    return {**tables[""], **tables.get(game, {})}


def read_tables(path: Path, games: Iterable[str] = ()) -> dict[str, dict[str, Value]]:
    """Read a TOML file of options.

    Args:
        path: the file.
        games: names of games, besides Go and shogi, that may have a table.

    Returns:
        The options for all games under "", and those of each game's table under its name.

    Raises:
        OptionError: see `read_config`.
    """
    from yomi.nets.text import read_toml  # here, for few starts need it and a GUI waits for the first answer

    try:
        data = read_toml(path)
    except OSError as error:
        raise OptionError(f"cannot read the configuration {path}: {error.strerror}") from None
    except ValueError as error:
        raise OptionError(f"{path} is not a TOML file: {error}") from None
    known = {*games, *(game for row in TABLE.values() for game in row.games)} - {""}
    of_games = {key: value for key, value in data.items() if key in known and isinstance(value, dict)}
    tables = {"": {key: value for key, value in data.items() if key not in of_games}, **of_games}
    try:
        return {game: _checked(table, game) for game, table in tables.items()}
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None


def _checked(table: Mapping[str, Any], game: str) -> dict[str, Value]:
    """Return the values of a table by the options' names.

    Raises:
        OptionError: A key or a value is not in the table of options.
    """
    values: dict[str, Value] = {}
    for key, value in table.items():
        row = find(key, game or None)
        if isinstance(value, str) and row.optional and value.lower() == "none":
            value = None
        elif isinstance(value, str) and row.kind == "file" and value.startswith("~"):
            value = os.path.expanduser(value)
        values[row.name] = row.check(value)
    return values


def reference() -> str:
    """Return docs/OPTIONS.md."""
    lines = [
        "# Options",
        "",
        "Made from the table in `engine/options.py` by `python -m yomi.engine.options`; do not edit.",
        "",
        "Each option is a command-line flag and a key of a TOML file (same name, `_` for `-`), as far as the",
        "command has use for it. All commands read `~/.config/yomi/config.toml` (`yomi config init` writes one) and",
        "the file of `--config FILE`. The command line takes precedence over `--config`, and `--config` over the",
        "user's file. Options that are true or false are flags without a value: `--ponder`, `--no-ponder`; in a file",
        'they are `ponder = true`, and none is `"none"`. Options for one game follow `[go]` or `[shogi]` in a file.',
        "",
        "In Go each is a parameter of `kata-get-param` and `kata-set-param`, where KataGo's name (among the other",
        "names) is understood as well. In shogi those with a USI name (after `USI`) are options of `setoption`, where",
        "none is 0 or `<empty>`, and `× 50` says that USI shows 50 times the value. Options marked `start` cannot be",
        "changed while the engine runs; in USI they take effect with the next `isready`.",
        "",
        "These flags say how much runs at the same time, with one meaning in all commands:",
        "",
        "| flag | number of | commands | old names, still understood |",
        "|---|---|---|---|",
        "| `--workers` | search threads of one engine | all that search; `bench tree`, `bench nets` | `--threads` |",
        "| `--processes` | operating-system processes | `duel`, `tune`, `learn`, `train`, `dataset play shogi` |"
        " `--workers`, `--actors` (`learn`) |",
        "| `--at-once` | games or positions at the same time; in each process, if there are several |"
        " `match`, `duel`, `tune`, `learn`, `analysis` |"
        " `--parallel`, `--side-by-side`, `--games` (`learn`), `--threads` |",
        "",
        "`--games` is the number of games in all. `match --cpus` lists processors by their numbers.",
    ]
    for group in dict.fromkeys(row.group for row in TABLE.values()):
        lines += ["", f"## {group}", "", "| option | value | default | other names, when | meaning |"]
        lines += ["|---|---|---|---|---|"]
        lines += [_reference_line(row) for row in TABLE.values() if row.group == group]
    return "\n".join(lines) + "\n"


def _reference_line(row: Option) -> str:
    unit = f" ({row.unit})" if row.unit else ""
    default = row.format(row.default)
    default += "".join(f"; {game}: {row.format(value)}" for game, value in row.defaults.items())
    notes = [f"`{row.katago}`"] if row.katago else []
    if row.usi is not None:
        scaled = {1: "", 2.0**-20: " in MiB"}.get(row.usi.scale, f" × {row.usi.scale:g}")
        notes.append("USI " + " ".join(f"`{name}`" for name in row.usi.names) + scaled)
    notes += ["start"] if not row.live else []
    notes += [f"{row.games[0]} only"] if len(row.games) == 1 else []
    return f"| `{row.flag}` | {row.expected}{unit} | {default} | {', '.join(notes)} | {row.help} |"


if __name__ == "__main__":
    print(reference(), end="")
