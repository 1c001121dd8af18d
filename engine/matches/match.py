"""`yomi match`: games between engines of any kind, as processes, with openings and a journal."""

import contextlib
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

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
    with_unique_names,
)
from yomi.engine.clusters.actors import ClusterOptions
from yomi.engine.clusters.jobs import Run
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.default_network import game_of_network, named_file
from yomi.engine.game import Game, Say
from yomi.engine.matches.games import GameRunner, RefereeSettings
from yomi.engine.matches.parts import SPRT_AND_TASK, UNIT, unit_of
from yomi.engine.matches.rating import Sprt
from yomi.engine.matches.results import GameResult, MatchError, MatchJournal
from yomi.engine.matches.runner import MatchPlan, MatchRunner
from yomi.engine.matches.schedule import (
    Pairing,
    draw_openings,
    load_openings,
    openings_before,
    pairs_of,
    schedule,
    shuffled,
)
from yomi.engine.matches.series import Series, SeriesPlayer
from yomi.engine.matches.settings import MatchSettings
from yomi.engine.options import Options
from yomi.engine.play import FirstMoves, play_game
from yomi.engine.records import LeftOut
from yomi.errors import reraised
from yomi.language import tr
from yomi.nets.files import check_folder, name_with_digest

POLICY = "policy"
POLICY_MOVES = 8
# Visits before each opening move, which is drawn in proportion to them. They follow the policy, but avoid moves that
# the next move refutes.
POLICY_VISITS = 32


def match(
    settings: MatchSettings,
    tables: Sequence[Mapping[str, Any]],
    games: Mapping[str, Game[Any, Any]],
    say: Say,
    on_game: Callable[[Sequence[str], Sequence[GameResult]], None],
    *,
    cluster: ClusterOptions | None = None,
    words: Sequence[str] = (),
) -> list[GameResult]:
    """Play the missing games of a match. Return all its games in the order of their numbers.

    Args:
        settings: settings of the match.
        tables: the players; see `yomi.engine.clients.spec.spec_table`.
        games: descriptors by name.
        say: receives other lines of progress.
        on_game: called after each game with lines about it, and with all games so far.
        cluster: plays the games. Each actor plays one at a time.
        words: the command line, for the description of the run.

    Raises:
        SpecError, MatchError: a setting or a player is wrong.
    """
    game = find_game(settings.game, tables, games)
    players = _players(settings, game, tables)
    _check(settings, players, cluster)
    with reraised(ValueError, MatchError):
        pairs = pairs_of(len(players), settings.form)
        test = None if settings.sprt is None else Sprt(*settings.sprt)
        check_folder(Path(settings.out))
        game.compile(say)
        rules = game.matches().rules(
            game.fair(_options(game, settings, "size", "komi", "rules", "entering_king")),
            settings.scorer,
            settings.max_moves,
        )
    source = opening_source(settings)
    description = {
        "game": game.name,
        "players": [described(player) for player in players],
        "form": settings.form,
        "margin": settings.margin,
        "resign": [settings.resign_below, settings.resign_moves],
        "opening_source": source,
        **rules,
    }
    units = unit_of(list(schedule(pairs, settings.games, 1))[-1].number) + 1
    identity, networks = _identity(description, players, settings, game.name)
    run = Run("match", words, settings.task, units, UNIT, identity, networks)
    with Series(
        run,
        settings.out,
        game,
        description,
        test,
        lambda: {"openings": make_openings(settings, game, rules, say)},
        lambda found: as_described_now(found, description),
    ) as series:
        openings = _all_openings(series.journal, len(pairs), settings, game, rules, say)
        pairings = list(schedule(pairs, settings.games, len(openings)))
        total = sum(settings.task is None or settings.task.has(unit_of(pairing.number)) for pairing in pairings)
        left = [pairing for pairing in pairings if series.lacks(pairing.number)]
        if done := len(series.results):
            path = series.journal.path
            say(tr("{n} of {total} games are in {path}; the match continues", n=done, total=total, path=path))
        if left and not series.state.is_decided:
            referee = RefereeSettings(
                settings.margin, _timeout(settings, players), settings.resign_below, settings.resign_moves
            )
            host = functools.partial(GameRunner, game.matches(), rules, referee)
            plan = MatchPlan(
                players, openings, host, series.folder, _at_once(settings), settings.cpus, settings.restart
            )
            say(tr("{n} games begin; records in {folder}", n=len(left), folder=series.folder))
            with contextlib.closing(_open_player(cluster, game, plan, say)) as player:
                for result in series.store(player.play(left)):
                    lines = [_line(result, len(series.results), total)]
                    if test is not None:
                        lines.append(series.state.test_line() or series.state.score.verdict)
                    on_game(lines, series.results)
        return sorted(series.results, key=lambda result: result.number)


