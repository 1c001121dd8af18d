"""Go in the terminal (`yomi play go`)."""

import logging
import time
import unicodedata
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, COLOR_NAMES, COLORS, WHITE, opponent
from yomi.engine.go.game import GoGame, draw, new_game, score_text
from yomi.engine.go.players.player import GoPlayer
from yomi.engine.go.points import HANDICAP_KOMI, HandicapError, fixed_handicap, format_color, shown_color
from yomi.engine.go.record_files import load_record
from yomi.engine.go.rules import Rules
from yomi.engine.go.scoring import final_score, removed_stones
from yomi.engine.go.settings import PlayGoSettings
from yomi.engine.go.sgf import SgfError, to_sgf
from yomi.engine.options import TABLE, Options, Value
from yomi.engine.players.request import Decision
from yomi.engine.records import report_notes
from yomi.engine.screen import has_colors
from yomi.engine.terminal import TerminalGame, TurnResult
from yomi.errors import reraised
from yomi.language import is_japanese, tr
from yomi.nets.files import write_atomically
from yomi.settings import OptionError

log = logging.getLogger("yomi.play")

HINT_HEAD = "winrate    lead   visits  line"
OWNED = 0.5  # minimum ownership of a point that the map assigns to a side

COMMANDS = """\
D4          play there
pass        pass; two passes end the game
save FILE   write the game as SGF"""


class GoTerminalGame(TerminalGame["GoGame"]):
    player: GoPlayer
    commands = COMMANDS
    has_points = True

    @property
    def prompt(self) -> str:
        return f"{shown_color(self.game.side_to_move)}番" if is_japanese() else format_color(self.game.side_to_move)

    def board(self) -> str:
        return draw(self.game, colored=has_colors())

    def last_move(self) -> str:
        return self._vertex(self.game.moves[-1][1])

    def _vertex(self, move: int) -> str:
        vertex = self.game.board.vertex(move)
        return tr("pass") if vertex == "pass" else vertex

    def ended(self) -> str | None:
        """Return the score if the game is over; Void for a game without result."""
        game = self.game
        return self._result(removed_stones(game, self._owners)) if game.is_over else None

    def play(self, text: str) -> None:
        game = self.game
        # Input methods may write letters and digits in full width.
        game.play(game.side_to_move, game.board.parse_vertex(unicodedata.normalize("NFKC", text)))

    def obey(self, decision: Decision) -> TurnResult:
        game, color = self.game, self.game.side_to_move
        side = shown_color(color)
        if decision.resign or decision.move is None:
            return TurnResult(tr("{side} resigns.", side=side), self.resigned())
        game.play(color, decision.move)
        report = decision.report
        return TurnResult(
            tr(
                "{side} {vertex}: winrate {winrate}%, lead {lead}, {visits} visits, {seconds} s",
                side=side,
                vertex=self._vertex(decision.move),
                winrate=f"{100 * report.winrate:.1f}",
                lead=f"{report.score_lead:+.1f}",
                visits=report.visits,
                seconds=f"{report.seconds:.1f}",
            )
        )

    def hint(self) -> list[str]:
        """Return lines with winrate, lead, visits and variation of the best moves."""
        lines = [tr(HINT_HEAD)]
        for move in self.search().report.moves[:5]:
            pv = " ".join(map(self._vertex, move.pv[:8]))
            lines.append(f"{100 * move.winrate:6.1f}%  {move.score_lead:+6.1f}  {move.visits:7d}  {pv}")
        return lines

    def resigned(self) -> str:
        return f"{format_color(opponent(self.game.side_to_move))}+R"

    def winner(self, result: str) -> int | None:
        return COLORS[result[0].lower()] if "+" in result else None

    def in_words(self, result: str) -> str:
        """Return an SGF result followed by a sentence: "B+R, Black wins by resignation"."""
        if is_japanese():
            return japanese_result(result)
        if result == "Void":
            return f"{result}, no result"
        if result == "0":
            return f"{result}, a draw"
        winner, how = result.split("+")
        by = "resignation" if how == "R" else f"{how} {'point' if how == '1' else 'points'}"
        return f"{result}, {COLOR_NAMES[COLORS[winner.lower()]]} wins by {by}"

    def score(self) -> str:
        """Return a map of the expected owners with the expected score; after the end, the score."""
        game, owners = self.game, self._owners()
        marks = ["b" if owner > OWNED else "w" if owner < -OWNED else "." for owner in owners]
        lines = [*map(" ".join, game.board.rows(marks))]
        if game.is_over:
            result = self._result(removed_stones(game, lambda: owners))
            result = japanese_result(result) if is_japanese() else result
            return "\n".join([*lines, tr("as the board stands, dead stones taken off: {result}", result=result)])
        report = self.search().report
        if report.moves:
            black = report.side_to_move == BLACK
            lead = report.score_lead if black else -report.score_lead
            winrate = report.winrate if black else 1.0 - report.winrate
            score, percent = score_text(round(lead, 1)), f"{100 * winrate:.1f}"
            score = japanese_lead(lead) if is_japanese() else score
            lines.append(tr("expected: {score}, Black wins {winrate}%", score=score, winrate=percent))
        return "\n".join(lines)

    def save(self, path: str, names: tuple[str, str], result: str) -> None:
        try:
            date = time.strftime("%Y-%m-%d")
            text = to_sgf(self.game, result=result, black=names[0], white=names[1], date=date)
            write_atomically(Path(path), text.encode("utf-8"))
        except OSError as error:
            raise ValueError(tr("cannot write {path}: {why}", path=path, why=error.strerror)) from None

    def _result(self, dead: Collection[int]) -> str:
        game = self.game
        return "Void" if game.is_no_result else score_text(final_score(game, dead))

    def _owners(self) -> npt.NDArray[np.float32]:
        return self.player.final_ownership(self.game)


