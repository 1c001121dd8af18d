"""`yomi match`: games between engines of any kind, with ratings."""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from yomi.engine.cli import logs
from yomi.engine.cli.errors import CliError
from yomi.engine.cli.games import GAMES, game_of_network, split_game
from yomi.engine.cli.match_settings import add_settings, merge, read_file
from yomi.engine.cli.rate import add_output, show
from yomi.engine.cli.report import plot_check
from yomi.engine.cli.signals import ended_by_a_signal
from yomi.engine.clients.limits import COUNTS, TIMES, EngineLimits, SpecError
from yomi.engine.clients.spec import (
    EngineSpec,
    command_of,
    detect_protocol,
    is_yomi,
    spec_of,
    table_of,
    with_own_names,
)
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.matches.results import GameResult, MatchError
from yomi.engine.matches.schedule import draw_openings, load_openings, openings_before, pairs_of, schedule, shuffled
from yomi.engine.options import Options
from yomi.engine.records import LeftOut, printable

if TYPE_CHECKING:
    from yomi.engine.game import Game, Say
    from yomi.engine.matches.journal import Journal
    from yomi.engine.matches.sprt import Sprt

USAGE = "yomi match [GAME] PLAYER PLAYER [PLAYER ...] [options]"
EPILOG = """\
GAME is go or shogi. Without it the first engine other than yomi decides by its protocol, or else a network.
A PLAYER is `yomi`, `yomi:OPTION=VALUE,...` (options of docs/OPTIONS.md), or the command line of any GTP engine (Go) or
USI engine (shogi). Settings of a player follow after ` ;; `: name=NAME, limits of its own (seconds=1, visits=400),
option.NAME=VALUE (USI), init=COMMAND (GTP, once), folder=FOLDER, env.NAME=VALUE, evaluations=false.

examples:
  yomi match "yomi:net=b6c96.bin.gz" "gnugo --mode gtp --level 10" --size 9 --komi 7 --games 100 --seconds 1
  yomi match "yomi:net=a.bin.gz ;; name=a visits=400" "yomi:net=b.bin.gz ;; name=b visits=200" --cpus 0,1
  yomi match shogi yomi fairy-stockfish --games 20 --main 60 --byoyomi 1 --openings balanced.sfen
  yomi match ./new ./old --sprt 0,20 --games 10000 --openings policy      (new, old: scripts that start an engine)
  yomi match --config match.toml

In a TOML file stand the same settings (`seconds = 1`, `opening_moves = 8`) and tables [[players]] with engine, name,
the limits, options, init, folder, env. Games go on at the same time with --at-once, or with --cpus on processors of
their own; engines do not ponder. Each game is written as it ends, and an interrupted match goes on when the same
command is given again. `yomi rate FOLDER` prints the tables at any time.
"""

POLICY = "policy"
POLICY_MOVES = 8
POLICY_VISITS = 32
"""Of the search before each move, which is drawn with its visits as chances: they follow the policy, but for moves that
the next one refutes."""

INTERVAL = 1.0
"""Seconds between two tables."""
SHARE = 200
"""The time between two tables is at least this many times the time that one takes; with 10,000 games that is 0.2 s."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    text = "yomi, yomi:OPTION=VALUE,..., or an engine's command line; before the players: go or shogi"
    parser.add_argument("players", nargs="*", metavar="PLAYER", help=text)
    parser.add_argument("--config", type=Path, metavar="FILE", help="read settings and players from a TOML file")
    add_settings(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Play the match and print its tables."""
    if args.plot is not None:
        plot_check(args.plot)
    from_file, tables = read_file(args.config)
    args.game, words = split_game(args.players, args.game)
    settings = merge(args, from_file)
    try:
        results = play_match(settings, [*map(table_of, words), *tables])
    except (SpecError, MatchError) as error:
        raise CliError(str(error)) from None
    if results:
        show(args, results)
    return 0


