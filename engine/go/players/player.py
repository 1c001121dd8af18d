"""The player of Go: time for a move, resigning, root moves that need no search, and the player itself."""

import functools
import math
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.clock import MAX_RESERVE_SHARE, Budget, Clock, TimeSystem, lag_reserve
from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.go.game import GoGame, new_game
from yomi.engine.go.networks import ROOT_OPTIMISM
from yomi.engine.go.players.setup import (
    RawEvaluation,
    ask_network,
    check_evaluator,
    check_profile,
    human_network,
    make_queue,
    models_of,
    network_behind,
    queue_key,
    reads_profile,
    search_settings,
    spec_for,
)
from yomi.engine.go.points import STANDARD, Board, handicap_stones
from yomi.engine.go.scoring import ROLLOUTS, dead_stones, ownership_by_rollouts, pass_alive_points
from yomi.engine.options import LOG, Options, rows_for
from yomi.engine.players.player import Player
from yomi.engine.players.request import Adviser, Decision, Request, Turn
from yomi.engine.players.setup import tuned
from yomi.engine.players.time_management import temperature_at
from yomi.engine.search.base import PositionSearch
from yomi.engine.search.read_tree import draw, root_priors
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, MoveReport, Owners, SearchReport, SearchSettings
from yomi.native.go.board import NO_POINT, PASS
from yomi.native.go.planes import SYMMETRIES, symmetry_table
from yomi.native.spec import Inputs
from yomi.nets.katago.human_profile import HumanProfile

# -- time --------------------------------------------------------------------------------------------------------------


def moves_left(area: int, ply: int) -> float:
    """Return the estimated number of moves that one side still has to play."""
    # Games end (mostly by resignation) after about 0.6 moves for each point. The floor keeps time for the endgame and
    # for clean-up, and makes the time decay geometrically, so that it never runs out.
    return max(10 + area / 12, (0.6 * area + 10 - ply) / 2)


def find_budget(clock: Clock, moves: float, lag: float, lateness: float = 0.0) -> Budget:
    """Return the time for a move, counted from the start of its clock.

    Args:
        clock: the limited clock of the side to move. In an inexact Canadian period each move gets an equal share.
        moves: estimated number of own moves still to play.
        lag: seconds that each move may lose.
        lateness: further seconds that this move may lose, on a loaded machine.
    """
    settings, left = clock.settings, clock
    reserve = lag_reserve(lag, moves) + lateness
    system = settings.system
    # Sudden death: an equal share of the time. Fischer: also the increment less the lag. Lateness and lag stay on the
    # clock.
    if system in (TimeSystem.ABSOLUTE, TimeSystem.FISCHER):
        spare, usable = max(left.main - reserve, 0.0), min(left.main, settings.move_limit) - lag - lateness
        return Budget.shared(spare, moves, max(settings.increment - lag, 0.0), max(usable, 0.0))
    first = settings.period / max(settings.count, 1) if system is TimeSystem.CANADIAN else settings.period
    # Byo-yomi: one period less lag and lateness; periods are kept. Canadian: an equal share of the period.
    kept = lag + min(lateness, max(MAX_RESERVE_SHARE * first - lag, 0.0))
    if system is TimeSystem.CANADIAN and not clock.is_exact:
        overtime = overtime_hard = max(first - kept, 0.0)
    elif system is TimeSystem.BYOYOMI:
        overtime = overtime_hard = max((left.period if left.count else 0.0) - kept, 0.0)
    else:
        stones = max(left.count, 1)
        overtime = max(left.period / stones - kept, 0.0)
        overtime_hard = max(min(3 * overtime, left.period / 2 - lag * (stones - 1) - kept), overtime)
    if left.main <= 0:
        return Budget(overtime, overtime_hard)
    # If the main time runs out during the move, the rest of the move is charged to the first period.
    in_overtime = max(first - kept, 0.0)
    soft = max(left.main / moves, min(in_overtime, left.main + in_overtime))
    hard = max(soft, min(3 * soft, left.main + in_overtime))
    return Budget(soft, hard)


# -- resignation -------------------------------------------------------------------------------------------------------

