"""Books of openings in all forms; cshogi is the oracle for the keys and for records."""

import contextlib
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import cshogi
import numpy as np
import pytest

from tests.fakes.books import write_apery, write_yaneuraou, write_ybb
from tests.unit.shogi_boards import placement_of, walk
from yomi.engine.options import Options
from yomi.engine.shogi.book import BookError, BookMove, book_key, choose, open_book
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.placement import STARTPOS, Placement, parse_sfen

START = parse_sfen(STARTPOS)
TEXT = """#YANEURAOU-DB2016 1.00
# a comment
sfen lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1
7g7f 3c3d 37 32 60
2g2f none 30 32 39
5g5f
// another comment
6i7h none -10 4 1
sfen lnsgkgsnl/1r5b1/ppppppppp/9/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL w - 2
3c3d 2g2f 5
8c8d
sfen 4k4/9/9/9/9/9/9/9/4K4 b P 1
none none 0 0 0
"""


def moves_of(path: Path, *placements: Placement, **options: bool) -> list[list[BookMove]]:
    """Return a book's moves in each position."""
    with contextlib.closing(open_book(path, **options)) as book:
        return [book.moves(placement) for placement in placements]


def text_book(folder: Path, text: str = TEXT) -> Path:
    path = folder / "book.db"
    path.write_bytes(text.encode())
    return path


def test_keys_are_those_of_cshogi() -> None:
    for seed in range(4):
        for board in walk(seed, 100):
            assert book_key(placement_of(board)) == board.book_key()


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_text_book(tmp_path: Path, ending: str) -> None:
    after = START.after(parse_usi("7g7f"))
    handicap = parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b P 77")
    positions = (START, after, after.after(parse_usi("3c3d")), handicap)
    first, second, *others = moves_of(text_book(tmp_path, TEXT.replace("\n", ending)), *positions)
    assert first == [
        BookMove(parse_usi("7g7f"), 60, 37, 32, parse_usi("3c3d")),
        BookMove(parse_usi("2g2f"), 39, 30, 32),
        BookMove(parse_usi("5g5f"), 0),
        BookMove(parse_usi("6i7h"), 1, -10, 4),
    ]
    assert second == [
        BookMove(parse_usi("3c3d"), 0, 5, 0, parse_usi("2g2f")),
        BookMove(parse_usi("8c8d"), 0),
    ]
    assert others == [[], []]


def test_a_text_book_without_final_newline(tmp_path: Path) -> None:
    (found,) = moves_of(text_book(tmp_path, TEXT[: TEXT.index("\n2g2f")]), START)
    assert [entry.move for entry in found] == [parse_usi("7g7f")]
    assert moves_of(text_book(tmp_path, TEXT[: TEXT.index("\n7g7f")]), START) == [[]]


def random_book(count: int) -> list[tuple[cshogi.Board, list[BookMove]]]:
    rng = random.Random(count)
    entries = []
    for seed in range(count):
        board = list(walk(seed, 12))[-1].copy()
        moves = [cshogi.move16(move) for move in board.legal_moves][:3]
        entries.append((board, [BookMove(move, rng.randrange(1, 999), rng.randrange(-99, 99)) for move in moves]))
    return entries


def test_both_forms_are_read_back(tmp_path: Path) -> None:
    entries = random_book(200)
    positions = [(placement_of(board), moves) for board, moves in entries]
    write_apery(tmp_path / "book.bin", positions)
    write_yaneuraou(tmp_path / "book.db", positions)
    expected = [*(moves for _, moves in positions), []]
    for name in ("book.bin", "book.db"):
        assert moves_of(tmp_path / name, *(placement for placement, _ in positions), START) == expected
    records = np.fromfile(tmp_path / "book.bin", cshogi.BookEntry)
    board, moves = entries[7]
    mine = records[records["key"] == board.book_key()]
    assert [int(move) for move in mine["fromToPro"]] == [entry.move for entry in moves]
    assert [int(count) for count in mine["count"]] == [entry.count for entry in moves]
    assert [int(score) for score in mine["score"]] == [entry.score for entry in moves]


