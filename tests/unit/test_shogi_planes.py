"""What networks see of a shogi position, and the labels of its moves, against cshogi."""

import re
from collections.abc import Iterator

import cshogi
import numpy as np
import pytest
from cshogi.dlshogi import make_input_features, make_move_label, use_nyugyoku_features

from tests.unit.shogi_boards import CROWDED, walk
from yomi.native.shogi.planes import ALPHAZERO_PLANES, policy_index, write_planes
from yomi.native.shogi.position import (
    FORM_ALPHAZERO,
    FORM_DLSHOGI,
    MAX_HISTORY,
    POSITION_DTYPE,
    play,
    set_position,
)
from yomi.native.shogi.spec import SCRATCH_DTYPE
from yomi.nets.data.symmetry import symmetries_of
from yomi.nets.dlshogi.network import ShogiForm
from yomi.nets.metadata import feature_set

SCRATCH = np.zeros(1, SCRATCH_DTYPE)[0]
ENTERING = (
    # kings in the zones, more pieces and points than are needed, and just as many
    "1R+P+P+P+P+P+P1/+P+P+PK+P+P+P2/2+B+B+R4/9/9/9/9/3k5/+p+p7 b GS4N4L2g3s 1",
    "9/4K4/3+P+P+P3/9/9/9/3+p+p+p3/4k4/9 w 2R2B4G4S4N4L12p 1",
    "4k4/9/9/9/9/9/9/9/9 b 2R2B4G4S4N4L18P 1",
    "4K4/PPPPPPPPP/PP7/9/9/9/9/ppppp4/4k4 b RBrb4g4s4n4l2P 1",
)


def position_of(board: cshogi.Board, form: int = FORM_DLSHOGI) -> tuple[np.void, np.ndarray]:
    position, history = np.zeros(1, POSITION_DTYPE)[0], np.zeros(MAX_HISTORY, np.uint64)
    position["form"] = form
    pieces, hands = np.array(board.pieces, np.uint8), np.array(board.pieces_in_hand, np.uint8)
    set_position(position, history, pieces, hands, board.turn + 1, board.move_number - 1)
    return position, history


def planes_of(position: np.void, history: np.ndarray, planes: int, extras: int) -> tuple[np.ndarray, np.ndarray]:
    found = np.full((planes, 9, 9), np.nan, np.float32), np.full(extras, np.nan, np.float32)
    write_planes(position, history, 0, SCRATCH, *found)
    return found


def check(board: cshogi.Board, extras: int) -> None:
    expected = np.zeros((62, 9, 9), np.float32), np.zeros((extras, 9, 9), np.float32)
    make_input_features(board, *expected)
    position, history = position_of(board)
    planes, numbers = planes_of(position, history, 62, extras)
    sfen = board.sfen()
    assert (planes == expected[0]).all(), sfen
    assert (np.broadcast_to(numbers[:, None, None], expected[1].shape) == expected[1]).all(), sfen
    for move in board.legal_moves:
        label = policy_index(position, cshogi.move16(move), 0)
        assert label == make_move_label(move, board.turn), (sfen, cshogi.move_to_usi(move))


def boards(games: int) -> Iterator[cshogi.Board]:
    for seed in range(games):
        yield from walk(seed, 250)
    for sfen in CROWDED + ENTERING:
        yield cshogi.Board(sfen=sfen)


@pytest.fixture(params=[57, 119])
def extras(request: pytest.FixtureRequest) -> Iterator[int]:
    use_nyugyoku_features(request.param == 119)
    yield request.param
    use_nyugyoku_features(False)


def test_planes_and_labels_are_dlshogis(extras: int) -> None:
    for board in boards(4):
        check(board, extras)


def naive_planes(board: cshogi.Board, repeated: bool) -> np.ndarray:
    """Return AlphaZero's planes of a board."""
    planes = np.zeros((ALPHAZERO_PLANES, 81), np.float32)
    for square in range(81):
        if code := board.piece(square):
            planes[code - 1 if code < 16 else code - 3, square] = 1
    planes[28] = repeated
    planes[29:43] = np.ravel(board.pieces_in_hand)[:, None]
    planes[43] = board.turn == cshogi.WHITE
    return planes.reshape(-1, 9, 9)


