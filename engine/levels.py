"""Levels of strength, from a beginner's to full strength, and their Elo, which `yomi bench levels` measures.

A level is a set of options: network, visits, the model of people (yomi.engine.players.people), and in shogi the mate
search. Without a network there is no policy of people's moves. A level then sets temperature and root noise: with noise
it considers odd moves and misreads them, as beginners do.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.default_network import alpha_beta_file, has_network, network_file
from yomi.engine.options import TABLE as OPTIONS
from yomi.engine.options import OptionError, Options
from yomi.language import tr
from yomi.nets.models import network_of_levels
from yomi.system import read_bytes

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.options import Value

COUNT = 20  # the last level is full strength
FULL = 0  # full strength: no level
AUTO = -1  # the level follows the player
START, RUN = 5, 3  # the first level of auto, and the games in a row that change it
TABLE = "levels.json"

_log = logging.getLogger("yomi.player")

Settings = dict[str, "Value"]
Rows = tuple[tuple[float, ...], ...]  # level, count of the search, and further numbers; see `between`

WITHOUT_NETWORK: Rows = (
    # level, visits, temperature, noise
    (1, 4, 1.0, 0.6), (3, 6, 1.0, 0.4), (5, 10, 1.0, 0.25), (7, 20, 0.8, 0.12), (9, 50, 0.6, 0.05), (11, 120, 0.5, 0.0),
    (13, 320, 0.4, 0.0), (15, 800, 0.3, 0.0), (17, 2000, 0.2, 0.0), (19, 6000, 0.1, 0.0),
)  # fmt: skip


def between(rows: Rows, level: int) -> tuple[int, list[float]]:
    """Return a level's count (visits or nodes) and its further numbers, interpolated between two levels in `rows`."""
    above = next(index for index, row in enumerate(rows) if row[0] >= level)
    low, high = rows[max(above - 1, 0)], rows[above]
    share = 1.0 if low is high else (level - low[0]) / (high[0] - low[0])
    numbers = [round(first + share * (last - first), 3) for first, last in zip(low[2:], high[2:], strict=True)]
    return round(low[1] * (high[1] / low[1]) ** share), numbers


def level_settings(game: Game[Any, Any], level: int, options: Options) -> Settings:
    """Return the options that a level from 1 (weakest) to COUNT sets. `options` contain evaluator and network."""
    if level == COUNT:
        return {}
    network = has_network(options)
    is_alpha_beta = alpha_beta_file(options, game.name) is not None
    rows = game.people_levels_of_nodes if is_alpha_beta else game.people_levels
    settings: Settings = dict(game.level_options(level, options))
    if network and rows:
        count, (settings["people_prior"], settings["people_loss"]) = between(rows, level)
        temperature = noise = 0.0
    else:
        count, (temperature, noise) = between(WITHOUT_NETWORK, level)
    if is_alpha_beta:
        return {"playouts": count, **settings}
    own = network_of_levels(game.name) if network and options.net is None else None
    return {
        **({} if own is None else {"net": str(own)}),
        "workers": 1,
        "use_lcb": False,
        "visits": count,
        "temperature": temperature,
        "temperature_moves": 0,
        "root_noise": noise,
        "people_prior": 0.0,
        "people_loss": 0.0,
        **settings,
    }


# State of a LevelSwitch: options, names that override the level, and values that the level replaces
State = tuple[Options, frozenset[str], Settings]


class LevelSwitch:
    """Keeps options at the level that their option `level` names.

    The level's settings replace the options' own values. These return at level FULL. A changed network or number of
    threads takes effect when the player loads.
    """

    def __init__(self, game: Game[Any, Any], options: Options, named: Collection[str] = ()) -> None:
        """Apply the level of `options`, which the player uses, too. The options `named` keep their values."""
        self.options = options
        self._game = game
        self._follower: Follower | None = None  # read at its first use
        self._named = frozenset(named)
        self._own: Settings = {}
        self._cover()

    @property
    def level(self) -> int:
        """The current level; FULL if none is set."""
        if self.options.level != AUTO:
            return self.options.level
        self._follower = self._follower or Follower(self._game.name)
        return self._follower.level

    def note_result(self, won: bool) -> str | None:
        """Count a game that the player's opponent won or lost. Return a text if this changes the level auto."""
        if self.options.level != AUTO or self._follower is None or not self._follower.note(won):
            return None
        self._uncover()
        self._cover()
        return describe_level(self._game, self.options, self.level)

    def own(self, name: str) -> Value:
        """Return an option's value at full strength, which the level replaces."""
        return self._own[name] if name in self._own else self.options.get(name)

    def full(self) -> Options:
        """Return the options of full strength for an analysis, but with the loaded network and threads."""
        return self.options.with_values({name: value for name, value in self._own.items() if OPTIONS[name].live})

    def set(self, name: str, value: Value, *, wins: bool) -> None:
        """Set an option, or raise OptionError and change nothing.

        If `wins` is set, the value overrides the level until the level changes. Otherwise it takes effect at full
        strength.
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
        if self.level != FULL:
            for name, value in level_settings(self._game, self.level, self.options).items():
                if name not in self._named:
                    self._own[name] = self.options.get(name)
                    self.options.set(name, value)

    def _uncover(self) -> None:
        for name, value in self._own.items():
            self.options.set(name, value)
        self._own.clear()


class Follower:
    """The level auto of a game. It rises after RUN wins of the opponent in a row, and falls after RUN losses.

    It is stored in the user's folder of states, so that it continues with the next game and the next start.
    """

    def __init__(self, game: str) -> None:
        self._game = game
        self.level, self._run = START, 0  # `_run`: wins of the opponent in a row; negative: losses
        with contextlib.suppress(ValueError, TypeError, KeyError, OverflowError):
            level, run = _read_state()[game]
            self.level, self._run = min(max(int(level), 1), COUNT), int(run)

    def note(self, won: bool) -> bool:
        """Count a game that the opponent won or lost, and return whether the level changes."""
        self._run = max(self._run, 0) + 1 if won else min(self._run, 0) - 1
        before = self.level
        if abs(self._run) >= RUN:
            self.level, self._run = min(max(before + (1 if won else -1), 1), COUNT), 0
        self._store()
        return self.level != before

    def _store(self) -> None:
        import json  # not above: every start of an engine would wait for these

        from yomi.nets.files import write_atomically

        try:
            path = _state_file()
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps({**_read_state(), self._game: [self.level, self._run]}).encode())
        except OSError as error:
            name = error.filename or TABLE
            _log.warning("%s cannot be written: %s; the level lasts until the engine ends", name, error.strerror)


def _read_state() -> dict[str, Any]:
    import json

    with contextlib.suppress(OSError):  # no level is stored yet; `_store` reports a folder that cannot be used
        path = _state_file()
        try:
            found = json.loads(read_bytes(path))
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        _log.warning("%s is damaged: the level auto begins at %d, and the file is written again", path, START)
    return {}


def _state_file() -> Path:
    """Return the file of the level auto. Raises OSError if the user has no home, as in some containers."""
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".local" / "state"
        except RuntimeError as error:
            raise FileNotFoundError(errno.ENOENT, str(error)) from None
    return base / "yomi" / TABLE


def subject_of(game: Game[Any, Any], options: Options) -> str:
    """Return a name for the conditions of a level's measurement: game, board size, and the network's file name."""
    net = alpha_beta_file(options, game.name) or network_file(options, game.name)
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
    """Return a level's number as text, with its Elo if that was measured."""
    if level == COUNT:
        return tr("level {level} of {count}: full strength", level=level, count=COUNT)
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
