"""Connect Four: 7 columns of 6 points; four stones in a row win.

yomi learn connect_four.py:GAME
"""

import numpy as np

import yomi

COLUMNS, ROWS = 7, 6


def legal(state, moves):
    """A move is the point where the stone comes to lie: 7 * row + column, from the bottom."""
    for column in range(COLUMNS):
        row = state.height[column]
        if row < ROWS:
            moves[7 * row + column] = 1


def play(state, move):
    row, column = move // 7, move % 7
    state.board[row, column] = state.side_to_move
    state.height[column] += 1
    if longest(state.board, row, column) >= 4:
        state.won = 1


def longest(board, row, column):
    """Return the length of the longest row of stones of one color through a point."""
    best = 0
    for dy, dx in ((0, 1), (1, 0), (1, 1), (1, -1)):
        count = 1
        for sign in (-1, 1):
            y, x = row + sign * dy, column + sign * dx
            while 0 <= y < ROWS and 0 <= x < COLUMNS and board[y, x] == board[row, column]:
                count += 1
                y, x = y + sign * dy, x + sign * dx
        best = max(best, count)
    return best


def result(state):
    if state.won:
        return True, -1.0  # the side to move has lost: the opponent made four
    return state.ply == COLUMNS * ROWS, 0.0


def encode(state, planes):
    for row in range(ROWS):
        for column in range(COLUMNS):
            if state.board[row, column]:
                planes[0 if state.board[row, column] == state.side_to_move else 1, row, column] = 1
            elif row == state.height[column]:
                planes[2, row, column] = 1


def board_text(state):
    rows = ["".join(".XO"[stone] for stone in row) for row in state["board"]]
    return "\n".join(reversed(rows))


GAME = yomi.BoardGame(
    title="Connect Four",
    size=7,  # 7×7 points for the network; the last row stays empty
    planes=3,
    state=[("board", np.uint8, (ROWS, COLUMNS)), ("height", np.uint8, COLUMNS), ("won", np.uint8)],
    legal=legal,
    play=play,
    result=result,
    encode=encode,
    move_text=lambda move: "abcdefg"[move % 7],
    board_text=board_text,
)
