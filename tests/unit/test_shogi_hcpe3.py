"""hcpe3: read back by us, and played through by cshogi as dlshogi does."""

import random

import cshogi
import numpy as np
import pytest

from tests.unit.shogi_records import MIDDLE, random_record
from yomi.engine.color import BLACK, DRAW, WHITE, opponent
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import guilty_of
from yomi.engine.shogi.placement import format_sfen
from yomi.engine.shogi.records.files import read_records, to_bytes
from yomi.engine.shogi.records.packed import read_hcpe3, write_hcpe3
from yomi.engine.shogi.records.record import GameRecord, RecordError

# As dlshogi's utilities have them, which cshogi does not.
HEAD = np.dtype([("hcp", cshogi.dtypeHcp), ("moveNum", "<u2"), ("result", "u1"), ("opponent", "u1")])
MOVE = np.dtype([("selectedMove16", cshogi.dtypeMove16), ("eval", cshogi.dtypeEval), ("candidateNum", "<u2")])
VISITS = np.dtype([("move16", cshogi.dtypeMove16), ("visitNum", "<u2")])


def searched_record(seed: int, ending: str = "TORYO", sfen: str | None = None) -> GameRecord:
    """Return a random game whose moves, but for some, were searched."""
    rng = random.Random(seed)
    record = random_record(seed, notes=False, sfen=sfen)
    del record.moves[40:]
    game = record.game(0)
    for note in record.moves:
        if rng.random() < 0.7:
            legal = game.legal_moves()
            note.score = rng.randrange(-4000, 4000)
            named = rng.sample(legal, min(len(legal), rng.randrange(1, 9)))
            note.counts = tuple((move, rng.randrange(1, 900)) for move in named)
        game.play(note.move)
    record.ending = ending
    return record


ENDINGS = ["TORYO", "KACHI", "SENNICHITE", "MAX_MOVES", "HIKIWAKE", "+ILLEGAL_ACTION", "-ILLEGAL_ACTION", "TORYO"]


def test_games_are_read_back() -> None:
    records = [searched_record(seed, ending, MIDDLE if seed % 2 else None) for seed, ending in enumerate(ENDINGS)]
    again = read_hcpe3(write_hcpe3(records))
    assert len(again) == len(records)
    for record, found in zip(records, again, strict=True):
        assert (found.initial.board, found.initial.hands) == (record.initial.board, record.initial.hands)
        assert found.moves == record.moves
        assert found.winner == record.winner
        guilty = guilty_of(record.ending)  # a foul of the side to move is told as its resignation
        assert found.ending == (record.ending if guilty != found.placements()[-1].side else "TORYO")


def test_cshogi_plays_them() -> None:
    record = searched_record(5, sfen=MIDDLE)
    data = write_hcpe3([record])
    head = np.frombuffer(data, HEAD, 1)[0]
    board = cshogi.Board()
    board.set_hcp(np.ascontiguousarray(head["hcp"]))
    assert board.sfen() == format_sfen(record.initial)
    assert head["moveNum"] == len(record.moves)
    assert head["opponent"] == 0
    assert {1: BLACK, 2: WHITE, 0: DRAW}[int(head["result"])] == record.winner
    place = HEAD.itemsize
    for note in record.moves:
        row = np.frombuffer(data, MOVE, 1, place)[0]
        visits = np.frombuffer(data, VISITS, int(row["candidateNum"]), place + MOVE.itemsize)
        place += MOVE.itemsize + visits.nbytes
        legal = set(board.legal_moves)
        searched = {cshogi.move_to_usi(board.move_from_move16(int(each))) for each in visits["move16"]}
        assert searched <= {cshogi.move_to_usi(move) for move in legal}
        assert visits["visitNum"].tolist() == [number for _, number in note.counts]
        assert row["eval"] == (note.score or 0)
        move = board.move_from_move16(int(row["selectedMove16"]))
        assert move in legal
        board.push(move)
    assert place == len(data)


def test_visits_beyond_16_bits_keep_their_shares() -> None:
    record = searched_record(1)
    legal = ShogiGame().legal_moves()
    record.moves[0].counts = ((legal[0], 200_000), (legal[1], 100_000), (legal[2], 1))
    (again,) = read_hcpe3(write_hcpe3([record]))
    assert again.moves[0].counts == ((legal[0], 65535), (legal[1], 32768))


def test_games_without_a_result_are_left_out() -> None:
    assert write_hcpe3([searched_record(1, "CHUDAN"), GameRecord()]) == b""


def test_broken_files() -> None:
    data = write_hcpe3([searched_record(2)])
    with pytest.raises(RecordError, match="game 1: 9 bytes at the end: expected whole games"):
        read_hcpe3(data[:9])
    with pytest.raises(RecordError, match="game 2: 0 bytes at the end"):
        read_hcpe3(data + data[:36])
    with pytest.raises(RecordError, match="game 1: the result 3: expected"):
        read_hcpe3(data[:34] + b"\x03" + data[35:])
    side = searched_record(2).initial.side
    lost = bytes([8 | {BLACK: 1, WHITE: 2}[opponent(side)]])  # 40 moves later the same side is to move
    with pytest.raises(RecordError, match="an ending with KACHI"):
        read_hcpe3(data[:34] + lost + data[35:])


def test_csa_keeps_visits() -> None:
    record = searched_record(3, sfen=MIDDLE)
    data = to_bytes([record, record], ".csa")
    (again, _) = read_records(data)
    assert again.moves == record.moves
    comment = next(line for line in data.splitlines() if line.startswith(b"'visits "))
    broken = data.replace(comment, b"'visits +0055FU:3 +9999KI:2")
    first = read_records(broken)[0]
    assert [each.move for each in first.moves] == [each.move for each in record.moves]
    assert "visits of +0055FU: " in first.notes[0].text
    other = data.replace(comment, b"'visits of others")
    assert any(move.comment == "visits of others" for move in read_records(other)[0].moves)