def naive_label(move: int) -> int:
    """Return AlphaZero's label: way * 81 + square, 64 ways of a queen and two of a knight, twice, then seven drops."""
    to = cshogi.move_to(move)
    if cshogi.move_is_drop(move):
        return (132 + cshogi.move_drop_hand_piece(move)) * 81 + to
    origin = cshogi.move_from(move)
    files, ranks = to // 9 - origin // 9, to % 9 - origin % 9
    if abs(files) == 1 and abs(ranks) == 2:
        way = 64 + (files > 0)
    elif files:
        way = (24 if files > 0 else 0) + (0 if ranks < 0 else 8 if ranks > 0 else 16) + abs(files) - 1
    else:
        way = (48 if ranks < 0 else 56) + abs(ranks) - 1
    return (66 * cshogi.move_is_promotion(move) + way) * 81 + origin


def test_planes_and_labels_of_alphazeros_form() -> None:
    for board in boards(4):
        position, history = position_of(board, FORM_ALPHAZERO)
        planes, _ = planes_of(position, history, ALPHAZERO_PLANES, 0)
        assert (planes == naive_planes(board, repeated=False)).all(), board.sfen()
        labels = [policy_index(position, cshogi.move16(move), 0) for move in board.legal_moves]
        assert labels == [naive_label(move) for move in board.legal_moves], board.sfen()
        assert len(set(labels)) == len(labels)
        assert max(labels, default=0) < 139 * 81


def mirrored_board(board: cshogi.Board) -> cshogi.Board:
    """Return a board with left and right exchanged."""
    rows, rest = board.sfen().split(" ", 1)
    pieces = [re.findall(r"\+?[A-Za-z]|\d", row)[::-1] for row in rows.split("/")]
    return cshogi.Board(sfen="/".join("".join(row) for row in pieces) + " " + rest)


def mirrored_move(move: int) -> str:
    """Return a move with left and right exchanged, as USI text."""
    return re.sub(r"\d", lambda file: str(10 - int(file[0])), cshogi.move_to_usi(move))


@pytest.mark.parametrize(("name", "form"), [("dlshogi-62-57", FORM_DLSHOGI), ("alphazero-shogi-45", FORM_ALPHAZERO)])
def test_data_sets_mirror_planes_and_labels_as_boards_are(name: str, form: int) -> None:
    features = feature_set(name)
    symmetries = symmetries_of(features, 9)
    assert [len(table) for table in (symmetries.points, symmetries.moves)] == [2, 2]
    np.testing.assert_array_equal(symmetries.moves[0], np.arange(symmetries.moves.shape[1]))
    seen = set()
    for board in boards(2):
        other = mirrored_board(board)
        position, history = position_of(board, form)
        other_position, other_history = position_of(other, form)
        planes, extras = planes_of(position, history, features.planes, features.extras)
        other_planes, other_extras = planes_of(other_position, other_history, features.planes, features.extras)
        np.testing.assert_array_equal(other_extras, extras)
        turned = planes.reshape(len(planes), 81)[:, symmetries.sources[1]]
        np.testing.assert_array_equal(other_planes.reshape(len(planes), 81), turned, board.sfen())
        for move in board.legal_moves:
            label = policy_index(position, cshogi.move16(move), 0)
            twin = other.move_from_usi(mirrored_move(move))
            assert policy_index(other_position, cshogi.move16(twin), 0) == symmetries.moves[1, label]
            seen.add(label // 81)
    assert len(seen) > (25 if form == FORM_DLSHOGI else 90)


def test_alphazeros_form_sees_repetitions() -> None:
    board = cshogi.Board()
    position, history = position_of(board, FORM_ALPHAZERO)
    for ply, move in enumerate(["5i5h", "5a5b", "5h5i", "5b5a"]):
        assert not planes_of(position, history, ALPHAZERO_PLANES, 0)[0][28].any(), ply
        play(position, history, cshogi.move16(board.push_usi(move)))
    assert (planes_of(position, history, ALPHAZERO_PLANES, 0)[0] == naive_planes(board, repeated=True)).all()


def test_forms_have_the_same_numbers_everywhere() -> None:
    assert (FORM_DLSHOGI, FORM_ALPHAZERO) == (ShogiForm.DLSHOGI, ShogiForm.ALPHAZERO)
