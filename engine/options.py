"""The options of the engine (see `yomi.settings`): flags, the TOML file, GTP parameters, USI options.

`python -m tests.reference` writes the tables of docs/reference/options.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi.errors import reraised
from yomi.language import tr
from yomi.settings import OptionError, Setting, Usi, Value, choice, did_you_mean, flag, number, option, rows_of

__all__ = ["TABLE", "OptionError", "Options", "Setting", "Value", "find"]

NETWORK, LIMITS, SEARCH, PLAY, GAME = "Network", "Limits", "Search", "Play", "Game"
REPORTS, LOG = "Reports", "Log"
GROUPS = (NETWORK, LIMITS, SEARCH, PLAY, GAME, REPORTS, LOG)  # in the order of the reference
GO, SHOGI = ("go",), ("shogi",)

# Options without effect in commands that analyze positions and play no games.
NOT_FOR_ANALYSIS = (
    *("analysis_ignore_pre_root_history", "analysis_wide_root_noise"),
    *("ponder", "resign", "resign_threshold", "resign_moves", "temperature", "temperature_moves", "cleanup", "lag"),
    *("root_noise", "root_noise_total", "level", "temperature_only_below"),
    *("human_move_share", "human_ignore_pass", "human_move_tolerance", "people_prior", "people_loss"),
)
# Go: defaults in commands that analyze positions, as in KataGo's analysis engine.
ANALYSIS_DEFAULTS: dict[str, Value] = {"ignore_pre_root_history": True, "wide_root_noise": 0.04}
# Options that need the network of --human-net.
FOR_HUMAN_NET = (
    *("human_root_weightless", "human_root_weightful", "human_c_puct", "human_c_puct_permanent"),
    *("human_move_share", "human_ignore_pass", "human_move_tolerance"),
)
MAX_KOMI = 400.0
# Twice dlshogi's 1.44, because yomi's values go from -1 to 1. Also the meaning of none in shogi.
SHOGI_C_PUCT = 2.88


SEARCHES = ("auto", "tree", "alphabeta")


def _check_search(name: str) -> str:
    from yomi.nets.user_files import check_function, is_in_file

    if name in SEARCHES:
        return name
    if not is_in_file(name):
        raise ValueError(f"expected {', '.join(SEARCHES)} or FILE.py:NAME, found {name!r}")
    return check_function(name)


def _check_profile(name: str) -> str | None:
    from yomi.nets.katago.human_profile import check_profile  # not above: every start of an engine would wait for it

    return check_profile(name)


@dataclass(repr=False)
class SearchOptions:
    """The options that the search reads. SearchSettings adds values for unset options."""

    # a table: the formatter would give each argument a line
    # fmt: off
    symmetry: str = choice(
        "random", ("random", "none", "average"), "choose the board symmetry of network inputs", SEARCH, games=GO,
        codes=(-1, 0, -1), more="random: another one each time. average: the mean over all eight symmetries.",
    )
    cache_size: int = number(
        64 * 2**20, 0, 2**40, "set the memory for evaluations of earlier positions", SEARCH, kind="memory", live=False
    )
    memory: int = number(
        2**30, 2**20, 2**44, "set the memory of the search tree", SEARCH, kind="memory", live=False,
        more="More than 17G has no effect on 19×19, as a tree has at most 2 ** 32 moves.",
        usi=Usi("USI_Hash", scale=2.0**-20),
    )
    workers: int | None = number(
        None, 1, 256, "set the number of search threads on one tree", SEARCH, live=False, unset="one per core",
        more="On a processor one per core is also the maximum. A GPU gets six (three for each evaluation worker).",
        katago="numSearchThreads", usi=Usi("Threads", "UCT_Threads"),
    )
    batches_in_flight: int | None = number(
        None, 1, 64, "limit the batches that each search thread keeps waiting for evaluation", SEARCH, live=False,
        unset="suits the device",
    )
    c_puct: float | None = number(
        None, 0, 100, "set the constant part of the exploration factor", SEARCH, unset="suits the evaluator",
        more="Go: 1.0 with a network, 1.8 with rollouts. Shogi: 2.88, twice dlshogi's 1.44, because yomi's values go"
        " from -1 to 1.",
        katago="cpuctExploration", defaults={"shogi": SHOGI_C_PUCT}, usi=Usi("C_init", scale=50),
    )
    c_puct_log: float = number(
        0.45, 0, 100, "scale the part of the exploration factor that grows with the visits", SEARCH,
        more="That part is log((visits + c_puct_base) / c_puct_base).",
        katago="cpuctExplorationLog", defaults={"shogi": 2.0},
    )
    c_puct_base: float = number(
        500.0, 1, 10**9, "set the visits from which the growing part of exploration counts", SEARCH,
        katago="cpuctExplorationBase", defaults={"shogi": 28288.0}, usi=Usi("C_base"),
    )
    root_c_puct: float | None = number(
        None, 0, 100, "set c_puct at the root", SEARCH, unset="as elsewhere", games=SHOGI,
        usi=Usi("C_init_root", scale=50),
    )
    root_c_puct_base: float | None = number(
        None, 1, 10**9, "set c_puct_base at the root", SEARCH, unset="as elsewhere", games=SHOGI,
        usi=Usi("C_base_root"),
    )
    fpu_reduction: float = number(
        0.2, 0, 2, "rate an unvisited move this much below its parent (first-play urgency)", SEARCH,
        katago="fpuReductionMax", defaults={"shogi": 0.54}, usi=Usi("C_fpu_reduction", scale=50),
    )
    root_fpu_reduction: float = number(
        0.1, 0, 2, "set fpu_reduction at the root", SEARCH,
        katago="rootFpuReductionMax", defaults={"shogi": 0.0}, usi=Usi("C_fpu_reduction_root", scale=50),
    )
    virtual_loss: float = number(
        1.0, 0, 100, "count an unfinished playout as this many losses", SEARCH, katago="numVirtualLossesPerThread"
    )
    score_utility: float = number(
        0.1, 0, 2, "weigh the score, measured from zero, against winning", SEARCH,
        more="A win weighs 1.", katago="staticScoreUtilityFactor", games=GO,
    )
    dynamic_score_utility: float = number(
        0.3, 0, 2, "weigh the score, measured from the expected score, against winning", SEARCH,
        katago="dynamicScoreUtilityFactor", games=GO,
    )
    uncertainty: bool = flag(
        True, "weigh evaluations by the network's own certainty", SEARCH,
        more="KataGo's networks predict it from version 9 on.", katago="useUncertainty", games=GO,
    )
    bias_correction: float = number(
        0.45, 0, 1, "correct evaluations by this share of the errors found in similar positions", SEARCH,
        more="Positions are similar if their last two moves and the surroundings agree. 0: no correction.",
        katago="subtreeValueBiasFactor", defaults={"shogi": 0.0},
    )
    noise_pruning: float = number(
        0.0, 0, 10, "ignore extra visits of a move whose utility is this much worse", SEARCH,
        more="Extra visits are those beyond twice the move's prior. The move is compared with moves of greater prior."
        " 0: ignore none.",
        katago="noisePruneUtilityScale",
    )
    value_weighting: float = number(
        0.0, 0, 2, "weigh moves in a position's mean by this power of their chance to be better", SEARCH,
        more="Better than the mean. 0: weigh moves by their visits.", katago="valueWeightExponent",
    )
    policy_temperature: float = number(
        1.0, 0.01, 100, "set the temperature of the network's policy", SEARCH, more="Above 1: flatter.",
        katago="nnPolicyTemperature", defaults={"shogi": 1.74}, usi=Usi("Softmax_Temperature", scale=100),
    )
    root_policy_temperature: float | None = number(
        1.0, 0.01, 100, "set policy_temperature at the root", SEARCH, unset="as elsewhere",
        katago="rootPolicyTemperature", defaults={"shogi": None},
    )
    graph: bool = flag(
        True, "let lines that lead to the same position share its node", SEARCH,
        more="Positions that may soon be repeated are not shared.", katago="useGraphSearch",
    )
    renew_root: bool = flag(
        True, "evaluate the root again when a search continues an earlier tree", SEARCH,
        more="Its moves then have the priors of a root.",
    )
    root_noise: float = number(
        0.0, 0, 1, "mix this share of Dirichlet noise into the root's policy", SEARCH, more="Self-play: 0.25.",
        katago="rootDirichletNoiseWeight",
    )
    root_noise_total: float = number(
        10.83, 0.01, 1000, "set the sum of the noise's concentrations over the legal moves", SEARCH,
        katago="rootDirichletNoiseTotalConcentration",
    )
    wide_root_noise: float = number(
        0.0, 0, 5, "explore the root more widely", SEARCH,
        more="The policy gets flatter, and the utilities of its moves get noise. At 1 all moves get about the same"
        " number of visits. Analyses and reviews: 0.04.",
        katago="wideRootNoise", games=GO,
    )
    human_root_weightless: float = number(
        0.0, 0, 1, "spend this share of root visits on moves of people; the root's value stays", SEARCH,
        more="Reports ignore extra visits of bad moves.", katago="humanSLRootExploreProbWeightless", games=GO,
    )
    human_root_weightful: float = number(
        0.0, 0, 1, "spend this share of the root's visits on moves of people", SEARCH,
        katago="humanSLRootExploreProbWeightful", games=GO,
    )
    human_c_puct: float = number(
        1.0, 0, 1000, "set the exploration factor of these visits", SEARCH, katago="humanSLCpuctExploration", games=GO
    )
    human_c_puct_permanent: float = number(
        0.0, 0, 1000, "set the part of that factor that grows with the square root of the visits", SEARCH,
        more="Moves that lose less utility than this keep their share of visits.",
        katago="humanSLCpuctPermanent", games=GO,
    )
    root_symmetry_pruning: bool = flag(
        True, "search only one of several moves that board symmetry makes equal", SEARCH, more="Self-play: false.",
        katago="rootSymmetryPruning", games=GO,
    )
    prune_useless_moves: bool = flag(
        True, "skip moves inside unconditionally safe territory", SEARCH,
        more="They are searched if dead stones count there.", katago="rootPruneUselessMoves", games=GO,
    )
    use_lcb: bool = flag(
        True, "choose among the most visited moves by the lower confidence bound", SEARCH,
        katago="useLcbForSelection",
    )
    seed: int | None = number(
        None, 0, 2**62, "set the seed of all random choices", SEARCH, unset="a new seed at each start",
        more="With one worker the search repeats itself exactly.",
    )
    # fmt: on


@dataclass(repr=False)
class Options(SearchOptions):
    """All options of the engine. (This text saves time: without one, dataclass spends a millisecond on making it.)"""

    # a table: the formatter would give each argument a line
    # fmt: off
    net: str | None = option(
        None, "play with this network: a file, or a name of `yomi net list`", NETWORK, kind="file", live=False,
        unset="the bundled network for the device",
        more="Files: KataGo's .bin.gz or .txt.gz, dlshogi's .onnx, an NNUE evaluation (nn.bin), yomi's own .onnx or"
        " .safetensors, or a folder with an nn.bin. The name `fast` is the smallest bundled network. A file takes"
        " precedence over a name.",
        usi=Usi("DNN_Model", "EvalDir"),
    )
    value_net: str | None = option(
        None, "take values from this second network, and moves from --net", NETWORK, kind="file", live=False,
        more="If neither has values (Aya's policy network alone), rollouts evaluate positions.", games=GO,
    )
    human_net: str | None = option(
        None, "imitate people with this human-SL network of KataGo beside --net", NETWORK, kind="file", live=False,
        more="KataGo's `-human-model`. Analyses report its policy (`humanPolicy`); human_move_share lets it choose.",
        games=GO,
    )
    human_profile: str | None = option(
        None, "choose the players that a human-SL network imitates", NETWORK, kind="own", read=_check_profile,
        word="PROFILE", unset="no profile",
        more="rank_20k to rank_9d: players of a rank. preaz_20k to preaz_9d: before AlphaZero. rank_5k_2d: Black 5 kyu,"
        " White 2 dan. proyear_1800 to proyear_2023: professionals of a year.",
        katago="humanSLProfile", games=GO,
    )
    search_engine: str = option(
        "auto", "choose the search: auto, tree, alphabeta, or a class in a file", SEARCH, kind="own", live=False,
        read=_check_search, word="NAME", games=SHOGI,
        more="auto: alpha-beta on a processor, unless `visits` or a network with a policy asks for a tree. FILE.py:NAME"
        " is a subclass of PositionSearch, see yomi help search.",
        usi=Usi("Search_Engine"),
    )
    fv_scale: int = number(
        24, 1, 128, "divide the output of an NNUE evaluation by this number", NETWORK, live=False,
        more="The file's author names it (SuishoPetite, Suisho5: 24).", games=SHOGI, usi=Usi("FV_SCALE"),
    )
    evaluator: str = choice(
        "auto", ("auto", "onnx", "rollouts", "material", "uniform"), "choose how positions are evaluated", NETWORK,
        live=False,
        more="auto, onnx: by a network. rollouts (Go) and material (shogi): without a network. uniform: all moves"
        " alike, for tests.",
    )
    device: str = choice(
        "auto", (
            *("auto", "cpu", "cuda", "tensorrt", "webgpu", "webgpu:software", "rtx"),
            *("openvino", "openvino:gpu", "openvino:npu", "openvino:cpu"),
        ),
        "choose where the network runs", NETWORK, live=False,
        more="webgpu, rtx, openvino: by plug-ins of onnxruntime. webgpu:software: also on an adapter that is software."
        " openvino: Intel's GPU, otherwise Intel's processor.",
        usi=Usi("Device"),
    )
    devices: str | None = option(
        None, "share the batches among these GPUs, by number, such as 0,1", NETWORK, unset="the first GPU", live=False,
        usi=Usi("Devices"),
    )
    device_workers: int | None = number(
        None, 1, 16, "set the number of evaluation workers on each GPU", NETWORK, unset="two", live=False
    )
    backend: str = choice(
        "auto", ("auto", "native", "onnx", "tensorrt"), "choose what computes the network", NETWORK, live=False,
        more="auto: on a processor yomi's own kernels if they support the network; for device tensorrt TensorRT;"
        " otherwise onnxruntime.",
    )
    precision: str = choice(
        "auto", ("auto", "fp32", "fp16", "int16", "int8", "bf16"), "choose the network's number format", NETWORK,
        live=False,
        more="auto: bf16 on a processor with AMX; int8 for transformers on a processor with VNNI; int16 on other"
        " processors; fp16 on a GPU. yomi compares the format once for each network with fp32, and uses it if both"
        " agree.",
    )
    visits: int | None = number(
        None, 1, 10**12, "limit the visits for a move", LIMITS,
        more="Visits of the root from earlier searches count. Shogi: only a tree has visits, so this asks for a tree"
        " search; `playouts` limits the nodes of alpha-beta.",
        katago="maxVisits", usi=Usi("UCT_NodeLimit"),
    )
    playouts: int | None = number(
        None, 1, 10**12, "limit the playouts for a move; in alpha-beta search, the nodes", LIMITS, katago="maxPlayouts",
        usi=Usi("NodesLimit", "Const_Playout"),
    )
    depth: int | None = number(
        None, 1, 1000, "stop when the principal variation has this many moves", LIMITS, games=SHOGI,
        usi=Usi("DepthLimit"),
    )
    seconds: float | None = number(
        None, 0, 10**7, "limit the time for a move", LIMITS, unit="s",
        more="On a clock yomi may use less. Without a clock and without any limit a move takes 5 seconds.",
        katago="maxTime",
    )
    lag: float = number(
        0.2, 0, 60, "reserve this time for each move against delays on the way to the clock", LIMITS, unit="s",
        defaults={"shogi": 0.1}, katago="lagBuffer", usi=Usi("NetworkDelay", "Time_Margin", scale=1000),
    )
    byoyomi_margin: float = number(
        0.0, 0, 60, "reserve this further time for each move in byo-yomi", LIMITS, unit="s", games=SHOGI,
        usi=Usi("ByoyomiMargin", "Byoyomi_Margin", scale=1000),
    )
    min_seconds: float = number(
        0.0, 0, 100, "spend at least this time on a move if the clock allows it", LIMITS, unit="s", games=SHOGI,
        usi=Usi("MinimumThinkingTime", scale=1000),
    )
    batch_size: int | None = number(
        None, 1, 4096, "set the number of positions in a batch", SEARCH, live=False, unset="suits the device",
        usi=Usi("DNN_Batch_Size"),
    )
    rollout_weight: float = number(
        0.0, 0, 1, "set the share of rollouts in the value of a position", SEARCH,
        more="The rest is the network's value.", games=GO,
    )
    playout_doubling_advantage: float = number(
        0.0, -3, 3, "let the network expect more playouts of one side, in doublings", SEARCH,
        more="For handicap games: 1 means twice as many, -1 half as many. The stronger side then complicates the game.",
        katago="playoutDoublingAdvantage", games=GO,
    )
    playout_doubling_player: str = choice(
        "root", ("root", "black", "white"), "choose the side of playout_doubling_advantage", SEARCH,
        more="root: the side to move in the searched position.", katago="playoutDoublingAdvantagePla", games=GO,
    )
    ignore_pre_root_history: bool = flag(
        False, "hide the moves before the searched position from the network", SEARCH,
        more="Analyses and reviews: true.", katago="ignorePreRootHistory", games=GO,
    )
    analysis_ignore_pre_root_history: bool = flag(
        True, "set ignore_pre_root_history for GTP's analyze, lz-analyze and kata-analyze", SEARCH,
        katago="analysisIgnorePreRootHistory", games=GO,
    )
    analysis_wide_root_noise: float = number(
        0.04, 0, 5, "set wide_root_noise for GTP's analyze, lz-analyze and kata-analyze", SEARCH,
        katago="analysisWideRootNoise", games=GO,
    )
    leaf_mate_depth: int = number(
        3, 0, 5, "set the plies of the mate search at every leaf: 1, 3 or 5; 0: none", SEARCH, games=SHOGI,
        usi=Usi("Leaf_Mate_Search"),
    )
    root_mate_search: int = number(
        33, 0, 255, "set the plies of the root mate search; 0: none", SEARCH,
        more="It runs in a thread of its own.", games=SHOGI, usi=Usi("Mate_Root_Search"),
    )
    root_mate_nodes: int = number(
        300_000, 1000, 10**9, "limit the positions of the root mate search", SEARCH, games=SHOGI,
        usi=Usi("Mate_Root_Nodes"),
    )
    all_legal_moves: bool = flag(
        False, "search also non-promotions that are almost never useful", SEARCH,
        more="They are non-promotions of pawns, bishops and rooks, and of lances on the second rank. false: search only"
        " non-promotions that decide whether a pawn drop mates.",
        games=SHOGI, usi=Usi("GenerateAllLegalMoves"),
    )
    ponder: bool = flag(
        False, "think in the opponent's time", PLAY, katago="ponderingEnabled", usi=Usi("USI_Ponder")
    )
    stochastic_ponder: bool = flag(
        True, "ponder on all moves of the opponent, not only on the expected move", PLAY, games=SHOGI,
        usi=Usi("Stochastic_Ponder"),
    )
    resign: bool = flag(
        True, "resign lost games", PLAY,
        more="If Black has an advantage from the start (handicap stones, komi), White resigns later.",
        katago="allowResignation",
    )
    resign_threshold: float = number(
        0.05, 0, 1, "set the winrate below which a move counts as lost", PLAY, katago="resignThreshold",
        defaults={"shogi": 0.01}, usi=Usi("Resign_Threshold", scale=1000),
    )
    resign_moves: int = number(
        3, 1, 1000, "resign after this many own moves in a row below resign_threshold", PLAY,
        katago="resignConsecTurns",
    )
    level: int = number(
        0, -1, 20, "set the strength, from 1 (beginner) to 20 (full), or auto; 0: no level", PLAY,
        more="A level limits the search and draws moves by the model of people (yomi help levels). Options of the"
        " command line or the file of `--config` stay. auto: up after three wins of the opponent in a row, down after"
        " three losses.",
        usi=Usi("Level"), words={"max": 0, "off": 0, "auto": -1},
    )
    temperature: float = number(
        0.0, 0, 10, "draw among the visited moves at this temperature; 0: play the best", PLAY,
        katago="chosenMoveTemperature",
    )
    temperature_moves: int = number(
        0, 0, 10000, "use the temperature for this many moves from the start; 0: for all", PLAY
    )
    temperature_only_below: float = number(
        1.0, 0, 1, "apply the temperature only to moves less likely than this", PLAY,
        more="1: to all moves. More likely moves keep their shares among themselves.",
        katago="chosenMoveTemperatureOnlyBelowProb",
    )
    human_move_share: float = number(
        0.0, 0, 1, "choose moves by the human-SL network's policy, by this share", PLAY,
        more="The rest is the search's choice. Imitation also needs a temperature, such as 0.8.",
        katago="humanSLChosenMoveProp", games=GO,
    )
    human_ignore_pass: bool = flag(
        False, "let the search alone decide about passes when people are imitated", PLAY,
        katago="humanSLChosenMoveIgnorePass", games=GO,
    )
    human_move_tolerance: float = number(
        1e9, 0.0001, 1e9, "play human moves less often that lose more utility than this", PLAY,
        more="Each loss of this much divides a move's share by 2.7.", katago="humanSLChosenMovePiklLambda", games=GO,
    )
    people_prior: float = number(
        0.0, 0, 10, "choose moves as people do: draw by this power of the policy; 0: off", PLAY,
        more="Levels set it, with people_loss. yomi help levels describes the model. Temperature and lower confidence"
        " bounds have no effect then.",
    )
    people_loss: float = number(
        0.0, 0, 1000, "with people_prior: avoid moves that lose utility, the more the greater this is", PLAY,
        more="A move that loses the utility u gets the factor exp(-people_loss u).",
    )
    cleanup: bool = flag(
        False, "capture all dead stones before passing", PLAY,
        more="For servers that count every stone as alive, such as CGOS.", games=GO,
    )
    own_book: bool = flag(True, "play from the book", PLAY, games=SHOGI, usi=Usi("OwnBook", "USI_OwnBook"))
    book_file: str | None = option(
        None, "play from this book of openings", PLAY, kind="file", live=False,
        more="YaneuraOu's forms (.db, .ybb) or Apery's (.bin).", games=SHOGI, usi=Usi("BookFile", "Book_File"),
    )
    book_moves: int = number(
        24, 0, 10000, "use the book for this many moves from the start", PLAY, games=SHOGI, usi=Usi("BookMoves")
    )
    book_ignore_rate: float = number(
        0.0, 0, 1, "ignore the book's move with this probability", PLAY, games=SHOGI,
        usi=Usi("BookIgnoreRate", scale=100),
    )
    book_ignore_ply: bool = flag(
        True, "find positions of a book (.db, .ybb) at any move number", PLAY, live=False,
        more="false: only at the move number in the book.", games=SHOGI, usi=Usi("IgnoreBookPly"),
    )
    book_flipped: bool = flag(
        True, "find positions of the book with the colors exchanged, too", PLAY, games=SHOGI, usi=Usi("FlippedBook")
    )
    book_counts: bool = flag(
        True, "prefer book moves that were played more often", PLAY, more="false: all moves alike.", games=SHOGI,
        usi=Usi("ConsiderBookMoveCount"),
    )
    narrow_book: bool = flag(
        False, "ignore book moves that were played less than one time in ten", PLAY, games=SHOGI,
        usi=Usi("NarrowBook"),
    )
    book_depth_limit: int = number(
        0, 0, 99_999, "ignore the book if its best move was searched less deeply than this", PLAY, games=SHOGI,
        usi=Usi("BookDepthLimit"),
    )
    book_eval_diff: int = number(
        30, 0, 99_999, "ignore book moves that are worse than the best by more centipawns", PLAY, games=SHOGI,
        usi=Usi("BookEvalDiff"),
    )
    book_eval_black_limit: int = number(
        -99_999, -99_999, 99_999, "ignore Black's (sente's) book moves of fewer centipawns", PLAY, games=SHOGI,
        usi=Usi("BookEvalBlackLimit"),
    )
    book_eval_white_limit: int = number(
        -99_999, -99_999, 99_999, "ignore White's (gote's) book moves of fewer centipawns", PLAY, games=SHOGI,
        usi=Usi("BookEvalWhiteLimit"),
    )
    size: int = number(19, 2, 19, "set the board size", GAME, live=False, more="GTP: `boardsize`.", games=GO)
    height: int | None = number(
        None, 2, 19, "set the rows of a board that is not square", GAME, live=False, unset="as many as columns",
        more="`--size 19x13` sets both. GTP: `rectangular_boardsize`.", games=GO,
    )
    rules: str = option(
        "tromp-taylor", "choose the rules", GAME, live=False,
        more="tromp-taylor, chinese, japanese, korean, aga, new-zealand, KataGo's other names, and KataGo's JSON form.",
        games=GO,
    )
    komi: float | None = number(
        None, -MAX_KOMI, MAX_KOMI, "set the komi; in reviews, replace the record's komi", GAME, live=False,
        unset="the komi of the rules", more="GTP: `komi`.", games=GO,
    )
    entering_king: str = choice(
        "27", ("none", "24", "24h", "27", "27h", "try"), "choose the rule of the declaration win", GAME,
        more="27 points, 24 points (31 win, 24 to 30 are a draw), or no such rule. With h White (uwate) needs fewer"
        " points in handicap games, by the points that White has given. With try the king that moves to 5a (Black) or"
        " 5i (White) wins.",
        games=SHOGI,
        usi=Usi(
            "EnteringKingRule",
            choices=("NoEnteringKing", "CSARule24", "CSARule24H", "CSARule27", "CSARule27H", "TryRule"),
        ),
    )
    max_moves: int | None = number(
        None, 1, 10000, "draw the game after this many moves", GAME, unset="never", games=SHOGI,
        usi=Usi("MaxMovesToDraw", "Draw_Ply"),
    )
    draw_value_black: float = number(
        0.5, 0, 1, "set the winrate of a draw if the engine is Black (sente)", GAME, games=SHOGI,
        usi=Usi("Draw_Value_Black", "DrawValueBlack", scale=1000),
    )
    draw_value_white: float = number(
        0.5, 0, 1, "set the winrate of a draw if the engine is White (gote)", GAME, games=SHOGI,
        usi=Usi("Draw_Value_White", "DrawValueWhite", scale=1000),
    )
    multipv: int = number(
        1, 1, 593, "report this many moves while the engine thinks", REPORTS, games=SHOGI, usi=Usi("MultiPV")
    )
    report_interval: float = number(
        0.5, 0, 3600, "set the time between reports", REPORTS, unit="s", games=SHOGI,
        usi=Usi("PvInterval", "PV_Interval", scale=1000),
    )
    centipawns: float = number(
        600.0, 1, 10000, "scale winrates p to centipawns: this times ln(p / (1 - p))", REPORTS, games=SHOGI,
        usi=Usi("Eval_Coef"),
    )
    log_file: str | None = option(
        None, "append the log to this file", LOG, kind="file", live=False, unset="warnings and errors to stderr"
    )
    log_level: str = choice(
        "info", ("debug", "info", "warning", "error"), "choose the lowest level that the log file receives", LOG,
        live=False, more="debug: every line of the protocol.",
    )
    # fmt: on

    @classmethod
    def for_game(cls, game: str) -> Options:
        """Return the defaults of a game. `Options()` has Go's defaults."""
        return cls(**{row.name: row.default_for(game) for row in TABLE.values()})  # type: ignore[arg-type]

    def set(self, name: str, value: object) -> None:
        """Check a value and set the option.

        Raises:
            OptionError: the name is unknown, or the value is of the wrong type or out of range.
        """
        row = find(name)
        setattr(self, row.name, row.check(value))

    def get(self, name: str) -> Value:
        value: Value = getattr(self, find(name).name)
        return value

    def copy(self) -> Options:
        return dataclasses.replace(self)

    def with_values(self, values: Mapping[str, Value]) -> Options:
        """Return a copy in which some options have other values. Errors: see `set`."""
        other = self.copy()
        for name, value in values.items():
            other.set(name, value)
        return other


