"""A series of games, as `yomi match`, `yomi duel` and `yomi tune` play it.

A series has a journal, the description of its run, a score and maybe a test. The games are played by a `SeriesPlayer`:
engines as processes (`runner`), searches side by side (`duel`), or either on a cluster (`remote`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from yomi.engine.clusters.jobs import Run, begin_run, folder_of
from yomi.engine.game import Game
from yomi.engine.matches.parts import check_journal, done_pairs, unit_of
from yomi.engine.matches.rating import Sprt
from yomi.engine.matches.results import GameResult, MatchJournal, points_of
from yomi.engine.matches.score import MatchState

T = TypeVar("T", contravariant=True)


class SeriesPlayer(Protocol[T]):
    """Plays the games of tasks."""

    def play(self, tasks: Sequence[T]) -> Iterator[GameResult]:
        """Play games, and yield each as it ends."""

    def close(self) -> None:
        """End unfinished games."""


class Series(AbstractContextManager["Series"]):
    """The games of a match, a duel or a tuning, in their folder. A context manager."""

    def __init__(
        self,
        run: Run,
        out: str,
        game: Game[Any, Any],
        description: Mapping[str, object],
        test: Sprt | None = None,
        make_kept: Callable[[], Mapping[str, object]] = dict,
        as_described_now: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
        count_done: Callable[[MatchJournal], int] | None = None,
    ) -> None:
        """Begin a series, or continue the series in the folder.

        Args:
            run: description of the run that starts now.
            out: folder of the run, or of its parts.
            game: game of the series.
            description: description of the games; see `MatchJournal`.
            test: ends the series when it is decided.
            make_kept: see `MatchJournal`.
            as_described_now: see `MatchJournal`.
            count_done: returns the number of finished units; None: pairs of games.

        Raises:
            MatchError: the folder contains another series, or contradicts itself.
            OSError: the description cannot be written.
        """
        self.run, self.folder = run, folder_of(Path(out), run.task)
        self.journal = MatchJournal(self.folder, description, make_kept, as_described_now)
        self.state, results = MatchState(test), self.journal.results
        try:
            if results:
                check_journal(self.folder, run, {game.name: game})
            done = count_done(self.journal) if count_done else len(done_pairs(results, run.settings, run.units))
            begin_run(self.folder, run, done, is_new=not results)
            for number, points in points_of(results).items():
                self.state.note(number, points)
        except BaseException:
            self.journal.close()
            raise

    @property
    def results(self) -> list[GameResult]:
        return self.journal.results

    def lacks(self, number: int) -> bool:
        """Return whether this run must still play game `number`."""
        task = self.run.task
        return number not in self.state.points and (task is None or task.has(unit_of(number)))

    def store(self, results: Iterable[GameResult]) -> Iterator[GameResult]:
        """Store each result, then yield it. End early if the test is decided."""
        for result in results:
            self.journal.add(result)
            for number, points in points_of([result]).items():
                self.state.note(number, points)
            yield result
            if self.state.is_decided:
                return

    def __exit__(self, *error: object) -> None:
        self.journal.close()
