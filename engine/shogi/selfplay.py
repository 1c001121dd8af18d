"""Self-play games of `yomi selfplay`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.engine.option_row import OptionError
from yomi.engine.shogi.commands import FORMATS
from yomi.engine.shogi.game import new_game
from yomi.engine.shogi.players.notes import note_of
from yomi.engine.shogi.records.files import load_records, to_bytes
from yomi.engine.shogi.records.hcpe import HCPE_DTYPE, pack
from yomi.engine.shogi.records.record import GameRecord, RecordedMove, RecordError, format_usi_line, record_of
from yomi.engine.shogi.referee import csa_ending
from yomi.engine.shogi.sfen import format_sfen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yomi.engine.options import Options
    from yomi.engine.play import Ended
    from yomi.engine.players.request import Decision
    from yomi.engine.shogi.game import ShogiGame


def read_openings(path: Path | None, packed: str = "") -> list[GameRecord]:
    """Return the openings of a file, or the usual position if there is no file.

    Args:
        path: a file of records or lines.
        packed: the flag that requires positions that fit into 32 bytes, for the error; empty if none does.

    Raises:
        OptionError: an opening cannot be read or packed.
    """
    try:
        lines = load_records(path) if path else []
    except RecordError as error:
        raise OptionError(f"--openings {error}") from None
    for number, line in enumerate(lines if packed else [], 1):
        try:
            pack(line.initial)
        except RecordError as error:
            raise OptionError(f"--openings {path}, opening {number}: {error} ({packed})") from None
    return lines or [GameRecord()]


def begin(options: Options, opening: GameRecord) -> ShogiGame:
    """Return a game after an opening, whose moves are part of the game.

    Raises:
        OptionError: a move is illegal.
    """
    game = new_game(options, format_sfen(opening.initial))
    for recorded in opening.moves:
        if not game.is_legal(recorded.move):
            raise OptionError(f"--openings: '{format_usi_line(opening)[:80]}' has an illegal move")
        game.play(recorded.move)
    return game


class ShogiRecorder:
    """Games from the usual position or from openings, taken in turn. Implements yomi.engine.game.Recorder."""

    row_bytes: Mapping[str, int] = {".hcpe": HCPE_DTYPE.itemsize}

    def __init__(self, options: Options, formats: Sequence[str], openings: Path | None = None) -> None:
        """Read the openings.

        Args:
            options: set the rules and the scale of evaluations.
            formats: keys of FORMATS.
            openings: a file; None for the usual position.

        Raises:
            OptionError: an opening cannot be read, or does not fit a format.
        """
        self._options = options
        self._suffixes = tuple(dict.fromkeys(FORMATS[name] for name in formats))
        self._notes: list[RecordedMove] = []
        packed = [suffix for suffix in (".hcpe", ".hcpe3") if suffix in self._suffixes]
        self._openings = read_openings(openings, f"--format {packed[0][1:]}" if packed else "")

    def begin(self, number: int) -> ShogiGame:
        game = begin(self._options, self._openings[number % len(self._openings)])
        self._notes = [RecordedMove(move) for _, move in game.moves]
        return game

    def record(self, game: ShogiGame, decision: Decision, seconds: float) -> None:
        note = note_of(decision, game.placement, seconds, self._options.centipawns)
        self._notes.append(replace(note, counts=decision.report.counts))

    def files(self, game: ShogiGame, ended: Ended, name: str) -> dict[str, bytes]:
        record = record_of(game, self._notes, black=name, white=name, ending=csa_ending(ended, game))
        record.info = {"EVENT": "yomi selfplay", "START_TIME": time.strftime("%Y/%m/%d %H:%M:%S")}
        return {suffix: to_bytes([record], suffix) for suffix in self._suffixes}
