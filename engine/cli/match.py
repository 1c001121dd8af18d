"""`yomi match`: games between engines of any kind, with ratings. `yomi rate`: ratings of earlier games."""

from __future__ import annotations

import argparse
import functools
import json
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

from yomi.engine.cli.flags import add_cluster, add_settings, asked_cluster
from yomi.engine.cli.games import split_game
from yomi.engine.cli.match_settings import MatchSettings, merge, read_file
from yomi.engine.cli.output import LINE_ENDS, echo, plot_check, say
from yomi.engine.cli.parser import CliError, Command
from yomi.engine.clients.client import detect_protocol
from yomi.engine.clients.spec import (
    COUNTS,
    OWN,
    TIMES,
    YOMI,
    EngineLimits,
    EngineSpec,
    command_of,
    is_own,
    is_yomi,
    networks_of,
    parse_spec_table,
    spec_table,
    with_unique_names,
    without_secrets,
)
from yomi.engine.clusters.jobs import Run, begin_run, folder_of, named_network
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.default_network import named_file
from yomi.engine.matches.parts import SPRT_AND_TASK, UNIT, check_journal, done_pairs, unit_of
from yomi.engine.matches.results import GameResult
from yomi.engine.matches.schedule import draw_openings, load_openings, openings_before, pairs_of, schedule, shuffled
from yomi.engine.options import Options
from yomi.engine.records import LeftOut
from yomi.engine.registry import GAMES, game_of_network
from yomi.engine.signals import ended_by_a_signal
from yomi.errors import printable
from yomi.language import tr
from yomi.nets.files import check_folder

if TYPE_CHECKING:
    from yomi.engine.clusters.actors import ClusterOptions
    from yomi.engine.game import Game, Say
    from yomi.engine.matches.rating import Sprt
    from yomi.engine.matches.results import MatchJournal
    from yomi.engine.matches.runner import MatchPlan

USAGE = "yomi match [GAME] PLAYER PLAYER [PLAYER ...] [options]"
EPILOG = """\
GAME is go or shogi. Without it the protocol of the first engine other than yomi decides, or the first network.
A PLAYER is `yomi`, `yomi:OPTION=VALUE,...` (options of docs/OPTIONS.md), or the command line of any GTP engine (Go) or
USI engine (shogi). Settings of a player follow after ` ;; `: name=NAME, limits (seconds=1, visits=400),
option.NAME=VALUE (USI), init=COMMAND (GTP, once), folder=FOLDER, env.NAME=VALUE, evaluations=false.

examples:
  yomi match "yomi:net=b6c96.bin.gz" "gnugo --mode gtp --level 10" --size 9 --komi 7 --games 100 --seconds 1
  yomi match "yomi:net=a.bin.gz ;; name=a visits=400" "yomi:net=b.bin.gz ;; name=b visits=200" --cpus 0,1
  yomi match shogi yomi fairy-stockfish --games 20 --main 60 --byoyomi 1 --openings balanced.sfen
  yomi match ./new ./old --sprt 0,20 --games 10000 --openings policy      (new, old: scripts that start an engine)
  yomi match --config match.toml

A TOML file contains the same settings (`seconds = 1`, `opening_moves = 8`) and tables [[players]] with engine, name,
limits, options, init, folder, env. --at-once plays several games at the same time, --cpus gives each its processors.
Engines do not ponder. Each game is written when it ends. The same command continues an interrupted match.
`yomi rate FOLDER` prints the tables at any time.
"""

POLICY = "policy"
POLICY_MOVES = 8
# Visits before each opening move, which is drawn in proportion to them. They follow the policy, but avoid moves that
# the next move refutes.
POLICY_VISITS = 32

INTERVAL = 1.0
# The interval is at least this many times the time that a table takes (with 10,000 games a table takes 0.2 s)
SHARE = 200


