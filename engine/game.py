"""The interface of a game: a descriptor that the shared parts of the engine use. Go and shogi have one each.

A descriptor exists before the arguments of a command are read. It imports kernels, networks and records when they are
used: by `lazy` entries, or inside methods.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from yomi.errors import reraised

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from yomi.engine.evaluators.network import FileFormat
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.learning.rows import Encoder, RecordedGame
    from yomi.engine.learning.selfplay import Learnable
    from yomi.engine.matches.games import MatchGame
    from yomi.engine.options import Options, Value
    from yomi.engine.play import Ended, Referee
    from yomi.engine.players.player import Player
    from yomi.engine.players.request import Decision, PlayableGame
    from yomi.engine.records import Score
    from yomi.engine.reviews.scans import Reviewer
    from yomi.engine.search.types import SearchableGame, SearchSettings
    from yomi.engine.terminal import TerminalGame
    from yomi.native.spec import GameSpec
    from yomi.nets.data.shards import Dataset
    from yomi.nets.metadata import FeatureSet
    from yomi.nets.sparse import SparseEncoder

G = TypeVar("G", bound="PlayableGame")
P = TypeVar("P", bound="Player[Any]")
Say = Callable[[str], None]  # shows the user a line of progress


class _Lazy:
    def __init__(self, target: str) -> None:
        self._module, _, self._name = target.partition(":")

    def __get__(self, game: object, owner: type) -> Any:
        if game is None:  # abc asks a new class for its attributes, and nothing must be imported for that
            return self
        return getattr(import_module(self._module), self._name)


def lazy(target: str) -> Any:
    """Return a class attribute that is imported from "module:name" at each use. A function does not become a method."""
    return _Lazy(target)


@dataclass(frozen=True)
class NoSettings:
    """Settings of a command that has no settings for one game only."""


@dataclass(frozen=True, slots=True)
class BenchmarkPositions:
    name: str  # for tables: 9x9 (Go), shogi
    spec: GameSpec
    games: tuple[SearchableGame, ...]  # from the start of a game to a late position
    write_planes: Callable[[Any, Any, int, Any, Any, Any], None]
    """The kernel that writes a position's network inputs; see yomi.native.game."""
    write_bits: Callable[[Any, Any, int, Any, Any, Any], None]  # the same inputs as bits


class Recorder(Protocol[G]):
    """Starts games of self-play, and writes their records."""

    row_bytes: Mapping[str, int]  # suffixes of files with the rows of all games -> bytes of a row

    def begin(self, number: int) -> G:
        """Return the start of game `number` (from 0). Raises OptionError if its opening cannot be played."""

    def record(self, game: G, decision: Decision, seconds: float) -> None:
        """Record a decision before its move is played."""

    def files(self, game: G, ended: Ended, name: str) -> dict[str, bytes]:
        """Return the record of a finished game as files, by suffix. `name` is the name of both players."""


