"""The HTTP interface of `yomi serve`, and the page. `/openapi.json` describes the interface."""

import asyncio
import contextlib
import functools
import hmac
import ipaddress
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from importlib.resources import files
from typing import Any, Literal, TypeVar

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

import yomi
from yomi import language
from yomi.engine.pages.review import fill
from yomi.web.engines import Engines
from yomi.web.games import MAX_RECORD
from yomi.web.links import record_at
from yomi.web.reviews import Reviews
from yomi.web.tables import Sides, Table, Tables, new_table

MAX_BODY = 4 * MAX_RECORD  # bytes of a request
AFTER = Query(None, ge=0, description="number of moves that the visitor has seen; 409 if the game has another number")
MAX_SECONDS = 60.0  # of a move or a hint
REQUEST_SECONDS = 20.0  # in which the head of a request must arrive, and then its body
LOOK_SECONDS = 0.25  # between two checks that a visitor is still connected
HEADERS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))
# play.js comes last: it begins a game
PARTS = ("play.html", "texts.js", "live.js", "keys.js", "play.js")
T = TypeVar("T")
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)

PAGE_HEADERS = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Clock(Body):
    main: float = Field(0.0, ge=0, le=86400, description="seconds of main time")
    byoyomi: float = Field(0.0, ge=0, le=3600, description="seconds of an overtime period")
    periods: int = Field(1, ge=1, le=99, description="overtime periods, each for one move")
    increment: float = Field(0.0, ge=0, le=3600, description="seconds added after each move")


class NewGame(Body):
    game: Literal["go", "shogi"] = "go"
    size: int = Field(9, ge=2, le=19, description="Go: columns of the board")
    height: int | None = Field(None, ge=2, le=19, description="Go: rows of the board; none: as many as columns")
    handicap: int = Field(0, ge=0, le=9, description="Go: number of stones")
    rules: str = Field("chinese", max_length=100, description="Go: a name of rules, such as japanese")
    komi: float | None = Field(None, ge=-150, le=150, description="Go; none: that of the rules, 0.5 with a handicap")
    gives: str = Field("", max_length=16, description="shogi: handicap of White, such as lance, rook or 2-piece")
    human: Sides = "black"
    level: int = Field(0, ge=0, le=20, description="strength of the engine from 1 to 20 (full); 0: full strength")
    seconds: float = Field(1.0, gt=0, le=MAX_SECONDS, description="time of the engine's moves")
    clock: Clock | None = Field(None, description="of both sides; the engine then divides its time itself")
    record: str | None = Field(None, max_length=MAX_RECORD, description="SGF, CSA, KIF ... or a game on OGS or lishogi")


class Move(Body):
    move: str = Field(max_length=12, description="GTP vertex or pass; shogi: USI, CSA, ７六歩 or P-7f")


class Mark(Body):
    stone: str | None = Field(None, max_length=8, description="GTP vertex; none: let the engine propose dead stones")


class Hint(Body):
    seconds: float = Field(1.0, gt=0, le=MAX_SECONDS)


