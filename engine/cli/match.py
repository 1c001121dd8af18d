"""`yomi match`: games between engines of any kind, with ratings."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli import logs
from engine.cli.errors import CliError
from engine.cli.games import GAMES
from engine.cli.match_openings import POLICY, make_openings
from engine.cli.match_settings import add_settings, merge, read_file
from engine.cli.rate import add_output, show
from engine.cli.report import plot_check
from engine.cli.signals import ended_by_a_signal
from engine.clients.limits import COUNTS, TIMES, EngineLimits, SpecError
from engine.clients.spec import (
    PROTOCOLS,
    EngineSpec,
    command_of,
    detect_protocol,
    is_yomi,
    spec_of,
    table_of,
    with_own_names,
)
from engine.matches.results import MatchError
from engine.matches.schedule import openings_before, pairs_of, schedule

if TYPE_CHECKING:
    from engine.clients.client import OnStart
    from engine.matches.results import GameResult
    from engine.matches.runner import Host
    from engine.matches.sprt import Sprt

USAGE = "yomi match PLAYER PLAYER [PLAYER ...] [options]"
EPILOG = """\
A PLAYER is `yomi`, `yomi:OPTION=VALUE,...` (options of docs/OPTIONS.md), or the command line of any GTP engine (Go) or
USI engine (shogi). Settings of a player follow after ` ;; `: name=NAME, limits of its own (seconds=1, visits=400),
option.NAME=VALUE (USI), init=COMMAND (GTP, once), folder=FOLDER, env.NAME=VALUE, evaluations=false.

examples:
  yomi match "yomi:net=b6c96.bin.gz" "gnugo --mode gtp --level 10" --size 9 --komi 7 --games 100 --seconds 1
  yomi match "yomi:net=a.bin.gz ;; name=a visits=400" "yomi:net=b.bin.gz ;; name=b visits=200" --cpus 0,1
  yomi match yomi fairy-stockfish --games 20 --main 60 --byoyomi 1 --openings balanced.sfen
  yomi match ./new ./old --sprt 0,20 --games 10000 --openings policy      (new, old: scripts that start an engine)
  yomi match --config match.toml

