"""What a benchmark measures: a game with its sizes, positions to search, an evaluation queue and settings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.tuning.positions import go_positions, shogi_positions

if TYPE_CHECKING:
    from engine.evaluators.queue import EvaluationQueue
    from engine.options import Options
    from engine.search.parameters import SearchSettings
    from engine.search.position import SearchableGame
    from native.spec import GameSpec


@dataclass(frozen=True, slots=True)
class Subject:
    """A game as a benchmark sees it."""

    name: str
    """For tables: 9x9 (Go), shogi."""
    spec: GameSpec
    games: tuple[SearchableGame, ...]
    """The first is at its start."""
    write_planes: Callable[[Any, Any, int, Any, Any, Any], None]
    """The kernel that writes a position's network inputs; see native.game."""


def go_subject(size: int) -> Subject:
    """Return Go on boards of `size`."""
    from native.go.planes import write_planes
    from native.go.spec import go_spec

    return Subject(f"{size}x{size}", go_spec(size), tuple(go_positions(size)), write_planes)


def shogi_subject(features: tuple[int, int] | None = None, mate_depth: int = 0) -> Subject:
    """Return shogi.

    Args:
        features: form and number of extras of the network; None for dlshogi's usual one.
        mate_depth: plies of the mate search at leaves, 0 for none.
    """
    from native.shogi.planes import write_planes
    from native.shogi.position import FORM_DLSHOGI
    from native.shogi.spec import shogi_spec

    form, extras = features or (FORM_DLSHOGI, 57)
    games = shogi_positions()
    for game in games:
        game.position["form"], game.position["mate_depth"] = form, mate_depth
    return Subject("shogi", shogi_spec(form, extras), tuple(games), write_planes)


@contextlib.contextmanager
def measured(options: Options, game: str) -> Iterator[tuple[Subject, EvaluationQueue, SearchSettings]]:
    """Give the game, and the queue and settings that the options describe, as a player makes them; close the queue.

    Raises:
        NetworkError: the network's file cannot be used.
        EvaluatorError: the evaluator or the device cannot.
    """
    from engine.players.tuning import tuned
    from nets.dlshogi.network import SIDE

    if game == "shogi":
        from engine.players import shogi_setup

        options = tuned(options, SIDE)
        with contextlib.closing(shogi_setup.make_queue(options)) as queue:
            subject = shogi_subject(shogi_setup.features_of(queue), options.leaf_mate_depth)
            yield subject, queue, shogi_setup.search_settings(options, queue)
        return
    from engine.games.go.rules import PRESETS
    from engine.players import go_setup
    from engine.players.go_network import spec_for

    options = tuned(options, options.size)
    with contextlib.closing(go_setup.make_queue(options, options.size, PRESETS["tromp-taylor"])) as queue:
        subject = replace(go_subject(options.size), spec=spec_for(options.size, queue.evaluator))
        yield subject, queue, go_setup.search_settings(options, queue)
