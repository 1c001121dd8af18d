"""`yomi setup`, `yomi config` and `yomi completion`: kernels, the user's file of options, completion in shells."""

import argparse
import importlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from yomi.engine.cli.flags import user_config
from yomi.engine.cli.output import echo, say
from yomi.engine.cli.parser import CliError, Command, add_actions
from yomi.engine.options import TABLE, read_tables
from yomi.engine.registry import GAMES
from yomi.errors import reraised
from yomi.language import tr
from yomi.nets.files import default_cache_dir, temporary_cache_dir, write_atomically
from yomi.nets.installation import pip_command, require_package
from yomi.settings import Setting, Value

# -- setup ----------------------------------------------------------------------------------------------------------

SETUP_EPILOG = """\
examples:
  yomi setup                           compile everything: both games, and learning them
  yomi setup go                        only Go
  yomi setup --clean                   remove kernels that this yomi does not use
  yomi setup --clean all               remove everything from the cache, before uninstalling

Without this command the first start of each game compiles it. A new processor, an update or edit of yomi, and an update
of numba or Python's minor version require compiling again. yomi doctor lists the compiled kernels.
"""
ALL, UNUSED = "all", "unused"
CACHED = "cluster kernels nets openvino precision programs tensorrt tensorrt-rtx told tuning"  # folders of the cache


def _add_setup(parser: argparse.ArgumentParser) -> None:
    choices = (*GAMES, ALL)
    parser.add_argument("game", nargs="?", choices=choices, metavar="GAME", help="go, shogi or all (default: all)")
    parser.add_argument(
        "--clean",
        nargs="?",
        choices=(UNUSED, ALL),
        const=UNUSED,
        metavar=ALL,
        help="remove kernels that this yomi does not use; all: the whole cache",
    )


def _run_setup(args: argparse.Namespace) -> int:
    if not args.clean:
        compile_now(tuple(GAMES) if args.game in (None, ALL) else (args.game,))
    elif args.game is not None:
        raise CliError(tr("yomi setup {game} --clean: expected only one of a game and --clean", game=args.game))
    else:
        (clean_all if args.clean == ALL else clean)()
    return 0


def compile_now(games: tuple[str, ...]) -> None:
    from yomi.native.jit import IS_PLAIN
    from yomi.native.precompile import compile_names, is_compiled

    if IS_PLAIN:
        raise CliError(tr("NUMBA_DISABLE_JIT=1 prevents compiling: unset it"))
    all_games = tr(" and ").join(games)
    names = [f"{game}{part}" for game in games for part in ("", "-more", "-learning")]
    if all(is_compiled(name) for name in names):
        echo(tr("{games}: everything is compiled", games=all_games))
        return
    compile_names(names, say)
    echo(tr("{games}: ready to play", games=all_games))


def clean() -> None:
    from yomi.native.cache_folder import remove, size_of
    from yomi.native.precompile import unused_kernels

    removed = 0
    for path in unused_kernels():
        removed += size_of(path)
        remove(path)
        echo(tr("removed {folder}", folder=path.name))
    echo(tr("{size} MB removed; kernels of this yomi are kept", size=f"{removed / 1e6:.1f}"))


def clean_all() -> None:
    """Remove all files of the caches that yomi made. Files of others stay, since any folder may be the cache."""
    from yomi.native.cache_folder import remove, size_of

    removed = 0
    for cache in dict.fromkeys((default_cache_dir(), temporary_cache_dir())):
        if cache == Path.home() or (cache / "pyproject.toml").exists():
            raise CliError(f"YOMI_CACHE_DIR is {cache}, expected a folder for caches alone: remove yomi's yourself")
        for path in (cache / name for name in CACHED.split() if os.path.lexists(cache / name)):
            removed += 0 if path.is_symlink() else size_of(path)  # the target of a link stays
            remove(path)
            echo(tr("removed {folder}", folder=path))
        kept = sorted(path.name for path in cache.iterdir()) if cache.is_dir() else []
        if kept:
            echo(tr("kept in {folder}: {names}", folder=cache, names=", ".join(kept)))
        elif cache.is_dir() and not cache.is_symlink():
            cache.rmdir()
    echo(tr("{size} MB removed", size=f"{removed / 1e6:.1f}"))


# -- config ---------------------------------------------------------------------------------------------------------