In a TOML file stand the same settings (`seconds = 1`, `opening_moves = 8`) and tables [[players]] with engine, name,
the limits, options, init, folder, env. Games go on at the same time with --parallel, or with --cpus on processors of
their own; engines do not ponder. Each game is written as it ends, and an interrupted match goes on when the same
command is given again. `yomi rate FOLDER` prints the tables at any time.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("players", nargs="*", metavar="PLAYER", help="yomi, or a command line; see below")
    parser.add_argument("--config", type=Path, metavar="FILE", help="read settings and players from a TOML file")
    add_settings(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Play the match and print its tables."""
    if args.plot is not None:
        plot_check(args.plot)
    from_file, tables = read_file(args.config)
    settings = merge(args, from_file)
    try:
        results = _play(settings, [*map(table_of, args.players), *tables])
    except (SpecError, MatchError) as error:
        raise CliError(str(error)) from None
    if results:
        show(args, results)
    return 0


def _play(settings: argparse.Namespace, tables: Sequence[Mapping[str, Any]]) -> list[GameResult]:
    """Play what is left of the match and return all games of it.

    Raises:
        SpecError, MatchError: the match cannot be played.
    """
    game = settings.game or _find_game(tables)
    limits = EngineLimits(**{name: getattr(settings, name) for name in (*TIMES, *COUNTS)})
    named = with_own_names([spec_of(table, game) for table in tables])
    players = [replace(player, limits=player.limits.over(limits)) for player in named]
    try:
        pairs = pairs_of(len(players), settings.form)
    except ValueError as error:
        raise CliError(str(error)) from None
    test = _sprt(settings, len(players))
    if settings.timeout is None:
        have_time = all(player.limits.has_clock or player.limits.seconds is not None for player in players)
        settings.timeout = 60.0 if have_time else 600.0
    make_host, described = _host(settings, game)
    source = _source(settings)
    description = {
        "game": game,
        "players": [_described(player) for player in players],
        "form": settings.form,
        "margin": settings.margin,
        "resign": [settings.resign_below, settings.resign_moves],
        "opening_source": source,
        **described,
    }

    from engine.cli.match_progress import Progress
    from engine.matches.journal import Journal
    from engine.matches.runner import Plan, Runner

    parallel = settings.parallel or len(settings.cpus) or 1
    if settings.cpus and parallel > len(settings.cpus):
        raise CliError(f"--parallel {parallel} with {len(settings.cpus)} of --cpus: expected no more games than those")
    _check_cpus(settings.cpus)
    with Journal(
        settings.out,
        description,
        lambda: {"openings": make_openings(settings, game)},
        lambda found: _as_described_now(found, source),
    ) as journal:
        openings = journal.kept["openings"]
        last = max((result.number for result in journal.results), default=0)
        if openings_before(last, len(pairs)) < len(openings):  # else they come again, and more would shift them
            openings = make_openings(settings, game, openings)
        if openings != journal.kept["openings"]:
            journal.keep({"openings": openings})
        pairings = list(schedule(pairs, settings.games, len(openings)))
        plan = Plan(players, pairings, openings, make_host, settings.out, parallel, settings.cpus, settings.restart)
        with Progress(journal, [player.name for player in players], len(pairings), test) as progress:
            if not progress.is_decided:
                with ended_by_a_signal():
                    Runner(plan, journal, progress.show).run()
        return sorted(journal.results, key=lambda result: result.number)


def _check_cpus(groups: Sequence[frozenset[int]]) -> None:
    """Complain of processors that are not there, or of a system on which none can be chosen."""
    if not groups:
        return
    if not hasattr(os, "sched_getaffinity"):
        raise CliError("--cpus: this system cannot tie a program to processors (Linux can)")
    usable = os.sched_getaffinity(0)
    if missing := sorted(frozenset().union(*groups) - usable):
        raise CliError(f"--cpus: no processor {missing[0]} here, expected some of {','.join(map(str, sorted(usable)))}")


def _source(settings: argparse.Namespace) -> list[object]:
    """Return where the openings come from."""
    source = [settings.openings, settings.opening_moves, settings.opening_seed]
    return [*source, settings.opening_net and str(settings.opening_net)] if settings.openings == POLICY else source


def _as_described_now(found: Mapping[str, Any], source: Sequence[object]) -> Mapping[str, Any]:
    """Return the description of a journal with its openings' source in today's form.

    Older journals lack the network of openings drawn by policy, or have one that was given and not used.

    Args:
        found: in the journal.
        source: of the openings of the match that is to go on.
    """
    old = found.get("opening_source") or source
    return {**found, "opening_source": [*old, *source[len(old) :]][: len(source)]}


def _described(player: EngineSpec) -> dict[str, object]:
    """Return what makes a player the same one when a match goes on; older journals lack what is told last."""
    described: dict[str, object] = {
        "name": player.name,
        "command": list(player.command),
        "limits": str(player.limits),
        "options": dict(player.options),
        "init": list(player.commands),
    }
    if player.folder is not None:
        described["folder"] = player.folder
    if player.environment:
        described["env"] = {name: _digest(value) for name, value in player.environment.items()}
    if not player.evaluations:
        described["evaluations"] = False
    return described


def _digest(value: str) -> str:
    """Return what tells a value from others without giving it away: a journal may be shown to others."""
    return sha256(value.encode()).hexdigest()[:16]


def _find_game(tables: Sequence[Mapping[str, Any]]) -> str:
    """Return the game that the first engine other than yomi plays; Go where there is none."""
    games = {protocol: game for game, protocol in PROTOCOLS.items()}
    other = next((table for table in tables if not is_yomi(command_of(table)[0])), None)
    return "go" if other is None else games[detect_protocol(spec_of(other, "go"))]


def _sprt(settings: argparse.Namespace, players: int) -> Sprt | None:
    from engine.matches.sprt import Sprt

    if settings.sprt is None:
        return None
    if players != 2:
        raise CliError(f"--sprt with {players} players: expected two")
    try:
        return Sprt(*settings.sprt)
    except ValueError as error:
        raise CliError(f"--sprt: {error}") from None


def _host(settings: argparse.Namespace, game: str) -> tuple[Callable[[OnStart], Host], Mapping[str, object]]:
    """Return what makes the hosts of a game, and how the journal describes it."""
    from engine.matches.adjudicate import RefereeSettings

    referee = RefereeSettings(settings.margin, settings.timeout, settings.resign_below, settings.resign_moves)
    GAMES[game].compile(logs.say)
    if game == "shogi":
        from engine.shogi.match_games import MAX_MOVES_DEFAULT, ShogiHost, ShogiSettings

        shogi = ShogiSettings(settings.max_moves or MAX_MOVES_DEFAULT, settings.entering_king, referee)
        described = {"max_moves": shogi.max_moves, "entering_king": shogi.entering_king}
        return lambda on_start: ShogiHost(shogi), described
    from engine.go.game import GoGame, SetupError
    from engine.go.match_games import AREA, OWNERSHIP, GoHost, GoSettings
    from engine.go.referee import MOVES_PER_POINT
    from engine.go.rules import Rules, RulesError

    try:
        rules = Rules.parse(settings.rules)
        komi = rules.komi if settings.komi is None else settings.komi
        GoGame(settings.size, rules, komi)
    except (RulesError, SetupError) as error:
        raise CliError(str(error)) from None
    scorer = settings.scorer or (OWNERSHIP if rules.has_agreement else AREA)
    max_moves = settings.max_moves or MOVES_PER_POINT * settings.size**2
    go = GoSettings(settings.size, komi, rules, scorer, max_moves, referee)
    return lambda on_start: GoHost(go, on_start), {
        "size": go.size, "komi": go.komi, "rules": str(rules), "scorer": scorer, "max_moves": max_moves
    }  # fmt: skip
