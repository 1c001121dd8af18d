"""Reads and writes moves as text: USI, CSA and Japanese.

CSA and Japanese name the piece, so they need the position (`Placement`). Legality is checked only if a Japanese text is
ambiguous.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from yomi.engine.color import BLACK, WHITE
from yomi.engine.shogi.placement import (
    HAND_INDEX,
    LETTERS,
    MARKS,
    RANKS,
    Placement,
    board_move,
    can_promote,
    code_of,
    color_of,
    drop,
    dropped_type,
    in_zone,
    japanese_square,
    promotes,
    reaching,
    source_of,
    square_name,
    target_of,
    type_of,
)
from yomi.errors import LineError
from yomi.language import tr
from yomi.native.shogi.pieces import (
    BISHOP,
    DRAGON,
    HORSE,
    KING,
    PROM_KNIGHT,
    PROM_LANCE,
    PROM_PAWN,
    PROM_SILVER,
    PROMOTION,
    ROOK,
)

CSA_NAMES = ("", "FU", "KY", "KE", "GI", "KA", "HI", "KI", "OU", "TO", "NY", "NK", "NG", "UM", "RY")
CSA_TYPES = {name: piece_type for piece_type, name in enumerate(CSA_NAMES) if name}
CSA_SIGNS = {BLACK: "+", WHITE: "-"}

JAPANESE_NAMES = ("", "歩", "香", "桂", "銀", "角", "飛", "金", "玉", "と", "成香", "成桂", "成銀", "馬", "龍")
JAPANESE_TYPES = {name: piece_type for piece_type, name in enumerate(JAPANESE_NAMES) if name} | {
    "王": KING,
    "竜": DRAGON,
    "杏": PROM_LANCE,
    "圭": PROM_KNIGHT,
    "全": PROM_SILVER,
    "と金": PROM_PAWN,
}

USI_MOVE = re.compile(r"([1-9])([a-i])([1-9])([a-i])(\+?)|([PLNSBRG])\*([1-9])([a-i])")
CSA_MOVE = re.compile(r"([+-]?)([0-9])([0-9])([1-9])([1-9])([A-Z]{2})")
BLACK_MARKS = "▲▼☗⛊"
SIDE_MARKS = f"{BLACK_MARKS}△▽☖⛉"
JAPANESE_MOVE = re.compile(
    rf"(?P<mark>[{SIDE_MARKS}])?\s*"
    r"(?:(?P<same>同)|(?P<file>[1-9１-９])(?P<rank>[1-9１-９一二三四五六七八九])(?P<same_too>同)?)\s*"
    r"(?P<piece>成銀|成桂|成香|と金|[歩香桂銀金角飛玉王と杏圭全馬龍竜])"
    r"(?P<side>[左右直])?(?P<motion>[上行入寄引])?(?P<kind>不成|成|生|打)?"
    r"(?:[(（](?P<source>[1-9１-９0０]{2})[)）])?"
)
ENGLISH_MOVE = re.compile(r"(\+?)([KRBGSNLP])([1-9][a-i])?([-x*])([1-9][a-i])([+=]?)", re.IGNORECASE)
MARKED_MOVE = re.compile(f"[{SIDE_MARKS}][^{SIDE_MARKS}]*")


class NotationError(LineError, ValueError):
    """A text is not a move. The message is one line."""


# -- USI -----------------------------------------------------------------------------------------------------------


def parse_usi(text: str) -> int:
    """Read a move such as `7g7f`, `8h2b+` or `P*5e`. Raises NotationError for `resign`, `win` and other texts."""
    match = USI_MOVE.fullmatch(text)
    if not match:
        raise NotationError(tr("not a move: '{text}', expected USI such as 7g7f, 8h2b+ or P*5e", text=text))
    from_file, from_rank, to_file, to_rank, plus, letter, drop_file, drop_rank = match.groups()
    if letter:
        return drop(LETTERS.index(letter), _usi_square(drop_file, drop_rank))
    source, target = _usi_square(from_file, from_rank), _usi_square(to_file, to_rank)
    if source == target:
        raise NotationError(tr("not a move: '{text}' ends where it starts", text=text))
    return board_move(source, target, bool(plus))


def format_usi(move: int) -> str:
    piece_type, source, target = dropped_type(move), source_of(move), square_name(target_of(move))
    if source is None:
        assert piece_type is not None
        return f"{LETTERS[piece_type]}*{target}"
    return square_name(source) + target + ("+" if promotes(move) else "")


def parse_usi_moves(words: Iterable[str]) -> tuple[int, ...]:
    """Read moves up to the first word that is not a move, and return them."""
    found: list[int] = []
    for word in words:
        try:
            found.append(parse_usi(word))
        except NotationError:
            break
    return tuple(found)


def _usi_square(file: str, rank: str) -> int:
    return 9 * (int(file) - 1) + ord(rank) - ord("a")


# -- CSA -----------------------------------------------------------------------------------------------------------


def parse_csa(text: str, placement: Placement) -> int:
    """Read a move such as `+7776FU`, `7776FU` or `0055KA`. Raises NotationError if it does not fit the position."""
    match = CSA_MOVE.fullmatch(text)
    if not match or match[6] not in CSA_TYPES or (match[2] == "0") != (match[3] == "0"):
        raise NotationError(f"not a move: '{text}', expected CSA such as +7776FU or +0055KA")
    sign, from_file, from_rank, to_file, to_rank, name = match.groups()
    if sign and sign != CSA_SIGNS[placement.side]:
        own = CSA_SIGNS[placement.side]
        message = tr("'{text}' is a move of the other side: expected one that begins with {mark}", text=text, mark=own)
        raise NotationError(message)
    target, piece_type = _csa_square(to_file, to_rank), CSA_TYPES[name]
    if from_file == "0":
        if piece_type not in HAND_INDEX:
            raise NotationError(tr("'{text}' drops a piece that cannot be in hand", text=text))
        return drop(piece_type, target)
    source = _csa_square(from_file, from_rank)
    code = placement.board[source]
    if not code or color_of(code) != placement.side:
        square = from_file + from_rank
        raise NotationError(tr("'{text}': no piece of the side to move on {square}", text=text, square=square))
    moving = type_of(code)
    if piece_type == moving:
        return board_move(source, target)
    if can_promote(moving) and piece_type == moving + PROMOTION:
        return board_move(source, target, True)
    found, square = CSA_NAMES[moving], from_file + from_rank
    raise NotationError(tr("'{text}': found {found} on {square}, expected a piece that becomes {name}",
                           text=text, found=found, square=square, name=name))  # fmt: skip


def format_csa(move: int, placement: Placement) -> str:
    """Return a move of the side to move as signed CSA text: `+7776FU`."""
    source, target = source_of(move), target_of(move)
    if source is None:
        piece_type, start = dropped_type(move) or 0, "00"
    else:
        piece_type = type_of(placement.board[source]) + (PROMOTION if promotes(move) else 0)
        start = csa_square(source)
    return f"{CSA_SIGNS[placement.side]}{start}{csa_square(target)}{CSA_NAMES[piece_type]}"


def illegal_action(guilty: int) -> str:
    """Return CSA's word for a game that ends by a foul other than an illegal move, such as perpetual check."""
    return f"{CSA_SIGNS[guilty]}ILLEGAL_ACTION"