def play_match(
    settings: argparse.Namespace,
    tables: Sequence[Mapping[str, Any]],
    say: Say | None = None,
    signals: Callable[[], AbstractContextManager[None]] = ended_by_a_signal,
) -> list[GameResult]:
    """Play what is left of the match and return all games of it.

    Args:
        settings: of the match.
        tables: the players.
        say: receives lines of progress; None: the terminal shows them, with a table.
        signals: a context in which the games are played.

    Raises:
        SpecError, MatchError: the match cannot be played.
    """
    game = GAMES[settings.game] if settings.game else _find_game(tables)
    limits = EngineLimits(**{name: getattr(settings, name) for name in (*TIMES, *COUNTS)})
    named = with_own_names([spec_of(table, game.name, game.protocol) for table in tables])
    players = [replace(player, limits=player.limits.over(limits)) for player in named]
    try:
        pairs = pairs_of(len(players), settings.form)
    except ValueError as error:
        raise CliError(str(error)) from None
    test = _sprt(settings, len(players))
    if settings.timeout is None:
        have_time = all(player.limits.has_clock or player.limits.seconds is not None for player in players)
        settings.timeout = 60.0 if have_time else 600.0
    rules = _rules(settings, game, say)
    source = _source(settings)
    description = {
        "game": game.name,
        "players": [_described(player) for player in players],
        "form": settings.form,
        "margin": settings.margin,
        "resign": [settings.resign_below, settings.resign_moves],
        "opening_source": source,
        **rules,
    }

    from yomi.engine.matches.games import Host, RefereeSettings
    from yomi.engine.matches.journal import Journal
    from yomi.engine.matches.runner import Plan, Runner

    at_once = settings.at_once or len(settings.cpus) or 1
    if settings.cpus and at_once > len(settings.cpus):
        raise CliError(f"--at-once {at_once} with {len(settings.cpus)} of --cpus: expected no more games than those")
    _check_cpus(settings.cpus)
    referee = RefereeSettings(settings.margin, settings.timeout, settings.resign_below, settings.resign_moves)
    with Journal(
        settings.out,
        description,
        lambda: {"openings": make_openings(settings, game, rules, say=say or logs.say)},
        lambda found: _as_described_now(found, source),
    ) as journal:
        openings = journal.kept["openings"]
        last = max((result.number for result in journal.results), default=0)
        if openings_before(last, len(pairs)) < len(openings):  # else they come again, and more would shift them
            openings = make_openings(settings, game, rules, openings, say or logs.say)
        if openings != journal.kept["openings"]:
            journal.keep({"openings": openings})
        pairings = list(schedule(pairs, settings.games, len(openings)))
        host = functools.partial(Host, game.matches(), rules, referee)
        plan = Plan(players, pairings, openings, host, settings.out, at_once, settings.cpus, settings.restart)
        with _Progress(journal, [player.name for player in players], len(pairings), test, say) as progress:
            if not progress.is_decided:
                with signals():
                    Runner(plan, journal, progress.show).run()
        return sorted(journal.results, key=lambda result: result.number)


def _options(game: Game[Any, Any], settings: argparse.Namespace, *names: str) -> Options:
    """Return the options of a game, of which those of some names may be set for the match.

    Raises:
        OptionError: a value that the option cannot have.
    """
    options = Options.for_game(game.name)
    for name in names:
        if (value := getattr(settings, name)) is not None:
            options.set(name, value)
    return options


def make_openings(
    settings: argparse.Namespace,
    game: Game[Any, Any],
    rules: Mapping[str, Any],
    known: Sequence[str] = (),
    say: Say = logs.say,
) -> list[str]:
    """Return the openings that the settings want; a single empty one where they want none.

    Args:
        settings: of the match.
        game: that is played.
        rules: those of the match.
        known: those that the match has already; they stay, and more are drawn where its games have become more. Where
            there are not enough, those that are found are returned.
        say: receives lines of progress.

    Raises:
        MatchError: a file cannot be read, or there are too few.
        CliError: the engine that makes them cannot be made.
    """
    wanted = (settings.games + 1) // 2
    if known and (settings.openings != POLICY or len(known) >= wanted):
        return list(known)
    if settings.openings is None:
        return [""]
    if settings.openings != POLICY:
        found = load_openings(Path(settings.openings), settings.opening_moves, game.matches(), rules, LeftOut(say))
        return shuffled(found, settings.opening_seed)
    moves = settings.opening_moves or POLICY_MOVES
    options = _options(game, settings, "size")
    values = {
        "visits": POLICY_VISITS, "temperature": 1.0, "temperature_moves": moves, "resign": False, "workers": 1,
        "seed": settings.opening_seed, "net": settings.opening_net and str(settings.opening_net),
        "evaluator": "auto" if settings.opening_net else game.plain_evaluator,
    }  # fmt: skip
    for name, value in values.items():
        options.set(name, value)
    found = _policy_openings(game, options, moves, wanted, known, say)
    if len(found) < wanted:
        say(f"--openings policy: only {len(found)} different ones of {moves} moves are found; they come again")
    return found


def _policy_openings(
    game: Game[Any, Any], options: Options, moves: int, wanted: int, known: Sequence[str], say: Say
) -> list[str]:
    from yomi.engine.cli.make import loading_errors, make_player
    from yomi.engine.play import FirstMoves, PlayerSide, play_game

    with loading_errors():
        player = make_player(game, options, say)
    side = PlayerSide(player)

    def draw() -> str:
        opening = game.new_game(options)
        player.new_game(opening)
        play_game(opening, {BLACK: side, WHITE: side}, FirstMoves(moves))
        return game.format_opening(opening)

    try:
        return draw_openings(draw, wanted, known)
    finally:
        player.close()


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


