"""Levels of strength, from a beginner's to full strength, and their Elo, which `yomi bench levels` measures.

A level is a set of options: network, visits, the model of people (yomi.engine.players.people), and in shogi the mate
search. Without a network there is no policy of people's moves. A level then sets temperature and root noise: with noise
it considers odd moves and misreads them, as beginners do.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.default_network import has_network, network_file
from yomi.engine.options import TABLE as OPTIONS
from yomi.engine.options import OptionError, Options
from yomi.language import tr
from yomi.nets.models import network_of_levels

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.options import Value

COUNT = 10
FULL = 0  # full strength: no level
TABLE = "levels.json"

Settings = dict[str, "Value"]

_WITHOUT_NETWORK = (
    # visits, temperature, noise
    (4, 1.0, 0.6), (6, 1.0, 0.4), (10, 1.0, 0.25), (20, 0.8, 0.12), (50, 0.6, 0.05), (120, 0.5, 0.0), (320, 0.4, 0.0),
    (800, 0.3, 0.0), (2000, 0.2, 0.0), (6000, 0.1, 0.0),
)  # fmt: skip


def level_settings(game: Game[Any, Any], level: int, options: Options) -> Settings:
    """Return the options that a level from 1 (weakest) to COUNT sets. `options` name evaluator and network."""
    network = has_network(options)
    own = network_of_levels(game.name) if network and options.net is None else None
    if network and game.people_levels:
        visits, prior, loss = game.people_levels[level - 1]
        temperature = noise = 0.0
    else:
        visits, temperature, noise = _WITHOUT_NETWORK[level - 1]
        prior = loss = 0.0
    return {
        **({} if own is None else {"net": str(own)}),
        "workers": 1,
        "use_lcb": False,
        "visits": visits,
        "temperature": temperature,
        "temperature_moves": 0,
        "root_noise": noise,
        "people_prior": prior,
        "people_loss": loss,
        **game.level_options(level, has_network=network),
    }


# State of a LevelSwitch: options, names that override the level, and values that the level replaces
State = tuple[Options, frozenset[str], Settings]


class LevelSwitch:
    """Keeps options at the level that they name.

    The level's settings replace the options' own values, which come back at level FULL. A network and threads take
    effect when the player loads.
    """

    def __init__(self, game: Game[Any, Any], options: Options, named: Collection[str] = ()) -> None:
        """Apply the level of the options, which the player shares. The options `named` keep their values."""
        self.options = options
        self._game = game
        self._named = frozenset(named)
        self._own: Settings = {}
        self._cover()

    def own(self, name: str) -> Value:
        """Return the value of an option at full strength."""
        return self._own[name] if name in self._own else self.options.get(name)

    def full(self) -> Options:
        """Return the options of full strength for an analysis, with the loaded network and threads."""
        return self.options.with_values({name: value for name, value in self._own.items() if OPTIONS[name].live})

    def set(self, name: str, value: Value, *, wins: bool) -> None:
        """Set an option, or raise OptionError and change nothing.

        If it `wins`, the value overrides the level until the level changes. If not, it waits for full strength.
        """
        before, level = self.state(), self.options.level
        self._uncover()
        try:
            self.options.set(name, value)
        except OptionError:
            self.restore(before)
            raise
        if self.options.level != level:
            self._named = frozenset()
        elif wins:
            self._named |= {name}
        self._cover()

    def state(self) -> State:
        return self.options.copy(), self._named, dict(self._own)

    def restore(self, state: State) -> None:
        options, self._named, self._own = state
        for name in OPTIONS:
            setattr(self.options, name, getattr(options, name))

    def _cover(self) -> None:
        if self.options.level != FULL:
            for name, value in level_settings(self._game, self.options.level, self.options).items():
                if name not in self._named:
                    self._own[name] = self.options.get(name)
                    self.options.set(name, value)

    def _uncover(self) -> None:
        for name, value in self._own.items():
            self.options.set(name, value)
        self._own.clear()


def subject_of(game: Game[Any, Any], options: Options) -> str:
    """Return a name for the conditions of a measured level: the game, the board size and the network's file name."""
    net = network_file(options, game.name)
    return f"{game.board_name(options).lower()}, {'no network' if net is None else Path(net).name}"


# -- what was measured ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rating:
    elo: float  # above the weakest level
    error: float  # half of the 95% interval
    games: int  # of all pairings behind it


def read_ratings() -> dict[str, dict[int, Rating]]:
    import json  # not above, as resources: every start of an engine would wait for them
    from importlib import resources

    source = resources.files("yomi.engine") / TABLE
    data: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    return {
        subject: {int(level): Rating(**rating) for level, rating in entry["ratings"].items()}
        for subject, entry in data.items()
    }


def describe_level(game: Game[Any, Any], options: Options, level: int) -> str:
    """Return a level's number and its Elo, if measured, as text."""
    subject = subject_of(game, options)
    known = read_ratings().get(subject, {}).get(level)
    if known is None:
        return tr(
            "level {level} of {count} (Elo not measured for {subject})", level=level, count=COUNT, subject=subject
        )
    if level == 1:
        return tr("level 1 of {count} (Elo 0 by definition: {subject})", count=COUNT, subject=subject)
    return tr(
        "level {level} of {count} (Elo {elo} ± {error} above level 1 in {games} games: {subject})",
        level=level,
        count=COUNT,
        elo=f"{known.elo:+.0f}",
        error=f"{known.error:.0f}",
        games=known.games,
        subject=subject,
    )
