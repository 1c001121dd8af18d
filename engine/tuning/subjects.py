"""What is measured: a game with its sizes, positions to search, an evaluation queue and settings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.go.players import setup as go_setup
from engine.go.players.network import spec_for
from engine.go.rules import PRESETS
from engine.shogi.players import setup as shogi_setup
from engine.tuning.positions import go_positions, shogi_positions
from native.go import planes as go_planes
from native.go.spec import go_spec
from native.shogi import planes as shogi_planes
from native.shogi.spec import shogi_spec

if TYPE_CHECKING:
    from engine.evaluators.queue import EvaluationQueue
    from engine.options import Options
    from engine.search.parameters import SearchSettings
    from engine.search.position import SearchableGame
    from native.spec import GameSpec


@dataclass(frozen=True, slots=True)
class Subject:
    """A game as those who measure see it."""

    name: str
    """For tables: 9x9 (Go), shogi."""
    spec: GameSpec
    games: tuple[SearchableGame, ...]
    """The first is at its start, the last is late."""
    write_planes: Callable[[Any, Any, int, Any, Any, Any], None]
    """The kernel that writes a position's network inputs; see native.game."""
    write_bits: Callable[[Any, Any, int, Any, Any, Any], None]
    """The same for bits."""


def go_subject(size: int) -> Subject:
    """Return Go on boards of `size`."""
    kernels = go_planes.write_planes, go_planes.write_bits
    return Subject(f"{size}x{size}", go_spec(size), tuple(go_positions(size)), *kernels)


def shogi_subject(spec: GameSpec | None = None, mate_depth: int = 0) -> Subject:
    """Return shogi.

    Args:
        spec: of the network; None for dlshogi's usual one.
        mate_depth: plies of the mate search at leaves, 0 for none.
    """
    spec = spec or shogi_spec()
    games = shogi_positions()
    for game in games:
        for name, value in (*spec.marks, ("mate_depth", mate_depth)):
            game.position[name] = value
    kernels = shogi_planes.write_planes, shogi_planes.write_bits
    return Subject("shogi", spec, tuple(games), *kernels)


@contextlib.contextmanager
def measured(options: Options, game: str) -> Iterator[tuple[Subject, EvaluationQueue, SearchSettings]]:
    """Give the game, and the queue and settings that the options describe, as a player makes them.

    Nothing is looked up that `yomi net tune` has found; see engine.players.tuning. The queue is closed at the end.

    Raises:
        NetworkError: the network's file cannot be used.
        EvaluatorError: the evaluator or the device cannot.
    """
    if game == "shogi":
        with contextlib.closing(shogi_setup.make_queue(options)) as queue:
            subject = shogi_subject(shogi_setup.spec_for(queue.evaluator), options.leaf_mate_depth)
            yield subject, queue, shogi_setup.search_settings(options, queue)
    else:
        with contextlib.closing(go_setup.make_queue(options, options.size, PRESETS["tromp-taylor"])) as queue:
            subject = replace(go_subject(options.size), spec=spec_for(options.size, queue.evaluator))
            yield subject, queue, go_setup.search_settings(options, queue)