def make_app(engines: Engines, *, token: str = "", hosts: frozenset[str] = frozenset()) -> FastAPI:
    """Return the application.

    Args:
        engines: shared by all visitors.
        token: required in the header `Authorization: Bearer TOKEN`; empty: no token is required.
        hosts: accepted values of the header `Host`, in lower case and without the port; empty: any. With a token every
            numeric address is accepted, too. This refuses web sites that point their own name at this machine.
    """
    # no pages of FastAPI: they load scripts from another site
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        title="yomi",
        version=yomi.__version__,
        description="Games of Go and shogi with yomi.",
    )
    tables, reviews = Tables(), Reviews(engines)

    @app.exception_handler(yomi.Error)
    async def refuse(_: Request, error: yomi.Error) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, getattr(error, "status", 400))

    @app.exception_handler(RequestValidationError)
    async def explain(_: Request, error: RequestValidationError) -> JSONResponse:
        faults = [
            f"{'.'.join(map(str, fault['loc'][1:])) or 'the request'}: {fault['msg']}" for fault in error.errors()
        ]
        is_long = any(fault["type"] == "string_too_long" and fault["loc"][-1] == "record" for fault in error.errors())
        return JSONResponse({"detail": "; ".join(faults)}, 413 if is_long else 422)

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(play_page(), headers=PAGE_HEADERS)

    # Its name is a secret: a link cannot send a token.
    @app.get("/reviews/{name}", response_class=HTMLResponse, summary="Return the page of a review")
    async def review_page(name: str) -> HTMLResponse:
        return HTMLResponse(reviews.page(name), headers=PAGE_HEADERS)

    # Quick answers are given in the event loop: a thread would have to wait for the searches' threads once more.

    @app.post("/api/games", summary="Begin a game, or continue a record")
    def begin(body: NewGame, request: Request) -> dict[str, Any]:
        visitor = request.client.host if request.client else ""
        record = body.record and record_at(body.record)  # this function runs in a thread
        table = new_table(**body.model_dump() | {"record": record}, visitor=visitor)
        dropped = tables.add(table)
        closed = {"dropped": dropped} if dropped else {}  # ids of older games of this visitor
        return {**table.state(), **closed}

    @app.get("/api/games/{name}", summary="Show a game")
    async def show(name: str) -> dict[str, Any]:
        return tables.get(name).state()

    @app.get("/api/games/{name}/events", summary="Follow a game: a line of JSON for each change, and empty lines")
    async def follow(name: str) -> StreamingResponse:
        return StreamingResponse(_lines(tables.get(name).follow(engines)), media_type="application/x-ndjson")

    @app.post("/api/games/{name}/move", summary="Play a move for the side to move")
    async def play(name: str, body: Move, after: int | None = AFTER) -> dict[str, Any]:
        return _after(tables.get(name, after), lambda table: table.play(body.move))

    @app.post("/api/games/{name}/engine", summary="Let the engine play its move; answers when it has moved")
    async def answer(name: str, request: Request) -> dict[str, Any]:
        table = tables.get(name)
        await _while_connected(request, engines, table.answer(engines))
        return table.state()

    @app.post("/api/games/{name}/undo", summary="Take back a resignation or the last moves")
    async def undo(name: str, after: int | None = AFTER) -> dict[str, Any]:
        return _after(tables.get(name, after), Table.undo)

    @app.post("/api/games/{name}/resign", summary="Resign")
    async def resign(name: str) -> dict[str, Any]:
        return _after(tables.get(name), Table.resign)

    @app.post("/api/games/{name}/dead", summary="Go, after both sides have passed: mark dead stones or take marks away")
    async def mark(name: str, body: Mark, request: Request, after: int | None = AFTER) -> dict[str, Any]:
        table = tables.get(name, after)
        if body.stone is None:
            await _while_connected(request, engines, table.propose_dead(engines))
        else:
            table.mark(body.stone)
        return table.state()

    @app.post("/api/games/{name}/agree", summary="Go: count the board without the marked stones")
    async def agree(name: str, after: int | None = AFTER) -> dict[str, Any]:
        return _after(tables.get(name, after), Table.agree)

    @app.post("/api/games/{name}/hint", summary="Search the position: candidates, winrate, score, territory")
    async def hint(name: str, body: Hint, request: Request) -> dict[str, Any]:
        return await _while_connected(request, engines, tables.get(name).hint(engines, body.seconds))

    @app.post("/api/games/{name}/check", summary="Return the loss of a move: winrate, points, and whether to warn")
    async def check(name: str, body: Move, request: Request) -> dict[str, Any]:
        return await _while_connected(request, engines, tables.get(name).check(engines, body.move))

    @app.post(
        "/api/games/{name}/analysis", summary="Search until the request is closed: a line of JSON for each report"
    )
    async def analyse(name: str) -> StreamingResponse:
        return StreamingResponse(_lines(tables.get(name).analyse(engines)), media_type="application/x-ndjson")

    @app.post(
        "/api/games/{name}/review", summary="Review the game: a line of JSON for each step, at last with its page"
    )
    async def review(name: str) -> StreamingResponse:
        found = tables.get(name).begin_review(reviews)
        return StreamingResponse(_lines(reviews.follow(found)), media_type="application/x-ndjson")

    @app.get("/api/games/{name}/record", summary="Return the game as SGF or KIF")
    def record(name: str) -> Response:
        text, ending = tables.get(name).record()
        head = {"Content-Disposition": f'attachment; filename="yomi{ending}"'}
        return PlainTextResponse(text, headers=head)

    app.add_middleware(Guard, token=token, hosts=hosts)
    return app


