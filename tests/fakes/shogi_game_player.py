"""A player of shogi without a search, for tests of the terminal and of self-play."""

from __future__ import annotations

from engine.games.shogi.game import ShogiGame
from engine.options import Options
from engine.players.shogi_base import Line, Progress, ShogiDecision


class FakeShogiGamePlayer:
    """Plays the legal move whose number is lowest, the same for the same position.

    Args:
        options: settings.
        resign_at: the ply at which it resigns.
        declares: declare wins where that can be done.
    """

    description = "fake"

    def __init__(self, options: Options | None = None, resign_at: int | None = None, *, declares: bool = True) -> None:
        self.options = options or Options.for_game("shogi")
        self.game = ShogiGame(entering_king=self.options.entering_king, max_moves=self.options.max_moves or 0)
        self.resign_at = resign_at
        self.declares = declares
        self.calls: list[str] = []

    def go(self) -> ShogiDecision:
        self.calls.append("go")
        if self.declares and self.game.can_declare:
            return ShogiDecision(None, win=True)
        moves = sorted(self.game.legal_moves())
        if not moves:
            return ShogiDecision(None)
        lines = tuple(Line((move,), 0.75 - 0.125 * i) for i, move in enumerate(moves[:3]))
        resign = self.resign_at is not None and self.game.ply >= self.resign_at
        return ShogiDecision(moves[0], resign=resign, progress=Progress(lines, seconds=0.25, playouts=16))

    def new_game(self) -> None:
        self.calls.append("new_game")

    def clear(self) -> None:
        self.calls.append("clear")

    def close(self) -> None:
        self.calls.append("close")