STONE_POINTS = {"AREA": 15.0, "TERRITORY": 14.0}  # points that a handicap stone is worth, by scoring
FAIR_KOMI = 7.0
MIN_ADVANTAGE = 0.9  # Black's advantage (points) above which a game is not even
PATIENT_SHARE = 0.2  # moves for each point of the board before White may resign
LEVEL_SHARE = 0.6  # moves for each point of the board until White should have caught up
BUFFER, BUFFER_SHARE = 5.0, 0.15  # White resigns this far behind the schedule: points, and share of the advantage


def black_advantage(game: GoGame) -> float:
    """Return Black's advantage in points at the start, from handicap stones and komi."""
    stones = handicap_stones(game.setup, game.moves)
    extra = STONE_POINTS[game.rules.scoring] * max(stones - 1, 0)
    return extra + FAIR_KOMI - float(game.position["komi"])


def may_resign(game: GoGame, color: int, lead: float) -> bool:
    """Return whether `color`, to move in a lost position with this `lead` in points, may resign."""
    # In a handicap game White starts behind and catches up over many moves. It does not resign early, and later only if
    # it is well behind a schedule by which Black's advantage shrinks evenly to zero. The numbers are KataGo's
    # (`shouldResign` and `initialBlackAdvantage` in cpp/command/gtp.cpp).
    advantage = black_advantage(game)
    if color != WHITE or advantage <= MIN_ADVANTAGE:
        return True
    area, ply = game.board.area, len(game.moves)
    first = 1 + int(PATIENT_SHARE * area)
    if ply < first:
        return False
    caught_up = min((ply - first) / max(LEVEL_SHARE * area - first, 1.0), 1.0)
    schedule = advantage * (1.0 - caught_up)
    return lead <= -(schedule + BUFFER + BUFFER_SHARE * advantage)


# -- moves of the root that need no search -----------------------------------------------------------------------------

# Move -> (symmetric move that is searched instead, symmetry from that move as point -> point).
Twins = Mapping[int, tuple[int, Mapping[int, int]]]


@functools.cache
def board_symmetries(board: Board) -> list[dict[int, int]]:
    """Return the symmetries of a board as point -> point, without the identity: seven, or three if not square."""
    points = board.points
    count = SYMMETRIES if board.is_square else SYMMETRIES // 2  # no other swaps rows and columns
    tables = (symmetry_table(board.width, board.height, symmetry)[:-1].tolist() for symmetry in range(1, count))
    return [{point: points[to] for point, to in zip(points, table, strict=True)} for table in tables]


def twins(game: GoGame) -> Twins:
    """Return the moves that are omitted because a symmetric move is searched instead."""
    points = game.board.points
    legal = [move for move in game.legal_moves() if move != PASS]
    seen = {point: (game.color_at(point), point in legal) for point in points}
    symmetries = board_symmetries(game.board)
    images = [image for image in symmetries if all(seen[image[point]] == seen[point] for point in points)]
    # As usual in diagrams, Black's first move is in the upper right and White's in the lower left.
    legal.sort(key=lambda move: (-game.board.coordinates(move)[0], move), reverse=game.side_to_move != BLACK)
    found: dict[int, tuple[int, Mapping[int, int]]] = {}
    for move in legal if images else ():
        if move not in found:
            found |= {image[move]: (move, image) for image in images if image[move] != move}
    return found


def with_twins(report: SearchReport, twins: Twins) -> SearchReport:
    """Return a report in which the symmetric moves follow each searched move."""
    moves: list[MoveReport] = []
    for move in report.moves:
        moves.append(replace(move, order=len(moves)))
        for twin, (searched, image) in twins.items():
            if searched == move.move:
                pv = tuple(image.get(point, PASS) for point in move.pv)
                found = replace(move, move=twin, pv=pv, symmetry_of=searched, owners=None, order=len(moves))
                moves.append(found)
    return replace(report, moves=tuple(moves))


class TwinAdviser(Adviser):
    """Adds the symmetric moves, which were not searched, to reports."""

    def __init__(self, twins: Twins, search: Search) -> None:
        self._twins, self._search = twins, search

    def annotate(self, report: SearchReport) -> SearchReport:
        pruned = {move: twin for move, twin in self._twins.items() if self._search.is_banned(move)}
        return with_twins(report, pruned) if pruned else report


