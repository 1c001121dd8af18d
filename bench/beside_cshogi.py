"""Shogi compared with cshogi, on one core: move generation (`bench perft`) and mate search (`bench mate`).

perft counts leaves per second of the tree of legal moves, where cshogi is called from Python. Mate problems are
measured in milliseconds.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from yomi.engine.play import MATE
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.placement import SfenError
from yomi.engine.shogi.players.mate import MateSearch
from yomi.errors import IllegalMove, LineError, reraised
from yomi.native.shogi.movegen import perft
from yomi.nets.installation import pip_command

# Measurements of each side, in turns; the best counts.
TURNS = 3
MAX_PLY = 63


def find_cshogi() -> Any:
    """Import cshogi and return it. If that fails, print a line on stderr and return None."""
    try:
        import cshogi
    except ImportError as error:
        print(
            f"yomi: measured without cshogi ({error}); to compare: {pip_command('install', 'cshogi')}", file=sys.stderr
        )
        return None
    return cshogi


def count_leaves(sfen: str, depth: int) -> list[dict[str, Any]]:
    """Count the lines of 1 to `depth` moves from a position. The last move of a line is counted without making it.

    If cshogi is not installed, its columns are None.

    Raises:
        yomi.engine.shogi.placement.SfenError: the text is not a possible position.
        RuntimeError: cshogi's count differs.
    """
    game = ShogiGame(sfen)
    cshogi = find_cshogi()
    board = None if cshogi is None else cshogi.Board(game.sfen())
    perft(game.position, game.history, 2)  # loads or compiles the kernels
    rows = []
    for each in range(1, depth + 1):
        own, theirs = [], []
        for _ in range(TURNS):
            own.append(_timed(lambda n: perft(game.position, game.history, n), each))
            if board is not None:
                theirs.append(_timed(lambda n: _count(board, n), each))
        leaves = own[0][0]
        if theirs and leaves != theirs[0][0]:
            raise RuntimeError(f"depth {each}: found {leaves} leaves, expected cshogi's {theirs[0][0]}")
        seconds, their_seconds = (min((spent for _, spent in side), default=None) for side in (own, theirs))
        assert seconds is not None
        rows.append(
            {
                "depth": each,
                "leaves": leaves,
                "seconds": seconds,
                "leaves_per_second": leaves / seconds,
                "cshogi_per_second": None if their_seconds is None else leaves / their_seconds,
                "ratio": None if their_seconds is None else their_seconds / seconds,
            }
        )
    return rows


def _timed(count: Callable[[int], int], depth: int) -> tuple[int, float]:
    begin = time.perf_counter()
    leaves = count(depth)
    return leaves, time.perf_counter() - begin


def _count(board: Any, depth: int) -> int:
    if depth == 1:
        return len(board.legal_moves)
    total = 0
    for move in board.legal_moves:
        board.push(move)
        total += _count(board, depth - 1)
        board.pop()
    return total


# -- mate problems -----------------------------------------------------------------------------------------------------


class ProblemError(LineError):
    """A file of mate problems cannot be read. The message is one line."""


def solve(paths: list[Path], nodes: int) -> list[dict[str, Any]]:
    """Solve all problems in some files, by yomi and by cshogi. Every mate is replayed.

    A file has one SFEN on each line, in which the side to move mates. yomi's time includes the whole variation; cshogi
    returns only the first move. If cshogi is not installed, its columns are None.

    Args:
        paths: the files.
        nodes: limit of positions for each solver.

    Raises:
        ProblemError: a file cannot be read or contains something else.
        RuntimeError: a variation does not mate.
    """
    search = MateSearch()
    cshogi = find_cshogi()
    search.solve(ShogiGame().position, max_ply=MAX_PLY, nodes=nodes)  # loads or compiles the kernels
    theirs = None if cshogi is None else cshogi.DfPn(MAX_PLY, nodes, 10_000)
    return [_solve_file(path, search, cshogi, theirs, nodes) for path in paths]


def read_problems(path: Path) -> list[ShogiGame]:
    """Return the positions in a file. Blank lines and comments (#) are ignored.

    Raises:
        ProblemError: the file cannot be read, or a line is not a position.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ProblemError(f"cannot read {path}: {reason}") from None
    games = []
    for number, line in enumerate(lines, 1):
        text = line.strip().removeprefix("sfen ")
        if text and not text.startswith("#"):
            with reraised(SfenError, ProblemError, f"{path}, line {number}: "):
                games.append(ShogiGame(text))
    if not games:
        raise ProblemError(f"{path} has no position")
    return games


def _solve_file(path: Path, search: MateSearch, cshogi: Any, theirs: Any, nodes: int) -> dict[str, Any]:
    own_seconds = cshogi_seconds = 0.0
    own_solved = cshogi_solved = searched = plies = 0
    games = read_problems(path)
    for game in games:
        board = None if cshogi is None else cshogi.Board(game.sfen())
        own, other = [], []
        for _ in range(TURNS):
            begin = time.perf_counter()
            answer = search.solve(game.position, max_ply=MAX_PLY, nodes=nodes, shorten=False)
            middle = time.perf_counter()
            found = theirs is not None and theirs.search(board)
            own.append(middle - begin)
            other.append(time.perf_counter() - middle)
        own_seconds += min(own)
        cshogi_seconds += min(other)
        cshogi_solved += bool(found)
        searched += search.nodes
        if answer.moves:
            _replay(game, answer.moves)
            own_solved += 1
            plies += len(answer.moves)
    count = len(games)
    return {
        "file": path.name,
        "problems": count,
        "solved": own_solved,
        "ms": 1000.0 * own_seconds / count,
        "nodes": searched / count,
        "plies": plies / max(own_solved, 1),
        "cshogi_solved": None if theirs is None else cshogi_solved,
        "cshogi_ms": None if theirs is None else 1000.0 * cshogi_seconds / count,
        "ratio": None if theirs is None else own_seconds / cshogi_seconds,
    }


def _replay(game: ShogiGame, moves: tuple[int, ...]) -> None:
    end = game.copy()
    with reraised(IllegalMove, RuntimeError, f"{game.sfen()}: the variation has an illegal move: "):
        for move in moves:
            end.play(move)
    outcome = end.outcome()
    if outcome is None or outcome.ending != MATE:
        raise RuntimeError(f"{game.sfen()}: the variation does not mate")
