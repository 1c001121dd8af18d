"""Games of shogi of the engine against itself, for `yomi selfplay`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.option_row import OptionError
from engine.shogi.commands import FORMATS
from engine.shogi.game import new_game
from engine.shogi.players.notes import note_of
from engine.shogi.records.files import load_records, to_bytes
from engine.shogi.records.hcpe import HCPE_DTYPE, pack
from engine.shogi.records.record import GameRecord, RecordedMove, RecordError, format_usi_line, record_of
from engine.shogi.referee import csa_ending
from engine.shogi.sfen import format_sfen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.options import Options
    from engine.play import Ended
    from engine.players.request import Decision
    from engine.shogi.game import ShogiGame


class ShogiRecorder:
    """See engine.game.Recorder: games from the usual position or from openings, in turn."""

    row_bytes: Mapping[str, int] = {".hcpe": HCPE_DTYPE.itemsize}

    def __init__(self, options: Options, formats: Sequence[str], openings: Path | None = None) -> None:
        """Read the openings.

        Args:
            options: tell the rules, and the scale of evaluations.
            formats: the forms of each record, of FORMATS.
            openings: a file of them; None for the usual position.

        Raises:
            OptionError: they cannot be read or held by one of the forms.
        """
        self._options = options
        self._suffixes = tuple(dict.fromkeys(FORMATS[name] for name in formats))
        self._notes: list[RecordedMove] = []
        try:
            lines = load_records(openings) if openings else []
        except RecordError as error:
            raise OptionError(f"--openings {error}") from None
        for number, line in enumerate(lines if ".hcpe" in self._suffixes else [], 1):
            try:
                pack(line.initial)
            except RecordError as error:
                raise OptionError(f"--openings {openings}, opening {number}: {error} (--format hcpe)") from None
        self._openings = lines or [GameRecord()]

    def begin(self, number: int) -> ShogiGame:
        """Return an opening with its moves, which are part of the game."""
        opening = self._openings[number % len(self._openings)]
        game = new_game(self._options, format_sfen(opening.initial))
        for recorded in opening.moves:
            if not game.is_legal(recorded.move):
                raise OptionError(f"--openings: '{format_usi_line(opening)[:80]}' has an illegal move")
            game.play(recorded.move)
        self._notes = [RecordedMove(move) for _, move in game.moves]
        return game

    def record(self, game: ShogiGame, decision: Decision, seconds: float) -> None:
        """Keep the evaluation in centipawns."""
        self._notes.append(note_of(decision, game.placement, seconds, self._options.centipawns))

    def files(self, game: ShogiGame, ended: Ended, name: str) -> dict[str, bytes]:
        """Return the record in every form."""
        record = record_of(game, self._notes, black=name, white=name, ending=csa_ending(ended, game))
        record.info = {"EVENT": "yomi selfplay", "START_TIME": time.strftime("%Y/%m/%d %H:%M:%S")}
        return {suffix: to_bytes([record], suffix) for suffix in self._suffixes}
