"""Parts of matches and duels: which pairs of games are done, and one journal made of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from yomi.engine.jobs import JobError, Part, Run, first_difference
from yomi.engine.matches.report import report, to_text
from yomi.engine.matches.results import JOURNAL_NAME, GameResult, points_of, read_journal, write_journal
from yomi.nets.files import copy_file

UNIT = "pairs of games"
SPRT_AND_TASK = "--sprt with --task: a task sees only its own games; leave out --sprt and choose --games"


def unit_of(game: int) -> int:
    """Return the number of the pair to which a game belongs. Both games begin with the same opening."""
    return game // 2


def done_pairs(results: Sequence[GameResult], settings: Mapping[str, Any], units: int) -> frozenset[int]:
    """Return the pairs whose games are all played.

    Args:
        results: the games.
        settings: of the run, with the number of games against each opponent.
        units: pairs of games of the whole run.
    """
    # In a match with an odd number of games, the last pair of each two opponents has one game only.
    rounds = -(-settings["games"] // 2)
    short = range(units - units // rounds, units) if settings["games"] % 2 else range(0)
    played = Counter(unit_of(number) for number in {result.number for result in results})
    return frozenset(unit for unit, games in played.items() if games == (1 if unit in short else 2))


def done(folder: Path, run: Run) -> frozenset[int]:
    """Return the finished units of a run. Raises MatchError if its journal cannot be read."""
    return done_pairs(read_journal(folder / JOURNAL_NAME)[1], run.settings, run.units)


def merge(parts: Sequence[Part], out: Path) -> None:
    """Write the journal and the records of one match, in the order of the games.

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
        found += [(result, part.folder) for result in results if unit_of(result.number) in part.run.share]
    found.sort(key=lambda pair: pair[0].number)
    for result, folder in found:
        for name in result.files:
            if Path(name).name != name:  # the part may come from anywhere
                raise JobError(f"{folder}: record {name!r} found, expected a file of this folder")
            copy_file(folder / name, out / name)
    write_journal(out, description, [result for result, _ in found])


def results(folders: Sequence[Path], run: Run) -> list[str]:
    """Return the score of a duel, or the tables of a match, so far. Raises MatchError if a journal cannot be read."""
    found = [result for folder in folders for result in read_journal(folder / JOURNAL_NAME)[1]]
    if run.command == "duel":
        from yomi.engine.matches.duel import MatchState  # imports the kernels

        state = MatchState()
        for number, points in points_of(found).items():
            state.note(number, points)
        first, second = run.settings["players"]
        return [f"{first} against {second}: {state.line()}"]
    return to_text(report(sorted(found, key=lambda result: result.number))).rstrip().splitlines()
