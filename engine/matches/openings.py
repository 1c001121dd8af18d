"""Positions that games begin with: from records, lists of positions, or drawn from an engine's own play.

An opening is a text: for Go the vertices of its moves, Black first; for shogi `startpos moves ...` or `sfen ...`. The
journal keeps the texts, so that a match goes on with the same openings whatever becomes of the file.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.go.sgf import GameRecord, SgfError, load_sgf_games
from engine.go.vertex import format_vertex
from engine.matches.results import MatchError
from engine.shogi.records.files import load_records
from engine.shogi.records.record import RecordError, format_usi_line

ATTEMPTS, MIN_ATTEMPTS = 20, 200
"""Lines drawn in a row that are all known before no new one is expected: for each that is known, and at least."""


def load_openings(path: Path, game: str, moves: int | None, size: int = 19) -> list[str]:
    """Return the openings in a file, or in the files of a folder in order of their names; each once.

    Args:
        path: SGF for Go; CSA, KIF, lines of USI or SFEN for shogi.
        game: go or shogi.
        moves: of each game, counted from its first position; None for all.
        size: of the board in Go.

    Raises:
        MatchError: a file cannot be read, or has no opening for this game.
    """
    files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    found: dict[str, None] = {}
    for file in files:
        try:
            texts = _from_sgf(file, moves, size) if game == "go" else _from_records(file, moves)
        except (SgfError, RecordError) as error:
            text = str(error)
            raise MatchError(f"--openings {text if str(file) in text else f'{file}: {text}'}") from None
        found.update(dict.fromkeys(texts))
    if not found:
        raise MatchError(f"--openings {path}: no file in it, expected records")
    return list(found)


def _from_sgf(file: Path, moves: int | None, size: int) -> list[str]:
    return [_vertices(record, moves, size) for record in load_sgf_games(file)]


def _vertices(record: GameRecord, moves: int | None, size: int) -> str:
    if record.size != size:
        raise SgfError(f"a board of {record.size}, expected {size} (--size)")
    game = record.game(moves)
    if game.setup or any(color != 1 + number % 2 for number, (color, _) in enumerate(game.moves)):
        raise SgfError("stones set up, or two moves in a row: expected moves in turn from an empty board")
    return " ".join(format_vertex(move, size) for _, move in game.moves)


def _from_records(file: Path, moves: int | None) -> list[str]:
    texts = []
    for record in load_records(file):
        del record.moves[len(record.moves) if moves is None else moves :]
        record.game()  # complains of a move that the rules forbid
        texts.append(format_usi_line(record))
    return texts


def draw_openings(draw: Callable[[], str], count: int, known: Sequence[str] = ()) -> list[str]:
    """Return different openings; fewer than wanted where some are known and no more are found.

    Args:
        draw: returns one, a new one each time or not.
        count: how many are wanted.
        known: those that come first; the others are not among them.

    Raises:
        MatchError: none is known, and there are not so many.
    """
    found = dict.fromkeys(known)
    in_vain = 0
    while len(found) < count and in_vain < max(ATTEMPTS * len(found), MIN_ATTEMPTS):
        opening = draw()
        in_vain = in_vain + 1 if opening in found else 0
        found[opening] = None
    if len(found) < count and not known:
        raise MatchError(
            f"--openings policy: {len(found)} different ones, expected {count}; more --opening-moves are needed"
        )
    return list(found)


def shuffled(openings: Sequence[str], seed: int) -> list[str]:
    """Return openings in an order that depends on a seed only."""
    order = list(openings)
    random.Random(seed).shuffle(order)
    return order