def japanese_result(result: str) -> str:
    """Return an SGF result in Japanese: "黒の中押し勝ち", "白の3目半勝ち", "持碁"."""
    if result in ("Void", "0"):
        return "無勝負" if result == "Void" else "持碁"
    winner, how = result.split("+")
    whole, half, _ = how.partition(".5")
    points = "中押し" if how == "R" else "半目" if how == "0.5" else f"{whole}目{half and '半'}"
    return f"{shown_color(COLORS[winner.lower()])}の{points}勝ち"


def japanese_lead(lead: float) -> str:
    """Return in Japanese which side leads. `lead` is Black's points minus White's."""
    return f"{shown_color(BLACK if lead > 0 else WHITE)}の{abs(lead):.1f}目リード" if round(lead, 1) else "互角"


def open_terminal(
    player: GoPlayer, game: GoGame, settings: PlayGoSettings, advice: Mapping[str, Value]
) -> GoTerminalGame:
    return GoTerminalGame(player, game, advice)


def start_play(settings: PlayGoSettings, options: Options) -> GoGame:
    game = new_game(options)
    if settings.handicap:
        with reraised(HandicapError, OptionError, f"--handicap {settings.handicap}: "):
            game.place_handicap(fixed_handicap(settings.handicap, game.board))
            if options.komi is None:
                game.set_komi(HANDICAP_KOMI)
    return game


def resume_play(path: str, options: Options, named: Collection[str]) -> tuple[GoGame, tuple[str, str]]:
    """Return the first game of a file and its players. The record's size, komi and named rules replace the options'."""
    with reraised(SgfError, OptionError, f"--resume {path}: "):
        record = load_record(path)
    if record.result:
        text = tr("the game has ended ({ending}), expected one that has not", ending=record.result)
        raise OptionError(f"--resume {path}: {text}")
    with reraised(SgfError, OptionError, "--resume: "):
        rules = Rules.parse(options.rules) if "rules" in named or options.rules != TABLE["rules"].default else None
        game = record.game(rules=rules, override_rules=record.rules is None)
    report_notes(log.warning, path, record.notes)
    options.size, options.height, options.komi = game.board.width, game.board.height, game.komi
    return game, (record.black, record.white)
