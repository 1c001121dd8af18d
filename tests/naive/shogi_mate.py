"""Mates in shogi by looking at every move, with cshogi for a board."""

import cshogi


def gives_mate(board: cshogi.Board, plies: int) -> bool:
    """Whether the side to move mates in at most `plies` plies (odd), all of its moves being checks."""
    return any(mates(board, move, plies) for move in list(board.legal_moves))


def mates(board: cshogi.Board, move: int, plies: int) -> bool:
    """Whether one legal move is a check after which every evasion runs into a mate."""
    board.push(move)
    found = board.is_check()
    if found:
        for evasion in list(board.legal_moves):
            if plies <= 1:
                found = False
                break
            board.push(evasion)
            found = gives_mate(board, plies - 2)
            board.pop()
            if not found:
                break
    board.pop()
    return found


def checks(board: cshogi.Board) -> list[int]:
    """Return the legal moves that give check, as 16 bits, in order."""
    found = []
    for move in list(board.legal_moves):
        board.push(move)
        if board.is_check():
            found.append(cshogi.move16(move))
        board.pop()
    return sorted(found)