def guilty_of(ending: str) -> int | None:
    """Return the side at fault if the ending is an `illegal_action`, or None."""
    return next((color for color in CSA_SIGNS if ending == illegal_action(color)), None)


def csa_square(square: int) -> str:
    """Return file and rank as digits: `77`."""
    return f"{square // 9 + 1}{square % 9 + 1}"


def _csa_square(file: str, rank: str) -> int:
    return 9 * (int(file) - 1) + int(rank) - 1


# -- Japanese ------------------------------------------------------------------------------------------------------


def format_japanese(move: int, placement: Placement, previous: int | None = None, *, mark: bool = True) -> str:
    """Return a move as players write it: `▲７六歩`, `△同銀`, `▲５八金右`, `△２二角成`.

    If several pieces can make the move, the shortest words that distinguish them are added, by the rules of the
    Japanese Shogi Association. Pinned pieces count as able to move. `previous` is the target of the previous move, for
    同.
    """
    target, source = target_of(move), source_of(move)
    where = "同" if target == previous else japanese_square(target)
    start = MARKS[placement.side] if mark else ""
    if source is None:
        piece_type = dropped_type(move) or 0
        needed = reaching(placement.board, placement.side, piece_type, target)
        return f"{start}{where}{JAPANESE_NAMES[piece_type]}{'打' if needed else ''}"
    piece_type = type_of(placement.board[source])
    name = JAPANESE_NAMES[piece_type]
    # 同成銀 could be read as a silver that promotes, hence the wide blank.
    if len(where) == 1 and len(name) == 2:
        where += "　"
    words = _which(source, target, piece_type, placement)
    return f"{start}{where}{name}{words}{_promotion(move, piece_type, placement.side)}"


