"""Evaluators of Go: queues and search settings from options, evaluations of single positions, benchmark positions."""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK
from yomi.engine.default_network import has_network, named_file, network_file
from yomi.engine.evaluators.base import Evaluator, EvaluatorError
from yomi.engine.evaluators.devices import Device
from yomi.engine.evaluators.network import (
    FileEvaluator,
    NetworkEvaluator,
    WithHuman,
    WithValues,
    network_in,
    open_network,
)
from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.game import BenchmarkPositions
from yomi.engine.go.game import GoGame
from yomi.engine.go.networks import (
    FORMATS,
    ROOT_OPTIMISM,
    KataGo,
    MixedEvaluator,
    RolloutEvaluator,
    encode,
    raw_outputs,
)
from yomi.engine.go.points import Board, board_of, square
from yomi.engine.go.rules import PRESETS, Rules
from yomi.engine.options import FOR_HUMAN_NET, TABLE, Options, without_human_net
from yomi.engine.players.setup import EvaluatorFactory, common_settings
from yomi.engine.search.types import SearchReport, SearchSettings
from yomi.native.go.planes import symmetry_table, write_bits, write_planes
from yomi.native.go.spec import go_spec
from yomi.native.spec import GameSpec, Inputs
from yomi.nets.errors import NetworkError
from yomi.nets.katago.human_profile import EXPECTED
from yomi.nets.katago.outputs import has_no_result, post_process

_log = logging.getLogger("yomi.networks")

ROLLOUTS_PER_LEAF = 1
ROLLOUT_BATCH = 8  # leaves of a rollout batch: they share the cost of a call without a worse selection
ROLLOUT_C_PUCT = 1.8  # won 58% ± 6 against 1.1 (9×9, 60 games): rollouts are far noisier than a network's values
# Search settings for evaluations by rollouts.
ROLLOUT_SETTINGS: Mapping[str, Any] = {
    "symmetry": "none",
    "fpu_from_mean": True,
    "spread_scale": 0.0,
    "bias_correction": 0.0,
    "noise_pruning": 0.0,
    "value_weighting": 0.0,
}

QueueKey = tuple[Board, bool]  # (board, whether the rules have games without result). Equal keys share an evaluator.


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysis of a position, during the search or at its end."""

    report: SearchReport
    # Priors of the root [area + 1], row by row from the top left, pass last, NaN for illegal moves.
    policy: npt.NDArray[np.float32]
    raw: "RawEvaluation | None" = None  # the network's outputs without search; None without a network
    human: "RawEvaluation | None" = None  # the same of the network of --human-net; None if there is none or no profile


@dataclass(frozen=True, slots=True)
class RawEvaluation:
    """A network's outputs for one position, from White's point of view, as in KataGo's `kata-raw-nn`."""

    # Symmetry of the evaluation, 0 to 7, or -1 for the average of all. The fields below are in the board's orientation.
    symmetry: int
    white_win: float  # probability; sums to 1 with `white_loss` and `no_result`
    white_loss: float
    no_result: float
    white_lead: float  # points
    white_score_selfplay: float  # mean final score of self-play, in points
    white_score_mean_square: float  # mean square of the final score
    policy: npt.NDArray[np.float32]  # [area + 1], row by row from the top left, pass last, NaN for illegal moves
    white_ownership: npt.NDArray[np.float32]  # [area], +1 for White
    extra: Mapping[str, float]  # further outputs by KataGo's names, such as varTimeLeft


def queue_key(board: Board, rules: Rules) -> QueueKey:
    return board, has_no_result(rules.ko, rules.scoring)


EVALUATOR_FACTORY = EvaluatorFactory(
    "go",
    "Go",
    "rollouts",
    lambda options: RolloutEvaluator(ROLLOUTS_PER_LEAF, options.batch_size or ROLLOUT_BATCH, options.seed),
    FORMATS,
)


def check_evaluator(options: Options) -> None:
    """Raise EvaluatorError if options about evaluators contradict each other."""
    if options.rollout_weight > 0.0 and not has_network(options):
        raise EvaluatorError(
            f"rollout_weight {options.rollout_weight:g} mixes rollouts into a network's values: expected evaluator "
            f"auto or onnx, not {options.evaluator}"
        )
    for name in ("value_net", "human_net"):
        if options.get(name) is not None and not has_network(options):
            flag = TABLE[name].flag
            raise EvaluatorError(f"evaluator {options.evaluator} uses no network: leave out {flag}, or --evaluator")
    EVALUATOR_FACTORY.check(options)


