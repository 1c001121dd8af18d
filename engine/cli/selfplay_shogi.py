"""How `yomi selfplay shogi` plays a game."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.errors import CliError
from engine.cli.make import load_player
from engine.cli.selfplay_games import Played
from engine.color import BLACK, WHITE
from engine.play import PlayerSide, play_game
from engine.shogi.game import ShogiGame
from engine.shogi.players.notes import note_of
from engine.shogi.records.files import load_records, to_bytes
from engine.shogi.records.hcpe import pack
from engine.shogi.records.record import GameRecord, RecordedMove, RecordError, format_usi_line, record_of
from engine.shogi.referee import ShogiReferee, csa_ending
from engine.shogi.sfen import format_sfen

if TYPE_CHECKING:
    from engine.options import Options
    from engine.players.player import Player
    from engine.players.request import Decision


class ShogiSeries:
    """Games from the usual position or from openings, in turn."""

    def __init__(self, player: Player[ShogiGame], suffixes: Sequence[str], openings: Sequence[GameRecord] = ()) -> None:
        """Let `player` play both sides.

        Args:
            player: plays.
            suffixes: endings of the file names of each record, which tell its forms.
            openings: to begin with; none for the usual position.
        """
        self.player = player
        self.suffixes = suffixes
        self.openings = openings or (GameRecord(),)

    @classmethod
    def open(cls, options: Options, suffixes: Sequence[str], openings: Path | None) -> ShogiSeries:
        """Return games of the player that the options describe.

        Raises:
            CliError: it cannot be made, or the openings cannot be read or held by one of the forms.
        """
        try:
            lines = load_records(openings) if openings else []
        except RecordError as error:
            raise CliError(f"--openings {error}") from None
        for number, line in enumerate(lines if ".hcpe" in suffixes else [], 1):
            try:
                pack(line.initial)
            except RecordError as error:
                raise CliError(f"--openings {openings}, opening {number}: {error} (--format hcpe)") from None
        return cls(load_player("shogi", options), suffixes, lines)

    def play(self, number: int) -> Played:
        """Play one game; the opening's moves are part of it."""
        game = self._begin(self.openings[number % len(self.openings)])
        notes = [RecordedMove(move) for _, move in game.moves]
        centipawns = self.player.options.centipawns

        def note(decision: Decision, seconds: float) -> None:
            notes.append(note_of(decision, game.placement, seconds, centipawns))

        side = PlayerSide(self.player)
        ended = play_game(game, {BLACK: side, WHITE: side}, ShogiReferee(), note)
        ending = csa_ending(ended, game)
        name = self.player.description
        info = {"EVENT": "yomi selfplay", "START_TIME": time.strftime("%Y/%m/%d %H:%M:%S")}
        record = record_of(game, notes, black=name, white=name, ending=ending)
        record.info = info
        files = {suffix: to_bytes([record], suffix) for suffix in self.suffixes}
        return Played(record.winner or 0, len(game.moves), files)

    def close(self) -> None:
        """Release the engine."""
        self.player.close()

    def _begin(self, opening: GameRecord) -> ShogiGame:
        """Put an opening on the player's board."""
        options = self.player.options
        game = ShogiGame(
            format_sfen(opening.initial), entering_king=options.entering_king, max_moves=options.max_moves or 0
        )
        for recorded in opening.moves:
            if not game.is_legal(recorded.move):
                raise CliError(f"--openings: '{format_usi_line(opening)[:80]}' has an illegal move")
            game.play(recorded.move)
        self.player.new_game(game)
        return game
