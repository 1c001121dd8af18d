"""Games between two USI engines under a strict clock, to see whether one loses on time or breaks the rules.

    python -m tests.process.usi_match --games 10 --byoyomi 1 --ponder -- yomi usi --workers 1

Both sides are the same engine. A move that takes longer than the clock allows, even by a millisecond, loses; so does an
illegal move, and a line that USI does not allow there ends the run. cshogi follows the games.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import cshogi

from tests.process.usi_process import UsiProcess

MAX_PLY = 320


@dataclass
class Player:
    """One side: a process and its clock."""

    engine: UsiProcess
    left: float = 0.0
    pondering: str | None = None
    slowest: float = -1e9
    """Largest part of the allowed time that a move took beyond the clock, in seconds; negative where time was left."""
    times: list[float] = field(default_factory=list)


def answer(player: Player) -> list[str]:
    """Return the words of the next bestmove; only reports may stand before it."""
    while True:
        line = player.engine.line(120)
        if line.startswith("bestmove "):
            return line.split()
        assert line.startswith("info "), line
        assert "Error" not in line, line


def play(players: list[Player], main: float, byoyomi: float, increment: float, ponder: bool, opening: list[str]) -> str:
    """Play a game and say how it ended; players[0] is Black."""
    board = cshogi.Board()
    moves: list[str] = []
    for text in opening:
        board.push_usi(text)
        moves.append(text)
    for player in players:
        player.left = main
        player.engine.send("usinewgame")
    seen = Counter([board.zobrist_hash()])
    ending = "max moves"
    while len(moves) < MAX_PLY:
        player = players[len(moves) % 2]
        clocks = [f"{int(1000 * each.left)}" for each in players]
        kind = (
            f"byoyomi {int(1000 * byoyomi)}"
            if byoyomi
            else f"binc {int(1000 * increment)} winc {int(1000 * increment)}"
        )
        go = f"btime {clocks[0]} wtime {clocks[1]} {kind}"
        begin = time.monotonic()
        if player.pondering is not None and player.pondering == moves[-1]:
            player.engine.send(f"ponderhit {go}" if len(moves) % 4 < 2 else "ponderhit")
        else:
            if player.pondering is not None:
                player.engine.send("stop")
                answer(player)
                begin = time.monotonic()
            player.engine.send(
                f"position startpos moves {' '.join(moves)}" if moves else "position startpos", f"go {go}"
            )
        player.pondering = None
        words = answer(player)
        used = time.monotonic() - begin
        player.times.append(used)
        player.slowest = max(player.slowest, used - player.left - byoyomi)
        if used > player.left + byoyomi:
            ending = f"time ({used:.3f} s of {player.left + byoyomi:.3f} s)"
            break
        player.left = max(0.0, player.left - used) + increment
        if words[1] in ("resign", "win"):
            ending = words[1]
            break
        move = board.move_from_usi(words[1])
        if not board.is_legal(move):
            ending = f"illegal move {words[1]} in {board.sfen()}"
            break
        board.push(move)
        moves.append(words[1])
        seen[board.zobrist_hash()] += 1
        if board.is_game_over():
            ending = "mate"
            break
        if seen[board.zobrist_hash()] >= 4:
            ending = "repetition"
            break
        if ponder and len(words) == 4:
            after = board.copy()
            assert after.is_legal(after.move_from_usi(words[3])), words
            player.pondering = words[3]
            player.engine.send(f"position startpos moves {' '.join([*moves, words[3]])}", f"go ponder {go}")
    for player in players:
        player.engine.send("gameover draw")
        if player.pondering is not None:
            answer(player)
        player.pondering = None
    return f"{ending} after {len(moves)} moves"


def main() -> None:
    """Run as a script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=4)
    parser.add_argument("--main", type=float, default=0.0)
    parser.add_argument("--byoyomi", type=float, default=0.0)
    parser.add_argument("--increment", type=float, default=0.0)
    parser.add_argument("--ponder", action="store_true")
    parser.add_argument("engine", nargs="+", help="module and arguments of the engine")
    args = parser.parse_args()
    with UsiProcess(*args.engine) as first, UsiProcess(*args.engine) as second:
        players = [Player(first), Player(second)]
        for player in players:
            player.engine.ready()
        failed = 0
        for number in range(args.games):
            sides = players if number % 2 == 0 else players[::-1]
            opening = [["7g7f"], ["2g2f"], ["7g7f", "3c3d"], ["2g2f", "8c8d"]][number // 2 % 4]
            ending = play(sides, args.main, args.byoyomi, args.increment, args.ponder, opening)
            failed += ending.startswith(("time", "illegal"))
            print(f"game {number + 1}: {ending}", file=sys.stderr, flush=True)
        times = sorted(each for player in players for each in player.times)
        nearest = max(player.slowest for player in players)
    print(
        f"{args.games} games, {failed} lost on time or by an illegal move; a move took {times[len(times) // 2]:.3f} s,"
        f" at most {times[-1]:.3f} s, the nearest to its limit ended {-1000 * nearest:.0f} ms before it"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