def useless_moves(game: GoGame, *, counts_dead: bool) -> set[int]:
    """Return the moves inside unconditionally safe territory that are no better than a pass.

    With `counts_dead`, dead stones count as alive unless they are captured. Then moves inside the opponent's territory
    are threats, and captures inside one's own territory may be needed.
    """
    # KataGo's rootPruneUselessMoves waits for four passes of the opponent. Here useless moves are pruned from the
    # start, but only if they cannot matter: during a ko they are threats.
    if game.rules.tax == "ALL" or int(game.position["simple_ko"]) != NO_POINT:
        return set()
    side = game.side_to_move
    own, theirs = (
        {point for point in pass_alive_points(game, color) if game.color_at(point) != color}
        for color in (side, opponent(side))
    )
    if not counts_dead:
        return own | theirs
    return set() if any(game.color_at(point) == opponent(side) for point in own) else own


# Options that take effect with `load`.
LOADED = (*(row.name for row in rows_for("go") if not row.live and row.group != LOG), "rollout_weight", "seed")
OWNERSHIP_SECONDS = 1.0
# Limits of the search that finds the owners at the end.
OWNERSHIP_LIMITS = Limits(playouts=64, seconds=OWNERSHIP_SECONDS)
ROLLOUTS_PER_SECOND = 10_000  # rollouts/s on 19×19, for the same without a network
CLEANUP_SHARE = 0.1  # maximum share of a move's time for finding dead stones


