"""How games begin: on an empty board, with handicap stones, or at the end of a record."""

from __future__ import annotations

from typing import Any

import yomi
from yomi.engine.go.points import Board, fixed_handicap
from yomi.engine.records import MAX_NOTES
from yomi.language import tr
from yomi.library.position import Position

MAX_RECORD = 1_000_000  # characters of a record
MAX_MOVES = 1000  # moves of a game: 3.4 MB in Go


def begin(game: str, board: Board, handicap: int, record: str | None) -> tuple[Position[Any], dict[str, Any]]:
    """Return a game from the beginning, or from the end of a record's main line, and its first position for the page.

    Raises:
        Error: the record cannot be read, or the board cannot have this handicap.
    """
    read = None if record is None else (yomi.go if game == "go" else yomi.shogi).parse(record)[0]
    position, first = _go(board, handicap, read) if game == "go" else _shogi(read)
    # the ends of some notes name flags of commands
    return position, {**first, "notes": [note.partition(". --")[0] for note in read.notes[:MAX_NOTES]] if read else []}


def letter(color: int) -> str:
    return {yomi.BLACK: "B", yomi.WHITE: "W"}.get(color, "")


def _go(board: Board, handicap: int, record: Any) -> tuple[Position[Any], dict[str, Any]]:
    if record is not None:
        position = _end_of(record)
        board = Board(position.width, position.height)
    else:
        points = [board.vertex(point) for point in fixed_handicap(handicap, board)] if handicap else []
        position = yomi.go.Game(
            board.width,
            height=board.height,
            rules="chinese",
            komi=0.5 if handicap else None,
            handicap=points,
        )
    start = _start_of(position)
    stones = [
        (letter(color), board.vertex(board.point(x, y)))
        for y, row in enumerate(start.board)
        for x, color in enumerate(row)
        if color
    ]
    return position, {
        "width": board.width,
        "height": board.height,
        "stones": stones,
        "first": letter(start.side_to_move),
    }


def _shogi(record: Any) -> tuple[Position[Any], dict[str, Any]]:
    position = yomi.shogi.Game() if record is None else _end_of(record)
    return position, {"sfen": _start_of(position).sfen}


def _end_of(record: Any) -> Any:
    """Return the game at the end of a record, or raise Error if the record is too long or cannot be played."""
    if (n := len(record.moves)) > MAX_MOVES:
        raise yomi.Error(tr("a record of {n} moves found, expected at most {most}", n=n, most=MAX_MOVES))
    return record.game()


def _start_of(position: Any) -> Any:
    """Return the initial position. In shogi its `ply` may be greater than 0: an SFEN has a move number."""
    start = position.copy()
    for _ in position.moves:
        start.undo()
    return start
