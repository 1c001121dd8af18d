"""Othello on 8×8, 6×6 and 4×4.

yomi learn othello.py:SIX
"""

import numpy as np

import yomi


def begin(state):
    middle = state.board.shape[0] // 2
    state.board[middle - 1, middle - 1] = state.board[middle, middle] = 2
    state.board[middle - 1, middle] = state.board[middle, middle - 1] = 1


def turned(board, y, x, dy, dx, side):
    """Return the number of discs in a direction that a disc of `side` would turn over."""
    size, count = board.shape[0], 0
    y, x = y + dy, x + dx
    while 0 <= y < size and 0 <= x < size and board[y, x] == 3 - side:
        y, x, count = y + dy, x + dx, count + 1
    return count if 0 <= y < size and 0 <= x < size and board[y, x] == side else 0


def can_play(board, y, x, side):
    if board[y, x] != 0:
        return False
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            if turned(board, y, x, dy, dx, side) > 0:
                return True
    return False


def has_move(board, side):
    for y in range(board.shape[0]):
        for x in range(board.shape[0]):
            if can_play(board, y, x, side):
                return True
    return False


def legal(state, moves):
    size = state.board.shape[0]
    moves[size * size] = 1  # the pass
    for y in range(size):
        for x in range(size):
            if can_play(state.board, y, x, state.side_to_move):
                moves[size * y + x] = 1
                moves[size * size] = 0


def play(state, move):
    size, side = state.board.shape[0], state.side_to_move
    if move == size * size:
        return
    y, x = move // size, move % size
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            for i in range(1, turned(state.board, y, x, dy, dx, side) + 1):
                state.board[y + i * dy, x + i * dx] = side
    state.board[y, x] = side


def result(state):
    if has_move(state.board, state.side_to_move) or has_move(state.board, 3 - state.side_to_move):
        return False, 0.0
    lead = 0
    for y in range(state.board.shape[0]):
        for x in range(state.board.shape[0]):
            if state.board[y, x]:
                lead += 1 if state.board[y, x] == state.side_to_move else -1
    return True, float(np.sign(lead))


def encode(state, planes):
    for y in range(state.board.shape[0]):
        for x in range(state.board.shape[0]):
            if state.board[y, x]:
                planes[0 if state.board[y, x] == state.side_to_move else 1, y, x] = 1


def othello(size):
    def move_text(move):
        return "pass" if move == size**2 else f"{'abcdefgh'[move % size]}{move // size + 1}"

    def board_text(state):
        return "\n".join("".join(".XO"[disc] for disc in row) for row in state["board"])

    return yomi.BoardGame(
        title=f"Othello {size}x{size}",
        size=size,
        planes=2,
        state=[("board", np.uint8, (size, size))],
        begin=begin,
        legal=legal,
        play=play,
        result=result,
        encode=encode,
        symmetric=True,
        move_text=move_text,
        board_text=board_text,
    )


EIGHT, SIX, FOUR = othello(8), othello(6), othello(4)