@pytest.mark.parametrize("depths", [False, True])
def test_yaneuraous_binary_form_is_read_back(tmp_path: Path, depths: bool) -> None:
    entries = random_book(100)
    positions = [
        (placement_of(board), [BookMove(move.move, 0, move.score, move.count * depths) for move in moves])
        for board, moves in entries
    ]
    write_ybb(tmp_path / "book.ybb", positions, depths=depths)
    others = (START, parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b P 1"))  # the second has no key without all pieces
    found = moves_of(tmp_path / "book.ybb", *(placement for placement, _ in positions), *others)
    assert found == [*(moves for _, moves in positions), [], []]
    # cshogi packs the same keys and moves.
    data = (tmp_path / "book.ybb").read_bytes()
    keys = {data[32 + 44 * i : 64 + 44 * i] for i in range(len(entries))}
    packed = np.zeros(1, cshogi.PackedSfenValue)
    for board, moves in entries:
        board.to_psfen(packed["sfen"])
        assert packed["sfen"].tobytes() in keys
        assert cshogi.move16_to_psv(moves[0].move).to_bytes(2, "little") in data


def test_the_move_number_of_yaneuraous_binary_form(tmp_path: Path) -> None:
    write_ybb(tmp_path / "book.ybb", [(START, [BookMove(parse_usi("7g7f"), 0, 30)])])
    for ignore, number, count in ((True, 9, 1), (False, 9, 0), (False, 1, 1)):
        placement = replace(START, number=number)
        (found,) = moves_of(tmp_path / "book.ybb", placement, ignore_ply=ignore)
        assert len(found) == count


@pytest.mark.parametrize(
    ("at", "content", "words"),
    [
        (30, b"", "30 bytes, expected a header of 32 bytes"),
        (24, bytes([2]), "flags 0x2 found, expected 0 or 1"),
        (16, b"\xff" * 8, "expected 18446744073709551615 positions of 44 bytes"),
        (64, b"\xff" * 7, "the moves of position 0 end at byte"),
        (76, b"\xff\xff", "the move 65535 found, expected squares"),
    ],
)
def test_broken_binary_books(tmp_path: Path, at: int, content: bytes, words: str) -> None:
    path = tmp_path / "book.ybb"
    write_ybb(path, [(START, [BookMove(parse_usi("7g7f"), 0, 30)])])
    data = path.read_bytes()
    path.write_bytes(data[:at] + content + data[at + len(content) :] * bool(content))
    with pytest.raises(BookError, match=words):
        moves_of(path, START)


def test_binary_books_must_be_sorted(tmp_path: Path) -> None:
    path = tmp_path / "book.ybb"
    after = START.after(parse_usi("7g7f"))
    write_ybb(path, [(START, []), (after, [])])
    data = path.read_bytes()
    path.write_bytes(data[:32] + data[76:120] + data[32:76])
    with pytest.raises(BookError, match="the positions are not sorted"):
        open_book(path)


def test_a_book_for_both_colors(tmp_path: Path) -> None:
    passed = parse_sfen(STARTPOS.replace(" b ", " w "))
    best = unlimited(book_eval_diff=0)
    with contextlib.closing(open_book(text_book(tmp_path))) as book:
        found = choose(book, passed, random.Random(1), lambda move: True, best)
        assert found == BookMove(parse_usi("3c3d"), 60, 37, 32, parse_usi("7g7f"))
        plain = choose(book, START, random.Random(1), lambda move: True, best)
        assert plain is not None
        assert plain.move == parse_usi("7g7f")
        best.book_flipped = False
        assert choose(book, passed, random.Random(1), lambda move: True, best) is None


def unlimited(**settings: Any) -> Options:
    return Options(**{"book_moves": 0, "book_eval_diff": 99_999, **settings})


def choices(path: Path, times: int = 1000, **settings: Any) -> dict[str | None, int]:
    book = open_book(path)
    rng = random.Random(3)
    counts: dict[str | None, int] = {}
    legal = {cshogi.move16(move) for move in cshogi.Board().legal_moves}
    for _ in range(times):
        entry = choose(book, START, rng, legal.__contains__, unlimited(**settings))
        name = entry and cshogi.move_to_usi(entry.move)
        counts[name] = counts.get(name, 0) + 1
    book.close()
    return counts


def test_choice_by_count(tmp_path: Path) -> None:
    path = text_book(tmp_path)
    counts = choices(path)
    assert set(counts) == {"7g7f", "2g2f", "6i7h"}
    assert 550 < counts["7g7f"] < 650
    assert set(choices(path, narrow_book=True)) == {"7g7f", "2g2f"}
    assert choices(path, book_ignore_rate=1.0) == {None: 1000}
    half = choices(path, book_ignore_rate=0.5)
    assert 450 < half[None] < 550
    assert None not in choices(path, book_moves=1)
    alike = choices(path, book_counts=False)
    assert set(alike) == {"7g7f", "2g2f", "5g5f", "6i7h"}
    assert min(alike.values()) > 200


def test_limits_of_scores(tmp_path: Path) -> None:
    """The scores are 37, 30, none and -10; a move without one, played as often as others, passes all limits."""
    path = text_book(tmp_path)
    for diff, names in ((47, "7g7f 2g2f 6i7h"), (46, "7g7f 2g2f"), (7, "7g7f 2g2f"), (6, "7g7f"), (0, "7g7f")):
        assert set(choices(path, 200, book_eval_diff=diff)) == set(names.split())
    for limit, names in ((-10, "7g7f 2g2f 6i7h"), (-9, "7g7f 2g2f"), (37, "7g7f"), (38, "5g5f")):
        assert set(choices(path, 200, book_eval_black_limit=limit)) == set(names.split())
    assert set(choices(path, 200, book_eval_black_limit=30, book_eval_diff=99)) == {"7g7f", "2g2f"}
    path = text_book(tmp_path, TEXT.replace("5g5f\n", ""))
    assert choices(path, 200, book_eval_black_limit=38) == {None: 200}


def test_a_shallow_best_move_closes_the_book(tmp_path: Path) -> None:
    path = text_book(tmp_path)
    assert None not in choices(path, book_depth_limit=32)
    assert choices(path, book_depth_limit=33) == {None: 1000}


def test_a_position_is_found_at_its_own_move_alone_if_that_is_asked_for(tmp_path: Path) -> None:
    path = text_book(tmp_path)
    after = replace(START.after(parse_usi("7g7f")), number=4)
    for ignore_ply, count in ((True, 2), (False, 0)):
        found = moves_of(path, after, replace(after, number=2), ignore_ply=ignore_ply)
        assert list(map(len, found)) == [count, 2]


def test_choice_without_counts_and_with_an_illegal_move(tmp_path: Path) -> None:
    path = text_book(tmp_path, TEXT.replace(" 60\n", "\n").replace(" 39\n", "\n").replace(" 4 1\n", " 4\n"))
    assert choices(path) == {"7g7f": 1000}
    path = text_book(tmp_path, TEXT.replace("7g7f 3c3d", "7g7e 3c3d"))
    assert set(choices(path)) == {"2g2f", "6i7h"}
    path = text_book(tmp_path, "\n".join([*TEXT.splitlines()[:3], "5g5f", "1g1f"]))
    assert set(choices(path)) == {"5g5f", "1g1f"}


def test_the_depth_limit_counts_moves_of_the_game(tmp_path: Path) -> None:
    book = open_book(text_book(tmp_path))
    after = START.after(parse_usi("7g7f"))
    rng = random.Random(1)
    assert choose(book, after, rng, lambda move: True, unlimited(book_moves=2)) is not None
    assert choose(book, after, rng, lambda move: True, unlimited(book_moves=1)) is None
    book.close()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"#YANEURAOU-DB2016 2.00\n", "expected '#YANEURAOU-DB2016 1.00'"),
        (b"sfen x\n", "begins 'sfen x': expected"),
        (b"# a comment\nhello\n", "begins '# a comment': expected"),
        (b"x" * 17, "17 bytes, expected whole records of 16 bytes"),
        (bytes([9] * 16 + [1] * 16), "not sorted"),
        (b"x" * 1600, None),
    ],
)
def test_files_that_are_no_books(tmp_path: Path, content: bytes, words: str | None) -> None:
    path = tmp_path / "book"
    path.write_bytes(content)
    if words is None:
        open_book(path).close()  # equal keys are sorted
        return
    with pytest.raises(BookError, match=words) as caught:
        open_book(path)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "begin", ["", "\ufeff", "# a comment\n", "// made by hand\n\n", "\ufeff#YANEURAOU-DB2016 1.00\n"]
)
def test_a_text_book_without_its_header(tmp_path: Path, begin: str) -> None:
    text = "".join(line for line in TEXT.splitlines(keepends=True) if not line.startswith("#"))
    path = tmp_path / "plain.db"
    path.write_text(begin + text, encoding="utf-8")
    positions = (START, START.after(parse_usi("7g7f")))
    assert moves_of(path, *positions) == moves_of(text_book(tmp_path), *positions)


def test_a_missing_book() -> None:
    with pytest.raises(BookError, match="cannot read the book"):
        open_book("no/such/book")


@pytest.mark.parametrize(
    "line",
    [
        *("7g7x none 1 1 1", "7g7f 3c3x 1 1 1", "7g7f none x 1 1", "7g7f none 1 1 1.5"),
        f"7g7f none 1 1 {10**19}",
        f"7g7f none {-(10**19)}",
    ],
)
def test_broken_lines(tmp_path: Path, line: str) -> None:
    path = text_book(tmp_path, TEXT.replace("2g2f none 30 32 39", line))
    with pytest.raises(BookError, match=f"broken line '{line}', expected a move"):
        moves_of(path, START)


def test_broken_records(tmp_path: Path) -> None:
    path = tmp_path / "book.bin"
    path.write_bytes(book_key(START).to_bytes(8, "little") + b"\xff" * 8)
    with pytest.raises(BookError, match="record 0 has the move 65535"):
        moves_of(path, START)
