"""Game records in JKF."""

import json

import pytest

from tests.looping import looped
from tests.unit.shogi_records import JKF
from yomi.engine.records import Note
from yomi.engine.shogi.notation import format_usi
from yomi.engine.shogi.placement import format_sfen, parse_sfen
from yomi.engine.shogi.records import japanese
from yomi.engine.shogi.records.files import read_records, to_bytes
from yomi.engine.shogi.records.record import (
    RecordError,
    format_usi_line,
)


def test_jkf() -> None:
    (record,) = read_records(json.dumps(JKF))
    assert format_usi_line(record) == "startpos moves 7g7f 3c3d 8h2b+ 3a2b B*5e"
    assert (record.black, record.white, record.info) == ("甲", "乙", {"START_TIME": "2026/01/02"})
    first = record.moves[0]
    assert (first.seconds, first.score, first.comment, record.comment) == (62.0, 20, "良い手", "始め")
    assert (record.ending, record.ending_seconds, record.end_comment) == ("TORYO", 3.0, "終わり")
    lines = [(each.initial.number, [format_usi(move.move) for move in each.moves]) for each in record.variations]
    assert lines == [(4, ["8b2b"]), (3, ["4i5h", "8c8d"]), (4, ["1c1d"]), (3, ["2g2f"])]
    (again,) = read_records(to_bytes([record], ".kifu"))
    assert again.variations == record.variations
    other = {"color": 1, "board": [[{"color": 1, "kind": "OU"}]], "hands": [{"KI": 2}, {}]}
    (position,) = read_records(json.dumps({"initial": {"preset": "OTHER", "data": other}, "moves": []}))
    assert format_sfen(position.initial) == "8k/9/9/9/9/9/9/9/9 w 2G 1"
    for preset, name in (
        ("KY", "香落ち"),
        ("HIKY", "飛香落ち"),
        ("2", "二枚落ち"),
        ("7_L", "左七枚落ち"),
        ("10", "十枚落ち"),
    ):
        (position,) = read_records(json.dumps({"initial": {"preset": preset}, "moves": [{}]}))
        assert position.initial == parse_sfen(f"{japanese.HANDICAPS[name]} w - 1")


@looped(
    ("data", "words"),
    [
        ({}, "JSON without 'moves'"),
        ({"moves": [1]}, "'1' found, expected an object"),
        ({"moves": [], "initial": {"preset": "X"}}, "the first position 'X'"),
        ({"moves": [{"move": {"piece": "XX"}}]}, "the piece 'XX'"),
        ({"moves": [{"move": {"piece": "FU", "to": {"x": 0, "y": 1}}}]}, "the square"),
        ({"moves": [{"move": {"piece": "FU", "to": {"x": 5, "y": 5}}}]}, "move 1: .*no such piece"),
        ({"moves": [{"move": {"piece": "FU", "from": {"x": 7, "y": 7}, "to": {"x": 7, "y": 5}}}]}, "move 1 7g7e"),
        ({"moves": [], "initial": {"preset": "OTHER"}}, "the position: no king"),
    ],
)
def test_broken_jkf(data: object, words: str) -> None:
    with pytest.raises(RecordError, match=words) as caught:
        read_records(json.dumps(data))
    assert len(str(caught.value).splitlines()) == 1
    for text in ('{"moves": [', '{"moves": ' + "[" * 100_000):
        with pytest.raises(RecordError, match="no JSON"):
            read_records(text)


def test_an_unknown_ending_of_jkf_is_a_note() -> None:
    moves = [{}, {"move": {"piece": "FU", "to": {"x": 7, "y": 6}}}, {"special": "FOO"}]
    (record,) = read_records(json.dumps({"moves": moves}))
    assert (len(record.moves), record.ending) == (1, "")
    assert record.notes == [Note("the ending 'FOO' is unknown and left out")]


def test_halves_of_characters_in_jkf_are_replaced() -> None:
    text = (
        '{"header": {"先手": "a\\\\ud800b", "後手": "\\\\ud83d\\\\ude00"}, "moves": [{}, {"comments": ["\\\\udc00"]}]}'
    )
    (record,) = read_records(text.replace("\\\\", "\\"))
    assert (record.black, record.white) == ("a\ufffdb", "\U0001f600")
    assert to_bytes([record], ".csa")
