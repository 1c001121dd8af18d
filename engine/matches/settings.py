"""The settings of `yomi match`, `yomi duel` and `yomi tune`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from yomi.engine.clusters.jobs import Task
from yomi.engine.game import Game
from yomi.engine.matches.schedule import FORMS
from yomi.engine.options import MAX_KOMI, NETWORK, TABLE, SearchOptions, Value, rows_for
from yomi.settings import choice, flag, number, option

MAX_CPU = 4095


def cpus(text: str) -> tuple[frozenset[int], ...]:
    """Read processors: `0,1` or groups `0-1,2-3`."""
    groups = []
    for group in text.replace(" ", "").split(","):
        first, dash, last = group.partition("-")
        if not (_is_cpu(first) and (_is_cpu(last) or not dash) and int(first) <= int(last or first)):
            raise ValueError(f"expected processors such as 0,1 or 0-1,2-3 (up to {MAX_CPU}), found {text!r}")
        groups.append(frozenset(range(int(first), int(last or first) + 1)))
    return tuple(groups)


def _is_cpu(text: str) -> bool:
    return text.isdecimal() and len(text) <= len(str(MAX_CPU)) and int(text) <= MAX_CPU


def bounds(text: str) -> tuple[float, ...]:
    """Read the bounds of an SPRT: `ELO0,ELO1[,ALPHA,BETA]`."""
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in (2, 4):
        raise ValueError(f"expected ELO0,ELO1 or ELO0,ELO1,ALPHA,BETA, found {text!r}")
    return values


LIMITS, RUNNING, OPENINGS, ENDING = "limits of players without their own", "running", "openings", "ending games"


_seconds = partial(number, None, 0, 1e7, group=LIMITS, word="S")
_folder = partial(option, kind="file", word="FOLDER")


def _count(text: str, group: str = LIMITS, **others: Any) -> Any:
    return number(None, 1, None, text, group, **others)


# The classes are tables: the formatter would give each argument a line.
# fmt: off
@dataclass(frozen=True)
class MatchSettings:
    game: str | None = option(None, "play this game", word="GAME", unset="that of the players")
    games: int = number(2, 1, None, "play this many games with each pair of players")
    form: str = choice(FORMS[0], FORMS, "play a round-robin, or a gauntlet of the first player")
    out: str = _folder("match", "write records and journal to this folder")
    main: float | None = _seconds("set the main time of a game")
    byoyomi: float | None = _seconds("set the time of a byo-yomi period")
    increment: float | None = _seconds("add this time for each move")
    seconds: float | None = _seconds("set the time of a move; exceeding it does not lose the game")
    periods: int | None = _count("Go: set the number of byo-yomi periods", unset="1")
    stones: int | None = _count("Go: set the stones to play in a period (Canadian overtime)")
    playouts: int | None = _count("limit the playouts of a move")
    visits: int | None = _count("limit the visits of a move")
    nodes: int | None = _count("shogi: limit the nodes of a move")
    depth: int | None = _count("shogi: limit the depth of the search")
    margin: float = number(0.0, 0, 1e7, "allow moves this much more than their time", LIMITS, word="S")
    timeout: float | None = number(
        None, 0, 1e7, "forfeit engines silent for this much more than their time", LIMITS, word="S",
        unset="60, or 600 if a player has no time limit",
    )
    at_once: int | None = _count("play this many games at the same time", RUNNING, names=("at_once", "parallel"),
                                 unset="groups of --cpus, or 1")
    cpus: tuple[frozenset[int], ...] = option(
        (), "pin the engines of each game to processors: 0,1 or 0-1,2-3", RUNNING, kind="own", read=cpus, word="LIST"
    )
    task: Task | None = option(  # noqa: RUF009  (a field, as the others)
        None, "play share i of n of the pairs, in OUT/part-i-of-n", RUNNING, kind="own", read=Task.parse, word="i/n"
    )
    restart: bool = flag(False, "start the engines again for every game", RUNNING)
    size: int | None = _count("set the board size", "Go", unset="19")
    komi: float | None = number(
        None, -MAX_KOMI, MAX_KOMI, "set the komi", "Go", word="K", unset="the komi of the rules"
    )
    rules: str | None = option(None, "set the rules, as in yomi gtp", "Go", word="RULES", unset="tromp-taylor")
    scorer: str | None = option(
        None, "score by area, ownership (by rollouts), or a GTP engine's command line", "Go", word="WHAT",
        unset="area if the rules count all stones as alive, otherwise ownership",
    )
    entering_king: str | None = choice(
        None, TABLE["entering_king"].choices, "set the rule of the declaration win", "shogi", unset="27"
    )
    openings: str | None = option(
        None, "read a record, folder or SFEN list; policy: yomi draws openings", OPENINGS, word="FROM"
    )
    opening_moves: int | None = _count("set the moves of an opening", OPENINGS, unset="all of a record; policy: 8")
    opening_net: str | None = option(
        None, "draw policy openings with this network", OPENINGS, kind="file", word="FILE"
    )
    opening_seed: int = number(1, 0, None, "set the seed of openings and of their order", OPENINGS)
    max_moves: int = number(0, 0, None, "score (Go) or draw (shogi) games after N moves; 0: 3 per point; 512", ENDING)
    resign_below: float | None = number(
        None, 0, 0.5, "end games if both engines see the same side below this winrate", ENDING, word="P"
    )
    resign_moves: int = number(3, 1, None, "require agreement for this many moves of each side", ENDING)
    sprt: tuple[float, ...] | None = option(
        None, "stop when the first player is clearly stronger by E1 Elo, or by at most E0", ENDING, kind="own",
        read=bounds, word="E0,E1",
    )


@dataclass(frozen=True)
class SideBySideSettings:
    """Settings that duels and tunings share."""

    out: str = _folder("", "write the journal to this folder; the same command continues")
    processes: int | None = number(
        None, 1, None, "use this many processes", unset="the number of cores; on a GPU 1"
    )
    at_once: int = number(
        32, 1, None, "play this many games at the same time in each process", names=("at_once", "side_by_side")
    )
    opening_moves: int = number(8, 0, None, "draw this many opening moves from short searches; 0: none")
    openings: str | None = option(None, "read openings from records or a folder", kind="file")
    temperature: float = number(0.0, 0, None, "set the temperature after the opening, which falls fast")
    seed: int = number(1, 0, None, "set the seed of all random choices")


@dataclass(frozen=True)
class DuelSettings(SideBySideSettings):
    out: str = _folder("duel", "write the journal to this folder; the same command continues")
    games: int = number(400, 2, None, "play this many games (an even number)")
    sprt: tuple[float, ...] | None = option(
        None, "stop when the first is clearly stronger by E1 Elo, or by at most E0", kind="own", read=bounds,
        word="E0,E1",
    )
    task: Task | None = option(  # noqa: RUF009  (a field, as the others)
        None, "play share i of n of the pairs, in OUT/part-i-of-n (yomi help clusters)", kind="own", read=Task.parse,
        word="i/n",
    )


@dataclass(frozen=True)
class TuneSettings(SideBySideSettings):
    out: str = _folder("tune", "write the journal to this folder; the same command continues")
    games: int = number(4000, 2, None, "play this many games for the tuning")
    pairs: int = number(16, 1, None, "change the values after this many pairs of games")
    confirm: int = number(400, 0, None, "play this many games of the tuned values against the start; 0: none")
    c_end: float = number(0.0, 0, 0.5, "set the final perturbation as a share of the range; 0: 0.15")
    r_end: float = number(0.0, 0, 10, "set the final gain of SPSA; 0: 40 / pairs of games")
# fmt: on


# -- options of the engine in duels and tunings ------------------------------------------------------------------------

# Options of the search without effect here: one thread searches each tree, one playout after the other
INERT = frozenset(
    ("cache_size", "memory", "workers", "batches_in_flight", "virtual_loss", "seed", "root_noise", "root_noise_total")
)
# Options in which players may differ, besides the options of search and networks
OTHERS = ("visits", "rollout_weight", "leaf_mate_depth", "all_legal_moves")
BOARD = ("size", "rules", "komi", "entering_king", "max_moves")
VISITS = 200  # per move


def player_options(game: str) -> list[str]:
    """Return the names of the options in which players may differ."""
    searched = {name for name in SearchOptions.__dataclass_fields__ if name not in INERT}
    return [row.name for row in rows_for(game) if row.name in searched or row.name in OTHERS or row.group == NETWORK]


def duel_defaults(game: Game[Any, Any]) -> dict[str, Value]:
    """Return the default values of options in duels and tunings, if they differ from other commands."""
    return {"visits": VISITS, **game.defaults.get("duel", {})}


def tunable(game: str) -> list[str]:
    """Return the names of the parameters that can be tuned: numbers that a search uses."""
    known = set(SearchOptions.__dataclass_fields__) - INERT
    return [row.name for row in rows_for(game) if row.name in known and row.kind in ("real", "int")]
