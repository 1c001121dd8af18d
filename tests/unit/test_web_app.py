"""`yomi serve`: heads and bodies of requests, and the language of errors."""

import asyncio
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from yomi.web.engines import Engines


@pytest.fixture
def web_app() -> Any:
    """Return the module of the application, which needs an extra."""
    pytest.importorskip("fastapi", reason="the extra web is not installed")
    from yomi.web import app

    return app


def protocol_of(web_app: Any, connection: Any) -> Any:
    import uvicorn

    protocol = web_app.Protocol(
        uvicorn.Config(web_app.make_app(Engines({}))), uvicorn.server.ServerState(), {}, connection
    )
    protocol.connection_made(connection)
    return protocol


class Connection:
    """Stands for asyncio's loop and transport: it records timers and the end of the connection."""

    def __init__(self) -> None:
        self.timers: list[Any] = []
        self.is_closed = False

    def call_later(self, seconds: float, action: Any) -> Any:
        timer = SimpleNamespace(action=action, cancel=lambda: self.timers.remove(timer))
        self.timers.append(timer)
        return timer

    def create_task(self, work: Any) -> Any:
        work.close()  # the application does not answer
        return self

    def add_done_callback(self, action: Any) -> None: ...

    def close(self) -> None:
        self.is_closed = True

    def get_extra_info(self, name: str) -> None: ...


@pytest.mark.parametrize("pieces", [[], [b"POST /api"], [b"P", b"OST / HTTP/1.1\r\nHost: local", b"host\r\nX: 1"]])
def test_half_sent_heads_have_a_limited_time(pieces: list[bytes], web_app: Any) -> None:
    connection = Connection()
    protocol = protocol_of(web_app, connection)
    for piece in pieces:
        protocol.data_received(piece)
    (timer,) = connection.timers  # the first one: more bytes win no time
    timer.action()
    assert connection.is_closed


def test_whole_heads_have_no_limit(web_app: Any) -> None:
    connection = Connection()
    protocol_of(web_app, connection).data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert not connection.timers


def test_half_sent_bodies_have_a_limited_time(web_app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_app, "REQUEST_SECONDS", 0.0)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"9")]
    scope = {"type": "http", "method": "POST", "path": "/api/games", "scheme": "http", "headers": headers}
    asyncio.run(web_app.make_app(Engines({}))({**scope, "query_string": b"", "server": None}, receive, send))
    assert sent[0]["status"] == 408


@pytest.mark.parametrize(
    ("language", "broken", "unknown"),
    [
        ("ja", "別のゲームです", "この対局はもう残っていません"),
        ("en", "is another game", "this game is not known"),
    ],
)
def test_errors_have_the_language_of_the_page(language: str, broken: str, unknown: str, web_app: Any) -> None:
    app = web_app.make_app(Engines({}))

    def ask(path: str, body: object = None) -> Any:
        sent: list[Any] = []
        data = b"" if body is None else json.dumps(body).encode()

        async def receive() -> Any:
            return {"type": "http.request", "body": data}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        headers.append((b"accept-language", language.encode()))
        method = "GET" if body is None else "POST"
        scope = {"type": "http", "method": method, "path": path, "scheme": "http", "headers": headers}
        asyncio.run(app({**scope, "query_string": b"", "server": None}, receive, send))
        return json.loads(b"".join(message.get("body", b"") for message in sent))

    assert unknown in ask("/api/games/none")["detail"]
    record = "手合割：5五将棋\n   1 ５四歩(55)\n"
    assert broken in ask("/api/games", {"game": "shogi", "record": record})["detail"]
    name = ask("/api/games", {"game": "shogi"})["id"]
    for move in ("7g7e", "xx"):
        detail = ask(f"/api/games/{name}/move", {"move": move})["detail"]
        assert bool(re.search("[ぁ-ん]", detail)) == (language == "ja"), detail
