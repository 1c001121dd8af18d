"""Hex on 11×11 and 5×5, without the swap rule. Black connects top and bottom, White left and right.

yomi learn hex.py:FIVE
"""

import numpy as np

import yomi


def legal(state, moves):
    size = state.board.shape[0]
    for y in range(size):
        for x in range(size):
            if state.board[y, x] == 0:
                moves[size * y + x] = 1


def play(state, move):
    size = state.board.shape[0]
    y, x = move // size, move % size
    state.board[y, x] = state.side_to_move
    is_joined = (y if state.side_to_move == 1 else x) == 0
    for dy, dx in ((-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0)):
        v, u = y + dy, x + dx
        if 0 <= v < size and 0 <= u < size and state.board[v, u] == state.side_to_move and state.joined[v, u]:
            is_joined = True
    if is_joined:
        join(state, y, x)


def join(state, y, x):
    """Mark a stone as connected to its first edge, with all stones that are connected to it."""
    size, side = state.board.shape[0], state.board[y, x]
    state.joined[y, x] = 1
    if (y if side == 1 else x) == size - 1:
        state.won = 1
    for dy, dx in ((-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0)):
        v, u = y + dy, x + dx
        if 0 <= v < size and 0 <= u < size and state.board[v, u] == side and not state.joined[v, u]:
            join(state, v, u)


def result(state):
    return state.won != 0, -1.0  # the opponent made the last move


def encode(state, planes):
    for y in range(state.board.shape[0]):
        for x in range(state.board.shape[0]):
            if state.board[y, x]:
                planes[0 if state.board[y, x] == state.side_to_move else 1, y, x] = 1
            planes[2, y, x] = state.side_to_move == 1
            if state.joined[y, x]:
                planes[3, y, x] = 1


def hex_game(size):
    def board_text(state):
        rows = (" ".join(".XO"[stone] for stone in row) for row in state["board"])
        return "\n".join(" " * y + row for y, row in enumerate(rows))

    return yomi.BoardGame(
        title=f"Hex {size}x{size}",
        size=size,
        planes=4,
        state=[("board", np.uint8, (size, size)), ("joined", np.uint8, (size, size)), ("won", np.uint8)],
        legal=legal,
        play=play,
        result=result,
        encode=encode,
        move_text=lambda move: f"{chr(97 + move % size)}{move // size + 1}",
        board_text=board_text,
    )


ELEVEN, FIVE = hex_game(11), hex_game(5)