def _open_player(
    cluster: ClusterOptions | None, game: Game[Any, Any], plan: MatchPlan, say: Say
) -> SeriesPlayer[Pairing]:
    if cluster is None:
        return MatchRunner(plan)
    from yomi.engine.matches.remote import match_on_cluster

    return match_on_cluster(cluster, game, plan, say)


def _line(result: GameResult, done: int, total: int) -> str:
    if result.winner == DRAW:
        winner = tr("drawn")
    else:
        winner = tr("{player} wins", player=(result.black, result.white)[result.winner - 1])
    text = tr(
        "{done}/{total}  game {number}  {black} - {white}: {winner}, {ending}",
        done=done,
        total=total,
        number=result.number + 1,
        black=result.black,
        white=result.white,
        winner=winner,
        ending=tr(result.ending),
    )
    faulty = tr(" [fault of {player}]", player=result.blamed) if result.blamed else ""
    return f"{text} {result.detail}".rstrip() + faulty


# -- players -----------------------------------------------------------------------------------------------------------


def find_game(
    name: str | None, tables: Sequence[Mapping[str, Any]], games: Mapping[str, Game[Any, Any]]
) -> Game[Any, Any]:
    """Return the named game, otherwise the game of the first engine that is not yomi, or of the first network.

    Raises:
        MatchError: there is no such game. SpecError: an engine speaks no protocol.
    """
    if name is not None and name not in games:
        raise MatchError(f"game: expected one of {', '.join(games)}, found {name!r}")
    if name is not None:
        return games[name]
    first = next(iter(games.values()))
    other = next((table for table in tables if not is_yomi(command_of(table)[0])), None)
    if other is not None:
        protocol = detect_protocol(parse_spec_table(other, first.name, first.protocol))
        return next(game for game in games.values() if game.protocol == protocol)
    options = (option for table in tables for option in command_of(table)[0].partition(":")[2].split(","))
    networks = (option.removeprefix("net=") for option in options if option.startswith("net="))
    return games[next(filter(None, map(game_of_network, networks)), first.name)]


def _players(settings: MatchSettings, game: Game[Any, Any], tables: Sequence[Mapping[str, Any]]) -> list[EngineSpec]:
    """Return the players, with numbers added to equal names. Missing limits come from the settings."""
    limits = EngineLimits(**{name: getattr(settings, name) for name in (*TIMES, *COUNTS)})
    named = with_unique_names([parse_spec_table(table, game.name, game.protocol) for table in tables])
    return [replace(player, limits=player.limits.over(limits)) for player in named]


def described(player: EngineSpec) -> dict[str, object]:
    """Return the settings of a player that must be equal when a match continues."""
    found: dict[str, object] = {
        "name": player.name,
        "command": [YOMI, *player.command[len(OWN) :]] if is_own(player) else list(player.command),
        "limits": str(player.limits),
        "options": dict(player.options),
        "init": list(player.commands),
    }
    if player.folder is not None:  # older journals lack these three
        found["folder"] = player.folder
    if player.environment:  # the values may be secret, and journals are shown to others
        found["env"] = {name: sha256(value.encode()).hexdigest()[:16] for name, value in player.environment.items()}
    if not player.evaluations:
        found["evaluations"] = False
    return found


