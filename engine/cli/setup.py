"""`yomi setup`: compile the engine before it is needed, and remove compiled kernels that are no longer used."""

from __future__ import annotations

import argparse

from yomi.engine.cli.errors import CliError
from yomi.engine.cli.games import GAMES
from yomi.engine.cli.logs import echo, say

USAGE = "yomi setup [go | shogi | all] [--clean]"
EPILOG = """\
examples:
  yomi setup                           compile everything: both games, and learning them
  yomi setup go                        only Go
  yomi setup --clean                   remove kernels that this yomi does not use

Without this command the first start of each game compiles it. Compiling happens again on another processor, after an
update or edit of yomi, and after an update of numba or Python's minor version. yomi doctor lists the compiled kernels.
"""
ALL = "all"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "game", nargs="?", choices=(*GAMES, ALL), default=None, metavar="GAME", help="go, shogi or all (default: all)"
    )
    parser.add_argument(
        "--clean", action="store_true", help="remove kernels that this yomi does not use; others compile theirs again"
    )


def run(args: argparse.Namespace) -> int:
    """Compile the kernels, or remove old ones."""
    if not args.clean:
        compile_now(tuple(GAMES) if args.game in (None, ALL) else (args.game,))
    elif args.game is not None:
        raise CliError(f"yomi setup {args.game} --clean: expected a game to compile, or --clean")
    else:
        clean()
    return 0


def compile_now(games: tuple[str, ...]) -> None:
    """Compile what playing and learning some games takes.

    Raises:
        CompileError: it fails.
    """
    from yomi.native.jit import IS_PLAIN
    from yomi.native.precompile import compile_names, is_compiled

    if IS_PLAIN:
        raise CliError("NUMBA_DISABLE_JIT=1 compiles nothing: unset it")
    names = [f"{game}{part}" for game in games for part in ("", "-more", "-learning")]
    if all(is_compiled(name) for name in names):
        echo(f"{' and '.join(games)}: everything is compiled")
        return
    compile_names(names, say)
    echo(f"{' and '.join(games)}: ready to play")


def clean() -> None:
    """Remove the kernels of other versions and processors; print each.

    Raises:
        CliError: one cannot be removed.
    """
    from yomi.native.cache_folder import remove
    from yomi.native.inventory import inventory

    removed = [kept for kept in inventory() if kept.may_remove]
    for kept in removed:
        try:
            remove(kept.path)
        except OSError as error:
            raise CliError(f"cannot remove {kept.path}: {error.strerror or error}") from None
        echo(f"removed {kept.path.name} ({kept.reason})")
    echo(f"{sum(kept.size for kept in removed) / 1e6:.1f} MB removed; kernels of this yomi are kept")
