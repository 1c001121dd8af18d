"""Reviews of game records. `yomi review` does the same, and writes files."""

import contextlib
from os import PathLike
from typing import Any

from yomi.engine.default_network import limit_for_review
from yomi.engine.game import Game
from yomi.engine.mistakes import DEFAULT, Thresholds
from yomi.engine.options import Options, find
from yomi.engine.registry import GAMES
from yomi.engine.reviews.review import Review
from yomi.engine.reviews.run import COMMAND, DEFAULT_NODES, DEFAULT_VISITS, Reviewers, ReviewSettings
from yomi.engine.reviews.scans import Progress
from yomi.library import arguments
from yomi.library.analysis import keep_stderr_quiet, reported
from yomi.library.arguments import no_progress, plain
from yomi.library.engines import Value


def review(
    path: str | PathLike[str],
    *,
    thresholds: str | None = None,
    quick: float | None = None,
    progress: arguments.Progress = no_progress,
    **options: Value,
) -> list[Review]:
    """Search the positions of a record's games, and return a review of each game.

    Args:
        path: file of a record: SGF, GIB, NGF, UGF, CSA, KIF, KI2, JKF, BOD or lines of USI.
        thresholds: losses of an inaccuracy, a mistake and a blunder, such as "5,10,20%" or "2,5,10points".
        quick: visits of each position in a first pass, after which only unclear positions are searched with the full
            limit. 0: none. None: as many as fit in 40 seconds.
        progress: see `Engine`.
        options: options of the engine. Without a limit a position takes 100 visits, in shogi on a processor 100,000
            nodes of alpha-beta.

    Raises:
        Error: the record cannot be read, an option is wrong, or the engine cannot be loaded.
    """
    keep_stderr_quiet()
    limits = DEFAULT if thresholds is None else Thresholds.parse(arguments.text("thresholds", thresholds))
    settings = ReviewSettings(limits, None if quick is None else arguments.whole("quick", quick, 0))
    reviewers = Reviewers(GAMES, lambda game: review_options(game, options), settings, progress)
    with reported(progress), contextlib.closing(reviewers):
        return [found for _, found in reviewers.review(arguments.path("path", path), Progress())]


def review_options(game: Game[Any, Any], given: dict[str, Value]) -> Options:
    """Return the options for a review: the caller's, with the defaults of reviews for the others."""
    values: dict[str, Any] = dict(game.defaults.get(COMMAND, {}))
    if all(given.get(name) is None for name in ("playouts", "seconds", "depth")):
        values["visits"] = DEFAULT_VISITS
    values |= {find(name, game.name).name: plain(value) for name, value in given.items()}
    options = Options.for_game(game.name).with_values(values)
    if "visits" not in given:
        limit_for_review(options, game.name, DEFAULT_NODES)
    return options
