"""Go in the terminal (`yomi play go`)."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Collection
from pathlib import Path

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, opponent
from yomi.engine.go.game import GoGame, new_game, score_text
from yomi.engine.go.handicap import HANDICAP_KOMI, HandicapError, fixed_handicap
from yomi.engine.go.players.player import GoPlayer
from yomi.engine.go.record_files import load_record
from yomi.engine.go.rules import Rules
from yomi.engine.go.scoring import removed_stones
from yomi.engine.go.sgf import SgfError, to_sgf
from yomi.engine.go.vertex import format_color, format_vertex, parse_vertex
from yomi.engine.option_row import OptionError
from yomi.engine.options import Options
from yomi.engine.players.request import Decision
from yomi.engine.records import report_notes
from yomi.engine.terminal import TerminalGame, TurnResult
from yomi.nets.files import write_atomically

log = logging.getLogger("yomi.play")

OWNED = 0.5  # minimum ownership of a point that the map assigns to a side

COMMANDS = """\
D4          play there
pass        pass; two passes end the game
save FILE   write the game as SGF"""


class GoTerminalGame(TerminalGame["GoGame"]):
    player: GoPlayer
    commands = COMMANDS

    @property
    def prompt(self) -> str:
        return format_color(self.side_to_move)

    def ended(self) -> str | None:
        """Return the score after the end; Void for a game without result."""
        game = self.game
        return self._result(removed_stones(game, self._owners)) if game.is_over else None

    def play(self, text: str) -> None:
        game = self.game
        game.play(game.side_to_move, parse_vertex(text, game.size))

    def obey(self, decision: Decision) -> TurnResult:
        game, color = self.game, self.side_to_move
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
        for move in self.search().report.moves[:5]:
            pv = " ".join(format_vertex(point, game.size) for point in move.pv[:8])
            lines.append(f"{100 * move.winrate:5.1f}%  {move.score_lead:+6.1f}  {move.visits:7d} visits  {pv}")
        return lines

    def resigned(self) -> str:
        return f"{format_color(opponent(self.side_to_move))}+R"

    def score(self) -> str:
        """Return a map of the expected owners, the score as the board stands, and the search's expectation."""
        game, owners = self.game, self._owners()
        marks = ["b" if owner > OWNED else "w" if owner < -OWNED else "." for owner in owners]
        rows = [" ".join(marks[row * game.size : (row + 1) * game.size]) for row in range(game.size)]
        dead = removed_stones(game, lambda: owners)
        text = f"as the board stands{', dead stones taken off' if dead else ''}: {self._result(dead)}"
        report = self.search().report
        if report.moves:
            black = report.side_to_move == BLACK
            lead = report.score_lead if black else -report.score_lead
            winrate = report.winrate if black else 1.0 - report.winrate
            text += f"; expected: {score_text(round(lead, 1))}, Black wins {100 * winrate:.1f}%"
        return "\n".join([*rows, text])

    def save(self, path: str, names: tuple[str, str], result: str) -> None:
        try:
            text = to_sgf(self.game, result=result, black=names[0], white=names[1])
            write_atomically(Path(path), text.encode("utf-8"))
        except OSError as error:
            raise ValueError(f"cannot write {path}: {error.strerror}") from None

    def _result(self, dead: Collection[int]) -> str:
        game = self.game
        return "Void" if game.is_no_result else score_text(game.final_score(dead))

    def _owners(self) -> npt.NDArray[np.float32]:
        return self.player.final_ownership(self.game)


def start_play(args: Namespace, options: Options) -> tuple[GoGame, tuple[str, str]]:
    """Return the game that `yomi play go` starts with. A record sets the options' size and komi."""
    if args.resume is not None:
        return _load(args.resume, options)
    game = new_game(options)
    if args.handicap:
        try:
            game.place_handicap(fixed_handicap(args.handicap, game.size))
            if options.komi is None:
                game.set_komi(HANDICAP_KOMI)
        except HandicapError as error:
            raise OptionError(f"--handicap {args.handicap}: {error}") from None
    return game, ("", "")


def _load(path: str, options: Options) -> tuple[GoGame, tuple[str, str]]:
    """Return the first game of a file, with its own size, komi and, if it names them, rules."""
    try:
        record = load_record(path)
    except SgfError as error:
        raise OptionError(f"--resume {path}: {error}") from None
    report_notes(log.warning, path, record.notes)
    if record.result:
        raise OptionError(f"--resume {path}: the game has ended ({record.result}), expected one that has not")
    try:
        game = record.game(rules=Rules.parse(options.rules), override_rules=record.rules is None)
    except SgfError as error:
        raise OptionError(f"--resume: {error}") from None
    options.size, options.komi = game.size, game.komi
    return game, (record.black, record.white)