# Every option by name, in the order of the reference.
TABLE = {row.name: row for group in GROUPS for row in rows_of(Options).values() if row.group == group}
ALIASES = {row.katago.lower(): row.name for row in TABLE.values() if row.katago}  # by KataGo's names in lower case
# by USI's names in lower case
USI_NAMES = {name.lower(): row for row in TABLE.values() if row.usi is not None for name in row.usi.names}


def rows_for(game: str) -> list[Setting]:
    """Return the options of a game, in the order of the reference."""
    return [row for row in TABLE.values() if row.is_for(game)]


def find(name: str, game: str | None = None) -> Setting:
    """Return an option by its name (with dashes or underscores) or by KataGo's name, or raise OptionError.

    If `game` is set, only this game's options are found.
    """
    rows = TABLE if game is None else {row.name: row for row in rows_for(game)}
    key = name.replace("-", "_").lower()
    key = ALIASES.get(name.lower(), key)
    if key not in rows:
        raise OptionError(tr("unknown option {name}", name=repr(name)) + did_you_mean(key, rows))
    return rows[key]


def without_human_net(katago: str) -> str:
    """Return KataGo's message for a setting that needs the network of --human-net."""
    return f"Provided parameter {katago} but no human model was specified (e.g -human-model b18c384nbt-humanv0.bin.gz)"


