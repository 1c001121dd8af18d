"""`yomi analysis`: serve KaTrain and other clients of KataGo's analysis engine."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from yomi.engine.arguments import add_old_names
from yomi.engine.cli import logs
from yomi.engine.cli.errors import CliError
from yomi.engine.cli.flags import add_options, check_limited, collect, visits_without_limit
from yomi.engine.cli.make import loading_errors, prepare
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.options import ANALYSIS_DEFAULTS, NOT_FOR_ANALYSIS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from yomi.engine.go.analysis.overrides import Settings
    from yomi.engine.go.players.analysis import Analyst
    from yomi.engine.options import Options

USAGE = "yomi analysis [options]"
EPILOG = """\
examples:
  yomi analysis --net b18.bin.gz
  yomi analysis --net b18.bin.gz --visits 1000 --perspective side-to-move < queries.jsonl > answers.jsonl

In KaTrain enter such a line under General Settings as the override for the engine's command: on Linux and macOS with
exec before it, or KaTrain hangs when it restarts the engine (exec /path/to/yomi analysis). KataGo's spellings
-model, -override-config, -analysis-threads and -quit-without-waiting are understood too, as clients add them. A query
without maxVisits gets 500 visits unless --visits, --playouts or --seconds say otherwise. docs/ANALYSIS.md tells what is
answered and how.
"""

DEFAULT_VISITS = 500
MAX_THREADS = 256
PERSPECTIVES = {"black": "BLACK", "white": "WHITE", "side-to-move": "SIDETOMOVE"}
IGNORED = frozenset({"homeDataDir", "logDir", "logFile", "logToStderr", "logAllRequests", "logAllResponses"})
"""Keys of -override-config that clients set and that change no analysis."""


def add(parser: argparse.ArgumentParser) -> None:
    text = "positions that are searched at the same time (default: 1 on a processor, 4 on a GPU)"
    at_once = parser.add_argument("--at-once", type=int, metavar="N", help=text)
    add_old_names(parser, at_once, "--threads", "-analysis-threads")  # the last is KataGo's
    parser.add_argument(
        "--perspective",
        choices=list(PERSPECTIVES),
        default="black",
        help="whose point of view the values are where a query does not say (default: black)",
    )
    parser.add_argument(
        "--quit-without-waiting",
        "-quit-without-waiting",
        action="store_true",
        help="leave at the end of input although queries are open",
    )
    parser.add_argument(
        "--override-config",
        "-override-config",
        default="",
        metavar="KEY=VALUE,...",
        help="settings by KataGo's names, as in overrideSettings",
    )
    parser.add_argument("-model", dest="net", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    defaults = {"visits": DEFAULT_VISITS, **ANALYSIS_DEFAULTS}
    add_options(parser, GO, leave_out=(*NOT_FOR_ANALYSIS, "komi"), defaults=defaults)


def run(args: argparse.Namespace) -> int:
    from yomi.engine.go.analysis.serve import serve
    from yomi.engine.protocols.process import LoadError

    options = collect(args, GO, **ANALYSIS_DEFAULTS, **visits_without_limit(args, DEFAULT_VISITS, GO))
    logs.set_up(options)
    pairs = {"reportAnalysisWinratesAs": PERSPECTIVES[args.perspective], **read_pairs(args.override_config)}
    count = take_threads(pairs, options, args.at_once)
    settings = override_settings(options, pairs)
    check_limited(settings.options, GO)

    def make() -> Sequence[Analyst]:
        from yomi.engine.go.players import analyst

        try:
            with loading_errors():
                prepare(GO, settings.options)
                return analyst.make_analysts(settings.options, count)
        except CliError as error:
            raise LoadError(str(error)) from error

    return serve(settings, make, quit_without_waiting=args.quit_without_waiting)


def read_pairs(text: str) -> dict[str, str]:
    """Read `KEY=VALUE,KEY=VALUE`."""
    pairs = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, sign, value = part.partition("=")
        if not sign or not key.strip():
            raise CliError(f"--override-config {part}: expected KEY=VALUE")
        pairs[key.strip()] = value.strip()
    return pairs


def take_threads(pairs: dict[str, str], options: Options, count: int | None) -> int | None:
    """Remove KataGo's numbers of threads from `pairs`, and return the positions to search at the same time.

    `numSearchThreads` sets the option workers. `count` is the value of --at-once, which has precedence.
    """
    for key in ("numSearchThreads", "numSearchThreadsPerAnalysisThread"):
        if key in pairs:
            options.set("workers", _at_least_one(key, pairs.pop(key)))
    if "numAnalysisThreads" in pairs:
        threads = _at_least_one("numAnalysisThreads", pairs.pop("numAnalysisThreads"))
        count = threads if count is None else count
    return None if count is None else _at_least_one("--at-once", str(count))


def _at_least_one(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_THREADS):
        raise CliError(f"{name} {text}: expected a number from 1 to {MAX_THREADS}")
    return int(text[:9])


def override_settings(options: Options, pairs: Mapping[str, str]) -> Settings:
    """Return the settings that queries begin with. Unknown keys are reported on stderr."""
    from yomi.engine.go.analysis.fields import FieldError
    from yomi.engine.go.analysis.overrides import Settings, override

    try:
        settings, unknown = override(Settings(options), pairs)
    except FieldError as error:
        raise CliError(f"--override-config: {error}") from None
    for key in sorted(set(unknown) - IGNORED):
        print(f"yomi: warning: --override-config {key}: no such setting", file=sys.stderr)
    return settings
