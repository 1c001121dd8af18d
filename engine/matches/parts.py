"""Parts of matches and duels: finds the finished pairs of games, and merges several journals into one."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from yomi.engine.clusters.jobs import RUN_NAME, JobError, Part, Run
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.game import Game
from yomi.engine.matches.games import MatchGame
from yomi.engine.matches.report import report, to_text
from yomi.engine.matches.results import (
    FAULTS,
    JOURNAL_NAME,
    GameResult,
    MatchError,
    key_of,
    parse_journal,
    points_of,
    read_journal,
    write_journal,
)
from yomi.engine.matches.schedule import pairs_of
from yomi.engine.matches.score import MatchState
from yomi.engine.play import (
    ADJUDICATION,
    DECLARATION,
    IMPASSE,
    MATE,
    MAX_MOVES,
    NO_RESULT,
    PERPETUAL_CHECK,
    REPETITION,
    RESIGNATION,
    SCORE,
    TRY,
)
from yomi.errors import reraised
from yomi.nets.files import complete_lines, copy_file, expect_regular
from yomi.nets.text import first_difference

UNIT = "pairs of games"
Games: TypeAlias = Mapping[str, Game[Any, Any]]
# Facts with which the games of a journal agree: names of the players (none in a tuning), pairs of them by index, the
# game of the records (None: there are none), and openings
Header: TypeAlias = tuple[Sequence[str], Sequence[tuple[int, int]], MatchGame[Any] | None, Sequence[str]]
REPAIR = "use an untouched copy of this folder, or make it again"
# Endings that have a winner, endings without one, and endings whose detail begins with the winner's color.
WON = (*FAULTS, RESIGNATION, ADJUDICATION, MATE, PERPETUAL_CHECK, DECLARATION, TRY)
DRAWN = (NO_RESULT, REPETITION, IMPASSE)
COUNTED = (SCORE, MAX_MOVES)
UNNAMED = (*FAULTS, ADJUDICATION)  # some records have no word for them
SPRT_AND_TASK = "--sprt with --task: a task sees only its own games; leave out --sprt and choose --games"


def unit_of(game: int) -> int:
    """Return the number of a game's pair. Both games of a pair begin with the same opening."""
    return game // 2