def _after(table: Table, action: Callable[[Table], None]) -> dict[str, Any]:
    action(table)
    return table.state()


async def _while_connected(request: Request, engines: Engines, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`. If the visitor closes the connection, cancel `work`, which ends its search."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=LOOK_SECONDS))[0]:
            if await request.is_disconnected():
                raise HTTPException(499, "the visitor has left")
            if engines.is_ending:
                raise HTTPException(503, "the server ends")
        return task.result()
    finally:
        task.cancel()


async def _lines(items: AsyncGenerator[dict[str, Any] | None, None]) -> AsyncIterator[str]:
    """Yield lines of JSON, and an empty line for None. An error becomes a line, too, because the answer has begun."""
    try:
        async with contextlib.aclosing(items):
            async for item in items:
                yield ("" if item is None else json.dumps(item)) + "\n"
    except yomi.Error as error:
        yield json.dumps({"detail": str(error)}) + "\n"


@functools.cache
def play_page() -> str:
    """Return the page for playing. It contains its script and style, and asks this server only."""
    own = files("yomi.web")
    return fill(*(own.joinpath(name).read_text("utf-8") for name in PARTS))


class Protocol(H11Protocol):
    """HTTP of one connection. The connection is closed if the head of a request takes too long."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        if self._timer:
            self._timer.cancel()

    def _watch(self) -> None:
        is_waiting = self.cycle is None or self.cycle.response_complete
        if self._timer and not is_waiting:
            self._timer.cancel()
            self._timer = None
        elif is_waiting and not self._timer:
            self._timer = self.loop.call_later(REQUEST_SECONDS, self.transport.close)


class Guard:
    """Refuses bad requests before the application sees them: wrong addresses or tokens, other sites, large bodies."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if fault := self._fault(scope):
            status, detail = fault
            if status == 413:  # a connection that is closed before the end of the body loses the answer
                await _skip_body(receive)
            await JSONResponse({"detail": detail}, status)(scope, receive, send)
            return
        seen, is_whole = 0, False
        end = asyncio.get_running_loop().time() + REQUEST_SECONDS

        async def limited() -> Message:  # a body may also come in parts without a length
            nonlocal seen, is_whole
            try:
                async with asyncio.timeout_at(None if is_whole else end):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"expected the whole request within {REQUEST_SECONDS:.0f} s") from None
            seen += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if seen > MAX_BODY:
                await _skip_body(receive)
                raise HTTPException(413, f"expected at most {MAX_BODY} bytes")
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        wanted = dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1")
        with language.within(language.JAPANESE if wanted.startswith("ja") else language.ENGLISH):  # of errors
            await self._app(scope, limited, with_headers)

    def _fault(self, scope: Scope) -> tuple[int, str] | None:
        """Return the status and reason for refusing a request, or None to accept it."""
        # Raw values: starlette derives `request.url` from the header Host, or from the server's address if that fails.
        sent: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            sent.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        length = sent.get("content-length", ["0"])[0]
        if not length.isdecimal() or int(length) > MAX_BODY:
            return 413, f"expected at most {MAX_BODY} bytes"
        is_api = scope["path"].startswith("/api/")
        given = sent.get("authorization", [""])[0].removeprefix("Bearer ")
        if is_api and self._token and not hmac.compare_digest(given.encode(), self._token.encode()):
            return 401, "the token is missing or wrong: use the address that yomi printed"
        hosts = sent.get("host", [])
        if self._hosts and not (len(hosts) == 1 and self._is_own(hosts[0])):
            return 421, "expected this machine's own address"
        own = [f"{scope['scheme']}://{host}" for host in hosts]
        if is_api and any([origin] != own for origin in sent.get("origin", [])):
            return 403, "requests of other sites are refused"
        return None

    def _is_own(self, host: str) -> bool:
        """Return whether a header `Host` is one of the accepted names, or with a token a numeric address."""
        name = re.sub(":[0-9]{1,5}$", "", host.lower())
        if name in self._hosts or not self._token:
            return name in self._hosts
        try:
            return bool(ipaddress.ip_address(name[1:-1] if re.fullmatch(r"\[[0-9a-f:.]+\]", name) else name))
        except ValueError:
            return False


async def _skip_body(receive: Receive) -> None:
    """Read and drop the rest of a body, for a limited time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REQUEST_SECONDS):
            while (await receive()).get("more_body", False):
                pass
