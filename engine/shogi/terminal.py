"""Shogi in the terminal (`yomi play shogi`)."""

import time
from collections.abc import Collection, Iterable, Mapping

from yomi.engine.color import BLACK, COLOR_NAMES, opponent
from yomi.engine.options import Options, Value
from yomi.engine.players.player import Player
from yomi.engine.players.request import Decision
from yomi.engine.records import record_score
from yomi.engine.screen import has_colors
from yomi.engine.shogi.diagram import draw
from yomi.engine.shogi.game import ShogiGame, csa_ending, describe, describe_japanese, new_game
from yomi.engine.shogi.notation import format_japanese, format_usi, japanese_line, parse_any
from yomi.engine.shogi.placement import STARTPOS, SfenError, format_sfen, parse_sfen
from yomi.engine.shogi.records.files import load_records, save_records
from yomi.engine.shogi.records.japanese import ENGLISH_HANDICAPS, parse_handicap, sides_of
from yomi.engine.shogi.records.record import INTERRUPTED, RecordError, record_of
from yomi.engine.shogi.settings import PlayShogiSettings
from yomi.engine.terminal import TerminalGame, TurnResult
from yomi.errors import IllegalMove, reraised
from yomi.language import JAPANESE_SAMPLE, encodes, is_japanese, tr
from yomi.settings import OptionError

COMMANDS = """\
7g7f        play a move: in USI, CSA (7776FU), Japanese (７六歩, 76歩, 同銀) or as P-7f
declare     declare the win by the entering king rule, or the draw of the 24-point rule
sfen        the position as SFEN
save FILE   write the game; the name's ending tells the form: .csa .kif .kifu .usi"""

HINTS = 5  # moves that `hint` lists
HINT_HEAD = "winrate  line"


class ShogiTerminalGame(TerminalGame["ShogiGame"]):
    commands = COMMANDS
    for_advice: Mapping[str, Value] = {"own_book": False}

    def __init__(
        self,
        player: Player[ShogiGame],
        game: ShogiGame,
        *,
        japanese: bool = False,
        advice: Mapping[str, Value] | None = None,
    ) -> None:
        """Show a game. `advice` overrides options of the player in searches for hints and scores."""
        super().__init__(player, game, advice)
        self.japanese = japanese
        self.sides = sides_of(parse_sfen(game.initial_sfen)) if is_japanese() else COLOR_NAMES
        self._ending = ""  # CSA name of the game's ending, for the record

    @property
    def prompt(self) -> str:
        return tr("{side} {ply}", side=self.sides[self.game.side_to_move], ply=self.game.ply + 1)

    def board(self) -> str:
        sides = self.sides if is_japanese() else None
        return draw(self.game, japanese=self.japanese, colored=has_colors(), sides=sides)

    def last_move(self) -> str:
        before = self.game.copy()
        before.undo()
        move = self.game.moves[-1][1]
        in_kanji = self.japanese or is_japanese()
        return format_japanese(move, before.placement, before.last_target) if in_kanji else format_usi(move)

    def ended(self) -> str | None:
        outcome = self.game.outcome()
        if outcome is None:
            return None
        self._ending = csa_ending(outcome, self.game)
        if is_japanese():
            return describe_japanese(outcome, self.sides)
        return describe(outcome)

    def winner(self, result: str) -> int | None:
        outcome, side = self.game.outcome(), self.game.side_to_move
        if outcome is not None:
            return outcome.winner or None
        return {"TORYO": opponent(side), "KACHI": side}.get(self._ending)

    def in_words(self, result: str) -> str:
        return f"まで{self.game.ply}手で{result}" if is_japanese() else result

    def play(self, text: str) -> None:
        game = self.game
        move = parse_any(text, game.placement, game.last_target, game.is_legal)
        if is_japanese() and not game.is_legal(move):  # with the move as the user wrote it
            raise IllegalMove(tr("illegal move {move}: {why}", move=text, why=game.why_not(move)))
        game.play(move)

    def obey(self, decision: Decision) -> TurnResult:
        game, name = self.game, self.sides[self.game.side_to_move]
        if decision.win:
            self._ending = "KACHI"
            return TurnResult(tr("{side} declares the win.", side=name), self._won(game.side_to_move))
        if decision.resign or decision.move is None:
            return TurnResult(tr("{side} resigns.", side=name), self.resigned())
        text = self._name(decision.move)
        game.play(decision.move)
        return TurnResult(f"{text}: {self._describe(decision, name)}")

    def hint(self) -> list[str]:
        decision = self.search(multipv=HINTS)
        if decision.win:
            return [tr("declare: the position is won by the entering king rule")]
        if decision.move is None:
            return [tr("there is no legal move")]
        found = [f"{100 * move.winrate:6.1f}%  {self._line(move.pv[:8])}" for move in decision.report.moves[:HINTS]]
        return [tr(HINT_HEAD), *found] if found else [self._name(decision.move)]

    def score(self) -> str:
        decision, side = self.search(), self.game.side_to_move
        if decision.win:
            return tr("{side} can declare the win", side=self.sides[side])
        if not decision.report.moves:
            return tr("nothing to search")
        line = decision.report.moves[0]
        pv = self._line(line.pv[:8])
        if line.mate:
            winner = self.sides[side if line.mate > 0 else opponent(side)]
            return tr("{side} mates in {plies}: {pv}", side=winner, plies=abs(line.mate), pv=pv)
        winrate = line.winrate if side == BLACK else 1.0 - line.winrate
        centipawns = record_score(winrate, None, self.player.options.centipawns)
        return tr(
            "{side} wins {winrate}%, {score} centipawns: {pv}",
            side=self.sides[BLACK],
            winrate=f"{100 * winrate:.1f}",
            score=f"{centipawns:+d}",
            pv=pv,
        )

    def resigned(self) -> str:
        self._ending = "TORYO"
        winner = self.sides[opponent(self.game.side_to_move)]
        return tr("{side} wins by resignation", side=winner)

    def command(self, word: str, rest: str) -> TurnResult | None:
        game = self.game
        match word:
            case "sfen":
                return TurnResult(game.sfen())
            case "declare" | "win":
                if game.can_declare_draw:
                    self._ending = "JISHOGI"
                    result = tr("draw: {side} declared it", side=self.sides[game.side_to_move])
                    return TurnResult(tr("The draw is declared."), result)
                if game.try_move is not None:
                    move = self._line([game.try_move])
                    raise ValueError(tr("the try rule has no declaration: expected {move}, which wins", move=move))
                if not game.can_declare:
                    raise ValueError(tr("the win cannot be declared here: expected king and ten pieces in the last "
                                        "three ranks, points enough, and no check"))  # fmt: skip
                self._ending = "KACHI"
                return TurnResult(tr("The win is declared."), self._won(game.side_to_move))
        return None

    def save(self, path: str, names: tuple[str, str], result: str) -> None:
        ending = self._ending if result else ""
        info = {"START_TIME": time.strftime("%Y/%m/%d")}
        save_records(path, [record_of(self.game, black=names[0], white=names[1], ending=ending, info=info)])

    def _won(self, color: int) -> str:
        return tr("{side} wins by declaration", side=self.sides[color])

    def _name(self, move: int) -> str:
        game = self.game
        if is_japanese():
            return format_japanese(move, game.placement, game.last_target)
        if self.japanese:
            return f"{format_japanese(move, game.placement, game.last_target)} ({format_usi(move)})"
        return f"{COLOR_NAMES[game.side_to_move]} {format_usi(move)}"

    def _line(self, moves: Iterable[int]) -> str:
        """Return moves from the current position on as text."""
        if not self.japanese and not is_japanese():
            return " ".join(map(format_usi, moves))
        game = self.game
        return "".join(japanese_line(moves, game.placement, game.last_target))

    def _describe(self, decision: Decision, side: str) -> str:
        report = decision.report
        parts = [decision.note] if decision.note else []
        if report.moves:
            line = report.moves[0]
            if mate := line.mate:
                parts.append(tr("mate in {plies}" if mate > 0 else "mated in {plies}", plies=abs(mate)))
            else:
                parts.append(tr("{side}'s winrate {winrate}%", side=side, winrate=f"{100 * line.winrate:.1f}"))
        if report.playouts:
            values = {"n": report.playouts, "seconds": f"{report.seconds:.1f}"}
            is_tree = report.unit == "visits"
            parts.append(tr("{n} playouts, {seconds} s" if is_tree else "{n} nodes, {seconds} s", **values))
        return tr(", ").join(parts) or tr("the only choice")


