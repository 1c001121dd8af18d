"""What the shared parts of the engine know of a game. `yomi.engine.go` and `yomi.engine.shogi` describe theirs.

A descriptor is there before the arguments of a command are read: what it needs of kernels, networks and records is
imported when a method is called.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from yomi.engine.play import G

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager
    from pathlib import Path

    from yomi.engine.evaluators.network import FileEvaluator, FileFormat
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.learning.learnable import Learnable
    from yomi.engine.learning.replay import Recorded, Show
    from yomi.engine.matches.games import MatchGame
    from yomi.engine.options import Options, Value
    from yomi.engine.play import Ended, Referee
    from yomi.engine.players.player import Player
    from yomi.engine.players.precision import Sampling
    from yomi.engine.players.request import Decision
    from yomi.engine.review import Reviewer
    from yomi.engine.scores import Score
    from yomi.engine.search.parameters import SearchSettings
    from yomi.engine.search.position import SearchableGame
    from yomi.engine.terminal import TerminalGame
    from yomi.native.spec import GameSpec
    from yomi.nets.data.shards import Dataset
    from yomi.nets.data.sparse import SparseEncoder
    from yomi.nets.features import FeatureSet

P = TypeVar("P", bound="Player[Any]")
Say = Callable[[str], None]
"""Shows the user a line of progress."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A game as those who measure see it."""

    name: str
    """For tables: 9x9 (Go), shogi."""
    spec: GameSpec
    games: tuple[SearchableGame, ...]
    """The first is at its start, the last is late."""
    write_planes: Callable[[Any, Any, int, Any, Any, Any], None]
    """The kernel that writes a position's network inputs; see yomi.native.game."""
    write_bits: Callable[[Any, Any, int, Any, Any, Any], None]
    """The same for bits."""


class Recorder(Protocol[G]):
    """Begins games of the engine against itself, and writes their records."""

    row_bytes: Mapping[str, int]
    """Endings of files that hold the rows of all games -> bytes of a row."""

    def begin(self, number: int) -> G:
        """Return the beginning of the game of this number, counted from 0.

        Raises:
            OptionError: the opening cannot be played.
        """

    def record(self, game: G, decision: Decision, seconds: float) -> None:
        """Note a decision before its move is played."""

    def files(self, game: G, ended: Ended, name: str) -> dict[str, bytes]:
        """Return the content of a finished game's record by ending of the file's name; `name` is both players'."""