def read_config(path: Path, game: str = "") -> dict[str, Value]:
    """Return a TOML file's options for all games, overridden by the table of `game`. Errors: see `read_tables`."""
    tables = read_tables(path, (game,))
    return {**tables[""], **tables.get(game, {})}


def read_tables(path: Path, games: Iterable[str] = ()) -> dict[str, dict[str, Value]]:
    """Read a TOML file of options.

    Args:
        path: the file.
        games: names of further games, besides Go and shogi, that may have a table.

    Returns:
        The options for all games under "", and each game's table under the game's name.

    Raises:
        OptionError: the file cannot be read or is not TOML, an option is unknown, or a value is wrong.
    """
    from yomi.nets.text import read_toml  # not above: most starts read no file, and a GUI waits for the first answer

    try:
        data = read_toml(path)
    except OSError as error:
        raise OptionError(tr("cannot read the configuration {path}: {why}", path=path, why=error.strerror)) from None
    except ValueError as error:
        raise OptionError(tr("{path} is not a TOML file: {error}", path=path, error=error)) from None
    known = {*games, *(game for row in TABLE.values() for game in row.games)} - {""}
    if wrong := next((key for key, value in data.items() if isinstance(value, dict) and key not in known), None):
        raise OptionError(f"{path}: table [{wrong}] found, expected one of {', '.join(sorted(known))}")
    of_games = {key: value for key, value in data.items() if key in known and isinstance(value, dict)}
    tables = {"": {key: value for key, value in data.items() if key not in of_games}, **of_games}
    with reraised(OptionError, OptionError, f"{path}: "):
        return {game: _checked(table, game) for game, table in tables.items()}


def _checked(table: Mapping[str, Any], game: str) -> dict[str, Value]:
    rows = {key: find(key, game or None) for key in table}
    return {row.name: row.load(table[key]) for key, row in rows.items()}
