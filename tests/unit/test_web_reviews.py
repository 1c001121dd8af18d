"""`yomi serve`: reviews of games, and records of other sites."""

import asyncio
import contextlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import yomi
from tests.unit.test_web_tables import table
from yomi.web import links, reviews
from yomi.web.engines import Engines
from yomi.web.games import UnknownIdError
from yomi.web.reviews import PageReview, Reviews


def test_a_review_ends_with_the_server() -> None:
    engines = Engines({})
    review = PageReview(engines)
    review.tick()
    engines.end_searches()
    with pytest.raises(yomi.Error, match="the server ends"):
        review.tick()


def test_reviews_wait_for_each_other_and_old_ones_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "MAX_WAITING", 2)
    monkeypatch.setattr(reviews, "MAX_REVIEWS", 2)
    monkeypatch.setattr(Reviews, "_search", lambda _, review, text, suffix: _fail(text) if "PB[x]" in text else text)

    async def visit() -> None:
        kept = Reviews(Engines({}))
        games = [table("go", record=f"(;GM[1]SZ[9]PB[{name}];B[ee])") for name in "axbc"]
        first, second = games[0].begin_review(kept), games[1].begin_review(kept)
        assert games[0].begin_review(kept) is first
        with pytest.raises(yomi.Error, match="too many reviews wait"):
            games[2].begin_review(kept)
        lines = [[line async for line in kept.follow(each)][-1] for each in (first, second)]
        assert [(line["isFinished"], line["detail"]) for line in lines] == [(True, ""), (False, "broken")]
        assert "PB[a]" in kept.page(first.id)
        assert games[1].begin_review(kept) is not second, "a review that failed can be repeated"
        with pytest.raises(UnknownIdError):
            kept.page(first.id)
        assert games[0].begin_review(kept) is not first, "a dropped review can be repeated"

    asyncio.run(visit())


def _fail(text: str) -> str:
    raise yomi.Error("broken")


class Site(BaseHTTPRequestHandler):
    """A site with records."""

    def do_GET(self) -> None:
        number = self.path.rpartition("/")[2]
        self.send_response({"2": 302, "3": 404}.get(number, 200))
        self.send_header("Location", "/game/1")
        self.end_headers()
        with contextlib.suppress(OSError):  # the visitor has left
            self.wfile.write(b"(;GM[1]SZ[9];B[ee])" if number == "1" else bytes(2000))

    def log_message(self, *_: object) -> None: ...


def test_records_of_other_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    with HTTPServer(("127.0.0.1", 0), Site) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{site.server_port}"
        monkeypatch.setattr(links, "SITES", ((f"{address}/(.)", address + "/game/{}"),))
        monkeypatch.setattr(links, "MAX_BYTES", 1000)
        assert links.record_at(f" {address}/1\n") == "(;GM[1]SZ[9];B[ee])"
        for number, fault in (("2", "Found"), ("3", "Not Found"), ("4", "more than 1000 bytes")):
            with pytest.raises(yomi.Error, match=f"no record at {address}/game/{number} .*{fault}.*: save the game"):
                links.record_at(f"{address}/{number}")
        site.shutdown()
    with pytest.raises(yomi.Error, match="refused"):
        links.record_at(f"{address}/1")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("https://online-go.com/game/123", "https://online-go.com/api/v1/games/123/sgf"),
        ("https://online-go.com/api/v1/games/123/sgf", "https://online-go.com/api/v1/games/123/sgf"),
        ("https://lishogi.org/abcdEFGH/sente", "https://lishogi.org/game/export/abcdEFGH"),
        ("https://lishogi.org/game/export/abcdEFGH?clocks=0", "https://lishogi.org/game/export/abcdEFGH"),
        ("https://lishogi.org/abcdEFGHijkl", "https://lishogi.org/game/export/abcdEFGH"),
        ("https://online-go.com.evil.org/game/123", None),
        ("https://online-go.com@evil.org/game/123", None),
        ("http://127.0.0.1/game/123", None),
        ("file:///etc/passwd", None),
        ("(;GM[1]SZ[9]C[https://online-go.com/game/123])", None),
    ],
)
def test_only_some_sites_are_asked(monkeypatch: pytest.MonkeyPatch, text: str, asked: str | None) -> None:
    monkeypatch.setattr(links, "_download", lambda address: f"record of {address}")
    assert links.record_at(text) == (text if asked is None else f"record of {asked}")
