"""Finished games from files: journals of matches, and records of Go and shogi."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from engine.color import BLACK, DRAW, WHITE, opponent
from engine.matches.journal import NAME, read_journal
from engine.matches.results import GameResult, MatchError
from engine.play import (
    DECLARATION,
    FAILURE,
    ILLEGAL,
    MATE,
    MAX_MOVES,
    PERPETUAL_CHECK,
    REPETITION,
    RESIGNATION,
    SCORE,
    TIME,
)
from engine.shogi.notation import guilty_of

if TYPE_CHECKING:
    from engine.go.sgf import GameRecord
    from engine.shogi.records.record import GameRecord as ShogiRecord

GO_SUFFIXES = (".sgf",)
SHOGI_SUFFIXES = (".csa", ".kif", ".kifu", ".ki2")

SGF_ENDINGS = {"R": RESIGNATION, "T": TIME, "F": FAILURE}
"""First letter of what stands behind the winner's (R, Resign, Res., Time, Forfeit); else it is a score."""
CSA_ENDINGS = {
    "TORYO": RESIGNATION,
    "TSUMI": MATE,
    "TIME_UP": TIME,
    "KACHI": DECLARATION,
    "SENNICHITE": REPETITION,
    "MAX_MOVES": MAX_MOVES,
}
OCCURRENCES = 4
"""How often a position has stood when the game ends by repetition."""


def read_results(paths: Iterable[Path]) -> list[GameResult]:
    """Return the games in journals, records, and folders of either.

    A journal is its match: the records that it lists are passed over, and where a folder is named, all that lie beside
    and below the journals in it. All others count, and those of a game of shogi in several forms (game.csa, game.kifu)
    once. Games without a result are left out.

    Raises:
        MatchError: a file cannot be read, or there is no game with a result.
    """
    files: dict[Path, Path] = {}
    for path in paths:
        for file in _inside(path) if path.is_dir() else [path]:
            files.setdefault(_place(file), file)
    journals = {file: read_journal(file)[1] for file in files.values() if file.suffix == ".jsonl"}
    listed = {_place(file.parent / name) for file in journals for result in journals[file] for name in result.files}
    found: list[GameResult] = []
    for place, file in files.items():
        if place in listed:
            continue
        if file in journals:
            found += sorted(journals[file], key=lambda result: result.number)
        elif file.suffix.lower() in GO_SUFFIXES:
            found += _from_sgf(file)
        else:
            found += _from_shogi(file)
    if not found:
        raise MatchError("no game with a result in these files: expected journals (match.jsonl), SGF, CSA or KIF")
    return found


def _place(file: Path) -> Path:
    """Return the path by which a file is known, however it was named: one for all forms of a record of shogi."""
    place = file.resolve()
    return place.with_suffix(SHOGI_SUFFIXES[0]) if place.suffix.lower() in SHOGI_SUFFIXES else place


def _inside(folder: Path) -> list[Path]:
    """Return the journals in a folder and below it, and the records that lie neither beside nor below one of them."""
    suffixes = (*GO_SUFFIXES, *SHOGI_SUFFIXES)
    journals = sorted(folder.rglob(NAME))
    matches = {journal.parent for journal in journals}
    records = (file for file in folder.rglob("*") if file.suffix.lower() in suffixes)
    return journals + sorted(record for record in records if matches.isdisjoint(record.parents))


def _key(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]


def _from_sgf(path: Path) -> list[GameResult]:
    from engine.go.sgf import SgfError, load_sgf_games

    try:
        records = load_sgf_games(path)
    except SgfError as error:
        raise MatchError(f"{path}: {error}") from None
    results = (_go_result(record, path) for record in records)
    return [result for result in results if result is not None]


def _go_result(record: GameRecord, path: Path) -> GameResult | None:
    """Return the result of a game of Go; None where the record tells none."""
    letter, _, how = record.result.strip().partition("+")
    winner = {"B": BLACK, "BLACK": BLACK, "W": WHITE, "WHITE": WHITE}.get(letter.upper())
    if record.result.strip().lower() in ("0", "draw", "jigo"):
        winner = DRAW
    if winner is None:
        return None
    moves = [node.move for node in record.line() if node.move]
    return GameResult(
        number=0,
        black=record.black or "Black",
        white=record.white or "White",
        winner=winner,
        ending=SGF_ENDINGS.get(how.strip()[:1].upper(), SCORE),
        detail=record.result,
        plies=len(moves),
        key=_key(f"{record.size} {moves}"),
        files=(str(path),),
    )


def _from_shogi(path: Path) -> list[GameResult]:
    from engine.shogi.records.files import load_records
    from engine.shogi.records.record import RecordError, format_usi_line

    try:
        records = load_records(path)
    except RecordError as error:
        raise MatchError(str(error)) from None
    results = []
    for record in records:
        if record.winner is None:
            continue
        first = record.initial.side
        used: dict[int, float | None] = {BLACK: None, WHITE: None}
        for number, move in enumerate(record.moves):
            color = first if number % 2 == 0 else opponent(first)
            if move.seconds is not None:
                used[color] = (used[color] or 0.0) + move.seconds
        count = len(record.moves)
        own = {first: (count + 1) // 2, opponent(first): count // 2}
        results.append(
            GameResult(
                number=0,
                black=record.black or "Black",
                white=record.white or "White",
                winner=record.winner,
                ending=_shogi_ending(record),
                plies=count,
                seconds=(used[BLACK], used[WHITE]),
                chosen=(own[BLACK], own[WHITE]),
                key=_key(format_usi_line(record)),
                files=(str(path),),
            )
        )
    return results


def _shogi_ending(record: ShogiRecord) -> str:
    """Return how a game has ended.

    Records call every fault ILLEGAL_ACTION, or ILLEGAL_MOVE: it was perpetual check where the last position stands for
    the fourth time, else an illegal move, which may be the last one or left out.
    """
    if record.ending != "ILLEGAL_MOVE" and guilty_of(record.ending) is None:
        return CSA_ENDINGS.get(record.ending, record.ending)
    positions = [(placement.board, placement.hands, placement.side) for placement in record.placements()]
    return PERPETUAL_CHECK if positions.count(positions[-1]) >= OCCURRENCES else ILLEGAL
