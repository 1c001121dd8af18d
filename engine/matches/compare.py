"""`yomi duel`: two settings of the engine play many games against each other at the same time."""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi.engine.clusters.actors import ClusterOptions
from yomi.engine.clusters.jobs import Run
from yomi.engine.default_network import named_file, network_file
from yomi.engine.evaluators.devices import device_of
from yomi.engine.game import Game, Say
from yomi.engine.machine import usable_cores
from yomi.engine.matches.duel import Duel, DuelConfig, DuelTask
from yomi.engine.matches.parts import SPRT_AND_TASK, UNIT
from yomi.engine.matches.rating import Sprt
from yomi.engine.matches.remote import pooled_duel
from yomi.engine.matches.results import GameResult, MatchError, local_time
from yomi.engine.matches.schedule import INTERVAL, load_openings, shuffled
from yomi.engine.matches.score import DuelScore
from yomi.engine.matches.series import Series, SeriesPlayer
from yomi.engine.matches.settings import BOARD, VISITS, DuelSettings, SideBySideSettings, player_options
from yomi.engine.options import TABLE, Options, Value
from yomi.engine.records import LeftOut
from yomi.errors import reraised
from yomi.nets.files import name_with_digest
from yomi.settings import OptionError


def duel_players(
    game: Game[Any, Any],
    options: Options,
    named: Collection[str],
    first: Mapping[str, Value] | None = None,
    second: Mapping[str, Value] | None = None,
) -> tuple[Options, Options]:
    """Return the options of both players: the common options, changed by `first` and `second`.

    A network's recommended values apply, except to options that the user has `named`. Raises OptionError.
    """
    players = []
    for changes in (first or {}, second or {}):
        player = game.with_network_defaults(game.fair(options).with_values(changes), {*named, *changes})
        if player.visits is None:
            raise OptionError("--visits none: expected a number")
        players.append(player)
    return players[0], players[1]


@dataclass(frozen=True)
class DuelReport:
    """The result of a duel that has ended."""

    players: tuple[str, str]
    score: DuelScore
    line: str  # score, difference and state of the test
    results: Sequence[GameResult]
    played: int  # games of the last start
    seconds: float  # of the last start

    def __str__(self) -> str:
        games = len(self.results)
        different = len({result.key for result in self.results})
        plies = sum(result.plies for result in self.results) / max(1, games)
        rate = self.played / max(self.seconds, 1e-9)
        speed = f"; {self.played} of them in {self.seconds:.0f} s, {rate:.2f} a second" if self.played else ""
        return (
            f"{self.players[0]} against {self.players[1]}: {self.line}\n"
            f"{games} games, {different} of them different, {plies:.0f} moves each{speed}"
        )