def format_kif(move: int, placement: Placement, previous: int | None = None) -> str:
    """Return a move as KIF files write it: `７六歩(77)`, `同　銀(31)`, `５五角打`, `２二角成(88)`."""
    target, source = target_of(move), source_of(move)
    where = "同　" if target == previous else japanese_square(target)
    if source is None:
        return f"{where}{JAPANESE_NAMES[dropped_type(move) or 0]}打"
    name = JAPANESE_NAMES[type_of(placement.board[source])]
    return f"{where}{name}{'成' if promotes(move) else ''}({csa_square(source)})"


def parse_japanese(
    text: str, placement: Placement, previous: int | None = None, is_legal: Callable[[int], bool] | None = None
) -> int:
    """Read `▲７六歩`, `76歩`, `同銀`, `５八金右`, `２二角成`, `２二角不成`, `５五角打` or `７六歩(77)`.

    `previous` is the target of the previous move, for 同. `is_legal` resolves ambiguous texts; moves on the board have
    priority over drops. Raises NotationError if the text fits no piece or several.
    """
    match = JAPANESE_MOVE.fullmatch(text.strip())
    if not match:
        raise NotationError(tr("not a move: '{text}', expected Japanese such as ７六歩, 同銀 or ５八金右", text=text))
    words = {name: word or "" for name, word in match.groupdict().items()}
    if words["mark"] and (words["mark"] in BLACK_MARKS) != (placement.side == BLACK):
        own = MARKS[placement.side]
        raise NotationError(tr("'{text}' is a move of the other side: expected {mark}", text=text, mark=own))
    if words["same"]:
        if previous is None:
            raise NotationError(tr("'{text}': no move before it that 同 could mean", text=text))
        target = previous
    else:
        target = 9 * (_digit(words["file"]) - 1) + _digit(words["rank"]) - 1
    piece_type = JAPANESE_TYPES[words["piece"]]
    moves = _board_moves(words, target, piece_type, placement)
    drops = _drops(words, target, piece_type, placement)
    # Legality is asked only now, because it costs more than all of the above.
    if len(moves) + len(drops) > 1 and is_legal:
        moves = [move for move in moves if is_legal(move)]
    moves = moves or drops
    if len(moves) != 1:
        found = ", ".join(format_japanese(move, placement, previous) for move in moves)
        if moves:
            raise NotationError(tr("'{text}' could be {moves}", text=text, moves=found))
        raise NotationError(tr("'{text}': no such piece can move there", text=text))
    return moves[0]


def japanese_number(number: int) -> str:
    """Return 1 to 19 in Japanese: 二, 十, 十八."""
    ten, one = divmod(number, 10)
    return ("十" if ten else "") + (RANKS[one - 1] if one else "")


def _digit(text: str) -> int:
    return RANKS.index(text) + 1 if text in RANKS else int(text)