def _find_game(tables: Sequence[Mapping[str, Any]]) -> Game[Any, Any]:
    """Return the game of the first engine other than yomi, by its protocol, or else that of the first network.

    Without either it is the first game.
    """
    first = next(iter(GAMES.values()))
    other = next((table for table in tables if not is_yomi(command_of(table)[0])), None)
    if other is None:
        options = (option for table in tables for option in command_of(table)[0].partition(":")[2].split(","))
        networks = (option.removeprefix("net=") for option in options if option.startswith("net="))
        name = next(filter(None, map(game_of_network, networks)), first.name)
        return GAMES[name]
    protocol = detect_protocol(spec_of(other, first.name, first.protocol))
    return next(game for game in GAMES.values() if game.protocol == protocol)


def _sprt(settings: argparse.Namespace, players: int) -> Sprt | None:
    from yomi.engine.matches.sprt import Sprt

    if settings.sprt is None:
        return None
    if players != 2:
        raise CliError(f"--sprt with {players} players: expected two")
    try:
        return Sprt(*settings.sprt)
    except ValueError as error:
        raise CliError(f"--sprt: {error}") from None


def _rules(settings: argparse.Namespace, game: Game[Any, Any], say: Say | None) -> dict[str, Any]:
    """Return the rules of the match, as the journal keeps them."""
    game.compile(say or logs.say)
    try:
        options = _options(game, settings, "size", "komi", "rules", "entering_king")
        return game.matches().rules(options, settings.scorer, settings.max_moves)
    except ValueError as error:
        raise CliError(str(error)) from None


class _Progress:
    """What is shown while a match runs: a line for each game, and on a terminal the table below them."""

    def __init__(
        self, journal: Journal, players: Sequence[str], total: int, test: Sprt | None, say: Say | None = None
    ) -> None:
        """Prepare it.

        Args:
            journal: holds the games.
            players: names.
            total: games of the whole match.
            test: that ends the match, or None.
            say: receives the lines; None: the terminal shows them.
        """
        self._say = say
        self.journal, self.players, self.total, self.test = journal, players, total, test
        self._height = 0
        """Lines of the table that stands on the terminal."""
        self._due = 0.0

    @property
    def is_decided(self) -> bool:
        """Whether the test has ended the match."""
        return self.test is not None and self.test.verdict(self._pairs()) != ""

    def show(self, result: GameResult) -> bool:
        """Show a game that has ended, and return whether the match has."""
        self._erase()
        done = len(self.journal.results)
        winner = "drawn" if result.winner == DRAW else f"{(result.black, result.white)[result.winner - 1]} wins"
        faulty = f" [fault of {result.blamed}]" if result.blamed else ""
        text = f"{done}/{self.total}  game {result.number + 1}  {result.black} - {result.white}: {winner}"
        self._write(f"{text}, {result.ending} {result.detail}".rstrip() + faulty)
        if self.test is not None:
            self._write(self.test.line(self._pairs()))
        if self._say is None and sys.stderr.isatty() and time.monotonic() >= self._due:
            begin = time.monotonic()
            self._draw()
            spent = time.monotonic() - begin  # the next games wait meanwhile
            self._due = begin + max(INTERVAL, SHARE * spent)
        return self.is_decided

    def _pairs(self) -> list[int]:
        from yomi.engine.matches.sprt import pair_counts

        return pair_counts(self.journal.results, self.players[0])

    def _draw(self) -> None:
        from yomi.engine.matches.report import report, to_text

        table = to_text(report(self.journal.results)).split("\n\n")[:2]
        width = shutil.get_terminal_size().columns  # a line that is wrapped would be two
        lines = [line[:width] for line in "\n\n".join(table).splitlines()]
        self._write("\n".join(["", *lines]))
        self._height = len(lines) + 1

    def _erase(self) -> None:
        if self._height:
            sys.stderr.write(f"\x1b[{self._height}A\x1b[J")
            self._height = 0

    def _write(self, text: str) -> None:
        if self._say is not None:
            self._say(text)
        else:
            print(printable(text, keep=logs.LINE_ENDS), file=sys.stderr, flush=True)

    def __enter__(self) -> _Progress:
        """Say what was there before."""
        before = len(self.journal.results)
        if before:
            self._write(f"{before} of {self.total} games are in {self.journal.path}; going on")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Take the table away: it comes on stdout."""
        self._erase()