def _identity(
    description: Mapping[str, Any], players: Sequence[EngineSpec], settings: MatchSettings, game: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return (facts that decide the games, without places of files on this machine; networks by name)."""
    networks, without_places = {}, []
    for player, fields in zip(players, description["players"], strict=True):
        files = networks_of(player)
        for flag, file in files.items():
            networks[f"{player.name} {flag}"] = name_with_digest(named_file(file, game))
        command = ["NET" if word in files.values() else word for word in fields["command"]]
        without_places.append({**fields, "command": command})
    source = list(description["opening_source"])  # the texts of the openings are compared, not their place
    source[0] = None if source[0] is None else Path(str(source[0])).name
    if len(source) > 3 and source[3] is not None:
        networks["openings"] = name_with_digest(named_file(str(source[3]), game))
        source.pop()
    own = {"players": without_places, "opening_source": source, "games": settings.games}
    return {**description, **own}, networks


# -- settings ----------------------------------------------------------------------------------------------------------


def _check(settings: MatchSettings, players: Sequence[EngineSpec], cluster: ClusterOptions | None) -> None:
    """Raise MatchError if settings contradict each other, or if this machine lacks processors that they name."""
    if settings.sprt is not None and len(players) != 2:
        raise MatchError(f"--sprt with {len(players)} players: expected two")
    if settings.sprt is not None and settings.task is not None:
        raise MatchError(SPRT_AND_TASK)
    if settings.cpus and cluster is not None:
        raise MatchError("--cpus with --cluster: expected --cores-per-process, as each machine has its own processors")
    at_once = _at_once(settings)
    if settings.cpus and at_once > len(settings.cpus):
        raise MatchError(f"--at-once {at_once}: expected at most {len(settings.cpus)}, the groups in --cpus")
    if not settings.cpus:
        return
    if not hasattr(os, "sched_getaffinity"):
        raise MatchError("--cpus: this system cannot pin programs to processors (Linux can)")
    usable = os.sched_getaffinity(0)
    if missing := sorted(frozenset().union(*settings.cpus) - usable):
        raise MatchError(f"--cpus: no processor {missing[0]}, expected some of {','.join(map(str, sorted(usable)))}")


def _at_once(settings: MatchSettings) -> int:
    return settings.at_once or len(settings.cpus) or 1


def _timeout(settings: MatchSettings, players: Sequence[EngineSpec]) -> float:
    """Return the seconds beyond its time after which a silent engine counts as hanging."""
    if settings.timeout is not None:
        return settings.timeout
    have_time = all(player.limits.has_clock or player.limits.seconds is not None for player in players)
    return 60.0 if have_time else 600.0


def _options(game: Game[Any, Any], settings: MatchSettings, *names: str) -> Options:
    """Return the options of a game, replaced by the match settings `names` that are set. Raises OptionError."""
    options = Options.for_game(game.name)
    for name in names:
        if (value := getattr(settings, name)) is not None:
            options.set(name, value)
    return options


# -- openings ----------------------------------------------------------------------------------------------------------


def opening_source(settings: MatchSettings) -> list[object]:
    source: list[object] = [settings.openings, settings.opening_moves, settings.opening_seed]
    return [*source, settings.opening_net] if settings.openings == POLICY else source


def as_described_now(found: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return a journal's description of its match in the form of this version. `now` is the description of this match.

    Journals of version 0.2.0 contain the place of the Python that runs yomi.
    """
    if "players" not in found:
        return dict(found)
    players = [dict(player) for player in found["players"]]
    for player, wanted in zip(players, now["players"], strict=False):
        if wanted["command"][0] == YOMI and tuple(player["command"][1 : len(OWN)]) == OWN[1:]:
            player["command"] = [YOMI, *player["command"][len(OWN) :]]
    return {**found, "players": players}


def _all_openings(
    journal: MatchJournal, pairs: int, settings: MatchSettings, game: Game[Any, Any], rules: Mapping[str, Any], say: Say
) -> list[str]:
    """Return the openings of a match of `pairs` pairs of players. If the match has become longer, add openings."""
    openings: list[str] = journal.kept["openings"]
    last = max((result.number for result in journal.results), default=0)
    if openings_before(last, pairs) < len(openings):  # more would shift openings that already came again
        openings = make_openings(settings, game, rules, say, openings)
    if openings != journal.kept["openings"]:
        journal.keep({"openings": openings})
    return openings


def make_openings(
    settings: MatchSettings, game: Game[Any, Any], rules: Mapping[str, Any], say: Say, known: Sequence[str] = ()
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
    player = game.load_player(options, say)

    def draw() -> str:
        opening = game.new_game(options)
        player.new_game(opening)
        play_game(opening, {BLACK: player, WHITE: player}, FirstMoves(moves))
        return game.format_opening(opening)

    try:
        return draw_openings(draw, wanted, say, known)
    finally:
        player.close()
