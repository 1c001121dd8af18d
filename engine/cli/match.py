"""`yomi match`: games between engines of any kind, with ratings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.errors import CliError
from engine.cli.games import GAMES
from engine.matches.limits import COUNTS, TIMES, LimitError, Limits, limits_of
from engine.matches.players import PlayerError, PlayerSpec, parse_player, with_own_names
from engine.matches.results import MatchError
from engine.matches.schedule import FORMS, pairs_of, schedule

if TYPE_CHECKING:
    from engine.matches.runner import Host

USAGE = "yomi match PLAYER PLAYER [PLAYER ...] [options]"
EPILOG = """\
A PLAYER is `yomi`, `yomi:OPTION=VALUE,...` (options of docs/OPTIONS.md), or the command line of any GTP engine (Go) or
USI engine (shogi). Settings of a player follow after ` ;; `: a name, limits of its own, option.NAME=VALUE (USI),
init=COMMAND (GTP), folder=FOLDER, env.NAME=VALUE, evaluations=false.

examples:
  yomi match "yomi:net=b6c96.bin.gz" "gnugo --mode gtp --level 10" --size 9 --komi 7 --games 100 --seconds 1
  yomi match "yomi:net=a.bin.gz ;; name=a visits=400" "yomi:net=b.bin.gz ;; name=b visits=200" --cpus 0,1
  yomi match yomi "fairy-stockfish ;; option.USI_Variant=shogi" --game shogi --main 60 --byoyomi 1