def _board_moves(words: dict[str, str], target: int, piece_type: int, placement: Placement) -> list[int]:
    """Return the moves of pieces on the board that a Japanese text can mean.

    A source square in the text is accepted even if its piece does not reach the target.
    """
    kind, side = words["kind"], placement.side
    taken = placement.board[target]
    if _is_drop(words) or (taken and color_of(taken) == side):
        return []
    sources = reaching(placement.board, side, piece_type, target)
    if words["source"]:
        file, rank = divmod(int(words["source"]), 10)
        named = 9 * file + rank - 10
        is_own = 1 <= file <= 9 and 1 <= rank <= 9 and placement.board[named] == code_of(piece_type, side)
        sources = [named] if is_own else []
    if words["side"]:
        sources = [source for source in sources if _is_on(words["side"], source, target, piece_type, sources, side)]
    if words["motion"]:
        wanted = "上" if words["motion"] in "行入" else words["motion"]
        sources = [source for source in sources if _motion(source, target, side) == wanted]
    moves = []
    for source in sources:
        free = can_promote(piece_type) and (in_zone(source, side) or in_zone(target, side))
        if kind != "成":
            moves.append(board_move(source, target))
        elif free:
            moves.append(board_move(source, target, True))
    return moves


def _drops(words: dict[str, str], target: int, piece_type: int, placement: Placement) -> list[int]:
    """Return the drop that a Japanese text can mean, as a list of at most one move.

    打 is optional, but a text that describes a move on the board is not a drop.
    """
    in_hand = piece_type in HAND_INDEX and placement.hands[placement.side - 1][HAND_INDEX[piece_type]] > 0
    is_described = words["source"] or words["side"] or words["motion"] or words["kind"] in ("成", "不成", "生")
    if not in_hand or placement.board[target] or (is_described and not _is_drop(words)):
        return []
    return [drop(piece_type, target)]


def _is_drop(words: dict[str, str]) -> bool:
    """Return whether a Japanese text contains 打 or the source square 00."""
    return words["kind"] == "打" or (words["source"] != "" and int(words["source"]) == 0)


def _motion(source: int, target: int, color: int) -> str:
    """Return the direction in which a piece moves, as its owner sees it: 上 forward, 引 back, 寄 sideways."""
    forward = source % 9 - target % 9 if color == BLACK else target % 9 - source % 9
    return "上" if forward > 0 else "引" if forward < 0 else "寄"


def _left(source: int, other: int, color: int) -> int:
    """Return how many files `source` is to the left of `other`, as the owner sees it."""
    files = source // 9 - other // 9
    return files if color == BLACK else -files


def _is_on(word: str, source: int, target: int, piece_type: int, sources: list[int], color: int) -> bool:
    """Return whether 左, 右 or 直 describes the piece on `source`, one of the `sources` that reach the target."""
    if word == "直":
        return _left(source, target, color) == 0 and _motion(source, target, color) == "上"
    sign = 1 if word == "左" else -1
    if piece_type in (HORSE, DRAGON, BISHOP, ROOK):  # two at most: the one further out
        return all(sign * _left(source, other, color) >= 0 for other in sources) and len(sources) > 1
    return sign * _left(source, target, color) > 0


def _which(source: int, target: int, piece_type: int, placement: Placement) -> str:
    """Return the words that distinguish the piece on `source` from others that reach the target."""
    side = placement.side
    sources = reaching(placement.board, side, piece_type, target)
    others = [other for other in sources if other != source]
    if not others:
        return ""
    motion = _motion(source, target, side)
    # The direction alone is shortest, then 直, then a side, then a side with the direction.
    if all(_motion(other, target, side) != motion for other in others):
        return motion
    # Horses and dragons never use 直: 左 and 右 tell the two apart.
    if piece_type not in (HORSE, DRAGON) and _is_on("直", source, target, piece_type, sources, side):
        return "直"
    for word in "左右":
        if _is_on(word, source, target, piece_type, sources, side):
            alike = [other for other in others if _is_on(word, other, target, piece_type, sources, side)]
            return word + motion if alike else word
    return motion


def _promotion(move: int, piece_type: int, color: int) -> str:
    source = source_of(move)
    assert source is not None
    if promotes(move):
        return "成"
    free = can_promote(piece_type) and (in_zone(source, color) or in_zone(target_of(move), color))
    return "不成" if free else ""


