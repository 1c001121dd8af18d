"""Games of the engine against itself: records of `yomi selfplay`, and training rows for `yomi learn`."""

import functools
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.learning.rows import Encoder, RecordedGame, counts_of, planes_of, plies_by_move
from yomi.engine.learning.selfplay import FinishedGame, Learnable
from yomi.engine.options import Options
from yomi.engine.play import DECLARATION, Ended
from yomi.engine.players.request import Decision
from yomi.engine.records import record_score
from yomi.engine.shogi.game import ShogiGame, ShogiReferee, csa_ending, new_game
from yomi.engine.shogi.placement import format_sfen
from yomi.engine.shogi.records.files import load_records, to_bytes
from yomi.engine.shogi.records.packed import HCPE_DTYPE, pack
from yomi.engine.shogi.records.record import GameRecord, RecordedMove, RecordError, format_usi_line, note_of, record_of
from yomi.engine.shogi.settings import RECORD_FORMATS, SelfplayShogiSettings
from yomi.errors import reraised
from yomi.native.datasets.packed import write_boards
from yomi.native.shogi.pieces import HAND_TYPES
from yomi.native.shogi.position import FORM_ALPHAZERO, FORM_DLSHOGI
from yomi.native.shogi.spec import DLSHOGI_FEATURES, shogi_spec
from yomi.native.shogi.squares import SQUARES
from yomi.native.spec import GameSpec
from yomi.nets.data.shards import Arrays
from yomi.nets.dlshogi.network import DLSHOGI_PLANES
from yomi.nets.metadata import FEATURE_SETS, SHOGI_BOARD, FeatureSet
from yomi.settings import OptionError


def read_openings(path: Path | None, packed: str = "") -> list[GameRecord]:
    """Return the openings of a file; without a file the usual initial position. Raises OptionError.

    `packed` is the flag, if any, that requires positions that fit into 32 bytes.
    """
    with reraised(RecordError, OptionError, "--openings "):
        lines = load_records(path) if path else []
    for number, line in enumerate(lines if packed else [], 1):
        try:
            pack(line.initial)
        except RecordError as error:
            raise OptionError(f"--openings {path}, opening {number}: {error} ({packed})") from None
    return lines or [GameRecord()]


def begin(options: Options, opening: GameRecord) -> ShogiGame:
    """Return a game after the moves of an opening. Raises OptionError if one of them is illegal."""
    game = new_game(options, format_sfen(opening.initial))
    for recorded in opening.moves:
        if not game.is_legal(recorded.move):
            raise OptionError(f"--openings: '{format_usi_line(opening)[:80]}' has an illegal move")
        game.play(recorded.move)
    return game


class ShogiRecorder:
    """Records games that start at the usual position or openings, in turn. Implements yomi.engine.game.Recorder."""

    row_bytes: Mapping[str, int] = {".hcpe": HCPE_DTYPE.itemsize}

    def __init__(self, settings: SelfplayShogiSettings, options: Options) -> None:
        """Read the openings (default: the usual position). Raises OptionError."""
        self._options = options
        self._suffixes = tuple(dict.fromkeys(RECORD_FORMATS[name] for name in settings.format))
        self._notes: list[RecordedMove] = []
        packed = [suffix for suffix in (".hcpe", ".hcpe3") if suffix in self._suffixes]
        openings = Path(settings.openings) if settings.openings else None
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


# -- learning ----------------------------------------------------------------------------------------------------------

SPARSE_KIND = "sparse-shogi"  # kind of networks that read boards instead of planes
SEPARATOR = b"/\n"  # follows every CSA game, the last one included


