"""`yomi serve`: a real server on loopback, asked as a browser asks it."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.process.engine_process import ROOT
from tests.process.prepared import prepared
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

pytest.importorskip("fastapi", reason="the extra web is not installed")
PATIENCE = 300.0  # seconds until a server has compiled and answers
SIDES = ("both", "white")
FUZZED = 10_000 if os.environ.get("YOMI_EVERY_STATE") else 300


class Server:
    """`yomi serve` as a process."""

    def __init__(self, *words: str) -> None:
        command = prepared("yomi", "serve", "--port", "0", *words)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.host, _, self.port = self.address.split("/")[2].rpartition(":")

    def ask(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
    ) -> tuple[int, str]:
        """Return status and text of an answer. A body of bytes is sent as it is, another one as JSON."""
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=PATIENCE)
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        try:
            connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        finally:
            connection.close()

    def post(self, path: str, body: Any) -> dict[str, Any]:
        status, text = self.ask("POST", f"/api/games{path}", body)
        assert status == 200, text
        answer: dict[str, Any] = json.loads(text)
        return answer

    def refused(self, path: str, body: Any, **more: Any) -> tuple[int, str]:
        status, text = self.ask("POST", f"/api/games{path}", body, **more)
        assert status >= 400
        return status, json.loads(text)["detail"]

    def end(self, *expected: int) -> str:
        """End the server by Ctrl-C, and return what it wrote to stderr. The status is 0, or one of those expected."""
        self.process.send_signal(signal.SIGINT)
        try:
            _, errors = self.process.communicate(timeout=PATIENCE)
        finally:
            self.process.kill()  # whatever failed: a process that is left would be a fault of the next test
        assert self.process.returncode in (expected or (0,))
        return errors


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    assert "Traceback" not in running.end()


def test_a_game_of_go(server: Server) -> None:
    game = server.post("", {"size": 5, "level": 1, "seconds": 0.2})
    assert (game["toMove"], game["isHumansTurn"], game["moves"]) == ("B", True, [])
    path = f"/{game['id']}"
    assert server.post(f"{path}/move", {"move": "C3"})["isHumansTurn"] is False
    after = server.post(f"{path}/engine", {})
    assert len(after["moves"]) == 2
    assert after["isHumansTurn"]
    assert server.post(f"{path}/engine", {}) == after, "it is not the engine's turn"
    hint = server.post(f"{path}/hint", {"seconds": 0.2})
    assert 0.0 <= hint["winrate"] <= 1.0
    assert len(hint["ownership"]) == 25
    assert len(hint["candidates"][0]) == 6
    assert json.loads(server.ask("GET", f"/api/games{path}")[1]) == after, "a page that is loaded again loses nothing"
    assert server.post(f"{path}/undo", {})["moves"] == []
    status, text = server.ask("GET", f"/api/games{path}/record")
    assert (status, text[:5]) == (200, "(;FF[")
    assert server.post(f"{path}/resign", {})["result"] == "W+R"
    assert server.refused(f"{path}/move", {"move": "A1"})[1].startswith("the game is over")
    assert server.post(f"{path}/undo", {})["result"] == "", "a resignation can be taken back"


def test_a_game_of_shogi(server: Server) -> None:
    game = server.post("", {"game": "shogi", "human": "white", "level": 1, "seconds": 0.2})
    path = f"/{game['id']}"
    assert not game["isHumansTurn"]
    after = server.post(f"{path}/engine", {})
    assert len(after["moves"]) == 1
    assert "3c3d" in after["legal"]
    assert server.post(f"{path}/move", {"move": "3c3d"})["moves"][1] == "3c3d"
    assert "先手：yomi" in server.ask("GET", f"/api/games{path}/record")[1]


def test_a_review(server: Server) -> None:
    game = server.post("", {"size": 5, "human": "both"})
    path = f"/{game['id']}"
    assert server.refused(f"{path}/review", {})[1].startswith("a review needs a game with moves")
    server.post(f"{path}/move", {"move": "C3"})
    assert server.post(f"{path}/move", {"move": "A1"})["review"] is None
    status, text = server.ask("POST", f"/api/games{path}/review", {})
    lines = [json.loads(line) for line in text.splitlines()]
    assert (status, lines[-1]["isFinished"], lines[-1]["done"]) == (200, True, lines[-1]["of"])
    assert json.loads(server.ask("GET", f"/api/games{path}")[1])["review"] == lines[-1]
    assert server.ask("POST", f"/api/games{path}/review", {})[1].splitlines()[-1] == text.splitlines()[-1], "made once"
    status, page = server.ask("GET", lines[-1]["address"])
    assert (status, '"moves":[{"move":"C3"' in page) == (200, True)
    assert server.post(f"{path}/undo", {})["review"] is None, "it is the review of another game"
    assert server.ask("GET", "/reviews/none")[0] == 404


def test_changes_are_followed_and_stale_moves_refused() -> None:
    running = Server()
    connection = http.client.HTTPConnection(running.host, int(running.port), timeout=PATIENCE)
    try:
        path = f"/{running.post('', {'size': 5, 'human': 'both'})['id']}"
        connection.request("GET", f"/api/games{path}/events")
        lines = connection.getresponse()
        assert json.loads(lines.readline())["moves"] == []
        running.post(f"{path}/move?after=0", {"move": "C3"})
        assert json.loads(lines.readline())["moves"] == ["C3"]
        for action, body in (("move", {"move": "A1"}), ("undo", {}), ("agree", {}), ("dead", {})):
            status, detail = running.refused(f"{path}/{action}?after=0", body)
            assert (status, detail[:32]) == (409, "the game has changed in another ")
        assert running.post(f"{path}/undo?after=1", {})["moves"] == []
        assert json.loads(lines.readline())["moves"] == []
    finally:
        errors = running.end()  # although a page follows
    assert "Traceback" not in errors
    assert lines.read() == b""
    connection.close()


def test_a_board_that_is_not_square(server: Server) -> None:
    game = server.post("", {"size": 7, "height": 5, "human": "black", "seconds": 0.1})
    assert (game["width"], game["height"]) == (7, 5)
    path = f"/{game['id']}"
    server.post(f"{path}/move", {"move": "G5"})
    assert len(server.post(f"{path}/engine", {})["moves"]) == 2
    assert len(server.post(f"{path}/hint", {"seconds": 0.1})["ownership"]) == 35
    assert server.refused(f"{path}/move", {"move": "A6"})[0] == 400
    assert "SZ[7:5]" in server.ask("GET", f"/api/games{path}/record")[1]
    game = server.post("", {"record": "(;GM[1]SZ[5:7]AB[cc];W[eg])", "human": "both"})
    assert (game["width"], game["height"]) == (5, 7)


def test_records_are_continued(server: Server) -> None:
    game = server.post("", {"record": "(;GM[1]SZ[9]AB[cc];W[ee];B[gg])", "human": "both"})
    assert game["moves"] == ["E5", "G3"]
    assert game["stones"] == [["B", "C7"]]
    assert (game["first"], game["toMove"]) == ("W", "W")
    game = server.post("", {"game": "shogi", "record": "position startpos moves 7g7f 3c3d", "human": "both"})
    assert game["moves"] == ["7g7f", "3c3d"]
    assert server.refused("", {"record": "no record"})[0] == 400
    handicap = server.post("", {"size": 19, "handicap": 4, "human": "white"})
    assert len(handicap["stones"]) == 4
    assert handicap["isHumansTurn"]


def test_a_game_of_go_is_counted_by_agreement(server: Server) -> None:
    wall = "".join(f";B[c{row}];W[b{row}]" for row in "abcde")
    game = server.post("", {"record": f"(;GM[1]SZ[5]KM[0.5]{wall};B[ad];W[])", "human": "both"})
    path = f"/{game['id']}"
    assert server.refused(f"{path}/dead", {}) == (400, "dead stones are marked when both sides have passed: pass first")
    after = server.post(f"{path}/move", {"move": "pass"})
    assert (after["counting"]["dead"], after["result"]) == (None, "")
    after = server.post(f"{path}/dead", {})
    assert after["counting"] == {"dead": ["A2"], "result": "B+4.5"}, "the engine proposes the stone that cannot live"
    assert server.post(f"{path}/dead", {"stone": "A2"})["counting"]["dead"] == []
    server.post(f"{path}/dead", {"stone": "A2"})
    after = server.post(f"{path}/agree", {})
    assert (after["result"], after["ending"]["winner"], after["counting"]) == ("B+4.5", "B", None)
    assert "RE[B+4.5]" in server.ask("GET", f"/api/games{path}/record")[1]


def test_a_game_with_clocks(server: Server) -> None:
    clock = {"main": 60, "increment": 2}
    game = server.post("", {"game": "shogi", "human": "black", "level": 1, "clock": clock})
    path = f"/{game['id']}"
    server.post(f"{path}/move", {"move": "7g7f"})
    after = server.post(f"{path}/engine", {})
    assert len(after["moves"]) == 2
    assert 2 < after["clocks"]["W"]["main"] < 62, "the engine divides its time"
    short = server.post("", {"size": 5, "clock": {"main": 0.001}})
    wait_until(lambda: json.loads(server.ask("GET", f"/api/games/{short['id']}")[1])["result"] == "W+T")
    assert server.refused("", {"clock": {}})[1].startswith("a clock without time found")


class Analysis:
    """An analysis that is read line by line."""

    def __init__(self, server: Server, path: str) -> None:
        self.connection = http.client.HTTPConnection(server.host, int(server.port), timeout=PATIENCE)
        self.connection.request("POST", f"/api/games{path}/analysis", b"{}", {"Content-Type": "application/json"})
        self.answer = self.connection.getresponse()

    def read(self) -> Any:
        """Return the next report; None at the end."""
        line = self.answer.readline()
        return json.loads(line) if line else None

    def end(self) -> None:
        self.answer.close()
        self.connection.close()


def test_analyses_go_on_until_the_position_changes(server: Server) -> None:
    game = server.post("", {"size": 5, "human": "both"})
    path = f"/{game['id']}"
    analysis = Analysis(server, path)
    first, second = analysis.read(), analysis.read()
    assert first["ply"] == 0
    assert second["visits"] > first["visits"] > 0
    assert len(second["candidates"][0]) == 6
    loss = server.post(f"{path}/check", {"move": "A1"})["loss"]
    assert loss > 0.1, "the corner is a mistake"
    assert server.post(f"{path}/check", {"move": second["candidates"][0][0]})["loss"] < 0.1
    assert server.refused(f"{path}/check", {"move": "Z1"})[0] == 400
    server.post(f"{path}/move", {"move": "C3"})
    while analysis.read() is not None:
        pass
    analysis.end()


def test_analyses_share_the_engine_and_give_way_to_games(server: Server) -> None:
    games = [server.post("", {"size": 5, "human": "both"})["id"] for _ in range(3)]
    for game in games[1:]:
        server.post(f"/{game}/move", {"move": "C3"})
    analyses = [Analysis(server, f"/{game}") for game in games]
    assert [analysis.read()["ply"] for analysis in analyses] == [0, 1, 1], "each has its turn"
    other = server.post("", {"size": 5, "human": "white", "level": 0, "seconds": 0.1})
    assert len(server.post(f"/{other['id']}/engine", {})["moves"]) == 1
    assert analyses[0].read()["visits"] > 0, "the analysis continues after the move"
    for analysis in analyses:
        analysis.end()


def test_twenty_visitors_at_once(server: Server) -> None:
    def play(number: int) -> int:
        game = server.post("", {"size": 5, "level": 1, "seconds": 0.1, "human": "white" if number % 2 else "black"})
        path = f"/{game['id']}"
        if number % 2 == 0:
            server.post(f"{path}/move", {"move": "C3"})
        after = server.post(f"{path}/engine", {})
        assert server.ask("GET", "/")[0] == 200
        return len(after["moves"])

    with ThreadPoolExecutor(20) as visitors:
        assert list(visitors.map(play, range(20))) == [2, 1] * 10


def test_faults_are_one_line(server: Server) -> None:
    game = server.post("", {"size": 9})
    for path, body, expected in (
        (f"/{game['id']}/move", {"move": "Z9"}, "invalid vertex 'Z9': expected A1 to J9 or pass"),
        (f"/{game['id']}/move", {"move": 7}, "move: Input should be a valid string"),
        ("/none/move", {"move": "A1"}, "this game is not known here any more: begin another game"),
        ("", {"size": 99}, "size: Input should be less than or equal to 19"),
        ("", {"size": 9, "stones": 3}, "stones: Extra inputs are not permitted"),
        ("", {"size": 2, "handicap": 4}, "handicap"),
        ("", {"komi": 151}, "komi: Input should be less than or equal to 150"),
        ("", {"rules": "mine"}, "rules"),
    ):
        status, detail = server.refused(path, body)
        assert 400 <= status < 500
        assert expected in detail
        assert "\n" not in detail


def test_other_sites_are_refused(server: Server) -> None:
    own = f"http://{server.host}:{server.port}"
    assert server.ask("POST", "/api/games", {}, headers={"Origin": own})[0] == 200
    assert server.ask("POST", "/api/games", {}, headers={"Origin": "http://evil.example"})[0] == 403
    assert server.ask("GET", "/", headers={"Host": "evil.example"})[0] == 421, "a name that leads to this machine"
    assert server.ask("POST", "/api/games", b"x" * 5_000_000)[0] == 413


def raw(server: Server, head: bytes, body: bytes = b"") -> bytes:
    """Send bytes, and return all that comes back until the server closes the connection."""
    with socket.create_connection((server.host, int(server.port)), timeout=PATIENCE) as connection:
        connection.sendall(head.replace(b"\n", b"\r\n") + b"Connection: close\r\n\r\n" + body)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


FOREIGN = (
    *(f"a{mark}b.example" for mark in "{}\"`<>|^\\%_ ~'"),
    *("", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example#127.0.0.1", "a@127.0.0.1"),
    *("127.0.0.1/x", "127.0.0.1:80:80", "127.0.0.1:x", "[::1", "::1", "[::1]x", "localhost.", "0x7f000001", "127.1"),
)


@pytest.mark.parametrize("path", [b"/", b"/api/games"])
def test_only_literal_names_of_this_machine_are_answered(server: Server, path: bytes) -> None:
    for name in FOREIGN:
        host = name.encode() + b":" + server.port.encode()
        head = b"GET %s HTTP/1.1\nHost: %s\nOrigin: http://%s\n" % (path, host, host)
        assert raw(server, head).split()[1] in (b"421", b"400"), name
    own = f"127.0.0.1:{server.port}".encode()
    assert raw(server, b"GET %s HTTP/1.0\n" % path).split()[1] == b"421", "no name"
    assert raw(server, b"GET %s HTTP/1.1\nHost: %s\nHost: evil.example\n" % (path, own)).split()[1] in (b"421", b"400")
    for host in (own, b"127.0.0.1", b"LocalHost:1", b"[::1]:8649"):  # a tunnel has another port
        assert raw(server, b"GET %s HTTP/1.1\nHost: %s\n" % (path, host)).split()[1] in (b"200", b"405"), host


def test_large_requests_are_answered(server: Server) -> None:
    assert server.refused("", {"record": "x" * 1_000_001})[0] == 413
    head = b"POST /api/games HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
    large = b"x" * 20_000_000  # more than the buffers of both ends
    assert raw(server, head + b"Content-Length: 20000000\n", large).split()[1] == b"413"
    assert (
        raw(server, head + b"Transfer-Encoding: chunked\n", b"1312d00\r\n" + large + b"\r\n0\r\n\r\n").split()[1]
        == b"413"
    )


def test_the_page_asks_no_other_host(server: Server) -> None:
    status, page = server.ask("GET", "/")
    assert status == 200
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_a_visitor_that_leaves_ends_the_search(server: Server) -> None:
    game = server.post("", {"size": 5, "human": "white", "level": 0, "seconds": 60})
    server.post(f"/{server.post('', {'size': 5})['id']}/hint", {"seconds": 0.1})  # the engine is loaded
    connection = http.client.HTTPConnection(server.host, int(server.port), timeout=PATIENCE)
    connection.request("POST", f"/api/games/{game['id']}/engine", b"{}", {"Content-Type": "application/json"})
    time.sleep(1.0)
    connection.close()
    begin = time.monotonic()
    other = server.post("", {"size": 5, "human": "white", "level": 0, "seconds": 0.1})
    assert len(server.post(f"/{other['id']}/engine", {})["moves"]) == 1
    assert time.monotonic() - begin < 50, "another visitor does not wait for it"


def test_the_server_ends_while_visitors_search() -> None:
    running = Server()
    try:
        game, other = (
            running.post("", {"size": 5, "human": human, "level": 0, "seconds": 60})["id"] for human in SIDES
        )
        analysis = Analysis(running, f"/{game}")
        assert analysis.read()["visits"] > 0
        connection = http.client.HTTPConnection(running.host, int(running.port), timeout=PATIENCE)
        connection.request("POST", f"/api/games/{other}/engine", b"{}", {"Content-Type": "application/json"})
        time.sleep(0.5)
    finally:
        errors = running.end()
    assert [line[:20] for line in errors.splitlines()] == ["yomi: Ctrl-C ends th", "yomi: go: b10c384h6n"]
    analysis.end()
    connection.close()


def test_another_address_needs_the_token() -> None:
    pytest.importorskip("segno", reason="the extra web is not installed")
    running = Server("--host", "127.0.0.2")
    try:
        address, _, token = running.address.partition("#token=")
        assert address == f"http://127.0.0.2:{running.port}/"
        assert len(token) >= 20
        assert running.ask("POST", "/api/games", {})[0] == 401
        assert running.ask("POST", "/api/games", {}, headers={"Authorization": "Bearer wrong"})[0] == 401
        assert running.ask("POST", "/api/games", {}, headers={"Host": "x/page?"})[0] == 401, "the host changes no path"
        bearer = {"Authorization": f"Bearer {token}"}
        assert running.ask("POST", "/api/games", {}, headers=bearer)[0] == 200
        for host, status in (
            ("evil.example", 421),
            ("a{b.example", 421),
            ("192.0.2.7:80", 200),
            ("[2001:db8::1]", 200),
        ):
            assert running.ask("POST", "/api/games", {}, headers={**bearer, "Host": host})[0] == status, host
        assert running.ask("GET", "/", headers={"Host": "a`b.example"})[0] == 421
        assert token not in running.ask("GET", "/")[1]
    finally:
        running.process.send_signal(signal.SIGINT)
        output, errors = running.process.communicate(timeout=PATIENCE)
    assert token not in errors
    assert "█▀" in output, "the QR code"
    assert "warning: everybody who has this address can play here" in errors


def test_other_machines_get_an_address(server: Server) -> None:
    pytest.importorskip("segno", reason="the extra web is not installed")
    running = Server("--host", "0.0.0.0")
    running.end(0, 130)  # it may not serve yet
    assert running.host != "0.0.0.0", "no browser of another machine opens it"


def fuzzed(server: Server, game: str, number: int) -> Iterator[tuple[str, int, str]]:
    """Send random requests, and yield their paths with status and text of the answers."""
    rng = random.Random(3)
    names = ("move", "undo", "resign", "record", "dead", "agree", "check", "x")
    paths = ["", f"/{game}", *(f"/{game}/{name}" for name in names)]
    paths += ["/../../etc/passwd", "/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/\N{SNOWMAN}".encode().decode("latin-1"), "//"]
    values: list[Any] = [None, True, -1, 1e308, "", "A1", "pass", "x" * 9999, [], {}, "\0", "🎴", [["a"] * 50] * 50]
    keys = [
        "move",
        "size",
        "game",
        "level",
        "seconds",
        "human",
        "record",
        "handicap",
        "rules",
        "komi",
        "gives",
        "clock",
        "stone",
        "x",
    ]
    bodies = [b"", b"{", b"\xff\xfe", b"[" * 1000, b"null", b'{"size": 1e999}', b" " * 5_000_000]
    types = ["text/html", "application/json; charset=utf-16", "multipart/form-data; boundary=x", "", "\xe9" * 200]
    tokens = ["Bearer ", "Bearer wrong", "Bearer \xe9\xff", "Basic eDp4", "x" * 5000]
    for _ in range(number):
        body: Any = {rng.choice(keys): rng.choice(values) for _ in range(rng.randrange(4))}
        if rng.random() < 0.2:
            body = rng.choice(bodies)
        headers = {"Authorization": rng.choice(tokens)} if rng.random() < 0.5 else {}
        if rng.random() < 0.1:
            headers["Content-Type"] = rng.choice(types)
        path = "/api/games" + rng.choice(paths) if rng.random() < 0.9 else "/" + "".join(rng.choices("a/.%?#2e", k=12))
        path = path.replace("#", "")
        method = rng.choice(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
        try:
            yield path, *server.ask(method, path, body, headers=headers)
        except (http.client.InvalidURL, UnicodeEncodeError, BrokenPipeError, ConnectionResetError):
            continue  # no request was sent, or the server refused a large one before its end


def test_fuzzed_requests(server: Server) -> None:
    game = server.post("", {"size": 5, "human": "both"})["id"]
    for path, status, text in fuzzed(server, game, FUZZED):
        assert status < 500, (path, text)
        assert "root:" not in text
        assert "Traceback" not in text
    assert server.post("", {"size": 5})["moves"] == []


def test_fuzzed_requests_without_the_token() -> None:
    pytest.importorskip("segno", reason="the extra web is not installed")
    running = Server("--host", "127.0.0.2")
    token = {"Authorization": f"Bearer {running.address.partition('#token=')[2]}"}
    try:
        game = json.loads(running.ask("POST", "/api/games", {"size": 5, "human": "both"}, headers=token)[1])
        for path, status, text in fuzzed(running, game["id"], FUZZED):
            assert status in (401, 413) or (status < 500 and not path.startswith("/api/")), (path, status, text)
        after = running.ask("GET", f"/api/games/{game['id']}", headers=token)[1]
        assert json.loads(after) == game, "no request had an effect"
    finally:
        errors = running.end()
    assert "Traceback" not in errors


def test_a_taken_port_is_one_line(server: Server) -> None:
    command = prepared("yomi", "serve", "--port", server.port)
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1, port {server.port}" in done.stderr
    assert done.stderr.count("\n") == 1
    done = subprocess.run([*command[:-1], "99999"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "expected a port of at most 65535" in done.stderr


def test_the_own_page_of_the_interface(server: Server, tmp_path: Path) -> None:
    schema = json.loads(server.ask("GET", "/openapi.json")[1])
    assert "/api/games/{name}/hint" in schema["paths"]