class GoPlayer(Player[GoGame]):
    _search: Search
    _human: npt.NDArray[np.float32] | None = None  # policy of people there; see `_read_human`
    _owners: tuple[object, npt.NDArray[np.float32]] | None = None  # the last position's key, and its owners

    def __init__(self, options: Options) -> None:
        """Load the network, or the evaluator without a network, for the options' board.

        Raises:
            LoadingError: see Player.
            SetupError: wrong rules, komi or size.
        """
        super().__init__(options, new_game(options))

    @property
    def models(self) -> list[dict[str, Any]]:
        """The networks, as `query_models` and `kata-get-models` report them; empty without a network."""
        return models_of(self._search.queue.evaluator, self.options)

    def check_profile(self, options: Options, *, is_needed: bool = False) -> None:
        """Raise EvaluatorError if no network reads the profile; if `is_needed`, also if a profile is missing."""
        check_profile(options, self._search.queue.evaluator, is_needed=is_needed)

    def start(self, request: Request[GoGame]) -> None:
        """Search without limit. A game that two passes have ended is not pondered, since no move will follow."""
        if not request.ponder or request.game.is_no_result or not request.game.is_over:
            super().start(request)

    def evaluate(
        self, game: GoGame, symmetry: int | None, optimism: float | None = None, options: Options | None = None
    ) -> RawEvaluation:
        """Evaluate a position once by the network; see `evaluate_position`. Raises EvaluatorError without a network.

        `options` contains the profile; None: the player's options.
        """
        self.load(game)
        options = options or self.options
        self.check_profile(options, is_needed=True)
        if reads_profile(self._search.queue.evaluator):
            game = imitating(game, options)
        return ask_network(self._search.queue, game, symmetry, ROOT_OPTIMISM if optimism is None else optimism)

    def evaluate_human(
        self, game: GoGame, symmetry: int | None, options: Options | None = None
    ) -> RawEvaluation | None:
        """Evaluate a position by the network of --human-net. Return None without that network or its profile.

        `options` contains the profile; None: the player's options.
        """
        self.load(game)
        options, human = options or self.options, human_network(self._search.queue.evaluator)
        if human is None or (human.info.meta_input and options.human_profile is None):
            return None
        return ask_network(self._search.queue, imitating(game, options), symmetry, 0.0, is_human=True)

    def final_ownership(self, game: GoGame) -> npt.NDArray[np.float32]:
        """Return the expected owner of each point at the end: [area] from the top left, +1 is Black.

        A search with the network, or rollouts without one, take about a second at most. Until the position or the
        settings of the search change, the owners stay the same.
        """
        root = self._turn(Request(game)).root  # may replace the search
        search = self._search
        key = (root.search_key, root.side_to_move, tuple(root.moves), search, search.settings)
        if self._owners is not None and self._owners[0] == key:
            return self._owners[1].copy()
        search.set_position(root)
        owners, report = self._ownership(game, OWNERSHIP_SECONDS), search.report()
        is_cut = report.playouts < (OWNERSHIP_LIMITS.playouts or 0) and report.seconds < OWNERSHIP_SECONDS
        self._owners = None if is_cut else (key, owners.copy())
        return owners

    def clear(self) -> None:
        super().clear()
        self._owners = None

    def owners_after(self, game: GoGame, move: int, rollouts: int) -> Owners:
        """Return the expected owners after a move of the side to move, for that side, by one evaluation.

        The history must not be full. Ko and suicide are not checked. Without a network, rollouts find the owners.
        """
        after = game.copy()
        after.play(game.side_to_move, move, strict=False)
        queue = self._search.queue
        if network_behind(queue.evaluator) is None:
            black, no_result = ownership_by_rollouts(after, rollouts), 0.0
        else:
            raw = ask_network(queue, after, 0)
            black, no_result = -raw.white_ownership, raw.no_result
        return Owners(black if game.side_to_move == BLACK else -black, np.zeros_like(black), no_result)

    # -- hooks of Player --------------------------------------------------------------------------------------------

    def _loading_key(self, game: GoGame) -> object:
        return (queue_key(game.board, game.rules), *(self.options.get(name) for name in LOADED))

    def _load(self, game: GoGame) -> PositionSearch:
        self._owners = None  # their key holds the old search
        empty = GoGame(game.board, game.rules)
        check_evaluator(self.options)
        queue = self._make_queue(empty)
        try:
            check_profile(self.options, queue.evaluator)
        except EvaluatorError:
            self._drop_queue(queue)
            raise
        return self._open_search(queue, spec_for(game.board, queue.evaluator), empty)

    def _make_queue(self, game: GoGame) -> EvaluationQueue:
        return make_queue(tuned(self.options, "go", game.board.size), game.board, game.rules)

    def _load_board(self, game: GoGame) -> None:
        self.load(game)

    def _search_settings(self, options: Options, game: GoGame, queue: EvaluationQueue) -> SearchSettings:
        return search_settings(tuned(options, "go", game.board.size), queue)

    def _budget(self, clock: Clock, game: GoGame, options: Options, lag: float, lateness: float) -> Budget:
        return find_budget(clock, moves_left(game.board.area, game.ply), lag, lateness)

    def _root(self, request: Request[GoGame]) -> GoGame:
        game, options = request.game.copy(), request.options or self.options
        if request.hide_history:
            game.hide_history()
        self.check_profile(options, is_needed=True)
        if reads_profile(self._search.queue.evaluator):
            game = imitating(game, options)
        advantage = options.playout_doubling_advantage
        if advantage:
            owner = {"root": game.side_to_move, "black": BLACK, "white": WHITE}[options.playout_doubling_player]
            game.expect_advantage(advantage if owner == BLACK else -advantage)
        return game

    def _without_search(self, turn: Turn[GoGame]) -> Decision | None:
        return Decision(PASS, report=SearchReport(turn.root.side_to_move)) if turn.root.is_full else None

    def _restrict(self, turn: Turn[GoGame], schedule: Budget | None) -> None:
        """Exclude symmetric and useless moves. In clean-up also exclude the pass until all dead stones are captured."""
        request, root, options, moves = turn.request, turn.root, turn.options, turn.root.legal_moves()
        self._human = self._read_human(turn)
        if schedule and options.cleanup and request.allow is None and len(moves) > 1 and self._has_dead(root, schedule):
            turn.moves = replace(turn.moves, avoid={*request.avoid, PASS})
        self._search.ban_below(request.avoid_below)
        explores = options.human_root_weightless + options.human_root_weightful > 0.0 and self._human is not None
        self._search.imitate(_by_move(root, self._human) if explores else {})
        if not request.avoid and request.allow is None and not request.avoid_below:
            found = twins(root) if options.root_symmetry_pruning else {}
            # Pruning a move would lose the visits of a kept tree.
            if self._search.root_visits and not all(map(self._search.is_banned, found)):
                found = {}
            turn.adviser = TwinAdviser(found, self._search)
            useless = self._useless_moves(root, options) if options.prune_useless_moves else ()
            turn.moves = replace(turn.moves, prune=[*found, *useless])
        left = turn.moves.of(moves)
        if len(left) == 1 and request.clock is not None:
            turn.forced = left[0]

    def _read_human(self, turn: Turn[GoGame]) -> npt.NDArray[np.float32] | None:
        """Return the policy of people at the root, [area + 1], NaN for illegal moves; None if the options omit it."""
        options = turn.options
        if options.human_move_share + options.human_root_weightless + options.human_root_weightful <= 0.0:
            return None
        human = self.evaluate_human(turn.root, None if options.symmetry == "average" else 0, options)
        return None if human is None else human.policy

    def raise_visits(self, goals: Mapping[int, int]) -> None:
        if goals:
            self._search.raise_visits(goals)

    def _useless_moves(self, root: GoGame, options: Options) -> Collection[int]:
        agrees = root.rules.has_agreement and not options.cleanup
        judged = root.rules.scoring == "TERRITORY" or self._search.spec.with_flags(root.position)["judges_agreement"]
        return useless_moves(root, counts_dead=not (agrees and judged))

    def _has_dead(self, root: GoGame, schedule: Budget) -> bool:
        """Return whether the opponent has dead stones on the board. The estimate takes a share of the move's time."""
        left = min(schedule.soft, schedule.hard) - time.monotonic()
        if left <= 0.0:
            return False
        dead = dead_stones(root, self._ownership(root, min(OWNERSHIP_SECONDS, CLEANUP_SHARE * left)))
        return any(root.color_at(point) == opponent(root.side_to_move) for point in dead)

    def _ownership(self, root: GoGame, seconds: float) -> npt.NDArray[np.float32]:
        """Return the expected owners of points at the search's root, +1 is Black. This takes at most `seconds`."""
        if not self._search.queue.evaluator.inputs & Inputs.NETWORK:
            return ownership_by_rollouts(root, max(1, min(ROLLOUTS, int(seconds * ROLLOUTS_PER_SECOND))))
        report = self._search.run(replace(OWNERSHIP_LIMITS, seconds=seconds))
        if report.ownership is None:
            return ownership_by_rollouts(root)
        return report.ownership if report.side_to_move == BLACK else -report.ownership

    def _draw(self, turn: Turn[GoGame], report: SearchReport, temperature: float, never: Collection[int] = ()) -> int:
        if self._human is not None and turn.options.human_move_share > 0.0:
            return self._imitate(turn, report, temperature, self._human)
        moves = tuple(move for move in report.moves if move.symmetry_of is None)
        if report.moves[0].move != PASS:  # a pass is never drawn at random
            moves = tuple(move for move in moves if move.move != PASS)
            never = (PASS, *never)
        elif turn.options.people_prior > 0.0:
            return PASS
        return super()._draw(turn, replace(report, moves=moves), temperature, never)

    def _imitate(
        self, turn: Turn[GoGame], report: SearchReport, temperature: float, human: npt.NDArray[np.float32]
    ) -> int:
        """Return a move by the weights that `human_choice` gives to human policy and search together.

        With temperature 0 it is the move with the greatest weight; otherwise the move is drawn.
        """
        root, options = turn.root, turn.options
        allowed = sorted(turn.moves.of(root.legal_moves()))
        weights = human_choice(report, root_priors(self._search.tree), _by_move(root, human), allowed, options)
        moves, counts = list(weights), np.array(list(weights.values()), np.float64)
        if temperature <= 0.0 or counts.max() <= 0.0:
            return moves[int(counts.argmax())]
        return moves[draw(counts, temperature, self._rng, options.temperature_only_below)]

    def _fallback_move(self, turn: Turn[GoGame]) -> int:
        if self._human is not None and turn.options.human_move_share > 0.0:
            temperature = temperature_at(turn.root.ply, turn.options.temperature, turn.options.temperature_moves)
            return self._imitate(turn, SearchReport(turn.root.side_to_move), temperature, self._human)
        move = self._search.first_move()
        return PASS if move is None else move

    def _people_prior(self, turn: Turn[GoGame]) -> float:
        return people_prior_on(turn.root.board, turn.options.people_prior)

    def _may_resign(self, game: GoGame, report: SearchReport) -> bool:
        return may_resign(game, game.side_to_move, report.score_lead)


