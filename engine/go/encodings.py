"""Detects the encoding of SGF files and decodes them. In Big5 and Shift JIS a character may contain the byte of a
bracket, so decoding comes before parsing.

Many programs write the encoding of their system without CA, or with a wrong one. Valid UTF-8 is almost always UTF-8.
Otherwise each candidate decodes the file, and the most plausible text wins.
"""

import codecs
import contextlib
import itertools
import math
import re
import unicodedata
from collections import Counter

from yomi.engine.records import Note

# Names in CA, in lower case -> Python's names.
CHARSETS = {"windows-31j": "cp932", "shift-jis": "cp932", "x-sjis": "cp932", "big-5": "cp950"}
# Codec -> superset. Programs name the narrow encoding but write the wide one.
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "cp950"}
_CHARSET = re.compile(rb"[(;\]\s]CA\s*\[([^\]]*)\]")
# Beginning of a game. The first property distinguishes it from a variation.
_GAME = re.compile(rb"\(\s*;\s*(?:GM|FF|SZ|CA|AP)\s*\[")
# Byte order marks, longer ones first (UTF-32's begins like UTF-16's), and UTF-16 without a mark.
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"(\0": "utf-16-le",
    b"\0(": "utf-16-be",
}

# Candidate -> (codec, first and last lead byte of the rows with usual characters).
_USUAL = {
    "gb18030": ("gb2312", 0xB0, 0xD7),
    "cp950": ("big5", 0xA4, 0xC6),
    "cp932": ("euc_jp", 0xB0, 0xCF),
    "euc_jp": ("euc_jp", 0xB0, 0xCF),
    "cp949": ("euc_kr", 0xB0, 0xC8),
}
_CHINESE = "一二三四五六七八九十大小中上下天人王李周吴林马江石古文元白黑棋目子段半"
_JAPANESE = (
    "一二三四五六七八九十大小中上下天人田山本木村川石井白黒手目子段半局第先勝戦名位聖互定持者日年月会初対因坊"
    "関西東京棋院押投了時間切秒読級杯元碁王座女流新決挑予選番吉趙林武宮加藤張栩羽根"
)
_FREQUENT = {
    "gb18030": _CHINESE
    + "的了不是在有我这个来他到时要就可以好对胜负盘赛杯围国级投劫贴日年月第局名将让先手执和会张刘陈杨赵孙朱胡罗高谢许郭"
    + "金韩曹柯洁唐芈昱廷党毅飞常昊孔杰时越朴永训世昌镐东润选超战决网络腾讯弈城野狐解说评论角边厚薄活死杀征应氏数读秒",
    "cp950": _CHINESE
    + "的了不是在有我這個來他到時要就可以好對勝負盤賽杯圍國級投劫貼日年月第局名將讓先手執和會張劉陳楊趙孫朱胡羅高謝許郭"
    + "吳馬金韓曹紅黃葉蘇蔡鄭成功超戰決網路弈城解說評論角邊厚薄活死殺征應氏數讀秒點時間海峰昌世界台灣",
    "cp932": _JAPANESE,
    "euc_jp": _JAPANESE,
    "cp949": "흑백승불계집단급기반대국김이박최정강조윤장임한오서신권황안송류홍전고문손양배백허유남심노하곽성차주우구"
    + "의다는을를에가은지도로사자아인리어시나라만그것들수제해보원일부세상경영진현민호석창혁준훈동철목바둑중프",
}
_NAMES = {"gb18030": "GB18030", "cp950": "Big5", "cp932": "Shift JIS", "euc_jp": "EUC-JP", "cp949": "EUC-KR"}
_NAMES |= {"cp1252": "Windows-1252", "cp1251": "Windows-1251"}
_LATIN = ("iso8859-1", "cp1252")  # Encodings that decode every byte. CA often names them by default.
_WEIGHTS = {"Cc": -5.0, "Co": -4.0, "Cn": -4.0, "Lo": -1.5}  # category of an unusual character -> weight
# A character directly before a property: it has swallowed the bracket between them.
_EATEN = re.compile(r"[^\0-\x7f](?=\s*(?:;\s*[BW]|[A-Z]{1,2})\[)")
# Plausible text: single Latin letters between ASCII; Cyrillic words that are not in capitals.
_WORDS = {
    "cp1252": re.compile(r"(?<![^\0-\x7f])(?:[À-ÿŠšŽžŒœ]|(?<=[a-z])[’”]|[‘“](?=[A-Za-z]))(?![^\0-\x7f])"),
    "cp1251": re.compile(r"\b[А-Яа-яЁё][а-яё]+\b|\b[А-Яа-я]\b"),
}
MIN_PLAUSIBILITY = 2.0  # a guess must be more plausible than this to replace the encoding in CA