Games go on at the same time with --parallel, or with --cpus on processors of their own; engines do not ponder. Each
game is written as it ends, and a match that was interrupted goes on when the same command is given again.
"""

LIMIT_HELP = {
    "main": ("S", "main time of a game"),
    "byoyomi": ("S", "time of a byo-yomi period"),
    "periods": ("N", "Go: byo-yomi periods (1)"),
    "stones": ("N", "Go: stones to play in a period: Canadian overtime"),
    "increment": ("S", "time added for each move"),
    "seconds": ("S", "time of a move, which the engines are told and which is never forfeited"),
    "playouts": ("N", "playouts of a move (Go)"),
    "visits": ("N", "visits of a move (Go)"),
    "nodes": ("N", "nodes of a move (shogi)"),
    "depth": ("N", "depth of the search (shogi)"),
}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("players", nargs="*", metavar="PLAYER", help="yomi, or a command line; see below")
    parser.add_argument("--game", choices=GAMES, default="go", help="the game (go)")
    parser.add_argument("--games", type=_count, default=2, metavar="N", help="games of each pair of players (2)")
    parser.add_argument("--form", choices=FORMS, default=FORMS[0], help="gauntlet: the first against all others")
    parser.add_argument("--out", type=Path, default=Path("match"), metavar="FOLDER", help="records and journal (match)")
    limits = parser.add_argument_group("limits of all players that have none of their own")
    for name in (*TIMES[:2], *COUNTS[:2], *TIMES[2:], *COUNTS[2:]):
        metavar, text = LIMIT_HELP[name]
        limits.add_argument(f"--{name}", metavar=metavar, help=text)
    limits.add_argument(
        "--margin", type=_seconds, default=0.0, metavar="S", help="time over the clock that is forgiven"
    )
    limits.add_argument(
        "--timeout", type=_seconds, metavar="S", help="silence beyond its time that loses (60; without any time 600)"
    )
    running = parser.add_argument_group("running")
    running.add_argument("--parallel", type=_count, metavar="N", help="games at the same time (one for each of --cpus)")
    running.add_argument(
        "--cpus", type=_cpus, default=[], metavar="LIST", help="processors of each game: 0,1 (one each) or 0-1,2-3"
    )
    running.add_argument("--restart", action="store_true", help="start the engines anew for every game")
    go = parser.add_argument_group("Go")
    go.add_argument("--size", type=int, default=19, metavar="N", help="board size (19)")
    go.add_argument("--komi", type=float, metavar="K", help="komi (that of the rules)")
    go.add_argument("--rules", default="tromp-taylor", metavar="RULES", help="as in yomi gtp (tromp-taylor)")
    go.add_argument(
        "--scorer", metavar="WHAT", help="area (all stones alive), ownership (by rollouts), or a GTP engine's command"
        " line (area for tromp-taylor and other rules without agreement, else ownership)"
    )  # fmt: skip
    both = parser.add_argument_group("ending games")
    both.add_argument("--max-moves", type=int, default=0, metavar="N", help="score (Go) or draw after N moves")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, found {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1e7:
        raise argparse.ArgumentTypeError(f"expected seconds, found {text!r}")
    return value


def _cpus(text: str) -> list[frozenset[int]]:
    groups = []
    for group in text.split(","):
        first, dash, last = group.partition("-")
        if not (first.isdecimal() and (last.isdecimal() if dash else True)):
            raise argparse.ArgumentTypeError(f"expected processors such as 0,1 or 0-1,2-3, found {text!r}")
        groups.append(frozenset(range(int(first), int(last or first) + 1)))
    return groups


def run(args: argparse.Namespace) -> int:
    """Play the match and print its table."""
    from engine.matches.journal import Journal
    from engine.matches.runner import Plan, Runner

    try:
        players = with_own_names([parse_player(text, args.game) for text in args.players])
        limits = limits_of({n: v for n in (*TIMES, *COUNTS) if (v := getattr(args, n)) is not None})
        pairs = pairs_of(len(players), args.form)
        for player in players:
            player.limits.over(limits)
    except (PlayerError, LimitError, ValueError) as error:
        raise CliError(str(error)) from None
    openings = [""]
    parallel = args.parallel or len(args.cpus) or 1
    if args.cpus and parallel > len(args.cpus):
        raise CliError(f"--parallel {parallel} with {len(args.cpus)} groups of --cpus: expected one for each game")
    timeout = args.timeout or (60.0 if _is_timed(players, limits) else 600.0)
    make_host, described = _host(args, timeout)
    plan = Plan(
        players, limits, list(schedule(pairs, args.games, len(openings))), openings, make_host, args.out,
        parallel, args.cpus, args.restart,
    )  # fmt: skip
    description = {
        "game": args.game,
        "players": [
            {"name": p.name, "command": list(p.command), "limits": str(p.limits.over(limits))} for p in players
        ],
        "form": args.form,
        "openings": openings,
        **described,
    }
    try:
        with Journal(args.out, description) as journal:
            total = len(plan.pairings)

            def show(result: object) -> bool:
                r = journal.results[-1]
                print(
                    f"{len(journal.results)}/{total} game {r.number + 1} {r.black} - {r.white}:"
                    f" {('draw', 'Black', 'White')[r.winner]} by {r.ending} {r.detail}",
                    file=sys.stderr,
                    flush=True,
                )
                return False

            Runner(plan, journal, show).run()
            results = list(journal.results)
    except MatchError as error:
        raise CliError(str(error)) from None
    for player in players:
        mine = [r for r in results if player.name in (r.black, r.white)]
        points = sum(r.score if r.black == player.name else 1 - r.score for r in mine)
        print(f"{player.name}: {points:g} of {len(mine)}")
    return 0


def _is_timed(players: Sequence[PlayerSpec], limits: Limits) -> bool:
    every = [player.limits.over(limits) for player in players]
    return all(each.has_clock or each.seconds is not None for each in every)


def _host(args: argparse.Namespace, timeout: float) -> tuple[Callable[[], Host], Mapping[str, object]]:
    """Return what makes the hosts of a game, and how the journal describes it."""
    from engine.games.go.rules import Rules, RulesError
    from engine.matches.go_games import AREA, OWNERSHIP, GoHost, GoSettings
    from native.warmup import compile_all

    compile_all("go", lambda line: print(f"yomi: {line}", file=sys.stderr, flush=True))
    try:
        rules = Rules.parse(args.rules)
    except RulesError as error:
        raise CliError(f"--rules: {error}") from None
    settings = GoSettings(
        size=args.size,
        komi=rules.komi if args.komi is None else args.komi,
        rules=rules,
        scorer=args.scorer or (AREA if rules.scoring == "AREA" and not rules.friendly_pass_ok else OWNERSHIP),
        max_moves=args.max_moves,
        margin=args.margin,
        timeout=timeout,
    )
    described = {"size": settings.size, "komi": settings.komi, "rules": str(rules), "scorer": settings.scorer}
    return lambda: GoHost(settings), described
