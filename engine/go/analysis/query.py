"""Parses lines of the analysis protocol: KataGo's JSON, checked field by field in KataGo's order."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.analysis.fields import (
    FIELD,
    MAX_PV,
    FieldError,
    Fields,
    Settings,
    boolean,
    color,
    integer,
    integers,
    moves,
    override,
    real,
    shown,
    vertices,
)
from yomi.engine.go.analysis.results import ResponseParts
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import Board, SetupError
from yomi.engine.go.rules import Rules, RulesError
from yomi.engine.options import MAX_KOMI
from yomi.engine.players.request import Request
from yomi.engine.protocols.streams import MAX_LINE
from yomi.errors import IllegalMove
from yomi.native.go.board import MAX_SIZE, MIN_SIZE, PASS

_NAMES = (
    "id action terminateId turnNumbers boardXSize boardYSize initialStones moves initialPlayer analyzeTurns priorities"
    " rules komi whiteHandicapBonus overrideSettings maxVisits analysisPVLen rootFpuReductionMax rootPolicyTemperature"
    " includeMovesOwnership includeMovesOwnershipStdev includeOwnership includeOwnershipStdev includePolicy"
    " includePVVisits includeNoResultValue reportDuringSearchEvery firstReportDuringSearchAfter priority allowMoves"
    " avoidMoves"
)
KNOWN = frozenset(_NAMES.split())
MAX_PRIORITY = 2**62 - 1
MAX_SECONDS = 1e6
MAX_VISITS = 2**50
RULES = (
    'Must specify rules string, such as "chinese" or "tromp-taylor", or a JSON object with detailed rules parameters.'
)
RESTRICTIONS = "Must be a list of dicts with subfields 'player', 'moves', 'untilDepth'"


class QueryError(ValueError):
    """A line that is not a query. The message is one line."""

    def __init__(self, message: str, identity: str | None = None) -> None:
        super().__init__(message)
        self.identity = identity


@dataclass(order=True, slots=True)
class Turn:
    """One position of a query, to analyze."""

    urgency: tuple[int, int]  # smallest first: (negative priority, order of arrival)
    identity: str = field(compare=False)  # id of the query
    number: int = field(compare=False)  # number of moves before the position
    request: Request[GoGame] = field(compare=False)
    parts: ResponseParts = field(compare=False)


Warnings = list[tuple[str, str]]  # (field that was ignored or not read as it was meant, message)


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, in which `id` is a string, or None for an empty line. Raises QueryError."""
    if len(line) > MAX_LINE:
        raise QueryError(f"line too long: expected at most {MAX_LINE} bytes", _guess_id(line))
    if not line.strip():
        return None
    try:
        found = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    # The id of a broken line helps a client that waits for its answer.
    except UnicodeDecodeError as error:
        raise QueryError(f"could not parse input line as json request: byte {error.start + 1} is not UTF-8",
                         _guess_id(line)) from None  # fmt: skip
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise QueryError(f"could not parse input line as json request: {reason}", _guess_id(line)) from None
    if not isinstance(found, dict):
        raise QueryError("Request line was valid json but was not an object, ignoring")
    if not isinstance(found.get("id"), str):
        raise QueryError('Request must have a string "id" field')
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _guess_id(line: bytes) -> str | None:
    match = re.search(r'"id"\s*:\s*("(?:[^"\\]|\\.){0,1000}")', line[: MAX_LINE + 1].decode("utf-8", "replace"))
    if match is None:
        return None
    try:
        return str(json.loads(match[1]))
    except ValueError:
        return None


