"""Making what the commands use. Imports numba and onnxruntime only when called."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

from engine.cli import logs
from engine.cli.errors import CliError
from engine.cli.games import describe
from engine.options import OptionError, Options
from engine.own_network import has_network

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.go.players.analyst import GoAnalyst
    from engine.go.players.player import GoPlayer
    from engine.players.player import Player
    from engine.shogi.players.player import ShogiPlayer


@overload
def make_player(game: Literal["go"], options: Options, say: Callable[[str], None] = ...) -> GoPlayer: ...
@overload
def make_player(game: Literal["shogi"], options: Options, say: Callable[[str], None] = ...) -> ShogiPlayer: ...
@overload
def make_player(game: str, options: Options, say: Callable[[str], None] = ...) -> Player[Any]: ...
def make_player(game: str, options: Options, say: Callable[[str], None] = logs.say) -> Player[Any]:
    """Return the player that the options describe; slow (kernels and the network are loaded).

    Kernels that were never compiled on this machine are compiled first.

    Args:
        game: its name.
        options: the settings.
        say: shows the user a line of progress.

    Raises:
        EvaluatorError: what the options name cannot be used, or they do not go together.
        ValueError: the options of the board do not go together.
    """
    _prepare(game, options, say)
    player: Player[Any] = describe(game).make_player(options)
    return player


def check_device(options: Options) -> None:
    """See that the network's device can be used, before anything that takes long.

    Raises:
        EvaluatorError: it cannot; the message says what mends that.
    """
    from engine.evaluators.devices import choose_devices

    if has_network(options):
        choose_devices(options)


def _prepare(game: str, options: Options, say: Callable[[str], None]) -> None:
    """See that the device can be used, and compile the game's kernels if they never were."""
    from engine.players.request import LoadingError
    from native.errors import CompileError
    from native.warmup import compile_all

    check_device(options)
    try:
        compile_all(game, say)
    except CompileError as error:
        raise LoadingError(str(error)) from None


def make_analysts(options: Options, count: int | None, *, prompt: bool = True) -> list[GoAnalyst]:
    """Return the analysts of Go that the options describe; slow like `make_player`.

    Args:
        options: the settings.
        count: positions that are searched at a time; None for what suits the device.
        prompt: see engine.go.players.analyst.make_analysts.
    """
    _prepare("go", options, logs.say)
    from engine.go.players import analyst as go_analyst

    return go_analyst.make_analysts(options, count, prompt=prompt)


@overload
def load_player(game: Literal["go"], options: Options) -> GoPlayer: ...
@overload
def load_player(game: Literal["shogi"], options: Options) -> ShogiPlayer: ...
@overload
def load_player(game: str, options: Options) -> Player[Any]: ...
def load_player(game: str, options: Options) -> Player[Any]:
    """Like `make_player`, for commands of the terminal.

    Raises:
        CliError: What the options name cannot be used.
    """
    with loading_errors():
        return make_player(game, options)


@contextlib.contextmanager
def loading_errors() -> Iterator[None]:
    """Turn what making a player raises into the command line's error.

    Raises:
        CliError: The network, the device or the position cannot be used.
    """
    from engine.evaluators.base import EvaluatorError
    from engine.go.game import SetupError

    try:
        yield
    except (EvaluatorError, OptionError, SetupError) as error:
        raise CliError(str(error)) from None
