"""Go in the terminal: what `yomi play go` knows of the game."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.errors import CliError
from engine.cli.make import load_player
from engine.cli.terminal import TurnResult
from engine.color import BLACK, opponent
from engine.go.game import new_game, score_text
from engine.go.handicap import HandicapError, fixed_handicap
from engine.go.rules import Rules
from engine.go.scoring import removed_stones
from engine.go.sgf import GameRecord, SgfError, load_sgf, to_sgf
from engine.go.vertex import format_color, format_vertex, parse_vertex
from engine.players.request import Request
from nets.files import write_atomically

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engine.go.game import GoGame
    from engine.go.players.player import GoPlayer
    from engine.options import Options, Value
    from engine.search.report import SearchReport

OWNED = 0.5
"""Expected ownership from which on a point counts as somebody's in the map."""

COMMANDS = """\
D4          play there
pass        pass; two passes end the game
save FILE   write the game as SGF"""


class GoTerminalGame:
    """See TerminalGame."""

    commands = COMMANDS

    def __init__(self, player: GoPlayer, game: GoGame, advice: Mapping[str, Value] | None = None) -> None:
        """Play in a game; `advice` are the options for hints and scores, if they are others than the player's."""
        self.player = player
        self.game = game
        self._advice = advice or {}

    @property
    def description(self) -> str:
        """What plays."""
        return self.player.description

    @property
    def side_to_move(self) -> int:
        """BLACK or WHITE."""
        return self.game.side_to_move

    @property
    def prompt(self) -> str:
        """B or W."""
        return format_color(self.side_to_move)

    def board(self) -> str:
        """Return the board as text."""
        return str(self.game)

    def ended(self) -> str | None:
        """Return the score after the end; Void for a game without result."""
        game = self.game
        return self._result(removed_stones(game, self._owners)) if game.is_over else None

    def play(self, text: str) -> None:
        """Play a vertex or a pass."""
        game = self.game
        game.play(game.side_to_move, parse_vertex(text, game.size))

    def undo(self) -> bool:
        """Take the last move back."""
        self.game.undo()
        return bool(self.game.moves)

    def take_turn(self) -> TurnResult:
        """Let the engine move or resign."""
        game, color = self.game, self.side_to_move
        hides = self.player.options.ignore_pre_root_history
        decision = self.player.decide(Request(game, hide_moves=hides))
        if decision.resign or decision.move is None:
            return TurnResult(f"{format_color(color)} resigns.", self.resigned())
        game.play(color, decision.move)
        report = decision.report
        return TurnResult(
            f"{format_color(color)} {format_vertex(decision.move, game.size)}: winrate {100 * report.winrate:.1f}%,"
            f" lead {report.score_lead:+.1f}, {report.visits} visits, {report.seconds:.1f} s"
        )

    def hint(self) -> list[str]:
        """Return winrate, lead, visits and line of the best moves."""
        game, lines = self.game, []
        for move in self._search().moves[:5]:
            pv = " ".join(format_vertex(point, game.size) for point in move.pv[:8])
            lines.append(f"{100 * move.winrate:5.1f}%  {move.score_lead:+6.1f}  {move.visits:7d} visits  {pv}")
        return lines

    def resigned(self) -> str:
        """Return the result when the side to move gives up."""
        return f"{format_color(opponent(self.side_to_move))}+R"

    def score(self) -> str:
        """Return the expected owners as a map, the score as the board stands, and what the search expects."""
        game, owners = self.game, self._owners()
        marks = ["b" if owner > OWNED else "w" if owner < -OWNED else "." for owner in owners]
        rows = [" ".join(marks[row * game.size : (row + 1) * game.size]) for row in range(game.size)]
        dead = removed_stones(game, lambda: owners)
        text = f"as the board stands{', dead stones taken off' if dead else ''}: {self._result(dead)}"
        report = self._search()
        if report.moves:
            black = report.side_to_move == BLACK
            lead = report.score_lead if black else -report.score_lead
            winrate = report.winrate if black else 1.0 - report.winrate
            text += f"; expected: {score_text(round(lead, 1))}, Black wins {100 * winrate:.1f}%"
        return "\n".join([*rows, text])

    def command(self, word: str, rest: str) -> TurnResult | None:
        """Go has no commands of its own."""
        return None

    def save(self, path: str, names: tuple[str, str], result: str) -> None:
        """Write the game as SGF."""
        try:
            text = to_sgf(self.game, result=result, black=names[0], white=names[1])
            write_atomically(Path(path), text.encode("utf-8"))
        except OSError as error:
            raise ValueError(f"cannot write {path}: {error.strerror}") from None

    def close(self) -> None:
        """Release the engine."""
        self.player.close()

    def _result(self, dead: Collection[int]) -> str:
        game = self.game
        return "Void" if game.is_no_result else score_text(game.final_score(dead))

    def _owners(self) -> npt.NDArray[np.float32]:
        return self.player.final_ownership(self.game)

    def _search(self) -> SearchReport:
        """Search for a hint or a score, by the options of advice.

        With them the tree is forgotten after it, so that a level plays no better for it.
        """
        player = self.player
        options = player.options.with_values(self._advice)
        try:
            return player.decide(Request(self.game, options, hide_moves=options.ignore_pre_root_history)).report
        finally:
            if self._advice:
                player.clear()


def open_go(
    options: Options, handicap: int, advice: Mapping[str, Value] | None = None, record: GameRecord | None = None
) -> GoTerminalGame:
    """Return a game with the player that the options describe.

    Args:
        options: the settings.
        handicap: handicap stones; 0 for none.
        advice: as for GoTerminalGame.
        record: a game to go on with, by its own size, komi and, if it names them, rules.

    Raises:
        CliError: it cannot be made, there is no such handicap, or the record cannot be played.
    """
    game = None
    if record is not None:
        try:
            game = record.game(rules=Rules.parse(options.rules), override_rules=record.rules is None)
        except SgfError as error:
            raise CliError(f"--resume: {error}") from None
        options.size, options.komi = game.size, game.komi
    player = load_player("go", options)
    game = game or new_game(options)
    if handicap:
        try:
            game.place_handicap(fixed_handicap(handicap, game.size))
        except HandicapError as error:
            player.close()
            raise CliError(f"--handicap {handicap}: {error}") from None
    return GoTerminalGame(player, game, advice)


def load_go(path: str) -> tuple[GameRecord, tuple[str, str]]:
    """Return the first game of a file, and the names of its players.

    Raises:
        CliError: it cannot be read.
    """
    try:
        record = load_sgf(path)
    except SgfError as error:
        raise CliError(f"--resume {path}: {error}") from None
    if record.result:
        raise CliError(f"--resume {path}: the game has ended ({record.result}), expected one that has not")
    return record, (record.black, record.white)