class Game(abc.ABC, Generic[G, P]):
    """A game: its positions, players, rules and records.

    Only the `commands` that use an entry need a value of it.
    """

    name: str  # in commands and options
    title: str  # in texts
    protocol: str  # gtp or usi
    networks: str  # file types of its networks, for errors
    default_evaluator: str  # without a network, as a value of the option `evaluator`
    score: Score
    # Levels with a network: level, visits, people_prior, people_loss. Empty: levels are as without a network.
    people_levels: tuple[tuple[float, ...], ...] = ()
    people_levels_of_nodes: tuple[tuple[float, ...], ...] = ()  # with an alpha-beta search: nodes instead of visits
    suffixes: tuple[str, ...]  # of records that can be reviewed
    rated_suffixes: tuple[str, ...] = ()  # of records whose results are rated; the first stands for all
    save_suffixes: tuple[str, ...]  # of games saved in the terminal; the first is the default
    flags_fixed_by_record: tuple[str, ...] = ()  # flags of `yomi play` that a saved game excludes
    commands: tuple[str, ...] = ("play", "selfplay", "duel", "tune", "learn", "dataset play")
    settings: Mapping[str, type] = {}
    """Command -> dataclass of the command's settings that only this game has. See yomi.settings."""
    defaults: Mapping[str, Mapping[str, Value]] = {}  # by command: options with another default
    formats: tuple[type[FileFormat], ...] = ()  # of its networks, in the order in which they are tried

    def settings_kind(self, command: str) -> type:
        return self.settings.get(command, NoSettings)

    @property
    def pass_moves(self) -> tuple[int, ...]:
        """Moves that do not change the board."""
        return ()

    def find_fault(self, options: Options) -> tuple[str, str] | None:
        """Return the name of a wrong option and the reason, or None. Faults that only loading can find are missed."""
        return None

    @abc.abstractmethod
    def board_size(self, options: Options) -> int: ...

    def fair(self, options: Options) -> Options:
        """Return options for games that compare players. Go sets a fair komi, unless the user has set a komi."""
        return options

    def board_name(self, options: Options) -> str:
        """Return the name of the game and its board, such as Go 9x9 or shogi."""
        return self.title

    def level_options(self, level: int, options: Options) -> Mapping[str, Value]:
        """Return the options that this game adds to a level of strength. See yomi.engine.levels."""
        return {}

    def compile(self, say: Say, *, everything: bool = True, learning: bool = False, alpha_beta: bool = False) -> None:
        """Compile the kernels that are not in the cache, or raise CompileError.

        A game that is not in yomi.native.kernel_groups overrides this.

        Args:
            say: shows a line of progress.
            everything: also compile kernels that the default network does not need. Otherwise they follow in the
                background.
            learning: also compile the kernels of `yomi learn`.
            alpha_beta: without `everything`, compile the kernels of an alpha-beta player first.
        """
        from yomi.native.precompile import compile_later, compile_names

        more = f"{self.name}-more"
        if not everything and not learning:
            compile_names([f"{self.name}-alphabeta" if alpha_beta else self.name], say)
            later = [self.name, more] if alpha_beta else [more]
        else:
            learned = [f"{self.name}-learning"] if learning else []
            compile_names([self.name, *([more] if everything else []), *learned], say)
            later = []
        compile_later(later)

    def prepare(self, options: Options, say: Say, *, learning: bool = False) -> None:
        """Check the network's device, and compile missing kernels. Raises LoadingError or EvaluatorError."""
        from yomi.engine.default_network import alpha_beta_file, has_network
        from yomi.engine.evaluators.devices import devices_of
        from yomi.engine.players.request import LoadingError
        from yomi.errors import CompileError

        on_processor = has_network(options) and devices_of(options)[0].is_cpu
        with reraised(CompileError, LoadingError):
            everything = learning or not (on_processor and self._needs_first_kernels(options))
            alpha_beta = alpha_beta_file(options, self.name) is not None
            self.compile(say, everything=everything, learning=learning, alpha_beta=alpha_beta)
            if alpha_beta and options.people_prior > 0.0:  # the policy beside it comes from a tree
                self.compile(say, everything=False)

    def _needs_first_kernels(self, options: Options) -> bool:
        """Return whether the options need no other kernels than those of the bundled networks for processors."""
        from yomi.engine.default_network import network_file
        from yomi.nets.models import BUNDLED, default_network

        own = {str(network.path) for network in BUNDLED}
        own -= {str(default_network("shogi"))}  # this one needs a forward pass
        is_native = options.evaluator == "auto" and options.backend in ("auto", "native")
        return is_native and options.value_net is None and network_file(options, self.name) in (None, *own)

    def load_player(self, options: Options, say: Say) -> P:
        """Compile missing kernels, load the network and return the player. This may take minutes."""
        self.prepare(options, say)
        return self.make_player(options)

    # -- playing ---------------------------------------------------------------------------------------------------

    new_game: Callable[[Options], G]
    """Returns the start of a game. Raises OptionError, with one line, if options contradict each other."""
    make_player: Callable[[Options], P]
    """Loads kernels and the network, which is slow. Raises LoadingError, and OptionError as `new_game`."""
    matches: Callable[[], MatchGame[G]]

    @abc.abstractmethod
    def referee(self, player: P) -> Referee[G]:
        """Return the referee of games in this process. The player's evaluations decide which stones are dead."""

    @abc.abstractmethod
    def format_opening(self, game: G) -> str:
        """Return the moves of a game as text, in the form in which matches store openings."""

    # -- commands --------------------------------------------------------------------------------------------------

    start_play: Callable[[Any, Options], G]
    """Returns the first position of `yomi play`: (settings of the command, options). Raises OptionError."""
    resume_play: Callable[[str, Options, Collection[str]], tuple[G, tuple[str, str]]]
    """Returns a saved game and its players: (file, options, names of the options that the user set). The options get
    the settings of the game. Raises OptionError.
    """
    reviewer: Callable[[Options, Path], Reviewer[Any]]
    """Loads a player, which is slow. The path is that of the first record. Raises LoadingError and ReviewError."""
    replay: Callable[[Path, FeatureSet, int], tuple[GameSpec, Encoder, list[RecordedGame[G]]]]
    """Replays a record of self-play: (path of the record, features of the rows beside it, board size) -> (game with the
    rules of the rows, encoder of its positions, games of the record). Raises OptionError.
    """

    def terminal(self, player: P, game: G, settings: Any, advice: Mapping[str, Value]) -> TerminalGame[G]:
        raise NotImplementedError

    def may_be_record(self, content: bytes) -> bool:
        """Return whether a file with this content, without leading white space, may be a record of this game."""
        return False

    def recorder(self, settings: Any, options: Options) -> Recorder[G]:
        """Return the recorder of `yomi selfplay`, or raise OptionError if its openings cannot be read."""
        raise NotImplementedError

    make_dataset: Callable[[Sequence[Path], Path, Any, Any, Say], Dataset]
    """Makes or continues a data set from records: (records, folder, settings of `yomi dataset make`, ShardWork, say).

    Raises OptionError, NetworkError or EvaluatorError if a setting, a file or a network cannot be used.
    """
    play_dataset: Callable[[Path, Any, Any, Say], Dataset | str]
    """Makes or continues positions from self-play: (folder, settings of `yomi dataset play`, ShardWork, say) -> the
    data set, or a line about the positions if they do not form a data set yet. Errors: see `make_dataset`.
    """

    def encoder(self, features: str) -> SparseEncoder | None:
        """Return the encoder that turns boards into a feature set of sparse networks, or None if there is none."""
        return None

    def learnable(self, options: Options) -> Learnable[G]:
        """Return the game, on the board of the options, in the form that the learning loop uses."""
        raise NotImplementedError

    def learning(self, settings: Any, network: Mapping[str, Any] | None) -> Game[G, P]:
        """Return a descriptor of this game for `yomi learn` with these settings. It is sent to the processes that play.

        Args:
            settings: the settings of this game.
            network: the table [network] of a training configuration; None: the game's own.

        Raises:
            OptionError: the openings cannot be read.
        """
        return self

    def network_defaults(self, options: Options) -> Mapping[str, Value]:
        """Return the network's recommended values for options that are unset.

        Raises:
            NetworkError: the values cannot be read.
            OptionError: a value is wrong.
        """
        return {}

    def with_network_defaults(self, options: Options, named: Collection[str]) -> Options:
        """Apply the network's recommended values, except to the `named` options, which the user set.

        Players do this by themselves. Use it for searches without a player. Errors: see `network_defaults`.
        """
        found = self.network_defaults(options)
        return options.with_values({name: value for name, value in found.items() if name not in named})

    # -- benchmarks ------------------------------------------------------------------------------------------------

    def benchmark_positions(self, options: Options) -> BenchmarkPositions:
        raise NotImplementedError

    benchmark_setup: Callable[
        [Options], AbstractContextManager[tuple[BenchmarkPositions, EvaluationQueue, SearchSettings]]
    ]
    """Gives positions, and the queue and settings that a player would make of the options, without tuned settings. The
    queue is closed at the end. Raises NetworkError and EvaluatorError if network or device cannot be used."""
