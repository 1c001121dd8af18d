"""Records in JKF, the JSON form of Kifu for JS. They are read only.

The first entry of `moves` is the initial position. Further entries contain a move or the ending, and `forks`: other
lines instead of the entry's move.
"""

from __future__ import annotations

import json
from typing import Any

from yomi.engine.color import BLACK, WHITE
from yomi.engine.shogi.notation import (
    CSA_TYPES,
    JAPANESE_NAMES,
    NotationError,
    is_playable,
    japanese_square,
    parse_japanese,
)
from yomi.engine.shogi.placement import HAND_INDEX, HAND_TYPES, Placement, board_move, code_of, drop, target_of
from yomi.engine.shogi.records.japanese import parse_handicap, read_comment, set_header
from yomi.engine.shogi.records.record import ENDINGS, GameRecord, RecordError, checked, cut_before, one_line

# KIF's names of initial positions. Other handicaps are numbers of pieces.
PRESETS = {
    "HIRATE": "平手",
    "KY": "香落ち",
    "KY_R": "右香落ち",
    "KA": "角落ち",
    "HI": "飛車落ち",
    "HIKY": "飛香落ち",
} | {"5_L": "左五枚落ち", "7_L": "左七枚落ち", "7_R": "右七枚落ち"}
WORDS = {"L": "左", "C": "直", "R": "右", "U": "上", "M": "寄", "D": "引", "H": "打"}
MAX_DEPTH = 100  # of forks within forks