def done_pairs(results: Sequence[GameResult], settings: Mapping[str, Any], units: int) -> frozenset[int]:
    """Return the pairs of which all games are played.

    Args:
        results: the games.
        settings: settings of the run, with the number of games against each opponent.
        units: number of pairs of games of the whole run.
    """
    # In a match with an odd number of games, the last pair of each two opponents has one game only.
    rounds = -(-settings["games"] // 2)
    short = range(units - units // rounds, units) if settings["games"] % 2 else range(0)
    played = Counter(unit_of(number) for number in {result.number for result in results})
    return frozenset(unit for unit, games in played.items() if games == (1 if unit in short else 2))


def done(folder: Path, run: Run, games: Games) -> frozenset[int]:
    """Return the finished units of a run. Errors: see `check_journal`."""
    return done_pairs(check_journal(folder, run, games), run.settings, run.units)


def check_journal(folder: Path, run: Run, games: Games) -> list[GameResult]:
    """Check a journal against itself, its run and the records of its games. Return its games.

    Args:
        folder: folder of the run.
        run: description of the run.
        games: descriptors by name.

    Raises:
        MatchError: the journal contradicts them, or cannot be read. The message names the line.
    """
    path = folder / JOURNAL_NAME
    with reraised(OSError, MatchError, f"{path}: "):
        expect_regular(path)
        description, found = parse_journal(path, complete_lines(path.read_bytes()))
    _check_header(path, description, run)
    names, pairs, kind, openings = _read_header(path, description, run, games)
    lines: dict[int, int] = {}
    for line, game in found:
        try:
            if game.number in lines:
                raise ValueError(f"is also in line {lines[game.number]}, expected one line a game")
            lines[game.number] = line
            _check_players(game, names, pairs, run)
            _check_result(game)
            if kind is not None:
                _check_records(game, folder, kind, openings)
        except (ValueError, OSError) as error:
            why = f"has {error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
            raise MatchError(f"{path}, line {line}: game {game.number + 1} {why}; {REPAIR}") from None
    return [game for _, game in found]


def _read_header(path: Path, description: Mapping[str, Any], run: Run, games: Games) -> Header:
    """Read the first line of a journal. Raises MatchError if a field is missing or has another form."""
    try:
        players, pairs = description["players"], [(0, 1)]
        if run.command != "match":
            return tuple(players), pairs, None, ()
        names, openings = [player["name"] for player in players], description["kept"]["openings"]
        if not all(isinstance(text, str) for text in [*names, *openings]):
            raise ValueError("expected texts")
        pairs = pairs_of(len(names), description["form"])
        return names, pairs, games[description["game"]].matches(), openings
    except (KeyError, TypeError, ValueError):
        raise MatchError(f"{path}, line 1: a broken description of the match found; {REPAIR}") from None


def _check_header(path: Path, description: Mapping[str, Any], run: Run) -> None:
    """Check that a journal's description agrees with the run. Files may be in other places."""
    found, wanted = dict(description), json.loads(json.dumps(dict(run.settings)))
    for values in (found, wanted):
        for key, left_out in (("players", ("command",)), ("options", ("net", "value_net"))):
            if isinstance(values.get(key), list):
                values[key] = [
                    {name: value for name, value in each.items() if name not in left_out}
                    if isinstance(each, dict)
                    else each
                    for each in values[key]
                ]
    for key in sorted({*found, *wanted} - {"kept", "games", "opening_source", "tuned"}):
        if found.get(key) != wanted.get(key):
            name, was, expected = first_difference(key, found.get(key), wanted.get(key))
            raise MatchError(
                f"{path}, line 1: {name} {was!r:.60} found, expected {expected!r:.60} as in {RUN_NAME}; {REPAIR}"
            )


def _check_players(game: GameResult, names: Sequence[str], pairs: Sequence[tuple[int, int]], run: Run) -> None:
    """Check that a game has the players that the schedule gives its number. Raises ValueError."""
    if game.number < 0 or (run.task is not None and unit_of(game.number) not in run.share):
        raise ValueError(f"is of another task, expected a game of task {run.task}")
    for name in (game.black, game.white):
        if names and name not in names:
            raise ValueError(f"has the player {name!r:.60}, expected one of {', '.join(map(str, names))}")
    first, second = pairs[unit_of(game.number) % len(pairs)]
    black, white = (second, first) if game.number % 2 else (first, second)
    if names and (game.black, game.white) != (names[black], names[white]):
        raise ValueError(
            f"is {game.black} against {game.white}, expected {names[black]} against {names[white]} by its number"
        )


def _check_result(game: GameResult) -> None:
    """Raise ValueError if the fields of a result contradict each other, or if a number is impossible."""
    side = {"B": BLACK, "W": WHITE}.get(game.detail[:1]) if game.detail[1:2] == "+" else None
    is_won = game.winner != DRAW
    if (game.ending in WON and not is_won) or (game.ending in DRAWN and is_won):
        raise ValueError(f"has the winner {game.winner} and the ending {game.ending!r}, which contradict each other")
    if game.ending in COUNTED and side is not None and side != game.winner:
        raise ValueError(f"has the winner {game.winner} and the score {game.detail!r:.60}, which contradict each other")
    numbers = [game.plies, game.opening, *game.chosen, *(seconds or 0.0 for seconds in game.seconds)]
    if min(numbers) < 0 or sum(game.chosen) > game.plies + 1 or not re.fullmatch("[0-9a-f]{16}", game.key):
        raise ValueError("has an impossible number of moves, time, opening or key")


def _check_records(game: GameResult, folder: Path, kind: MatchGame[Any], openings: Sequence[str]) -> None:
    """Check that a game agrees with its records. Raises ValueError or OSError."""
    if game.plies and not game.files:
        raise ValueError("has moves and no record, expected the names of its records")
    if game.opening >= len(openings):
        raise ValueError(f"has opening {game.opening + 1}, expected 1 to {len(openings)}")
    if len(set(game.files)) < len(game.files):
        raise ValueError("names a record twice")
    found: list[tuple[str, list[str]]] = [] if game.files else [("", [])]
    for name in game.files:
        if Path(name).name != name or name.partition(".")[0] != f"game-{game.number + 1:05d}":
            raise ValueError(f"has the record {name!r:.60}, expected game-{game.number + 1:05d} and an ending")
        expect_regular(folder / name)
        records = kind.load_records(folder / name)
        if len(records) != 1:
            raise ValueError(f"has {len(records)} games in {name}, expected one")
        result = kind.result_of(records[0])
        if result is None and game.winner != DRAW and game.ending not in UNNAMED:
            raise ValueError(f"has the winner {game.winner} and no result in {name}, expected the same")
        if result is not None and result.winner != game.winner:
            raise ValueError(f"has the winner {game.winner} and {result.winner} in {name}, expected the same")
        for said, wanted in ((records[0].black, game.black), (records[0].white, game.white)):
            if said.split() != wanted.split():
                raise ValueError(f"has the player {wanted!r:.60} and {said!r:.60} in {name}, expected the same")
        found.append((name, kind.moves_of(records[0])))
    for name, moves in found:
        if len(moves) != game.plies or key_of(f"{openings[game.opening]}|{' '.join(moves)}") != game.key:
            raise ValueError(f"has other moves than {name or 'its opening'}, by their number or key")


def merge(parts: Sequence[Part], out: Path) -> None:
    """Write the journal and the records of all parts as one match, in the order of the games.

    Raises:
        JobError: the parts drew different openings.
        MatchError: a journal cannot be read.
        OSError: a file cannot be copied or written.
    """
    description: Mapping[str, Any] = {}
    found: list[tuple[GameResult, Path]] = []
    for part in parts:
        read, results = read_journal(part.folder / JOURNAL_NAME)
        description = description or read
        if read["kept"] != description["kept"]:
            name, was, wanted = first_difference("", read["kept"], description["kept"])
            raise JobError(
                f"{part.folder}: {name} {was!r:.60} found, expected {wanted!r:.60} as in {parts[0].folder}; "
                "processors of other kinds may draw other openings: use --openings FILE"
            )
        found += [(result, part.folder) for result in results]
    found.sort(key=lambda pair: pair[0].number)
    for result, folder in found:
        for name in result.files:
            copy_file(folder / name, out / name)
    write_journal(out, description, [result for result, _ in found])


def results(folders: Sequence[Path], run: Run) -> list[str]:
    """Return the score of a duel, or the tables of a match, so far. Raises MatchError if a journal cannot be read."""
    found = [result for folder in folders for result in read_journal(folder / JOURNAL_NAME)[1]]
    if run.command == "duel":
        state = MatchState()
        for number, points in points_of(found).items():
            state.note(number, points)
        first, second = run.settings["players"]
        return [f"{first} against {second}: {state.line()}"]
    return to_text(report(sorted(found, key=lambda result: result.number))).rstrip().splitlines()
