"""Variations behind the game of a record in KIF or KI2."""

import pytest

from tests.unit.shogi_records import KI2_TEXT, KIF_TEXT
from yomi.engine.shogi.notation import format_usi
from yomi.engine.shogi.records.files import read_records, to_bytes
from yomi.engine.shogi.records.record import GameRecord, format_usi_line

VARIATIONS = """
変化：4手
*別の手
   4 同　飛(82)   ( 0:03/00:00:03)
*評価値 -120 ▲２八飛
   5 ５五角打     ( 0:00/00:00:00)
   6 中断         ( 0:00/00:00:03)

変化：5手
   5 ７五歩(76)

変化：6手
   6 ３二飛(22)

変化：2手
   2 ８四歩(83)   ( 0:00/00:00:00)
   3 ２六歩(27)
"""


def lines_of(record: GameRecord) -> list[tuple[int, str]]:
    """Return each variation as the number of its first move and its moves."""
    return [
        (each.initial.number, " ".join(format_usi(recorded.move) for recorded in each.moves))
        for each in record.variations
    ]


def test_variations_are_kept() -> None:
    """The second one leaves the first one, the fourth one the game; the third one goes on where the second one ends."""
    text = KIF_TEXT[: KIF_TEXT.index("\n変化")] + VARIATIONS
    record = read_records(text)[0]
    assert format_usi_line(record) == "startpos moves 7g7f 3c3d 8h2b+ 3a2b B*5e"
    assert lines_of(record) == [(4, "8b2b B*5e"), (5, "7f7e"), (6, "2b3b"), (2, "8c8d 2g2f")]
    first = record.variations[0]
    assert (first.comment, first.ending, first.winner) == ("別の手", "CHUDAN", None)
    assert (first.moves[0].seconds, first.moves[0].score, first.moves[0].pv) == (3.0, 120, "▲２八飛")
    assert record.variations[1].initial == first.placements()[1]
    assert record.notes == []
    again = read_records(to_bytes([record], ".kif"))[0]
    assert again == record
    resigned = read_records(KIF_TEXT[: KIF_TEXT.index("変化")] + "変化：6手\n   6 ３三銀(22)\n")[0]
    assert lines_of(resigned) == [(6, "2b3c")]  # the game was resigned there
    indented = "\n".join("　" + line for line in text.splitlines())
    assert read_records(indented) == [record]
    ki2 = read_records(KI2_TEXT + "\n変化：3手\n▲２六歩    △８四歩\n")[0]
    assert (len(ki2.moves), ki2.ending, lines_of(ki2)) == (8, "TORYO", [(3, "2g2f 8c8d")])


@pytest.mark.parametrize(
    ("text", "note", "kept"),
    [
        ("変化：9手\n   9 ８四歩(83)", "line 17: '変化：9手': expected a move from 1 to 6, such as 変化：1手", []),
        ("変化：多手", "line 17: '変化：多手': expected a move from 1 to 6", []),
        ("変化：2手\n   2 ８四歩(83)\n   3 ８五歩(84)\n   4 ２六歩(27)", "line 19: move 3", [(2, "8c8d")]),
        ("変化：2手\nnonsense\n変化：1手\n   1 ２六歩(27)", "line 18: 'nonsense' is no line of KIF", [(1, "2g2f")]),
    ],
)
def test_faults_of_a_variation_are_notes(text: str, note: str, kept: list[tuple[int, str]]) -> None:
    record = read_records(KIF_TEXT[: KIF_TEXT.index("変化")] + text)[0]
    assert len(record.moves) == 5
    assert len(record.notes) == 1
    assert str(record.notes[0]).startswith(note)
    assert lines_of(record) == kept