def read_jkf(text: str, *, cut: bool = False) -> GameRecord:
    """Read a game from JSON. Raises RecordError; `cut` as for `read_csa`."""
    try:
        whole = json.dumps(json.loads(text), ensure_ascii=False)
        # halves of characters, which JSON can escape and nothing can write, become U+FFFD
        data = json.loads(whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    except (ValueError, RecursionError) as error:
        raise RecordError(f"no JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("moves"), list):
        raise RecordError("JSON without 'moves': expected a record in JKF")
    record = GameRecord(_initial(data.get("initial")))
    _headers(record, data.get("header"))
    _read_line(record, record, _entries(data["moves"]), None, cut=cut, depth=0)
    return record


def _initial(data: Any) -> Placement:
    preset = str(_get(data, "preset", "HIRATE")) if data is not None else "HIRATE"
    if preset != "OTHER":
        placement = parse_handicap(PRESETS.get(preset, f"{preset}枚落ち"))
        if placement is None:
            raise RecordError(f"the first position '{preset[:40]}': expected HIRATE, OTHER or a handicap of JKF")
        return placement
    state = _get(data, "data", {})
    board = [0] * 81
    for file, column in enumerate(_entries(_get(state, "board", []))[:9]):
        for rank, cell in enumerate(_entries(column)[:9]):
            kind = _get(cell, "kind", None)
            if kind is not None:
                board[9 * file + rank] = code_of(_type_of(kind), _color_of(_get(cell, "color", 0)))
    hands = []
    for hand in [*_entries(_get(state, "hands", [])), {}, {}][:2]:
        counts = {_type_of(kind): count for kind, count in hand.items()} if isinstance(hand, dict) else {}
        if not all(isinstance(count, int) and 0 <= count <= 18 for count in counts.values()):
            raise RecordError(f"the hand {str(hand)[:40]}: expected numbers of pieces")
        if any(count and kind not in HAND_INDEX for kind, count in counts.items()):
            raise RecordError(f"the hand {str(hand)[:40]}: expected pieces that can be in hand")
        hands.append(tuple(counts.get(kind, 0) for kind in HAND_TYPES))
    return checked(Placement(tuple(board), (hands[0], hands[1]), _color_of(_get(state, "color", 0))))


def _headers(record: GameRecord, data: Any) -> None:
    for key, value in data.items() if isinstance(data, dict) else ():
        if key != "手合割":
            set_header(record, str(key), one_line(str(value)))


def _read_line(
    game: GameRecord, record: GameRecord, entries: list[Any], previous: int | None, *, cut: bool, depth: int
) -> None:
    """Read the entries of a game or a fork into `record`, and their forks into the game's variations.

    `previous` is the target of the move before the entries. A fork is always cut.
    """
    placement = record.initial
    forks: list[tuple[Placement, int | None, list[Any]]] = []
    special: Any
    for entry in entries:
        for fork in _entries(_get(entry, "forks", None) or []):
            # Forks replace the entry's move, so they start before it.
            forks.append((placement, previous, _entries(fork)))
        move, special = _get(entry, "move", None), _get(entry, "special", None)
        if move is not None and not record.ending:
            number = len(record.moves) + 1
            try:
                placement = record.add(placement, _move_of(move, placement, previous))
            except (NotationError, RecordError) as error:
                fault = str(error) if isinstance(error, RecordError) else f"move {number}: {error}"
                if record is game and not cut:
                    raise RecordError(fault) from None
                game.add_note(cut_before(fault))
                break
            previous = target_of(record.moves[-1].move)
            record.moves[-1].seconds = _seconds(_get(entry, "time", None))
        # A move after the end: what follows is another program's business.
        elif move is not None:
            game.add_note("the moves after the end of the game are left out")
            break
        elif isinstance(special, str) and special in ENDINGS and not record.ending:
            record.ending, record.ending_seconds = special, _seconds(_get(entry, "time", None))
        elif special is not None:
            game.add_note(f"the ending '{str(special)[:40]}' is unknown and left out")
        for comment in _entries(_get(entry, "comments", None) or []):
            read_comment(record, str(comment), by_black=placement.side == WHITE)
    if forks and depth >= MAX_DEPTH:
        game.add_note(f"forks in more than {MAX_DEPTH} forks are left out")
        return
    # A variation of KIF leaves the line before it, so that late forks come first.
    for start, target, fork in sorted(forks, key=lambda fork: -fork[0].number):
        variation = GameRecord(start)
        game.variations.append(variation)
        _read_line(game, variation, fork, target, cut=cut, depth=depth + 1)
        if not variation.moves:
            game.variations.remove(variation)


def _move_of(data: Any, placement: Placement, previous: int | None) -> int:
    """Return a move. A record made from KI2 contains no source square."""
    piece, promote = _type_of(_get(data, "piece", None)), _get(data, "promote", None)
    to, source = _get(data, "to", None), _get(data, "from", None)
    # JKF leaves `to` out for 同.
    if to is None and previous is None:
        raise RecordError("a move without 'to': expected a square")
    target = previous if to is None else _square(to)
    assert target is not None
    if source is not None:
        return board_move(_square(source), target, bool(promote))
    relative = str(_get(data, "relative", None) or "")
    if relative == "H" and piece in HAND_INDEX:
        return drop(piece, target)
    words = "".join(WORDS.get(letter, "?") for letter in relative)
    end = "成" if promote else "不成" if promote is False else ""
    return parse_japanese(
        japanese_square(target) + JAPANESE_NAMES[piece] + words + end, placement, previous, is_playable(placement)
    )


def _seconds(data: Any) -> float | None:
    now = _get(data, "now", None) if data is not None else None
    parts = [_get(now, name, 0) or 0 for name in "hms"] if now is not None else []
    if not parts or not all(isinstance(part, int | float) and 0 <= part < 10**6 for part in parts):
        return None
    return float(3600 * parts[0] + 60 * parts[1] + parts[2])


def _get(data: Any, name: str, default: Any) -> Any:
    if not isinstance(data, dict):
        raise RecordError(f"{str(data)[:40]!r} found, expected an object with '{name}'")
    return data.get(name, default)


def _entries(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise RecordError(f"{str(data)[:40]!r} found, expected a list")
    return data


def _square(data: Any) -> int:
    file, rank = _get(data, "x", None), _get(data, "y", None)
    if not (isinstance(file, int) and isinstance(rank, int) and 1 <= file <= 9 and 1 <= rank <= 9):
        raise RecordError(f"the square {str(data)[:40]}: expected x and y from 1 to 9")
    return 9 * (file - 1) + rank - 1


def _type_of(kind: Any) -> int:
    if not isinstance(kind, str) or kind not in CSA_TYPES:
        raise RecordError(f"the piece {str(kind)[:20]!r}: expected one of {', '.join(CSA_TYPES)}")
    return CSA_TYPES[kind]


def _color_of(value: Any) -> int:
    if value not in (0, 1):
        raise RecordError(f"the color {str(value)[:20]!r}: expected 0 or 1")
    return WHITE if value else BLACK
