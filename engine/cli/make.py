"""Making what the commands use. Imports numba and onnxruntime only when called."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.cli import logs
from engine.cli.errors import CliError
from engine.options import OptionError, Options
from engine.own_network import has_network

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.players.go import GoPlayer
    from engine.players.go_analyst import GoAnalyst
    from engine.players.shogi import ShogiPlayer


def make_go_player(options: Options) -> GoPlayer:
    """Return the player of Go that the options describe; slow (kernels and the network are loaded).

    Kernels that were never compiled on this machine are compiled first, with progress on stderr.
    """
    _prepare("go", options, logs.say)
    from engine.players.go import GoPlayer

    return GoPlayer(options)


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


def make_shogi_player(options: Options, say: Callable[[str], None]) -> ShogiPlayer:
    """Return the player of shogi that the options describe; slow like `make_go_player`.

    Args:
        options: the settings.
        say: shows the user a line.

    Raises:
        EvaluatorError: The network, the device or the book cannot be used, or the options do not go together.
    """
    _prepare("shogi", options, say)
    from engine.players.shogi import ShogiPlayer

    return ShogiPlayer(options)


def make_analysts(options: Options, count: int | None, *, prompt: bool = True) -> list[GoAnalyst]:
    """Return the analysts of Go that the options describe; slow like `make_go_player`.

    Args:
        options: the settings.
        count: positions that are searched at a time; None for what suits the device.
        prompt: see engine.players.go_analyst.make_analysts.
    """
    _prepare("go", options, logs.say)
    from engine.players import go_analyst

    return go_analyst.make_analysts(options, count, prompt=prompt)


def load_go_player(options: Options) -> GoPlayer:
    """Like `make_go_player`, for commands of the terminal.

    Raises:
        CliError: The network, the device or the position cannot be used.
    """
    with loading_errors():
        return make_go_player(options)


@contextlib.contextmanager
def loading_errors() -> Iterator[None]:
    """Turn what making a player raises into the command line's error.

    Raises:
        CliError: The network, the device or the position cannot be used.
    """
    from engine.evaluators.base import EvaluatorError
    from engine.games.go.game import SetupError

    try:
        yield
    except (EvaluatorError, OptionError, SetupError) as error:
        raise CliError(str(error)) from None


def load_shogi_player(options: Options) -> ShogiPlayer:
    """Like `make_shogi_player`, for commands of the terminal.

    Raises:
        CliError: What the options name cannot be used.
    """
    with loading_errors():
        return make_shogi_player(options, logs.say)
