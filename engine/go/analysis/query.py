"""Parses lines of the analysis protocol: KataGo's JSON, checked field by field in KataGo's order."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
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
from yomi.engine.go.game import GoGame, IllegalMove, SetupError
from yomi.engine.go.rules import Rules, RulesError
from yomi.engine.go.vertex import format_vertex
from yomi.engine.options import MAX_KOMI
from yomi.engine.players.request import Request
from yomi.engine.protocols.streams import MAX_LINE
from yomi.native.go.board import MAX_SIZE, MIN_SIZE

ACTIONS = ("query_version", "query_models", "clear_cache", "terminate", "terminate_all")
_NAMES = (
    "id action terminateId turnNumbers boardXSize boardYSize initialStones moves initialPlayer analyzeTurns priorities"
    " rules komi whiteHandicapBonus overrideSettings maxVisits analysisPVLen rootFpuReductionMax rootPolicyTemperature"
    " includeMovesOwnership includeMovesOwnershipStdev includeOwnership includeOwnershipStdev includePolicy"
    " includePVVisits includeNoResultValue reportDuringSearchEvery firstReportDuringSearchAfter priority allowMoves"
    " avoidMoves"
)
KNOWN = frozenset(_NAMES.split())
# Fields that are accepted but not answered: the search does not keep these statistics.
NOT_ANSWERED = ("includeOwnershipStdev", "includeMovesOwnershipStdev", "includeNoResultValue")
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
        """Describe the fault. `identity` is the query's id, if the line contains one."""
        super().__init__(message)
        self.identity = identity


@dataclass(frozen=True, slots=True)
class QueryWarning:
    """A field that was ignored, or not read as it was meant."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Turn:
    number: int  # number of moves before the position
    priority: int
    request: Request[GoGame]


@dataclass(frozen=True, slots=True)
class Query:
    turns: tuple[Turn, ...]
    parts: ResponseParts
    warnings: tuple[QueryWarning, ...]


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, with a string as `id`, or None for an empty line. Raises QueryError."""
    if len(line) > MAX_LINE:
        raise QueryError(f"line too long: expected at most {MAX_LINE} bytes", _guess_id(line))
    if not line.strip():
        return None
    try:
        found = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
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
    """Return the id in a broken line, if there is one."""
    match = re.search(r'"id"\s*:\s*("(?:[^"\\]|\\.){0,1000}")', line[: MAX_LINE + 1].decode("utf-8", "replace"))
    if match is None:
        return None
    try:
        return str(json.loads(match[1]))
    except ValueError:
        return None


def read_query(fields: Fields, settings: Settings) -> Query:
    """Read a query; `settings` are its defaults. Raises FieldError."""
    warnings: list[QueryWarning] = []
    size = _size(fields)
    stones = moves(fields, "initialStones", size, passes=False) if "initialStones" in fields else []
    if "moves" not in fields:
        raise FieldError("moves", "Must specify an array of [player,location] pairs")
    played = moves(fields, "moves", size, passes=True)
    first = color(fields, "initialPlayer") if "initialPlayer" in fields else None
    numbers = _turns(fields, len(played))
    priorities = _priorities(fields)
    game = _game(fields, size)
    settings = _settings(fields, settings, warnings)
    parts = ResponseParts(
        perspective=settings.perspective,
        ownership=boolean(fields, "includeOwnership"),
        policy=boolean(fields, "includePolicy"),
        moves_ownership=boolean(fields, "includeMovesOwnership"),
        pv_visits=boolean(fields, "includePVVisits"),
        policy_power=settings.policy_power,
    )
    for name in NOT_ANSWERED:
        if boolean(fields, name):
            warnings.append(QueryWarning(name, "Not supported: the responses leave it out"))
    first_report, every = _reports(fields)
    restrictions = _restrictions(fields, size, warnings)
    for name in sorted(set(fields) - KNOWN):
        warnings.append(QueryWarning(shown(name), "Unexpected or unused field, do you have a typo?"))
    options = settings.options
    turns = []
    for number, position in _positions(game, stones, played, first, numbers):
        avoid, allow = restrictions.get(position.side_to_move, ((), None))
        request = Request(
            position,
            options,
            avoid=avoid,
            allow=allow,
            infinite=options.visits is None and options.playouts is None and options.seconds is None,
            hide_history=options.ignore_pre_root_history,
            keep_tree=False,
            pv_length=settings.pv_length,
            first_report=first_report,
            interval=math.inf if every is None else every,
        )
        turns.append(Turn(number, priorities.get(number, priorities.get(None, 0)), request))
    return Query(tuple(turns), parts, tuple(warnings))


