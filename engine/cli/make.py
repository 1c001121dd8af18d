"""Making what the commands use. Imports numba and onnxruntime only when called."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from yomi.engine.cli import logs
from yomi.engine.cli.errors import CliError
from yomi.engine.options import OptionError, Options
from yomi.engine.own_network import has_network, is_bundled

if TYPE_CHECKING:
    from yomi.engine.game import Game, P, Say
    from yomi.engine.play import G


def make_player(game: Game[G, P], options: Options, say: Say = logs.say) -> P:
    """Return the player that the options describe; slow (kernels and the network are loaded).

    Kernels that were never compiled on this machine are compiled first.

    Args:
        game: its descriptor.
        options: the settings.
        say: shows the user a line of progress.

    Raises:
        EvaluatorError: what the options name cannot be used, or they do not go together.
        OptionError: the options of the board do not go together.
    """
    prepare(game, options, say)
    return game.make_player(options)


def prepare(game: Game[Any, Any], options: Options, say: Say = logs.say, *, learning: bool = False) -> None:
    """See that the network's device can be used, and compile the game's kernels if they never were.

    Raises:
        EvaluatorError: the device cannot be used, and the message says what mends that, or compiling fails.
    """
    from yomi.engine.evaluators.devices import choose_devices
    from yomi.engine.players.request import LoadingError
    from yomi.native.errors import CompileError

    if has_network(options):
        choose_devices(options)
    try:
        game.compile(say, everything=learning or not _plays_by_default(options), learning=learning)
    except CompileError as error:
        raise LoadingError(str(error)) from None


def _plays_by_default(options: Options) -> bool:
    """Whether a bundled network evaluates, for which the first kernels are made."""
    own = options.net is None or is_bundled(options.net)
    return own and options.value_net is None and options.evaluator == "auto" and options.device in ("auto", "cpu")


def load_player(game: Game[G, P], options: Options) -> P:
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
    from yomi.engine.evaluators.base import EvaluatorError

    try:
        yield
    except (EvaluatorError, OptionError) as error:
        raise CliError(str(error)) from None