def _by_move(game: GoGame, policy: npt.NDArray[np.float32] | None) -> dict[int, float]:
    """Convert a policy [area + 1] to a dictionary by move. Illegal moves get 0."""
    values = [] if policy is None else np.nan_to_num(policy).tolist()
    return dict(zip((*game.board.points, PASS), values, strict=False))


def imitating(game: GoGame, options: Options) -> GoGame:
    """Return a copy of a game with the options' profile, for human-SL networks."""
    other = game.copy()
    other.imitate(None if options.human_profile is None else HumanProfile.parse(options.human_profile))
    return other


# -- choosing as people do ---------------------------------------------------------------------------------------------


def human_choice(
    report: SearchReport,
    priors: Mapping[int, float],
    policy: Mapping[int, float],
    allowed: Iterable[int],
    options: Options,
) -> dict[int, float]:
    """Return the weight, at least 0, of each move that may be played.

    The rules are those of KataGo's getPlaySelectionValues (cpp/search/searchresults.cpp).

    Args:
        report: result of the search.
        priors: policy of the search's network, used if the search has visited no move.
        policy: policy of the human-SL network.
        allowed: moves that may be played.
        options: share of the policy, and how passes and losses count.
    """
    visited = {move.move: move for move in report.moves if move.symmetry_of is None}
    most = max((move.wanted for move in visited.values()), default=0.0)
    weights = {move.move: most if move.order == 0 else move.wanted for move in visited.values()}
    if most <= 0.0:
        weights = {move: priors.get(move, 0.0) for move in allowed}
    weights = {**dict.fromkeys(allowed, 0.0), **weights}
    losses = _losses({move.move: move.utility for move in visited.values()}, weights)
    human = {
        move: max(0.0, policy.get(move, 0.0)) * math.exp(-losses[move] / options.human_move_tolerance)
        for move in weights
    }
    total, total_human = sum(weights.values()), sum(human.values())
    if total_human <= 0.0 or total <= 0.0:
        return weights
    human = {move: part / total_human for move, part in human.items()}
    if options.human_ignore_pass:
        without_pass = sum(part for move, part in human.items() if move != PASS)
        passing = weights.get(PASS, 0.0) / total
        if without_pass > 0.0:
            scale = (1.0 - passing) / without_pass
            human = {move: passing if move == PASS else part * scale for move, part in human.items()}
    share = options.human_move_share
    return {move: weight + share * (total * human[move] - weight) for move, weight in weights.items()}


def _losses(utilities: Mapping[int, float], moves: Iterable[int]) -> dict[int, float]:
    """Return the utility that each move loses against the best. Unvisited moves count as the visited mean."""
    mean = sum(utilities.values()) / max(1, len(utilities))
    best = max((*utilities.values(), mean))
    return {move: best - utilities.get(move, mean) for move in moves}


EVEN_PEOPLE_PRIOR = 0.9  # power of the policy that means the same on every board
# Other powers are as much farther from it as the board's area is smaller, to these powers: below it and above it.
PEOPLE_SPREADS = 0.36, 1.04


def people_prior_on(board: Board, power: float) -> float:
    """Convert the exponent of the policy in the model of people from 19x19 to another board.

    A short game leaves less room for errors, so that the same error rates decide fewer games: exponents differ more
    there.
    """
    below, above = PEOPLE_SPREADS
    spread: float = (STANDARD.area / board.area) ** (below if power < EVEN_PEOPLE_PRIOR else above)
    return EVEN_PEOPLE_PRIOR * math.pow(power / EVEN_PEOPLE_PRIOR, spread)
