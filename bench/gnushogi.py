"""GNU Shogi as a USI engine, as an opponent in `yomi match`: `python -m yomi.bench.gnushogi --seconds 1`."""

from __future__ import annotations

import argparse
import math
import re
import sys

from yomi.engine.clients.client import EngineError, EngineProcess

_MOVE = re.compile(r"^\d+\. \.\.\. ((?:[1-9][a-i]|[PLNSGBR]\*)[1-9][a-i]\+?)(?!\S)")
_PERIOD = 60  # moves in a period of its clock
_OVER = ("mate", "resign", "draw", "repetition", "wins")


class GnuShogi:
    """The running program and the moves that it has received."""

    def __init__(self, command: str, seconds: float) -> None:
        """Start the program.

        Args:
            command: the program.
            seconds: average time of a move; 0.05 to 600.

        Raises:
            EngineError: the program cannot be started.
        """
        minutes, rest = divmod(round(_PERIOD * seconds), 60)
        self._level = f"level {_PERIOD} {minutes}:{rest:02d}"
        self._process = EngineProcess([command])
        self.close = self._process.close
        self._moves: list[str] = []

    def choose(self, moves: list[str]) -> str | None:
        """Return the program's move after `moves` from the start position; None if it resigns.

        Raises:
            EngineError: the program has ended.
        """
        if self._moves and moves[:-1] == self._moves:
            self._process.send(moves[-1])
        else:
            self._process.send("new", self._level, "force", *moves, "go")  # `new` forgets the level
        move = self._answer()
        self._moves = [*moves, move] if move is not None else []
        return move

    # GNU Shogi 1.4 speaks xshogi's protocol: `new`, `level MOVES MINUTES:SECONDS` (which `new` resets), `force`, moves
    # as in USI, `go`. It echoes a move as `7. 7g7f 1000` and plays one as `7. ... 3c3d 1000`. Any other line in place
    # of a move means that it has no move.
    def _answer(self) -> str | None:
        """Return the next move; None if the game is over or the program refused the last move."""
        while True:
            _, line = self._process.line(math.inf)
            found = _MOVE.match(line)
            if found is not None:
                return found[1]
            if line.startswith("Illegal move") or any(word in line.lower() for word in _OVER):
                print(f"info string gnushogi: {line.strip()}", flush=True)
                return None


def main() -> int:
    """Serve USI until the end of input."""
    parser = argparse.ArgumentParser(description="GNU Shogi as a USI engine; `go` takes no notice of clocks")
    parser.add_argument("--command", default="gnushogi", help="the program (gnushogi)")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="S", help="of each move, on average (1)")
    args = parser.parse_args()
    if not 0.05 <= args.seconds <= 600:
        parser.error(f"--seconds {args.seconds}: expected 0.05 to 600")
    try:
        engine = GnuShogi(args.command, args.seconds)
    except EngineError as error:
        parser.error(f"--command {args.command}: {error}: expected GNU Shogi")
    try:
        _serve(engine)
    except (EngineError, BrokenPipeError, ValueError) as error:  # a loss must not pass for a resignation
        print(f"gnushogi: {error}", file=sys.stderr)
        return 1
    finally:
        engine.close()
    return 0


def _serve(engine: GnuShogi) -> None:
    """Answer lines of USI.

    Raises:
        EngineError: the program has ended.
        ValueError: the program does not know such positions.
    """
    moves: list[str] = []
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ["usi"]:
            print("id name GNU Shogi\nid author the GNU Shogi team\nusiok", flush=True)
        elif words[:1] == ["isready"]:
            print("readyok", flush=True)
        elif words[:2] == ["position", "startpos"]:
            moves = words[3:]
        elif words[:1] == ["position"]:
            raise ValueError(f"{line.strip()[:100]!r} found, expected position startpos")
        elif words[:1] == ["go"]:
            print(f"bestmove {engine.choose(moves) or 'resign'}", flush=True)
        elif words[:1] == ["quit"]:
            break


if __name__ == "__main__":
    sys.exit(main())
