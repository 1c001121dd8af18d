"""Finished games from files: journals of matches, and records of games."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.matches.journal import NAME, read_journal
from yomi.engine.matches.results import GameResult, MatchError, fault_of
from yomi.engine.records import LeftOut

if TYPE_CHECKING:
    from yomi.engine.game import Game


def read_results(
    paths: Iterable[Path], games: Collection[Game[Any, Any]], left_out: LeftOut | None = None
) -> list[GameResult]:
    """Return the games in journals, records, and folders of either.

    A journal is its match: the records that it lists are passed over, and where a folder is named, all that lie beside
    and below the journals in it. All others count, and those of a game in several forms (game.csa, game.kifu) once.
    Games without a result are left out.

    Args:
        paths: of files and folders.
        games: whose records may be there.
        left_out: files that cannot be read are added; None: raise at the first.

    Raises:
        MatchError: a file cannot be read, or there is no game with a result.
    """
    files: dict[Path, Path] = {}
    for path in paths:
        for file in _inside(path, games) if path.is_dir() else [path]:
            files.setdefault(_place(file, games), file)
    journals: dict[Path, list[GameResult]] = {}
    broken: set[Path] = set()
    for file in files.values():
        if file.suffix == ".jsonl":
            try:
                journals[file] = read_journal(file)[1]
            except MatchError as error:
                _leave_out(file, error, left_out)
                broken.add(file)
    listed = {
        _place(file.parent / name, games) for file in journals for result in journals[file] for name in result.files
    }
    found: list[GameResult] = []
    for place, file in files.items():
        if place in listed or file in broken:
            continue
        if file in journals:
            found += sorted(journals[file], key=lambda result: result.number)
            continue
        try:
            found += _read(file, games, left_out)
        except MatchError as error:
            _leave_out(file, error, left_out)
    if left_out is not None:
        left_out.report(len(files))
        if not found and left_out.faults:
            raise MatchError(left_out.faults[0])
    if not found:
        raise MatchError("no game with a result in these files: expected journals (match.jsonl), SGF, CSA or KIF")
    return found


def _leave_out(file: Path, error: MatchError, left_out: LeftOut | None) -> None:
    if left_out is None:
        raise error
    left_out.add(file, error)


def _of_suffix(file: Path, games: Collection[Game[Any, Any]]) -> Game[Any, Any] | None:
    """Return the game whose records have the suffix of a file; None if there is none."""
    return next((game for game in games if file.suffix.lower() in game.rated_suffixes), None)


def _place(file: Path, games: Collection[Game[Any, Any]]) -> Path:
    """Return the path by which a file is known, however it was named: one for all forms of a record."""
    place, game = file.resolve(), _of_suffix(file, games)
    return place if game is None else place.with_suffix(game.rated_suffixes[0])


def _inside(folder: Path, games: Collection[Game[Any, Any]]) -> list[Path]:
    """Return the journals in a folder and below it, and the records that lie neither beside nor below one of them."""
    journals = sorted(folder.rglob(NAME))
    matches = {journal.parent for journal in journals}
    records = (file for file in folder.rglob("*") if _of_suffix(file, games) is not None)
    return journals + sorted(record for record in records if matches.isdisjoint(record.parents))


def _read(file: Path, games: Collection[Game[Any, Any]], left_out: LeftOut | None) -> list[GameResult]:
    """Return the games in a record; where its suffix does not tell the game, the first one that can read it does."""
    known = _of_suffix(file, games)
    fault = ""
    for game in [each for each in games if each.rated_suffixes] if known is None else [known]:
        try:
            kind = game.matches()
            records = kind.load_records(file)
            results = [kind.result_of(record) for record in records]
        except ValueError as error:
            fault = fault_of(file, error)
            continue
        if left_out is not None:
            left_out.report_notes(file, kind.notes_of(records))
        return [
            replace(result, black=result.black or "Black", white=result.white or "White", files=(str(file),))
            for result in results
            if result is not None
        ]
    raise MatchError(fault)