def parse_any(
    text: str, placement: Placement, previous: int | None = None, is_legal: Callable[[int], bool] | None = None
) -> int:
    """Read a move in USI, CSA, Japanese or English (P-7f). The other arguments are those of `parse_japanese`."""
    if not text.isascii():
        import unicodedata  # not above: engines do without it

        narrow = unicodedata.normalize("NFKC", text)  # input methods may write letters and digits in full width
        text = narrow if narrow.isascii() else text
    if USI_MOVE.fullmatch(text):
        return parse_usi(text)
    if match := ENGLISH_MOVE.fullmatch(text):
        return _parse_english(match, placement, is_legal)
    if CSA_MOVE.fullmatch(text.upper()):
        return parse_csa(text.upper(), placement)
    if JAPANESE_MOVE.fullmatch(text):
        return parse_japanese(text, placement, previous, is_legal)
    raise NotationError(tr("not a move: '{text}', expected USI (7g7f), CSA (7776FU), ７六歩 or P-7f", text=text))


def _parse_english(match: re.Match[str], placement: Placement, is_legal: Callable[[int], bool] | None) -> int:
    """Read `P-7f`, `Sx7g`, `+R5a-5c`, `N*4e` or `B-3c+`, as the same move in Japanese."""
    plus, letter, source, kind, target, end = match.groups()
    piece_type = LETTERS.index(letter.upper())
    if plus and can_promote(piece_type):
        piece_type += PROMOTION
    elif plus:
        raise NotationError(tr("'{text}': no such piece can move there", text=match[0]))
    word = "打" if kind == "*" else {"+": "成", "=": "不成"}.get(end, "")
    to, origin = (square and f"{square[0]}{ord(square[1].lower()) - 96}" for square in (target, source))
    text = f"{to}{JAPANESE_NAMES[piece_type]}{word}" + (f"({origin})" if origin else "")
    try:
        return parse_japanese(text, placement, None, is_legal)
    except NotationError as error:
        raise NotationError(str(error).replace(text, match[0])) from None


# -- lines ---------------------------------------------------------------------------------------------------------


def csa_line(moves: Iterable[int], placement: Placement) -> list[str]:
    """Return moves in CSA, up to the first move that cannot be played."""
    return [format_csa(move, before) for move, before in _playable(moves, placement)]


def japanese_line(
    moves: Iterable[int], placement: Placement, previous: int | None = None, *, kif: bool = False
) -> list[str]:
    """Return moves as players write them, or with `kif` as KIF files do with marks, up to the first impossible move.

    `placement` is the position before the line, `previous` the target of the move before it (for 同).
    """
    words = []
    for move, before in _playable(moves, placement):
        mark, form = (MARKS[before.side], format_kif) if kif else ("", format_japanese)
        words.append(mark + form(move, before, previous))
        previous = target_of(move)
    return words


def parse_line(text: str, placement: Placement, previous: int | None = None) -> list[int] | None:
    """Read a line in USI, CSA or Japanese. Return None if a move cannot be read or played.

    Moves are separated by blanks, or by their marks (▲△) in Japanese. `previous` is as for `parse_japanese`.
    """
    marked = MARKED_MOVE.findall(text)
    words = ["".join(word.split()) for word in marked] if marked else text.split()
    # Words before the first mark are not moves.
    if marked and not text.lstrip().startswith(marked[0][0]):
        return None
    moves = []
    for word in words:
        try:
            move = parse_any(word, placement, previous, is_playable(placement))
        except NotationError:
            return None
        if placement.why_not(move) is not None:
            return None
        moves.append(move)
        previous, placement = target_of(move), placement.after(move)
    return moves


def is_playable(placement: Placement) -> Callable[[int], bool]:
    """Return a function that tells whether a move is legal in a position. It accepts drop-pawn mates."""
    return lambda move: placement.why_not(move) is None


def _playable(moves: Iterable[int], placement: Placement) -> Iterator[tuple[int, Placement]]:
    # Lines of other engines may contain broken moves: stop there.
    for move in moves:
        if placement.why_not(move) is not None:
            return
        yield move, placement
        placement = placement.after(move)