def read_query(fields: Fields, settings: Settings) -> tuple[list[Turn], Warnings]:
    """Return the turns of a query. `settings` contains the values of missing fields. Raises FieldError."""
    warnings: Warnings = []
    board = _board(fields)
    stones = _stones(fields, board)
    if "moves" not in fields:
        raise FieldError("moves", "Must specify an array of [player,location] pairs")
    played = moves(fields, "moves", board, passes=True)
    first = color(fields, "initialPlayer") if "initialPlayer" in fields else None
    numbers = _turns(fields, len(played))
    priorities = _priorities(fields)
    game = _game(fields, board)
    settings = _settings(fields, settings, warnings)
    parts = ResponseParts(
        perspective=settings.perspective,
        moves_ownership=boolean(fields, "includeMovesOwnership"),
        moves_ownership_stdev=boolean(fields, "includeMovesOwnershipStdev"),
        ownership=boolean(fields, "includeOwnership"),
        ownership_stdev=boolean(fields, "includeOwnershipStdev"),
        policy=boolean(fields, "includePolicy"),
        pv_visits=boolean(fields, "includePVVisits"),
        no_result=boolean(fields, "includeNoResultValue"),
        policy_power=settings.policy_power,
    )
    first_report, interval = _reports(fields)
    bans, allowed = _restrictions(fields, board)
    below = {player: {move: depth for move, depth in moves.items() if depth > 1} for player, moves in bans.items()}
    below = {player: moves for player, moves in below.items() if moves}
    for name in sorted(set(fields) - KNOWN):
        warnings.append((shown(name), "Unexpected or unused field, do you have a typo?"))
    options = settings.options
    turns = []
    for number, position in _positions(game, stones, played, first, numbers):
        player = position.side_to_move
        request = Request(
            position,
            options,
            avoid=() if player in allowed else tuple(bans.get(player, ())),
            allow=allowed.get(player),
            avoid_below=below,
            infinite=options.visits is None and options.playouts is None and options.seconds is None,
            hide_history=options.ignore_pre_root_history,
            keep_tree=False,
            pv_length=settings.pv_length,
            first_report=first_report,
            interval=interval,
        )
        priority = priorities.get(number, priorities.get(None, 0))
        turns.append(Turn((-priority, 0), fields["id"], number, request, parts))
    return turns, warnings


def _board(fields: Fields) -> Board:
    message = f"Must provide an integer from {MIN_SIZE} to {MAX_SIZE}"
    names = ("boardXSize", "boardYSize")
    for name in names:
        if name not in fields:
            raise FieldError(name, message)
    return Board(*(integer(fields, name, MIN_SIZE, MAX_SIZE, message) for name in names))


def _stones(fields: Fields, board: Board) -> dict[int, int]:
    """Return the color of each point with a set-up stone. A stone may be listed twice, but only in one color."""
    colors: dict[int, int] = {}
    if "initialStones" in fields:
        for player, point in moves(fields, "initialStones", board, passes=False):
            if colors.setdefault(point, player) != player:
                raise FieldError("initialStones", f"two set-up stones on {board.vertex(point)}")
    return colors


def _turns(fields: Fields, count: int) -> list[int]:
    if "analyzeTurns" not in fields:
        return [count]
    numbers = integers(fields, "analyzeTurns", "Must specify an array of integers indicating turns to analyze")
    if not numbers:
        raise FieldError("analyzeTurns", "[] found, expected at least one turn")
    for number in numbers:
        if not 0 <= number <= count:
            raise FieldError("analyzeTurns", f"Invalid turn number: {shown(number)}")
    return sorted(set(numbers))


def _priorities(fields: Fields) -> dict[int | None, int]:
    """Return the priority of each turn. The key None stands for all turns."""
    if "priorities" in fields:
        values = integers(fields, "priorities", "Must specify an array of integers indicating priorities")
        if "analyzeTurns" not in fields:
            raise FieldError("priorities", "Can only specify when also specifying analyzeTurns")
        if len(values) != len(fields["analyzeTurns"]):
            raise FieldError("priorities", "Must be of matching length to analyzeTurns")
        for value in values:
            if abs(value) > MAX_PRIORITY:
                raise FieldError("priorities", f"Invalid priority: {shown(value)}")
        if "priority" in fields:
            raise FieldError("priority", "Cannot specify both priority and priorities")
        return dict(zip(fields["analyzeTurns"], values, strict=True))
    if "priority" not in fields:
        return {}
    message = "Must be a number between -2^62 and 2^62"
    return {None: integer(fields, "priority", -MAX_PRIORITY, MAX_PRIORITY, message)}


def _game(fields: Fields, board: Board) -> GoGame:
    """Return an empty board with the query's rules and komi. The default komi is that of the rules."""
    rules = _rules(fields)
    try:
        return GoGame(board, rules, _komi(fields))
    except SetupError as error:  # JSON of rules may hold a komi of its own
        raise FieldError("rules", str(error)) from None


def _rules(fields: Fields) -> Rules:
    value = fields.get("rules")
    if not isinstance(value, str | dict):
        raise FieldError("rules", RULES)
    try:
        rules = Rules.parse(value if isinstance(value, str) else json.dumps(value))
    except RulesError as error:
        raise FieldError("rules", f"Could not parse rules: {shown(error)}") from None
    if "whiteHandicapBonus" not in fields:
        return rules
    bonus = fields["whiteHandicapBonus"]
    if bonus not in ("0", "N", "N-1"):
        raise FieldError("whiteHandicapBonus", f"{shown(bonus)} found, expected a string: 0, N or N-1")
    return rules.with_rule("whiteHandicapBonus", bonus)