def make_queue(options: Options, board: Board, rules: Rules) -> EvaluationQueue:
    """Return the evaluation queue for a board; see `EvaluatorFactory`."""
    check_evaluator(options)
    values = human = None
    if options.value_net is not None:
        values = open_network(FORMATS, named_file(options.value_net, "go", options), board.size)
        if not values.predicts_value:
            file = options.value_net
            raise NetworkError(f"{file}: a network without values found, expected one with values for --value-net")
    if options.human_net is not None:
        human = open_network([KataGo], named_file(options.human_net, "go", options), board.size)

    def finish(network: FileEvaluator, device: Device) -> Evaluator:
        for form in filter(None, (network.format, values, human)):
            form.may_have_no_result = queue_key(board, rules)[1]
        evaluator: Evaluator = network
        has_values = values is not None or network.format.predicts_value
        weight = options.rollout_weight if has_values else 1.0
        # Further networks compute in half precision if the first does.
        how = device, options.backend, options.batch_size, "fp16" if network.precision == "fp16" else "fp32"
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(lambda: evaluator.close())
            if values is not None:
                evaluator = WithValues(network, values.load(*how))
            if weight > 0.0:
                evaluator = MixedEvaluator(evaluator, weight, ROLLOUTS_PER_LEAF, options.seed)
            if human is not None:
                evaluator = WithHuman(evaluator, human.load(*how))
                if not evaluator.human.info.meta_input:
                    _log.warning(
                        "%s is no human-SL network: its moves do not depend on human_profile", options.human_net
                    )
            on_failure.pop_all()
        return evaluator

    return EVALUATOR_FACTORY.make_queue(options, board.size, lambda: GoGame(board, rules), finish)


def human_network(evaluator: Evaluator) -> NetworkEvaluator | None:
    """Return the network of --human-net inside an evaluator, or None."""
    return evaluator.human if isinstance(evaluator, WithHuman) else None


def reads_profile(evaluator: Evaluator) -> bool:
    """Return whether the search's own network is a human-SL network."""
    network = network_behind(evaluator)
    return network is not None and network.info.meta_input


def check_profile(options: Options, evaluator: Evaluator, *, is_needed: bool = False) -> None:
    """Raise EvaluatorError if no network reads the profile, or if other options need --human-net.

    With `is_needed`, also raise it if the search's own network is a human-SL network and there is no profile.
    """
    for name in FOR_HUMAN_NET:
        if options.human_net is None and options.get(name) != TABLE[name].default:
            raise EvaluatorError(f"{TABLE[name].flag}: {without_human_net(TABLE[name].katago)}")
    networks = [network for network in (network_in(evaluator), human_network(evaluator)) if network is not None]
    if options.human_profile is None:
        if is_needed and reads_profile(evaluator):
            name = networks[0].info.name
            raise EvaluatorError(
                f"SGFMetadata is required for {name} but was not initialized. Did you specify humanSLProfile: expected "
                f"--human-profile, such as {EXPECTED}"
            )
    elif not any(network.info.meta_input for network in networks):
        names = " and ".join(network.info.name for network in networks) or evaluator.description
        raise EvaluatorError(
            f"humanSLProfile is specified as config param but model(s) don't use it: {names}: expected --human-net FILE"
        )


def search_settings(options: Options, queue: EvaluationQueue) -> SearchSettings:
    """Return the settings of a search. Unset options get values that suit the machine and the evaluator."""
    if queue.evaluator.inputs & Inputs.NETWORK:
        return common_settings(options, "go", queue, SearchSettings.c_puct)
    return common_settings(options, "go", queue, ROLLOUT_C_PUCT, **ROLLOUT_SETTINGS)


def network_behind(evaluator: Evaluator) -> NetworkEvaluator | None:
    """Return the network inside an evaluator if it has all outputs of KataGo's networks, otherwise None."""
    network = network_in(evaluator)
    if isinstance(network, NetworkEvaluator) and isinstance(network.format, KataGo):
        return network
    return None


def models_of(evaluator: Evaluator, options: Options) -> list[dict[str, Any]]:
    """Return KataGo's JSON of the networks in an evaluator: the search's, then that of --human-net."""
    found = (network_in(evaluator), network_file(options, "go")), (human_network(evaluator), options.human_net)
    return [
        {
            "name": Path(file or network.info.name).name,
            "internalName": network.info.name,
            "maxBatchSize": network.batch_size,
            "usesHumanSLProfile": network.info.meta_input,
            "version": network.info.model_version,
            "usingFP16": str(network.precision == "fp16").lower(),
        }
        for network, file in found
        if network is not None
    ]


def spec_for(board: Board, evaluator: Evaluator) -> GameSpec:
    network = network_in(evaluator)
    return go_spec(board.width, board.height) if network is None else network.spec


def ask_network(
    queue: EvaluationQueue,
    game: GoGame,
    symmetry: int | None,
    optimism: float = ROOT_OPTIMISM,
    *,
    is_human: bool = False,
) -> RawEvaluation:
    """Evaluate a game by a queue's network, or with `is_human` by the network of --human-net; see `evaluate_position`.

    Raises EvaluatorError without a network.
    """

    def ask(evaluator: Evaluator) -> RawEvaluation:
        if is_human:
            human = human_network(evaluator)
            assert human is not None
            return evaluate_position(human, game, symmetry, optimism)
        network = network_behind(evaluator)
        if network is None:
            if network_in(evaluator) is not None:
                raise EvaluatorError(f"{evaluator.description} does not tell all that KataGo's networks do")
            raise EvaluatorError(
                f"{evaluator.description} plays without a network: expected yomi to be started with --net FILE"
            )
        return evaluate_position(network, game, symmetry, optimism)

    return queue.call(ask)