class LearnableShogi(Learnable["ShogiGame"]):
    """Shogi for the learning loop, without points and ownership."""

    suffix = ".csa"

    def __init__(
        self,
        options: Options,
        openings: Sequence[GameRecord] = (GameRecord(),),
        named: str = "",
        network: Mapping[str, Any] | None = None,
    ) -> None:
        """Check the openings, which are drawn at random. Raises OptionError for an illegal move.

        `named` is the name of their file with its digest. `network` is the table [network] of a training configuration.
        """
        super().__init__(ShogiReferee())
        self.network = network or {"kind": "dlshogi-resnet", "blocks": 4, "channels": 48}
        extras = int(self.network.get("extras", DLSHOGI_FEATURES[1]))
        is_sparse = self.network.get("kind") == SPARSE_KIND
        self.features = SHOGI_BOARD if is_sparse else f"dlshogi-{DLSHOGI_PLANES}-{extras}"
        self.spec, self.encode = encoding_of(FEATURE_SETS[self.features])
        self.fixed_settings: Mapping[str, Any] = {"openings": named}
        self._options = options
        # Positions count their moves from 0: what comes before them is not known.
        self._openings = [replace(opening, initial=replace(opening.initial, number=1)) for opening in openings]
        # A restarted game needs its opening again.
        self._opened: weakref.WeakKeyDictionary[ShogiGame, GameRecord] = weakref.WeakKeyDictionary()
        for opening in self._openings:
            begin(options, opening)

    def new_game(self, rng: np.random.Generator, lead: float) -> ShogiGame:
        return self._begin(self._openings[int(rng.integers(len(self._openings)))])

    def restart(self, game: ShogiGame) -> ShogiGame:
        return self._begin(self._opened[game])

    def first_position(self, game: ShogiGame) -> dict[str, Any]:
        start = game.copy()
        for _ in game.moves:
            start.undo()
        return {"sfen": start.sfen()}

    def judge(self, game: ShogiGame) -> Ended | None:
        # Games end as soon as the side to move could declare a win.
        ended = super().judge(game)
        return Ended(game.side_to_move, DECLARATION) if ended is None and game.can_declare else ended

    def record(self, finished: FinishedGame[ShogiGame], name: str) -> bytes:
        """Return the game as CSA, with evaluations and visits as comments, followed by a separator."""
        game, notes = finished.game, []
        for (_, move), ply in zip(game.moves, plies_by_move(finished), strict=True):
            note = RecordedMove(move)
            if ply is not None and ply.found is not None:
                note.score = record_score(0.5 + ply.found.value / 2.0, None, self._options.centipawns)
                note.counts = counts_of(ply)
            notes.append(note)
        ending = csa_ending(finished.ended, game)
        black, white = finished.names(name)
        return to_bytes([record_of(game, notes, black=black, white=white, ending=ending)], self.suffix) + SEPARATOR

    def _begin(self, opening: GameRecord) -> ShogiGame:
        game = begin(self._options, opening)
        game.position["mate_depth"] = self._options.leaf_mate_depth
        self._opened[game] = opening
        return game


def replay(path: Path, features: FeatureSet, size: int) -> tuple[GameSpec, Encoder, list[RecordedGame[ShogiGame]]]:
    """Return the GameSpec, encoder and games of a record for `yomi learn`. Searches may play all legal moves."""
    if features.joined:
        raise OptionError(f"{path}: rows of {features.name} found, expected dlshogi's features or {SHOGI_BOARD}")
    with reraised(RecordError, OptionError):
        records = load_records(path)
        games = [
            RecordedGame(record.game(0), [note.move for note in record.moves], record.winner) for record in records
        ]
    for recorded in games:
        # Records may contain moves that searches skip.
        recorded.game.position["all_moves"] = 1
    return *encoding_of(features), games


def encoding_of(features: FeatureSet) -> tuple[GameSpec, Encoder]:
    """Return the GameSpec of shogi for a feature set, and the function that encodes positions for it."""
    if features.name == SHOGI_BOARD:
        return shogi_spec(), boards_of
    spec = shogi_spec(FORM_ALPHAZERO if features.joined else FORM_DLSHOGI, features.extras)
    return spec, functools.partial(planes_of, spec=spec, features=features)


def boards_of(positions: npt.NDArray[np.void], history: object = None) -> Arrays:
    """Return boards and hands of positions, from the point of view of the side to move and without history."""
    count = len(positions)
    boards, hands = np.zeros((count, SQUARES), np.uint8), np.zeros((count, 2 * len(HAND_TYPES)), np.uint8)
    write_boards(positions, boards, hands)
    return {"planes": np.zeros((count, 0), np.uint8), "levels": boards, "globals": hands}