def start_play(settings: PlayShogiSettings, options: Options) -> ShogiGame:
    if settings.handicap is not None and settings.sfen is not None:
        raise OptionError(tr("--handicap with --sfen: expected one of the two"))
    sfen = settings.sfen or STARTPOS
    if settings.handicap is not None:
        placement = parse_handicap(settings.handicap)
        if placement is None:
            names = ", ".join(f"{japanese} ({english})" for english, japanese in ENGLISH_HANDICAPS.items())
            text = tr("--handicap {name}: expected one of {names}", name=settings.handicap, names=names)
            raise OptionError(text)
        sfen = format_sfen(placement)
    with reraised(SfenError, OptionError, "--sfen: "):
        return new_game(options, sfen)


def resume_play(path: str, options: Options, named: Collection[str]) -> tuple[ShogiGame, tuple[str, str]]:
    with reraised(RecordError, OptionError, f"--resume {path}: "):
        record = load_records(path)[0]
    if record.ending and record.ending not in INTERRUPTED:
        text = tr("the game has ended ({ending}), expected one that has not", ending=record.ending)
        raise OptionError(f"--resume {path}: {text}")
    with reraised((SfenError, IllegalMove), OptionError, "--resume: "):
        game = new_game(options, format_sfen(record.initial))
        for recorded in record.moves:
            game.play(recorded.move)
    return game, (record.black, record.white)


def open_terminal(
    player: Player[ShogiGame], game: ShogiGame, settings: PlayShogiSettings, advice: Mapping[str, Value]
) -> ShogiTerminalGame:
    japanese = settings.board == "japanese" or (settings.board == "auto" and encodes(JAPANESE_SAMPLE))
    return ShogiTerminalGame(player, game, japanese=japanese, advice=advice)