CONFIG_EPILOG = """\
examples:
  yomi config init      write a first file; an existing file is never replaced
  yomi config show      print the name of the file and the options that it sets

The file is ~/.config/yomi/config.toml, or yomi/config.toml in XDG_CONFIG_HOME. Keys: yomi help options.
Options for one game follow [go] or [shogi]. Flags and the file of --config take precedence.
"""

COMMENT = """\
# Options of yomi that all commands read. Flags and the file of --config take precedence.
# Remove a "#" to set an option. All keys: yomi help options.
"""
# Options in a new file: options for all games, then the options of each table
PROPOSED = {
    "": ("seconds", "visits", "memory", "workers", "device", "ponder", "log_file"),
    "go": ("net", "rules", "komi", "size"),
    "shogi": ("net", "book_file", "entering_king"),
}


def _add_config(parser: argparse.ArgumentParser) -> None:
    action = add_actions(parser, "config")
    action("init", "write a first file")
    action("show", "print the options that the file sets")


def _run_config(args: argparse.Namespace) -> int:
    path = user_config()
    if path is None:
        raise CliError("this user has no home folder: set HOME or XDG_CONFIG_HOME")
    if args.action == "init":
        _init(path)
    else:
        echo(_show(path))
    return 0


def _init(path: Path) -> None:
    if os.path.lexists(path):
        raise CliError(f"{path} exists: edit it, or remove it first")
    with reraised(OSError, CliError, f"cannot write {path}: "):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _template().encode())
    echo(f"wrote {path}: remove a # in it to set an option")


def _template() -> str:
    parts = [COMMENT]
    for table, names in PROPOSED.items():
        lines = [f"[{table}]"] if table else []
        for row in (TABLE[name] for name in names):
            lines.append(f"# {_assignment(row, row.default_for(table))}    # {row.help.partition(';')[0]}")
        parts.append("".join(f"{line}\n" for line in lines))
    return "\n".join(parts)


def _assignment(row: Setting, value: Value) -> str:
    text = row.format(value)
    is_bare = row.kind in ("int", "real", "flag") and value is not None
    return f"{row.name} = {text if is_bare else json.dumps(text, ensure_ascii=False)}"


def _show(path: Path) -> str:
    with reraised(OSError, CliError, f"cannot read {path}: "):
        if not path.exists():
            return f"# {path}: no such file; yomi config init writes one"
        tables = read_tables(path, GAMES)
    lines = [f"# {path}"]
    for table, values in tables.items():
        lines += ["", f"[{table}]"] if table and values else []
        for name, value in values.items():
            default = TABLE[name].format(TABLE[name].default_for(table))
            lines.append(f"{_assignment(TABLE[name], value)}    # default: {default}")
    return "\n".join(lines if any(tables.values()) else [*lines, "# sets no option"])


# -- completion -----------------------------------------------------------------------------------------------------

SHELLS = ("bash", "zsh", "fish")
COMPLETION_EPILOG = """\
examples:
  yomi completion bash > ~/.local/share/bash-completion/completions/yomi
  yomi completion zsh > ~/.zfunc/_yomi      with fpath+=~/.zfunc before compinit in ~/.zshrc
  yomi completion fish > ~/.config/fish/completions/yomi.fish

Open a new shell afterwards. Write the script again after an update of yomi.
"""
FILES, FOLDERS = ("FILE", "FILE|FOLDER", "NET", "PATH", "MOVES", "VALUES"), ("FOLDER", "DATA")


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="write the script for this shell")


def _run_completion(args: argparse.Namespace) -> int:
    from yomi.engine.cli.main import build

    require_package("shtab", "completion")
    shtab = importlib.import_module("shtab")
    if args.shell not in shtab.SUPPORTED_SHELLS:
        update = pip_command("install", "--upgrade", "shtab")
        raise CliError(f"shtab {shtab.__version__} cannot complete {args.shell}: {update}")
    parser = build((), with_all=True)
    for action in _actions(parser):
        if action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab looks for it
        elif action.metavar in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif isinstance(action.metavar, str) and action.metavar.startswith("{"):  # a choice of the table of options
            action.choices = action.metavar[1:-1].split(",")
    print(shtab.complete(parser, shell=args.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                yield from _actions(child)


SETUP = Command("yomi setup [go | shogi | all] [--clean [all]]", SETUP_EPILOG, _add_setup, _run_setup)
CONFIG = Command("yomi config init | show", CONFIG_EPILOG, _add_config, _run_config)
COMPLETION = Command("yomi completion bash | zsh | fish", COMPLETION_EPILOG, _add_completion, _run_completion)
