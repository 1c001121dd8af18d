"""5五将棋 (minishogi): shogi on 5×5. A position that occurs for the fourth time is lost for Black (sente).

yomi learn minishogi.py:GAME
"""

import numpy as np

import yomi

MAX_PLIES = 200  # longer games are drawn; perpetual check counts as any repetition
PAWN, SILVER, GOLD, BISHOP, ROOK, KING, PROMOTED = 1, 2, 3, 4, 5, 6, 6  # PROMOTED is added to another piece
# The board is seen by the side to move, which moves up. Its pieces are positive. Directions: up, up right, right, ...
DY, DX = (-1, -1, 0, 1, 1, 1, 0, -1), (0, 1, 1, 1, 0, -1, -1, -1)
UP, LINES, DIAGONALS, GOLDEN = 1, 0b01010101, 0b10101010, 0b11010111
STEPS = (0, UP, DIAGONALS | UP, GOLDEN, DIAGONALS, LINES, 255, GOLDEN, GOLDEN, 0, 255, 255)  # directions by piece
SLIDES = (0, 0, 0, 0, DIAGONALS, LINES, 0, 0, 0, 0, DIAGONALS, LINES)  # directions of more than one step
# A move is the point of arrival and a plane: 8 directions, 8 with promotion, 5 drops.


def begin(state):
    for x, piece in enumerate((KING, GOLD, SILVER, BISHOP, ROOK)):
        state.board[4, x], state.board[0, 4 - x] = piece, -piece
    state.board[3, 0], state.board[1, 4] = PAWN, -PAWN
    state.keys[0] = key_of(state)


def in_check(board):
    """Return whether the king of the side to move is attacked."""
    for at in range(200):
        y, x, way, steps = at // 40, at // 8 % 5, at % 8, 0
        if board[y, x] == KING:
            while steps == 0 or (y in range(5) and x in range(5) and board[y, x] == 0):
                y, x, steps = y + DY[way], x + DX[way], steps + 1
            lines = STEPS if steps == 1 else SLIDES  # as the opponent sees them from the other end
            if y in range(5) and x in range(5) and board[y, x] < 0 and lines[-board[y, x]] >> way & 1:
                return True
    return False


def make(board, move):
    plane, y, x = move // 25, move // 5 % 5, move % 5
    taken, v, u = np.int64(board[y, x]), y, x
    while plane < 16 and ((v == y and u == x) or board[v, u] == 0):
        v, u = v - DY[plane % 8], u - DX[plane % 8]
    piece = plane - 15 if plane >= 16 else board[v, u] + (PROMOTED if plane >= 8 else 0)
    board[v, u], board[y, x] = 0, piece
    return taken


def is_safe(state, move):
    for at in range(25):
        state.trial[at // 5, at % 5] = state.board[at // 5, at % 5]
    make(state.trial, move)
    return not in_check(state.trial)


def board_moves(state, moves):
    """Mark the moves on the board; return their number."""
    count = 0
    for at in range(200):
        way, y, x = at % 8, at // 40, at // 8 % 5
        piece, in_zone = max(0, np.int64(state.board[y, x])), y == 0
        steps, y, x = STEPS[piece], y + DY[way], x + DX[way]
        while steps >> way & 1 and y in range(5) and x in range(5) and state.board[y, x] <= 0:
            move = 25 * way + 5 * y + x
            if is_safe(state, move):
                moves[move] = piece != PAWN or y > 0
                moves[move + 200] = (in_zone or y == 0) and piece in (PAWN, SILVER, BISHOP, ROOK)
                count += 1
            steps = SLIDES[piece] if state.board[y, x] == 0 else 0
            y, x = y + DY[way], x + DX[way]
    return count


def legal(state, moves):
    """Mark the moves on the board and the drops; return their number."""
    count = board_moves(state, moves)
    for at in range(125):
        kind, y, x = at // 25 + 1, at // 5 % 5, at % 5
        if state.hands[0, kind - 1] and state.board[y, x] == 0 and is_safe(state, 400 + at):
            moves[400 + at] = kind != PAWN or may_drop_pawn(state, y, x)
            count += moves[400 + at]
    return count


def may_drop_pawn(state, y, x):
    for row in range(5):
        if y == 0 or state.board[row, x] == PAWN:
            return False
    if state.board[y - 1, x] != -KING:
        return True
    state.board[y, x] = PAWN
    turn(state)
    is_mate = board_moves(state, state.marks) == 0
    turn(state)
    state.board[y, x] = 0
    return not is_mate


def turn(state):
    for at in range(13):
        y, x = at // 5, at % 5
        state.board[y, x], state.board[4 - y, 4 - x] = -state.board[4 - y, 4 - x], -state.board[y, x]
        if y == 0:
            state.hands[0, x], state.hands[1, x] = state.hands[1, x], state.hands[0, x]


def key_of(state):
    key = np.uint64(0)
    for at in range(35):
        value = state.board[at // 5, at % 5] if at < 25 else state.hands[at // 5 - 5, at % 5]
        key = (key + np.uint64(value + 16)) * np.uint64(0x9E3779B97F4A7C15)
    return key


def play(state, move):
    taken = make(state.board, move)
    if move >= 400:
        state.hands[0, move // 25 - 16] -= 1
    if taken < 0:
        state.hands[0, (-taken - 1) % PROMOTED] += 1
    turn(state)
    state.keys[state.ply + 1], count = key_of(state), 0
    for ply in range(state.ply + 1, -1, -2):
        count += state.keys[ply] == state.keys[state.ply + 1]
    state.repeated = count >= 4
    state.mated = legal(state, state.marks) == 0


def result(state):
    if state.repeated or state.mated:
        return True, -1.0 if state.mated or state.side_to_move == 1 else 1.0
    return state.ply >= MAX_PLIES, 0.0


def encode(state, planes):
    """Write the pieces of both sides, and one and two pieces in hand."""
    for at in range(25):
        y, x, piece = at // 5, at % 5, np.int64(state.board[at // 5, at % 5])
        if piece:
            planes[abs(piece) - 1 + (0 if piece > 0 else 11), y, x] = 1
        for i in range(20):
            planes[22 + i, y, x] = state.hands[i // 10, i // 2 % 5] > i % 2


BOARDS = [("board", np.int8, (5, 5)), ("trial", np.int8, (5, 5)), ("hands", np.int8, (2, 5))]
OTHERS = [("marks", np.uint16, 525), ("keys", np.uint64, 201), ("repeated", np.uint8), ("mated", np.uint8)]
RULES = {"begin": begin, "legal": legal, "play": play, "result": result, "encode": encode}
GAME = yomi.BoardGame(title="5x5 shogi", size=5, planes=42, move_planes=21, state=BOARDS + OTHERS, **RULES)
