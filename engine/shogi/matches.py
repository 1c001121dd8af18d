"""Matches of shogi: sets up games, and writes and reads their records."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from yomi.engine.clients.client import RESIGN, WIN, OnStart
from yomi.engine.clients.usi import UsiClient
from yomi.engine.clock import TimeSettings
from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.matches.games import MatchGame
from yomi.engine.matches.results import GameLog, GameResult, key_of
from yomi.engine.options import Options
from yomi.engine.play import Ended
from yomi.engine.players.request import Decision
from yomi.engine.shogi.descriptor import GAME
from yomi.engine.shogi.game import ShogiGame, ShogiReferee, csa_ending, ending_of
from yomi.engine.shogi.notation import csa_line, format_usi, parse_usi, parse_usi_moves
from yomi.engine.shogi.placement import START_WORD, STARTPOS
from yomi.engine.shogi.records.files import load_records, to_bytes
from yomi.engine.shogi.records.record import LINE_MOVES, GameRecord, format_usi_line, parse_usi_line, record_of
from yomi.errors import reraised

DEFAULT_MAX_MOVES = 512  # default move limit of a match


class ShogiMatches(MatchGame[ShogiGame]):
    client = UsiClient
    suffixes = GAME.suffixes

    def rules(self, options: Options, scorer: str | None, max_moves: int) -> dict[str, Any]:
        rules = {"max_moves": max_moves or DEFAULT_MAX_MOVES, "entering_king": options.entering_king}
        self.begin(rules, "")
        return rules

    def referee(self, rules: Mapping[str, Any], on_start: OnStart | None) -> ShogiReferee:
        return ShogiReferee()

    def begin(self, rules: Mapping[str, Any], opening: str) -> ShogiGame:
        return parse_usi_line(opening or START_WORD).game(**rules)

    def set_up(self, client: UsiClient, game: ShogiGame, clock: TimeSettings) -> None:
        if clock.is_limited:
            client.lower_margins()
        client.new_game()

    def start_of(self, game: ShogiGame) -> str:
        return START_WORD if game.initial_sfen == STARTPOS else game.initial_sfen

    def read_answer(self, game: ShogiGame, text: str) -> Decision:
        if text == WIN:
            if not game.can_declare and not game.can_declare_draw:
                raise ValueError(f"declared a win that is none (rule {game.entering_king})")
            # USI has one word for a declaration. ShogiHome, too, decides by the points whether it is a win or a draw.
            return Decision(None, win=game.can_declare, draw=not game.can_declare)
        with reraised(ValueError, ValueError, f"at move {len(game.moves) + 1}: "):
            move = parse_usi(text)
            game.check(move)
        return Decision(move)

    def records(self, sheet: GameLog[ShogiGame], ended: Ended, event: str) -> dict[str, bytes]:
        black, white = (sheet.clients[color] for color in (BLACK, WHITE))
        record = record_of(
            sheet.game, black=black.spec.name, white=white.spec.name, ending=csa_ending(ended, sheet.game)
        )
        for recorded, placement, answer in zip(record.moves, record.placements(), sheet.answers, strict=False):
            if answer is None:
                recorded.comment = "opening"
                continue
            recorded.seconds = answer.seconds
            if answer.evaluation is not None and answer.evaluation.score is not None:
                recorded.score = round(answer.evaluation.score)
                expected = parse_usi_moves(answer.evaluation.pv[:LINE_MOVES])
                recorded.pv = " ".join(csa_line(expected, placement)[1:])
        if sheet.last is not None and sheet.last.move in (RESIGN, WIN):
            record.ending_seconds = sheet.last.seconds
        record.info = {"EVENT": f"yomi match {event}", "START_TIME": time.strftime("%Y/%m/%d %H:%M:%S")}
        record.comment = f"{black.title} - {white.title}\n{ended.ending} {ended.detail}".strip()
        return {suffix: to_bytes([record], suffix) for suffix in (".csa", ".kifu")}

    def load_records(self, path: Path) -> list[GameRecord]:
        return load_records(path)

    def opening_of(self, record: GameRecord, moves: int | None, rules: Mapping[str, Any]) -> str:
        opening = replace(record, moves=record.moves[:moves])
        opening.game()  # complains of a move that the rules forbid
        return format_usi_line(opening)

    def result_of(self, record: GameRecord) -> GameResult | None:
        if record.winner is None:
            return None
        first = record.initial.side
        moves = {first: record.moves[0::2], opponent(first): record.moves[1::2]}
        times = {color: [each.seconds for each in own if each.seconds is not None] for color, own in moves.items()}
        return GameResult(
            0,
            record.black,
            record.white,
            record.winner,
            ending_of(record),
            plies=len(record.moves),
            seconds=(sum(times[BLACK]) if times[BLACK] else None, sum(times[WHITE]) if times[WHITE] else None),
            chosen=(len(moves[BLACK]), len(moves[WHITE])),
            key=key_of(format_usi_line(record)),
        )

    def moves_of(self, record: GameRecord) -> list[str]:
        return [format_usi(recorded.move) for recorded in record.moves]

    def format_move(self, game: ShogiGame, move: int) -> str:
        return format_usi(move)
