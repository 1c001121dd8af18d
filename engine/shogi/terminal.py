"""Shogi in the terminal (`yomi play shogi`)."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping

from yomi.engine.color import BLACK, COLOR_NAMES, opponent
from yomi.engine.option_row import OptionError
from yomi.engine.options import Options, Value
from yomi.engine.players.player import Player
from yomi.engine.players.request import Decision
from yomi.engine.records import record_score
from yomi.engine.shogi.diagram import draw
from yomi.engine.shogi.game import IllegalMove, ShogiGame, new_game
from yomi.engine.shogi.notation import format_japanese, format_usi, japanese_line, parse_any
from yomi.engine.shogi.placement import STARTPOS, SfenError, format_sfen
from yomi.engine.shogi.records.files import load_records, save_records
from yomi.engine.shogi.records.record import INTERRUPTED, GameRecord, RecordError, record_of
from yomi.engine.terminal import TerminalGame, TurnResult

COMMANDS = """\
7g7f        play a move: in USI, CSA (7776FU) or Japanese (７六歩, 76歩, 同銀)
declare     declare the win by the entering king rule
sfen        the position as SFEN
save FILE   write the game; the name's ending tells the form: .csa .kif .kifu .usi"""

HINTS = 5  # moves that `hint` lists


class ShogiTerminalGame(TerminalGame["ShogiGame"]):
    commands = COMMANDS
    for_advice: Mapping[str, Value] = {"own_book": False}

    def __init__(
        self,
        player: Player[ShogiGame],
        game: ShogiGame,
        *,
        japanese: bool = False,
        colored: bool = False,
        advice: Mapping[str, Value] | None = None,
    ) -> None:
        """Show a game; `advice` are options for hints and scores that differ from the player's."""
        super().__init__(player, game, advice)
        self.japanese = japanese
        self.colored = colored
        self._ending = ""  # CSA name of the game's ending, for the record

    @property
    def prompt(self) -> str:
        return f"{COLOR_NAMES[self.side_to_move]} {self.game.ply + 1}"

    def board(self) -> str:
        return draw(self.game, japanese=self.japanese, colored=self.colored)

    def ended(self) -> str | None:
        outcome = self.game.outcome()
        if outcome is None:
            return None
        self._ending = outcome.ending
        return str(outcome)

    def play(self, text: str) -> None:
        game = self.game
        game.play(parse_any(text, game.placement, game.last_target, game.is_legal))

    def obey(self, decision: Decision) -> TurnResult:
        game, name = self.game, COLOR_NAMES[self.side_to_move]
        if decision.win:
            self._ending = "KACHI"
            return TurnResult(f"{name} declares the win.", self._won(game.side_to_move))
        if decision.resign or decision.move is None:
            return TurnResult(f"{name} resigns.", self.resigned())
        text = self._name(decision.move)
        game.play(decision.move)
        return TurnResult(f"{text}: {self._describe(decision)}")

    def hint(self) -> list[str]:
        decision = self.search()
        if decision.win:
            return ["declare: the position is won by the entering king rule"]
        if decision.move is None:
            return ["there is no legal move"]
        found = [f"{100 * move.winrate:5.1f}%  {self._line(move.pv[:8])}" for move in decision.report.moves[:HINTS]]
        return found or [self._name(decision.move)]

    def score(self) -> str:
        decision, side = self.search(), self.side_to_move
        if decision.win:
            return f"{COLOR_NAMES[side]} can declare the win"
        if not decision.report.moves:
            return "nothing to search"
        line = decision.report.moves[0]
        if line.mate:
            winner = side if line.mate > 0 else opponent(side)
            return f"{COLOR_NAMES[winner]} mates in {abs(line.mate)}: {self._line(line.pv[:8])}"
        winrate = line.winrate if side == BLACK else 1.0 - line.winrate
        centipawns = record_score(winrate, None, self.player.options.centipawns)
        return f"Black wins {100 * winrate:.1f}%, {centipawns:+d} centipawns: {self._line(line.pv[:8])}"

    def resigned(self) -> str:
        self._ending = "TORYO"
        return f"{COLOR_NAMES[opponent(self.side_to_move)]} wins by resignation"

    def command(self, word: str, rest: str) -> TurnResult | None:
        game = self.game
        match word:
            case "sfen":
                return TurnResult(game.sfen())
            case "declare" | "win":
                if not game.can_declare:
                    raise ValueError("the win cannot be declared here: expected king and ten pieces in the last three "
                                     "ranks, points enough, and no check")  # fmt: skip
                self._ending = "KACHI"
                return TurnResult("The win is declared.", self._won(game.side_to_move))
        return None

    def save(self, path: str, names: tuple[str, str], result: str) -> None:
        ending = self._ending if result else ""
        save_records(path, [record_of(self.game, black=names[0], white=names[1], ending=ending)])

    def _won(self, color: int) -> str:
        return f"{COLOR_NAMES[color]} wins by declaration"

    def _name(self, move: int) -> str:
        game = self.game
        if self.japanese:
            return f"{format_japanese(move, game.placement, game.last_target)} ({format_usi(move)})"
        return f"{COLOR_NAMES[game.side_to_move]} {format_usi(move)}"

    def _line(self, moves: Iterable[int]) -> str:
        """Return a line that starts from the current position as text."""
        if not self.japanese:
            return " ".join(map(format_usi, moves))
        game = self.game
        return "".join(japanese_line(moves, game.placement, game.last_target))

    def _describe(self, decision: Decision) -> str:
        report = decision.report
        parts = [decision.note] if decision.note else []
        if report.moves:
            line = report.moves[0]
            parts.append(f"mate in {line.mate}" if line.mate else f"winrate {100 * line.winrate:.1f}%")
        if report.playouts:
            parts.append(f"{report.playouts} playouts, {report.seconds:.1f} s")
        return ", ".join(parts) or "the only choice"


def start_play(args: Namespace, options: Options) -> tuple[ShogiGame, tuple[str, str]]:
    record = None if args.resume is None else _load(args.resume)
    try:
        game = new_game(options, args.sfen or STARTPOS if record is None else format_sfen(record.initial))
        for recorded in record.moves if record is not None else ():
            game.play(recorded.move)
    except (SfenError, IllegalMove) as error:
        raise OptionError(f"{'--sfen' if record is None else '--resume'}: {error}") from None
    return game, ("", "") if record is None else (record.black, record.white)


def _load(path: str) -> GameRecord:
    """Return the first game of a file, which must be unfinished."""
    try:
        record = load_records(path)[0]
    except RecordError as error:
        raise OptionError(f"--resume {path}: {error}") from None
    if record.ending and record.ending not in INTERRUPTED:
        raise OptionError(f"--resume {path}: the game has ended ({record.ending}), expected one that has not")
    return record


def open_terminal(
    player: Player[ShogiGame], game: ShogiGame, board: str, advice: Mapping[str, Value]
) -> ShogiTerminalGame:
    """Return the terminal's game; `board` is auto, japanese or letters."""
    colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    japanese = board == "japanese" or (board == "auto" and _shows_japanese())
    return ShogiTerminalGame(player, game, japanese=japanese, colored=colored, advice=advice)


def _shows_japanese() -> bool:
    try:
        "▲７六歩".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
