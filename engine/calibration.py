"""Finds the fastest device, precision, batch size, workers and batches in flight by measuring the search.

One setting is varied at a time, the most important first. The candidates are measured in turns, so that a machine that
slows down affects all of them. KataGo's tuner works in the same way.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.devices import KINDS, find_fault
from yomi.engine.game import Game
from yomi.engine.machine import usable_cores
from yomi.engine.options import Options, Value
from yomi.engine.players.setup import TUNED, Tuning
from yomi.engine.search.base import PositionSearch
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchableGame

TURNS = 3
WARM_UP = 0.2  # seconds of search before the first turn, to fill caches and raise clock rates
CLEAR_GAIN = 1.02  # an earlier value makes the better search at equal speed, so a later value must be this much faster
CPU_BATCHES = (1, 2, 4, 8, 16, 32)
GPU_BATCHES = (16, 32, 64, 128, 256, 512)


Choice = dict[str, "Value"]


@dataclass(eq=False)
class _Candidate:
    choice: Choice
    games: tuple[SearchableGame, SearchableGame]  # the start of a game, and a late position
    search: Search
    rates: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Evaluations per second of the candidate's best turn."""
        return max(self.rates)


def tune(
    options: Options, game: Game[Any, Any], seconds: float, say: Callable[[str], None]
) -> tuple[Tuning, list[dict[str, Any]]]:
    """Return the fastest settings for a network, and a table of all measurements.

    The options contain the network, the board size, and the device unless it is auto. Each candidate is searched for
    `seconds`.

    Raises:
        NetworkError: the network cannot be used.
        EvaluatorError: no backend can compute the network on this machine.
    """
    rows: list[dict[str, Any]] = []
    best, rate = _fastest(options, game, list(_backends(options)), seconds, rows, say)
    if best is None:
        raise EvaluatorError("no backend can compute this network on this machine: run `yomi doctor`")
    on_cpu = best["device"] == "cpu"  # a worker evaluates its own batches, one after another
    for variants in (_batches, _workers) if on_cpu else (_batches, _workers, _in_flight):
        found, found_rate = _fastest(options, game, list(variants(best)), seconds, rows, say)
        if found is not None:
            best, rate = found, found_rate
    return Tuning(best, rate), rows


def _backends(options: Options) -> Iterator[Choice]:
    """Yield choices of device, backend and precision. `_make` leaves out those that fail."""
    cores = usable_cores()
    kinds = [options.device]
    if options.device == "auto":
        kinds = [kind for kind, row in KINDS.items() if kind == "cpu" or not (row.is_for_tests or find_fault(kind))]
    for device in kinds:
        for backend in KINDS[device].backends:
            for precision in ("auto", "fp32"):
                yield {
                    "device": device,
                    "backend": backend,
                    "precision": precision,
                    "batch_size": None,
                    "workers": cores if device == "cpu" else None,
                    "batches_in_flight": 1 if device == "cpu" else 2,
                }


def _batches(best: Choice) -> Iterator[Choice]:
    for size in CPU_BATCHES if best["device"] == "cpu" else GPU_BATCHES:
        yield {**best, "batch_size": size}


def _workers(best: Choice) -> Iterator[Choice]:
    cores = usable_cores()
    counts = {1, cores // 2, cores} if best["device"] == "cpu" else {2, 3, 4, 6, cores // 2, cores}
    for count in sorted(counts - {0}):
        yield {**best, "workers": count}


def _in_flight(best: Choice) -> Iterator[Choice]:
    for count in (1, 2, 3, 4):
        yield {**best, "batches_in_flight": count}


def _fastest(
    options: Options,
    game: Game[Any, Any],
    choices: list[Choice],
    seconds: float,
    rows: list[dict[str, Any]],
    say: Callable[[str], None],
) -> tuple[Choice | None, float]:
    """Measure the choices in turns. Return the best with its evaluations per second, or (None, 0) if all fail."""
    with contextlib.ExitStack() as stack:
        candidates: list[_Candidate] = []
        for choice in choices:
            candidate = _make(options, game, choice, stack, say)
            if candidate is None:
                continue
            if any(candidate.choice == other.choice for other in candidates):
                continue  # auto has chosen the precision of another candidate
            if _rate(candidate, 1, WARM_UP, say) is not None:
                candidates.append(candidate)
        for _ in range(TURNS):
            for candidate in tuple(candidates):
                rate = _rate(candidate, 2, seconds / TURNS, say)
                if rate is None:
                    candidates.remove(candidate)
                else:
                    candidate.rates.append(rate)
        best: _Candidate | None = None
        for candidate in candidates:
            rows.append({**candidate.choice, "evaluations_per_second": candidate.rate})
            say(f"{_name(candidate)}: {candidate.rate:,.0f} evaluations/s")
            if best is None or candidate.rate > best.rate * CLEAR_GAIN:
                best = candidate
    return (best.choice, best.rate) if best is not None else (None, 0.0)


def _make(
    options: Options, game: Game[Any, Any], choice: Choice, stack: contextlib.ExitStack, say: Callable[[str], None]
) -> _Candidate | None:
    """Return a candidate with the settings that `auto` chose, or None if it fails. The stack closes its queue."""
    chosen = dataclasses.replace(options, **choice)  # type: ignore[arg-type]
    try:
        subject, queue, settings = stack.enter_context(game.benchmark_setup(chosen))
        search = Search(subject.spec, queue, settings)
    except EvaluatorError as error:
        say(f"{choice['device']}, {choice['backend']}, {choice['precision']}: {error}")
        return None
    evaluator = queue.evaluator
    settled = {
        **choice,
        "precision": getattr(evaluator, "precision", "fp32"),
        "batch_size": evaluator.batch_size,
        "workers": settings.workers,
        "batches_in_flight": settings.batches_in_flight,
    }
    return _Candidate({name: settled[name] for name in TUNED}, (subject.games[0], subject.games[-1]), search)


def _rate(candidate: _Candidate, games: int, seconds: float, say: Callable[[str], None]) -> float | None:
    """Return the evaluations per second on the first `games` positions, or None if the candidate fails."""
    try:
        counts = [search_counts(candidate.search, game, seconds / games) for game in candidate.games[:games]]
    except Exception as error:  # evaluators raise errors of any type
        say(f"{_name(candidate)}: {error}")
        return None
    return sum(count["evaluations_per_second"] for count in counts) / len(counts)


def search_counts(search: PositionSearch, game: SearchableGame, seconds: float) -> dict[str, float]:
    """Search `game` from scratch for `seconds` and return rates per second."""
    search.clear()
    search.set_position(game)
    report = search.run(Limits(seconds=seconds))
    return {
        "evaluations_per_second": report.evaluations / report.seconds,
        "playouts_per_second": report.playouts / report.seconds,
        "moves_per_second": search.moves_made / report.seconds,
    }


def _name(candidate: _Candidate) -> str:
    return ", ".join(f"{name} {value}" for name, value in candidate.choice.items())
