"""`bench mate`: milliseconds that df-pn needs for a mate problem, compared with cshogi's solver."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from yomi.bench.perft import find_cshogi
from yomi.engine.play import MATE
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.placement import SfenError
from yomi.engine.shogi.players.mate import MateSearch
from yomi.errors import IllegalMove, LineError

MAX_PLY = 63
# Number of times that each solver solves a problem, in turns; the fastest time counts.
TURNS = 3


class ProblemError(LineError):
    """A file of problems cannot be read; the message is one line."""


def run(paths: list[Path], nodes: int) -> list[dict[str, Any]]:
    """Solve all problems of the files, one SFEN a line, in which the side to move mates. Every mate is replayed.

    The time includes the whole variation; cshogi returns only the first move. Without cshogi its columns are None.

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
    """Return the positions of a file without blank lines and comments (#).

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
            try:
                games.append(ShogiGame(text))
            except SfenError as error:
                raise ProblemError(f"{path}, line {number}: {error}") from None
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
    try:
        for move in moves:
            end.play(move)
    except IllegalMove as error:
        raise RuntimeError(f"{game.sfen()}: the variation has an illegal move: {error}") from None
    outcome = end.outcome()
    if outcome is None or outcome.ending != MATE:
        raise RuntimeError(f"{game.sfen()}: the variation does not mate")