def duel(
    game: Game[Any, Any],
    players: tuple[Options, Options],
    settings: DuelSettings,
    names: tuple[str, str],
    say: Say,
    *,
    cluster: ClusterOptions | None = None,
    words: Sequence[str] = (),
) -> DuelReport:
    """Play the missing games of a duel.

    Args:
        game: game of the duel.
        players: result of `duel_players`.
        settings: settings of the duel.
        names: names of the players.
        say: receives lines of progress.
        cluster: plays the games; None: this machine.
        words: the command line, for the description of the run.

    Raises:
        MatchError, OptionError, ClusterError: a setting is wrong, or the games cannot be played.
    """
    if settings.games % 2:
        raise MatchError(
            f"--games {settings.games}: expected an even number, as each opening is played with both colors"
        )
    if players[0] == players[1]:
        raise MatchError("both players are equal: expected --first or --second, such as --second visits=100")
    if settings.sprt is not None and settings.task is not None:
        raise MatchError(SPRT_AND_TASK)
    with reraised(ValueError, MatchError, "--sprt: "):
        test = None if settings.sprt is None else Sprt(*settings.sprt)
    config = duel_config(game, players, settings, say)
    description = describe(game, players, config, names)
    run = duel_run(game, players, description, Run("duel", words, settings.task, settings.games // 2, UNIT, {}, {}))
    with Series(run, settings.out, game, description, test) as series:
        left = [DuelTask(number) for number in range(settings.games) if series.lacks(number)]
        total = len(left) + len(series.results)
        if series.results:
            say(f"{len(series.results)} games are in {series.journal.path}; the match continues")
        begin, reported, before = time.perf_counter(), 0.0, len(series.results)
        if left and not series.state.is_decided:
            with (
                contextlib.closing(open_player(game, players, config, settings, len(left), say, cluster)) as player,
                _waiting(lambda spent: say(f"{before}/{total} games, {spent:.0f} s")) as has_begun,
            ):
                say(f"{len(left)} games begin")
                results = (named(game, names, local_time()) for game in player.play(left))
                for _ in series.store(results):
                    has_begun.set()
                    if time.monotonic() - reported >= INTERVAL:
                        reported = time.monotonic()
                        say(f"{len(series.results)}/{total} games, {series.state.line()}")
        spent = time.perf_counter() - begin
        played = len(series.results) - before
        return DuelReport(names, series.state.score, series.state.line(), series.results, played, spent)


def named(game: GameResult, names: Sequence[str], finished: str = "") -> GameResult:
    black, white = names if game.number % 2 == 0 else reversed(names)
    return dataclasses.replace(game, black=black, white=white, finished=finished)


@contextlib.contextmanager
def _waiting(report: Callable[[float], None]) -> Iterator[threading.Event]:
    """In this block, report the seconds of waiting every INTERVAL, until the yielded event is set."""
    begin, has_begun = time.monotonic(), threading.Event()

    def wait() -> None:
        while not has_begun.wait(INTERVAL):
            report(time.monotonic() - begin)

    threading.Thread(target=wait, daemon=True).start()
    try:
        yield has_begun
    finally:
        has_begun.set()


def duel_config(
    game: Game[Any, Any], players: tuple[Options, Options], settings: SideBySideSettings, say: Say
) -> DuelConfig:
    """Return the settings of all games of a duel. Raises ValueError if options or openings do not suit the game."""
    game.new_game(players[0])
    openings: list[str] = []
    if settings.openings is not None:
        rules = game.matches().rules(players[0], None, players[0].max_moves or 0)
        moves = settings.opening_moves or None
        found = load_openings(Path(settings.openings), moves, game.matches(), rules, LeftOut(say))
        openings = shuffled(found, settings.seed)
    first, second = (player.visits or VISITS for player in players)
    drawn = 0 if openings else settings.opening_moves
    return DuelConfig((first, second), settings.seed, None, openings, drawn, settings.temperature)


def describe(
    game: Game[Any, Any], players: tuple[Options, Options], config: DuelConfig, names: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the settings that must be equal when a duel or a tuning continues."""
    known = (*player_options(game.name), *BOARD)
    options = [{name: player.get(name) for name in known if TABLE[name].is_for(game.name)} for player in players]
    fields, board = dataclasses.asdict(config), game.board_size(players[0])
    return {"game": game.name, "board": board, "players": list(names), "options": options, "terms": fields}


def duel_run(game: Game[Any, Any], players: tuple[Options, Options], description: Mapping[str, Any], run: Run) -> Run:
    """Return the description of a run with its settings and networks. Networks are identified by their content."""
    networks: dict[str, str] = {}
    options = []
    for side, player, values in zip(("first", "second"), players, description["options"], strict=True):
        files = {"net": network_file(player, game.name)}
        files["value_net"] = None if player.value_net is None else named_file(player.value_net, game.name)
        networks |= {f"{side} {name}": name_with_digest(file) for name, file in files.items() if file is not None}
        options.append({name: value for name, value in values.items() if name not in files})
    settings = {**description, "options": options, "games": 2 * run.units, **run.settings}
    return dataclasses.replace(run, settings=settings, networks=networks)


def open_player(
    game: Game[Any, Any],
    players: tuple[Options, Options],
    config: DuelConfig,
    settings: SideBySideSettings,
    games: int,
    say: Say,
    cluster: ClusterOptions | None = None,
) -> SeriesPlayer[DuelTask]:
    """Return the player of at most `games` games: in this process, in several processes, or on a cluster."""
    place: ClusterOptions | int | None = cluster
    if place is None:
        for player in players:
            game.prepare(player, say, learning=True)
        on_cpu = all(device_of(player).is_cpu for player in players)
        place = min(settings.processes or (usable_cores() if on_cpu else 1), games)
    if place == 1:
        return Duel(game, players, config, min(settings.at_once, games))
    return pooled_duel(place, game, players, config, games, settings.at_once, say)