class Game(abc.ABC, Generic[G, P]):
    """A game: its positions, its players and its rules.

    What raises NotImplementedError here is needed by those only that have the command which asks for it (`examples`).
    """

    name: str
    """As commands and options name it."""
    title: str
    """As texts name it."""
    protocol: str
    """The command that serves its interfaces, gtp or usi."""
    networks: str
    """The files of its networks, for errors."""
    plain_evaluator: str
    """What judges positions without a network, as the option `evaluator` names it."""
    score: Score
    suffixes: tuple[str, ...]
    """Endings of the names of records that are reviewed."""
    rated: tuple[str, ...] = ()
    """Those of records whose results are rated; the first one stands for all forms of one game."""
    saved: tuple[str, ...]
    """Those of games saved in the terminal; the first is the usual one."""
    recorded: tuple[str, ...] = ()
    """Flags of `yomi play` that have no place where a record says how the game began."""
    examples: Mapping[str, str]
    """The commands that there are for this game, each with the end of its help."""
    flags: Mapping[str, Callable[[argparse._ActionsContainer], object]] = {}
    """What adds the flags that a command has for this game only, by command."""
    defaults: Mapping[str, Mapping[str, Value]] = {}
    """Options that are others in a command than elsewhere, by command."""

    @property
    def formats(self) -> tuple[type[FileFormat], ...]:
        """Formats of the networks that play it, in the order in which they are asked whether they know a file."""
        return ()

    @property
    def idle_moves(self) -> tuple[int, ...]:
        """Moves that change nothing on the board, such as a pass."""
        return ()

    def find_fault(self, options: Options) -> tuple[str, str] | None:
        """Return an option that cannot be and why, as far as it is known before anything is loaded; else None."""
        return None

    @abc.abstractmethod
    def board_size(self, options: Options) -> int:
        """Return the length of the board's side."""

    def board_name(self, options: Options) -> str:
        """Return the game with its board: Go 9x9, shogi."""
        return self.title

    def level_options(self, level: int, *, has_network: bool) -> Mapping[str, Value]:
        """Return what a level of strength sets otherwise than in all games; see yomi.engine.levels."""
        return {}

    def compile(self, say: Say, *, everything: bool = True, learning: bool = False) -> None:
        """Compile the kernels that are not in the cache. A game that yomi.native.kernel_groups does not have overrides
        this.

        Args:
            say: receives progress.
            everything: also compile what the default network does not need; otherwise that happens in the background.
            learning: also compile what `yomi learn` needs.

        Raises:
            CompileError: it fails.
        """
        from yomi.native.warmup import compile_later, compile_names, compile_natively_later

        more = f"{self.name}-more"
        names = [self.name, *([more] if everything else []), *([f"{self.name}-learning"] if learning else [])]
        compile_names(names, say)
        if not everything:
            compile_later([more])
        compile_natively_later()

    # -- playing ---------------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def new_game(self, options: Options) -> G:
        """Return the beginning of a game by the options.

        Raises:
            OptionError: they do not go together; one line that says what was expected.
        """

    @abc.abstractmethod
    def make_player(self, options: Options) -> P:
        """Return the player that the options describe; slow: kernels and the network are loaded.

        Raises:
            LoadingError: it cannot be made.
            OptionError: see `new_game`.
        """

    @abc.abstractmethod
    def referee(self, player: P) -> Referee[G]:
        """Return what ends games of this process; if a score needs a verdict it is the player's."""

    @abc.abstractmethod
    def format_opening(self, game: G) -> str:
        """Return the moves of a game as a match keeps its openings."""

    def matches(self) -> MatchGame[G]:
        """Return what matches know of the game."""
        raise NotImplementedError

    # -- commands --------------------------------------------------------------------------------------------------

    def start_play(self, args: argparse.Namespace, options: Options) -> tuple[G, tuple[str, str]]:
        """Return the game that `yomi play` begins with, and the players' names if it was saved (else empty).

        Args:
            args: `resume` names the file of a saved game, or is None; the flags of this game.
            options: the settings; they get what a saved game says of them.

        Raises:
            OptionError: the file cannot be read, or there is no such beginning.
        """
        raise NotImplementedError

    def terminal(self, player: P, game: G, args: argparse.Namespace, advice: Mapping[str, Value]) -> TerminalGame[G]:
        """Return a game for the terminal; for `advice` see TerminalGame."""
        raise NotImplementedError

    def may_be_record(self, content: bytes) -> bool:
        """Whether a file whose name tells nothing may be a record of this game; white space before it is left out."""
        return False

    def reviewer(self, options: Options, path: Path) -> Reviewer:
        """Return what reviews records; slow like `make_player`. `path` is the first record.

        Raises:
            LoadingError: the player cannot be made.
            ReviewError: the record cannot be read.
        """
        raise NotImplementedError

    def recorder(self, args: argparse.Namespace, options: Options) -> Recorder[G]:
        """Return what begins the games of `yomi selfplay` and writes their records.

        Raises:
            OptionError: what they are to begin with cannot be read.
        """
        raise NotImplementedError

    def make_dataset(self, args: argparse.Namespace, say: Say) -> Dataset:
        """Make a data set from records, or go on with it, by the flags of `yomi dataset make`.

        Raises:
            OptionError: a flag or a file is wrong.
            NetworkError, EvaluatorError: a network that labels cannot be used.
        """
        raise NotImplementedError

    def encoder(self, features: str) -> SparseEncoder | None:
        """Return what finds the rows that sparse networks see of the boards of a feature set; None: it has none."""
        return None

    def play_dataset(self, args: argparse.Namespace, say: Say) -> Dataset | str:
        """Make positions from games against itself, or go on with them, by the flags of `yomi dataset play`.

        Returns:
            The data set, or if it is none yet what was made, on one line.

        Raises:
            OptionError, NetworkError, EvaluatorError: see `make_dataset`.
        """
        raise NotImplementedError

    def learnable(self, options: Options) -> Learnable[G]:
        """Return what the learning loop knows of the game, on the board of the options."""
        raise NotImplementedError

    def replay(self, path: Path, features: FeatureSet, size: int) -> tuple[GameSpec, Show, list[Recorded[G]]]:
        """Return the game as the rows beside a record have it, what shows its positions so, and the record's games.

        Args:
            path: of the record, in a form of `learnable`.
            features: of the rows.
            size: of their boards.

        Raises:
            OptionError: the record is broken, or no game is learned from such features.
        """
        raise NotImplementedError

    def network_defaults(self, options: Options) -> Mapping[str, Value]:
        """Return the values that come with the network, for options that are left at their defaults.

        Raises:
            NetworkError: it cannot be read.
            OptionError: a value in it does not suit its option.
        """
        return {}

    def learning(self, args: argparse.Namespace, network: Mapping[str, Any] | None) -> Game[G, P]:
        """Return the descriptor as the flags of `yomi learn` want it; processes that play are sent it.

        Args:
            args: the flags of this game.
            network: [network] of a training configuration; None for the game's own.

        Raises:
            OptionError: what games are to begin with cannot be read.
        """
        return self

    # -- measuring -------------------------------------------------------------------------------------------------

    def subject(self, options: Options) -> Subject:
        """Return what is measured: positions on the board of the options, searched as they say."""
        raise NotImplementedError

    def measured(self, options: Options) -> AbstractContextManager[tuple[Subject, EvaluationQueue, SearchSettings]]:
        """Give the subject, and the queue and settings that the options describe, as a player makes them.

        Results of `yomi net calibrate` are not used here; see yomi.engine.players.tuning. The queue is closed at the
        end.

        Raises:
            NetworkError: the network's file cannot be used.
            EvaluatorError: the evaluator or the device cannot.
        """
        raise NotImplementedError

    def sampling(self, network: FileEvaluator, options: Options) -> Sampling[G]:
        """Return how games are played on which the precisions of a network are compared."""
        raise NotImplementedError