def _size(fields: Fields) -> int:
    message = f"Must provide an integer from {MIN_SIZE} to {MAX_SIZE}"
    for name in ("boardXSize", "boardYSize"):
        if name not in fields:
            raise FieldError(name, message)
    width, height = (integer(fields, name, MIN_SIZE, MAX_SIZE, message) for name in ("boardXSize", "boardYSize"))
    if width != height:
        raise FieldError("boardYSize", f"board {width}x{height} found, expected a square one: boardYSize {width}")
    return width


def _turns(fields: Fields, count: int) -> list[int]:
    """Return the sorted turns to analyze."""
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
    """Return the priority of each turn, or one priority for all turns under None."""
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


def _game(fields: Fields, size: int) -> GoGame:
    """Return an empty board with the query's rules and komi. The default komi is that of the rules."""
    rules = _rules(fields)
    try:
        return GoGame(size, rules, _komi(fields))
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


def _settings(fields: Fields, settings: Settings, warnings: list[QueryWarning]) -> Settings:
    """Return the settings with the changes of the query."""
    changes = fields.get(FIELD, {})
    if not isinstance(changes, dict):
        raise FieldError(FIELD, "Must be an object")
    settings, unknown = override(settings, changes)
    if unknown:
        warnings.append(QueryWarning(FIELD, "Unknown config params: " + ",".join(map(shown, sorted(unknown)))))
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


def _reports(fields: Fields) -> tuple[float | None, float | None]:
    """Return (seconds to the first report during the search, seconds between reports)."""
    message = "Must be number of seconds from 0.001 to 1000000.0"
    every = first = None
    if "reportDuringSearchEvery" in fields:
        first = every = real(fields, "reportDuringSearchEvery", 0.001, MAX_SECONDS, message)
    if "firstReportDuringSearchAfter" in fields:
        first = real(fields, "firstReportDuringSearchAfter", 0.001, MAX_SECONDS, message)
    return first, every


Restriction = tuple[tuple[int, ...], tuple[int, ...] | None]  # (moves to avoid, the only allowed moves or None)


def _restrictions(fields: Fields, size: int, warnings: list[QueryWarning]) -> dict[int, Restriction]:
    """Return the restrictions on the root's moves (avoidMoves, allowMoves) by color."""
    if "allowMoves" in fields and "avoidMoves" in fields:
        raise FieldError("allowMoves", "Cannot specify both allowMoves and avoidMoves")
    name = "allowMoves" if "allowMoves" in fields else "avoidMoves"
    entries = fields.get(name, [])
    if not isinstance(entries, list):
        raise FieldError(name, RESTRICTIONS)
    if name == "allowMoves" and len(entries) > 2:
        raise FieldError(name, "Currently allowMoves only allows at most one entry per player")
    found: dict[int, list[int]] = {}
    deepest = 1
    for entry in entries:
        if not isinstance(entry, dict) or not {"player", "moves", "untilDepth"} <= set(entry):
            raise FieldError(name, RESTRICTIONS)
        player = color(entry, "player")
        listed = vertices(entry, "moves", name, size)
        deepest = max(deepest, integer(entry, "untilDepth", 1, 10**9, "Must be a positive integer"))
        if name == "allowMoves" and player in found:
            raise FieldError(name, "Cannot specify allowMoves more than once for the same player")
        found.setdefault(player, []).extend(listed)
    if deepest > 1:
        warnings.append(QueryWarning(name, f"untilDepth {deepest} is read as 1: only the first move is restricted"))
    if name == "avoidMoves":
        return {player: (tuple(listed), None) for player, listed in found.items()}
    return {player: ((), tuple(listed)) for player, listed in found.items()}


def _positions(
    game: GoGame,
    stones: Sequence[tuple[int, int]],
    played: Sequence[tuple[int, int]],
    first: int | None,
    numbers: Sequence[int],
) -> list[tuple[int, GoGame]]:
    """Return (turn, game) of each requested turn. Ko and suicide are not checked."""
    colors = {point: player for player, point in stones}
    if first is None:
        given = bool(stones) and len(colors) > 1 and all(player == BLACK for player in colors.values())
        first = played[0][0] if played else WHITE if given else BLACK
    try:
        game.set_position([(player, point) for point, player in colors.items()], first)
    except SetupError as error:
        raise FieldError("initialStones", str(error)) from None
    found = []
    for number in range(len(played) + 1):
        if number in numbers:
            found.append((number, game.copy()))
        if number < len(played):
            player, move = played[number]
            if game.is_full:
                raise FieldError("moves", f"{len(played)} moves found, expected at most {number}")
            try:
                game.play(player, move, strict=False)
            except IllegalMove:
                raise FieldError("moves", f"Illegal move {number}: {format_vertex(move, game.size)}") from None
    return found
