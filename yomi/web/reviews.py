"""Reviews of games on the page: one after another in a thread. Each becomes a page of its own."""

import asyncio
import contextlib
import secrets
import tempfile
from collections import OrderedDict
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yomi
from yomi.engine.pages.review import review_page
from yomi.engine.registry import GAMES
from yomi.engine.reviews.review import Review
from yomi.engine.reviews.run import Reviewers, ReviewSettings
from yomi.engine.reviews.scans import Progress
from yomi.language import tr
from yomi.library.arguments import no_progress
from yomi.library.reviews import review_options
from yomi.web.engines import Engines
from yomi.web.games import UnknownIdError

MAX_REVIEWS = 50  # that are kept; the oldest ones are dropped
MAX_WAITING = 8  # reviews that run or wait
LOOK_SECONDS = 0.25  # between two looks at the progress


@dataclass(eq=False)
class PageReview(Progress):
    """A review, its progress, and its page."""

    engines: Engines
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    done: int = 0  # positions of the current pass
    of: int = 0
    page: str = ""  # after the first pass, and again at the end
    is_finished: bool = False
    error: str = ""

    def begin(self, scan: int, positions: int, known: int) -> None:
        self.done, self.of = known, positions

    def tick(self) -> None:
        self.done += 1
        if self.engines.is_ending:
            raise yomi.Error("the server ends")  # a review has no other end

    def first_pass(self, review: Review) -> None:
        self.page = review_page(review)

    def state(self) -> dict[str, Any]:
        """Return the progress for the page; play.js describes it (type Progress)."""
        return {
            "address": f"/reviews/{self.id}" if self.page else "",
            "done": self.done,
            "of": self.of,
            "isFinished": self.is_finished,
            "detail": self.error,
        }


class Reviews:
    """The reviews by id. All methods run in the event loop."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._reviews: OrderedDict[str, PageReview] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()

    def __contains__(self, review: PageReview) -> bool:
        return review.id in self._reviews

    def begin(self, record: str, suffix: str) -> PageReview:
        """Begin the review of a record, whose file would have this suffix. Raises Error if too many reviews wait."""
        if len(self._tasks) >= MAX_WAITING:
            raise yomi.Error(tr("too many reviews wait: try again later"))
        found = PageReview(self._engines)
        self._reviews[found.id] = found
        if len(self._reviews) > MAX_REVIEWS:
            self._reviews.popitem(last=False)
        task = asyncio.create_task(self._run(found, record, suffix))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return found

    def page(self, name: str) -> str:
        """Return the page of a review, or raise UnknownIdError."""
        if name not in self._reviews or not self._reviews[name].page:
            raise UnknownIdError(tr("this review is not known here any more: review the game again"))
        return self._reviews[name].page

    async def follow(self, review: PageReview) -> AsyncGenerator[dict[str, Any] | None, None]:
        """Yield the progress until the review has ended."""
        before = None
        while not (review.is_finished or review.error or self._engines.is_ending):
            if (now := review.state()) != before:
                yield now
            before = now
            await asyncio.sleep(LOOK_SECONDS)
        yield review.state()

    async def _run(self, review: PageReview, text: str, suffix: str) -> None:
        async with self._turn:
            try:
                review.page = await asyncio.to_thread(self._search, review, text, suffix)
                review.is_finished = True
            except Exception as error:
                review.error = str(error) or type(error).__name__
                if not isinstance(error, yomi.Error):
                    raise

    def _search(self, review: PageReview, text: str, suffix: str) -> str:
        options = self._engines.options
        reviewers = Reviewers(GAMES, lambda game: review_options(game, options), ReviewSettings(), no_progress)
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(reviewers):
            path = Path(folder) / f"game{suffix}"
            path.write_text(text, "utf-8")
            ((_, found),) = reviewers.review(path, review)
            return review_page(found)