def decode_sgf(data: bytes, charset: bytes = b"") -> tuple[str, list[Note]]:
    """Return the text of an SGF file, with notes about a guessed encoding and replaced bytes.

    Order: byte order mark, UTF-8, `charset` or CA, a guess. The games of one file may have different encodings in CA.
    """
    marked = next((codec for mark, codec in _BOMS.items() if data.startswith(mark)), None)
    if marked is not None:
        return _replaced(data, marked)
    charsets = {codec for name in ([charset] if charset else _CHARSET.findall(data)) if (codec := _codec_of(name))}
    if len(charsets) < 2:
        return _decode(data, next(iter(charsets), None))
    starts = [0, *(match.start() for match in _GAME.finditer(data)), len(data)]
    texts, notes = [], []
    for begin, end in itertools.pairwise(starts):
        found = _CHARSET.search(data, begin, end)
        text, more = _decode(data[begin:end], _codec_of(found[1]) if found else None)
        texts.append(text)
        notes += [Note(note.text) for note in more]
    return "".join(texts), notes


def _decode(data: bytes, declared: str | None) -> tuple[str, list[Note]]:
    """Return the text of `data`, decoded in one encoding, and notes. `declared` is the codec that CA names, or None."""
    is_declared = declared not in (None, "utf-8", "ascii", *_LATIN)
    if b"\x1b$" in data and declared in (None, "iso2022_jp"):
        with contextlib.suppress(UnicodeDecodeError):  # the escapes may be a terminal's
            return _strict(data, "iso2022_jp"), []
    with contextlib.suppress(UnicodeDecodeError):
        text = _strict(data, "utf-8")
        # Characters of two bytes may be chance in another encoding.
        if not is_declared or text.isascii() or max(text) > "\u07ff":
            return text, []
    if declared is not None and is_declared:
        with contextlib.suppress(UnicodeDecodeError):
            return _strict(data, declared), []
    scores = {codec: _plausibility(data, codec) for codec in ("utf-8", "cp1252", "cp1251", *_USUAL)}
    best = max(scores, key=lambda codec: scores[codec])
    if declared is not None and scores[best] <= MIN_PLAUSIBILITY:
        best = declared
    if best in ("utf-8", declared):
        return _replaced(data, best)
    if best == "cp1252":
        try:
            return data.decode("cp1252"), []
        except UnicodeDecodeError:
            return data.decode("iso8859-1"), []
    reason = f"the text is not {declared} (CA)" if declared else "no encoding (CA)"
    return _strict(data, best), [Note(f"{reason}: read as {_NAMES[best]}")]


def _strict(data: bytes, codec: str) -> str:
    """Decode bytes, or raise UnicodeDecodeError. A character that the end of the data cuts off is dropped."""
    return codecs.getincrementaldecoder(codec)().decode(data)


def _plausibility(data: bytes, codec: str) -> float:
    """Return how plausible the bytes are as text in an encoding: a sum over characters; -inf if impossible."""
    try:
        text = data.decode(codec, "replace") if codec in ("utf-8", "cp1252") else _strict(data, codec)
    except UnicodeDecodeError:
        return -math.inf
    characters = Counter(text)
    eaten = -4.0 * len(_EATEN.findall(text))
    if codec == "utf-8":
        broken = characters["\ufffd"]
        return 2.0 * sum(count for c, count in characters.items() if c > "\x7f") - 6.0 * broken
    if codec in _WORDS:
        others = sum(count for c, count in characters.items() if c > "\x7f")
        length = sum(c > "\x7f" for word in _WORDS[codec].finditer(text) for c in word[0])
        return eaten + 2.2 * length - 1.0 * others
    weights = [count * _weight(c, codec) for c, count in characters.items() if c > "\x7f"]
    return eaten + math.fsum(weights)


def _weight(character: str, codec: str) -> float:
    """Return how typical a character is of text in the encoding `codec`: positive if typical, negative if unlikely."""
    if character in _FREQUENT[codec]:
        return 3.0
    if "\uff61" <= character <= "\uff9f":  # half-width katakana: two bytes of another encoding look like two of them
        return -1.5
    if "\u3041" <= character <= "\u30ff":
        return 2.0 if codec in ("cp932", "euc_jp") else -1.0
    if "\u3000" <= character <= "\u303f" or "\uff01" <= character <= "\uff5e":
        return 0.5
    rows, first, last = _USUAL[codec]
    with contextlib.suppress(UnicodeEncodeError):
        found = character.encode(rows)
        if len(found) == 2 and found[0] >= 0xB0 - 12:
            return 1.0 if first <= found[0] <= last else -0.5
    return _WEIGHTS.get(unicodedata.category(character), -1.0)


def _replaced(data: bytes, codec: str) -> tuple[str, list[Note]]:
    """Decode bytes. Invalid bytes become U+FFFD, with a note."""
    try:
        return data.decode(codec), []
    except UnicodeDecodeError:
        text = data.decode(codec, "replace")
    return text, [Note.at(text, text.find("\ufffd"), f"bytes that are not {codec}: replaced")]


def _codec_of(charset: bytes) -> str | None:
    """Return Python's name of a charset; None if it is unknown or cannot encode SGF."""
    name = charset.decode("ascii", "replace").strip()
    name = CHARSETS.get(name.lower(), name)
    try:
        is_text = b"(;[]\\x+-)\xff".decode(name, "replace").startswith("(;[]\\x+-)")
        codec = codecs.lookup(name).name
        codecs.getincrementaldecoder(codec)
        return _SUPERSETS.get(codec, codec) if is_text else None
    except (LookupError, ValueError):  # UnicodeError is a ValueError
        return None