def _komi(fields: Fields) -> float | None:
    if "komi" not in fields:
        return None
    message = "Must be a integer or half-integer from -400.0 to 400.0"
    komi = real(fields, "komi", -MAX_KOMI, MAX_KOMI, message)
    if komi * 2 != int(komi * 2):
        raise FieldError("komi", message)
    return komi


def _settings(fields: Fields, settings: Settings, warnings: Warnings) -> Settings:
    changes = fields.get(FIELD, {})
    if not isinstance(changes, dict):
        raise FieldError(FIELD, "Must be an object")
    settings, unknown = override(settings, changes)
    if unknown:
        warnings.append((FIELD, "Unknown config params: " + ",".join(map(shown, sorted(unknown)))))
    own: dict[str, Any] = {}
    if "maxVisits" in fields:
        visits = integer(fields, "maxVisits", 1, MAX_VISITS, "Must be an integer from 1 to 2^50")
        own["maxVisits"] = min(visits, 10**12)
    if "analysisPVLen" in fields:
        own["analysisPVLen"] = integer(fields, "analysisPVLen", 1, MAX_PV, f"Must be an integer from 1 to {MAX_PV}")
    for name, low, high in (("rootFpuReductionMax", 0.0, 2.0), ("rootPolicyTemperature", 0.01, 100.0)):
        if name in fields:
            own[name] = real(fields, name, low, high, f"Must be a number from {low} to {high}")
    return override(settings, own)[0]


def _reports(fields: Fields) -> tuple[float | None, float]:
    """Return (seconds to the first report during the search, seconds between reports)."""
    message = "Must be number of seconds from 0.001 to 1000000.0"
    every, first = (
        real(fields, name, 0.001, MAX_SECONDS, message) if name in fields else None
        for name in ("reportDuringSearchEvery", "firstReportDuringSearchAfter")
    )
    return every if first is None else first, math.inf if every is None else every


Bans = dict[int, dict[int, int]]  # color -> move -> untilDepth


def _restrictions(fields: Fields, board: Board) -> tuple[Bans, dict[int, tuple[int, ...]]]:
    """Return by color the banned moves, with the depth of each ban, and the only moves that allowMoves permits."""
    if "allowMoves" in fields and "avoidMoves" in fields:
        raise FieldError("allowMoves", "Cannot specify both allowMoves and avoidMoves")
    name = "allowMoves" if "allowMoves" in fields else "avoidMoves"
    entries = fields.get(name, [])
    if not isinstance(entries, list):
        raise FieldError(name, RESTRICTIONS)
    if name == "allowMoves" and len(entries) > 2:
        raise FieldError(name, "Currently allowMoves only allows at most one entry per player")
    bans: Bans = {}
    allowed: dict[int, tuple[int, ...]] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not {"player", "moves", "untilDepth"} <= set(entry):
            raise FieldError(name, RESTRICTIONS)
        player = color(entry, "player")
        listed = vertices(entry, "moves", name, board)
        depth = integer(entry, "untilDepth", 1, 10**9, "Must be a positive integer")
        if name == "avoidMoves":
            bans.setdefault(player, {}).update(dict.fromkeys(listed, depth))
            continue
        if player in allowed:
            raise FieldError(name, "Cannot specify allowMoves more than once for the same player")
        allowed[player] = tuple(listed)
        bans[player] = dict.fromkeys({*board.points, PASS}.difference(listed), depth)
    return bans, allowed


def _positions(
    game: GoGame,
    colors: Mapping[int, int],
    played: Sequence[tuple[int, int]],
    first: int | None,
    numbers: Sequence[int],
) -> list[tuple[int, GoGame]]:
    """Return (turn, game) for each requested turn. `colors` are the set-up stones. Ko and suicide are not checked."""
    if first is None:
        given = len(colors) > 1 and all(player == BLACK for player in colors.values())
        first = played[0][0] if played else WHITE if given else BLACK
    try:
        game.set_position([(player, point) for point, player in colors.items()], first)
    except SetupError as error:
        raise FieldError("initialStones", str(error)) from None
    found = []
    for number, (player, move) in enumerate(played):
        if number in numbers:
            found.append((number, game.copy()))
        if game.is_full:
            raise FieldError("moves", f"{len(played)} moves found, expected at most {number}")
        try:
            game.play(player, move, strict=False)
        except IllegalMove:
            raise FieldError("moves", f"Illegal move {number}: {game.board.vertex(move)}") from None
    if len(played) in numbers:
        found.append((len(played), game))  # no copy: most queries have this turn only
    return found