def add(parser: argparse.ArgumentParser) -> None:
    text = "yomi, yomi:OPTION=VALUE,..., or an engine's command line, after go or shogi"
    parser.add_argument("players", nargs="*", metavar="PLAYER", help=text)
    parser.add_argument("--config", type=Path, metavar="FILE", help="read settings and players from a TOML file")
    add_settings(parser, MatchSettings)
    add_cluster(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    if args.plot is not None:
        plot_check(args.plot)
    from_file, tables = read_file(args.config)
    args.game, words = split_game(args.players, getattr(args, "game", None))
    settings = merge(args, from_file)
    results = play_match(
        settings,
        [*map(spec_table, words), *tables],
        words=[without_secrets(word) for word in args.command_words],
        cluster=asked_cluster(args, settings.at_once),
    )
    if results:
        show(args, results)
    return 0


def play_match(
    settings: MatchSettings,
    tables: Sequence[Mapping[str, Any]],
    report: Say | None = None,
    signals: Callable[[], AbstractContextManager[None]] = ended_by_a_signal,
    words: Sequence[str] = (),
    cluster: ClusterOptions | None = None,
) -> list[GameResult]:
    """Play the remaining games of the match and return all of them.

    Args:
        settings: of the match.
        tables: the players.
        report: receives lines of progress. None: the terminal shows them, with a table.
        signals: a context in which the games are played.
        words: the command line, for the description of the run.
        cluster: plays the games. Each actor plays one at a time.

    Raises:
        SpecError, MatchError, CliError: a setting or a player is wrong.
    """
    from yomi.engine.matches.games import GameRunner, RefereeSettings
    from yomi.engine.matches.rating import Sprt
    from yomi.engine.matches.results import MatchJournal
    from yomi.engine.matches.runner import MatchPlan, MatchRunner

    game = GAMES[settings.game] if settings.game else _find_game(tables)
    players = _players(settings, game, tables)
    _check(settings, players, cluster)
    try:
        pairs = pairs_of(len(players), settings.form)
        test = None if settings.sprt is None else Sprt(*settings.sprt)
        check_folder(Path(settings.out))
        game.compile(report or say)
        rules = game.matches().rules(
            game.fair(_options(game, settings, "size", "komi", "rules", "entering_king")),
            settings.scorer,
            settings.max_moves,
        )
    except ValueError as error:
        raise CliError(str(error)) from None
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
    referee = RefereeSettings(
        settings.margin, _timeout(settings, players), settings.resign_below, settings.resign_moves
    )
    task, folder = settings.task, folder_of(Path(settings.out), settings.task)
    with MatchJournal(
        folder,
        description,
        lambda: {"openings": make_openings(settings, game, rules, say=report or say)},
        lambda found: _as_described_now(found, source),
    ) as journal:
        openings = _all_openings(journal, len(pairs), settings, game, rules, report or say)
        pairings = list(schedule(pairs, settings.games, len(openings)))
        units = unit_of(pairings[-1].number) + 1
        identity, networks = _identity(description, players, settings, game.name)
        begin = Run("match", words, task, units, UNIT, identity, networks)
        if journal.results:
            check_journal(folder, begin, GAMES)
        done = len(done_pairs(journal.results, identity, units))
        begin_run(folder, begin, done, is_new=not journal.results)
        pairings = [pairing for pairing in pairings if task is None or task.has(unit_of(pairing.number))]
        host = functools.partial(GameRunner, game.matches(), rules, referee)
        plan = MatchPlan(players, pairings, openings, host, folder, _at_once(settings), settings.cpus, settings.restart)
        with _Progress(journal, [player.name for player in players], len(pairings), test, report) as progress:
            if not progress.is_decided:
                with signals():
                    if cluster is None:
                        MatchRunner(plan, journal, progress.show).run()
                    else:
                        _play_on_cluster(cluster, game, plan, journal, progress, report or say)
        return sorted(journal.results, key=lambda result: result.number)


def _players(settings: MatchSettings, game: Game[Any, Any], tables: Sequence[Mapping[str, Any]]) -> list[EngineSpec]:
    """Return the players with names of their own. Those without limits get the limits of the settings."""
    limits = EngineLimits(**{name: getattr(settings, name) for name in (*TIMES, *COUNTS)})
    named = with_unique_names([parse_spec_table(table, game.name, game.protocol) for table in tables])
    return [replace(player, limits=player.limits.over(limits)) for player in named]


def _check(settings: MatchSettings, players: Sequence[EngineSpec], cluster: ClusterOptions | None) -> None:
    """Raise CliError if settings contradict each other, or if this machine lacks processors that they name."""
    if settings.sprt is not None and len(players) != 2:
        raise CliError(f"--sprt with {len(players)} players: expected two")
    if settings.sprt is not None and settings.task is not None:
        raise CliError(SPRT_AND_TASK)
    if settings.cpus and cluster is not None:
        raise CliError("--cpus with --cluster: expected --cores-per-process, as each machine has its own processors")
    at_once = _at_once(settings)
    if settings.cpus and at_once > len(settings.cpus):
        raise CliError(f"--at-once {at_once}: expected at most {len(settings.cpus)}, the groups in --cpus")
    _check_cpus(settings.cpus)


def _at_once(settings: MatchSettings) -> int:
    return settings.at_once or len(settings.cpus) or 1


def _timeout(settings: MatchSettings, players: Sequence[EngineSpec]) -> float:
    """Return the seconds beyond its time after which a silent engine counts as hanging."""
    if settings.timeout is not None:
        return settings.timeout
    have_time = all(player.limits.has_clock or player.limits.seconds is not None for player in players)
    return 60.0 if have_time else 600.0


def _all_openings(
    journal: MatchJournal, pairs: int, settings: MatchSettings, game: Game[Any, Any], rules: Mapping[str, Any], say: Say
) -> list[str]:
    """Return the openings of a match of `pairs` pairs of players. Add openings if the match has become longer."""
    openings: list[str] = journal.kept["openings"]
    last = max((result.number for result in journal.results), default=0)
    if openings_before(last, pairs) < len(openings):  # more would shift openings that already came again
        openings = make_openings(settings, game, rules, openings, say)
    if openings != journal.kept["openings"]:
        journal.keep({"openings": openings})
    return openings


def _play_on_cluster(
    cluster: ClusterOptions, game: Game[Any, Any], plan: MatchPlan, journal: MatchJournal, progress: _Progress, say: Say
) -> None:
    from yomi.engine.matches.units import play_on_cluster

    def add(result: GameResult) -> bool:
        journal.add(result)
        return progress.show(result)

    done = {result.number for result in journal.results}
    left = [pairing for pairing in plan.pairings if pairing.number not in done]
    play_on_cluster(cluster, game, replace(plan, pairings=left), add, say, in_order=progress.test is not None)


def _identity(
    description: Mapping[str, Any], players: Sequence[EngineSpec], settings: MatchSettings, game: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return all that decides the games, without the places of files on this machine, and the named networks."""
    networks, described = {}, []
    for player, fields in zip(players, description["players"], strict=True):
        files = networks_of(player)
        for flag, file in files.items():
            networks[f"{player.name} {flag}"] = named_network(named_file(file, game))
        command = ["NET" if word in files.values() else word for word in player.command]
        described.append({**fields, "command": [YOMI, *command[len(OWN) :]] if is_own(player) else command})
    source = list(description["opening_source"])  # the texts of the openings are compared, not their place
    source[0] = None if source[0] is None else Path(str(source[0])).name
    if len(source) > 3 and source[3] is not None:
        networks["openings"] = named_network(named_file(str(source[3]), game))
        source.pop()
    own = {"players": described, "opening_source": source, "games": settings.games}
    return {**description, **own}, networks


def _options(game: Game[Any, Any], settings: MatchSettings, *names: str) -> Options:
    """Return the options of a game with the match settings `names`, as far as they are set. Raises OptionError."""
    options = Options.for_game(game.name)
    for name in names:
        if (value := getattr(settings, name)) is not None:
            options.set(name, value)
    return options


def make_openings(
    settings: MatchSettings,
    game: Game[Any, Any],
    rules: Mapping[str, Any],
    known: Sequence[str] = (),
    say: Say = say,
) -> list[str]:
    """Return the openings of the match, or a single empty opening if none are wanted.

    Openings that the match already has, `known`, stay. More are drawn if the match now has more games.
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
        "seed": settings.opening_seed, "net": settings.opening_net,
        "evaluator": "auto" if settings.opening_net else game.default_evaluator,
    }  # fmt: skip
    for name, value in values.items():
        options.set(name, value)
    found = _policy_openings(game, options, moves, wanted, known, say)
    if len(found) < wanted:
        say(f"--openings policy: found only {len(found)} different openings of {moves} moves; they are repeated")
    return found


def _policy_openings(
    game: Game[Any, Any], options: Options, moves: int, wanted: int, known: Sequence[str], say: Say
) -> list[str]:
    from yomi.engine.play import FirstMoves, play_game

    player = game.load_player(options, say)

    def draw() -> str:
        opening = game.new_game(options)
        player.new_game(opening)
        play_game(opening, {BLACK: player, WHITE: player}, FirstMoves(moves))
        return game.format_opening(opening)

    try:
        return draw_openings(draw, wanted, known)
    finally:
        player.close()


def _check_cpus(groups: Sequence[frozenset[int]]) -> None:
    """Raise CliError for processors that do not exist, or on a system that cannot pin programs to processors."""
    if not groups:
        return
    if not hasattr(os, "sched_getaffinity"):
        raise CliError("--cpus: this system cannot pin programs to processors (Linux can)")
    usable = os.sched_getaffinity(0)
    if missing := sorted(frozenset().union(*groups) - usable):
        raise CliError(f"--cpus: no processor {missing[0]}, expected some of {','.join(map(str, sorted(usable)))}")


def _source(settings: MatchSettings) -> list[object]:
    source: list[object] = [settings.openings, settings.opening_moves, settings.opening_seed]
    return [*source, settings.opening_net] if settings.openings == POLICY else source


def _as_described_now(found: Mapping[str, Any], source: Sequence[object]) -> Mapping[str, Any]:
    """Return the description in a journal with its `opening_source` in the current form.

    Older journals lack the network of policy openings, or contain one that was not used.
    """
    old = found.get("opening_source") or source
    return {**found, "opening_source": [*old, *source[len(old) :]][: len(source)]}


def _described(player: EngineSpec) -> dict[str, object]:
    """Return the settings that identify a player when a match continues."""
    described: dict[str, object] = {
        "name": player.name,
        "command": list(player.command),
        "limits": str(player.limits),
        "options": dict(player.options),
        "init": list(player.commands),
    }
    if player.folder is not None:  # older journals lack these three
        described["folder"] = player.folder
    if player.environment:
        described["env"] = {name: _digest(value) for name, value in player.environment.items()}
    if not player.evaluations:
        described["evaluations"] = False
    return described


def _digest(value: str) -> str:
    """Return a digest of a secret value: journals may be shown to others."""
    return sha256(value.encode()).hexdigest()[:16]


def _find_game(tables: Sequence[Mapping[str, Any]]) -> Game[Any, Any]:
    """Return the game of the first engine other than yomi, otherwise of the first network, otherwise the first game."""
    first = next(iter(GAMES.values()))
    other = next((table for table in tables if not is_yomi(command_of(table)[0])), None)
    if other is None:
        options = (option for table in tables for option in command_of(table)[0].partition(":")[2].split(","))
        networks = (option.removeprefix("net=") for option in options if option.startswith("net="))
        name = next(filter(None, map(game_of_network, networks)), first.name)
        return GAMES[name]
    protocol = detect_protocol(parse_spec_table(other, first.name, first.protocol))
    return next(game for game in GAMES.values() if game.protocol == protocol)


class _Progress:
    """The display of a running match: a line for each game and, on a terminal, a table below."""

    def __init__(
        self, journal: MatchJournal, players: Sequence[str], total: int, test: Sprt | None, report: Say | None
    ) -> None:
        self._report = report  # receives the lines; None: the terminal shows them
        self.journal, self.players, self.total, self.test = journal, players, total, test
        self._height = 0  # lines of the table on the terminal
        self._due = 0.0

    @property
    def is_decided(self) -> bool:
        return self.test is not None and not self._color_note() and self.test.verdict(self._pairs()) != ""

    def show(self, result: GameResult) -> bool:
        """Show a finished game, and return whether the match is decided."""
        self._erase()
        done = len(self.journal.results)
        if result.winner == DRAW:
            winner = tr("drawn")
        else:
            winner = tr("{player} wins", player=(result.black, result.white)[result.winner - 1])
        faulty = tr(" [fault of {player}]", player=result.blamed) if result.blamed else ""
        text = tr(
            "{done}/{total}  game {number}  {black} - {white}: {winner}, {ending}",
            done=done,
            total=self.total,
            number=result.number + 1,
            black=result.black,
            white=result.white,
            winner=winner,
            ending=tr(result.ending),
        )
        self._write(f"{text} {result.detail}".rstrip() + faulty)
        if self.test is not None:
            self._write(self._color_note() or self.test.line(self._pairs()))
        if self._report is None and sys.stderr.isatty() and time.monotonic() >= self._due:
            begin = time.monotonic()
            self._draw()
            spent = time.monotonic() - begin  # the next games wait for the table
            self._due = begin + max(INTERVAL, SHARE * spent)
        return self.is_decided

    def _pairs(self) -> list[int]:
        from yomi.engine.matches.rating import pair_counts

        return pair_counts(self.journal.results, self.players[0])

    def _color_note(self) -> str:
        from yomi.engine.matches.rating import color_note, pair_colors

        return color_note(sum(self._pairs()), pair_colors(self.journal.results))

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
        if self._report is not None:
            self._report(text)
        else:
            print(printable(text, keep=LINE_ENDS), file=sys.stderr, flush=True)

    def __enter__(self) -> _Progress:
        before = len(self.journal.results)
        if before:
            self._write(
                tr(
                    "{n} of {total} games are in {path}; the match continues",
                    n=before,
                    total=self.total,
                    path=self.journal.path,
                )
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._erase()


# -- yomi rate -------------------------------------------------------------------------------------------------------

RATE_EPILOG = """\
examples:
  yomi rate match                             the folder of a match, also while it runs
  yomi rate games/*.csa --unique
  yomi rate a b c --format markdown --plot ratings.png

Ratings are Elo with mean 0, fitted by maximum likelihood together with the first player's advantage and the rate of
draws. ERROR is half the 95% interval relative to the mean, which is less than the error of a difference. The results
of two players contain their difference and its interval. Other +/- are one standard error. CFS is the likelihood that
a player is stronger than the next one.
"""
FORMATS = ("text", "markdown", "json")


def _add_rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="read journals, SGF, CSA, KIF, or folders")
    add_output(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("tables")
    text = "print the tables in this format (default: text)"
    group.add_argument("--format", choices=FORMATS, default="text", help=text)
    group.add_argument("--unique", action="store_true", help="ignore games with the same moves as an earlier game")
    group.add_argument("--no-advantage", action="store_true", help="do not fit the first player's advantage")
    group.add_argument("--plot", type=Path, metavar="FILE", help="draw the ratings with their errors (PNG, SVG, PDF)")


def _run_rate(args: argparse.Namespace) -> int:
    from yomi.engine.matches.results import read_results

    if args.plot is not None:
        plot_check(args.plot)
    show(args, read_results(args.files, GAMES.values(), LeftOut(say)))
    return 0


def show(args: argparse.Namespace, results: Sequence[GameResult]) -> None:
    from yomi.engine.matches.report import plot_ratings, report, to_json, to_markdown, to_text
    from yomi.engine.pictures import PlotError

    made = report(results, advantage=not args.no_advantage, unique=args.unique)
    if args.format == "json":
        json.dump(to_json(made), sys.stdout, indent=2)
        print()
    else:
        echo((to_markdown(made) if args.format == "markdown" else to_text(made)).removesuffix("\n"))
    if args.plot is not None:
        try:
            plot_ratings(made, args.plot)
        except PlotError as error:
            raise CliError(f"--plot {args.plot}: {error}") from None


RATE = Command("yomi rate FILE [FILE ...] [options]", RATE_EPILOG, _add_rate, _run_rate)