def evaluate_position(
    network: NetworkEvaluator, game: GoGame, symmetry: int | None, optimism: float = ROOT_OPTIMISM
) -> RawEvaluation:
    """Evaluate a game by a network with KataGo's features, from White's point of view.

    `symmetry` is 0 to 7, or None for the average over all eight. `optimism` is the share of the optimistic policy, 0 to
    1; networks without that output ignore it.
    """
    symmetries = list(range(8)) if symmetry is None else [symmetry]
    planes, extras, legal = encode(network.spec, [(game.position, game.history, turn) for turn in symmetries])
    raw = raw_outputs(network, planes, extras)
    possible = has_no_result(game.rules.ko, game.rules.scoring)
    outputs = post_process(raw, legal, possible, network.info, optimism=optimism)
    # Undo the symmetries, average the rows and take White's point of view.
    black = int(game.position["side_to_move"]) == BLACK
    sign = -1.0 if black else 1.0
    policy = np.zeros(legal.shape[1], np.float32)
    ownership = np.zeros(game.board.area, np.float32)
    for row, turn in enumerate(symmetries):
        table = symmetry_table(game.board.width, game.board.height, turn)
        policy += outputs.policy[row][table] / len(symmetries)
        ownership += sign * outputs.ownership[row][table[:-1]] / len(symmetries)
    policy[~legal[0][symmetry_table(game.board.width, game.board.height, symmetries[0])]] = np.nan
    win, loss = float(outputs.win.mean()), float(outputs.loss.mean())
    extra = {
        "varTimeLeft": outputs.variance_time,
        "shorttermWinlossError": outputs.shortterm_winloss_error,
        "shorttermScoreError": outputs.shortterm_score_error,
    }
    return RawEvaluation(
        symmetry=-1 if symmetry is None else symmetry,
        white_win=loss if black else win,
        white_loss=win if black else loss,
        no_result=float(outputs.no_result.mean()),
        white_lead=sign * float(outputs.lead.mean()),
        white_score_selfplay=sign * float(outputs.score_mean.mean()),
        white_score_mean_square=float(outputs.score_mean_square.mean()),
        policy=policy,
        white_ownership=ownership,
        extra={name: float(values.mean()) for name, values in extra.items() if values is not None},
    )


# Board size -> moves of each position, Black first.
LINES: dict[int, tuple[str, ...]] = {
    9: (
        "",
        "E5 C4 G6 E3 D3 F4 D4",
        "E5 E3 D3 F3 C4 F5 F6 G6 E6 G7 D2 E4 D5 C7 D7",
        "F5 D4 D5 E5 E4 E6 F6 E3 F4 D6 C5 C4 F3 E2 F7 B5 C6 B6 C7 B7 D7",
    ),
    13: ("", "D4 K10 K4 D10 C8 F10 C11 C10 B10 D11", "K10 D4 D10 K4 F3 C6 H3 J6 L8 G4 G3 F4 E3 D3 E4 E5 D2 C3"),
    19: (
        "",
        "Q16 D4 Q3 D16 R5 C14 F3 D6 K4 R14 O17 S16 R17 Q10",
        "Q16 D16 Q4 D4 F17 C14 R10 C6 O3 K3 D10 F3 C17 C16 B16 B17 D17 E16 B15 C18 E17 B14 A17",
        "R16 D4 Q3 D17 D15 E15 D14 F16 E14 C16 C14 H17 C6 F3 C3 D3 C4 C5 B5 D5 B6 B4 B3 D2 B2 R6 R9 P6 O3 R12 P10",
    ),
}


def go_positions(size: int) -> list[GoGame]:
    """Return the games that benchmarks search on a board size: an empty board if none are defined for this size."""
    games, board = [], square(size)
    for line in LINES.get(size, ("",)):
        game = GoGame(board, PRESETS["tromp-taylor"], 7.5 if size > 9 else 7.0)
        for word in line.split():
            game.play(game.side_to_move, board.parse_vertex(word))
        games.append(game)
    return games


def go_subject(size: int) -> BenchmarkPositions:
    return BenchmarkPositions(f"{size}x{size}", go_spec(size), tuple(go_positions(size)), write_planes, write_bits)


def benchmark_positions(options: Options) -> BenchmarkPositions:
    return go_subject(board_of(options).side)


@contextlib.contextmanager
def measured(options: Options) -> Iterator[tuple[BenchmarkPositions, EvaluationQueue, SearchSettings]]:
    board = square(board_of(options).side)
    with contextlib.closing(make_queue(options, board, PRESETS["tromp-taylor"])) as queue:
        subject = replace(go_subject(board.side), spec=spec_for(board, queue.evaluator))
        yield subject, queue, search_settings(options, queue)
