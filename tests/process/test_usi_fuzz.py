"""Broken USI input, line by line, for the handlers and for engines behind pipes.

Every `go` must get exactly one answer before the next one gets its own, no answer may be an internal error, no `info`
of a search may follow its answer, and nothing may hang.
"""

from __future__ import annotations

import random
import re

import pytest

from tests.fakes.shogi_player import FakeShogiPlayer
from tests.process.engine_process import UsiProcess
from tests.process.fuzzing import mutate
from yomi.engine.options import USI_NAMES, Options
from yomi.engine.protocols.streams import MAX_LINE
from yomi.engine.shogi.placement import STARTPOS
from yomi.engine.shogi.usi.session import COMMANDS, Session

FAKE = "tests.process.fake_usi_engine"
ENGINE = "yomi usi --evaluator uniform --workers 1 --memory 64M --seed 1 --playouts 5"

NUMBERS = [
    "0", "1", "2", "5", "50", "-1", "1.5", "1e3", "nan", "inf", "007", "٣", "9" * 25, "9" * 5000, "0x10", "1_0", "",
]  # fmt: skip
MOVES = [
    "7g7f", "3c3d", "2g2f", "8c8d", "8h2b+", "3a2b", "B*4e", "P*5e", "7g7e", "0000", "win", "resign", "7G7F", "7g7f+",
    "a" * 5000, "é", "5e5d", "5i5h", "5a5b",
]  # fmt: skip
SFENS = [
    STARTPOS,
    "4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1",
    "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "8k/9/8K/9/9/9/9/9/9 b 2r2b4g4s4n4l18p 99",
    "9/9/9/9/9/9/9/9/9 b - 1",
    "4k4/9/9/9/9/9/9/9/4K4 x - 1",
    "4k4/9/9/9/9/9/9/9/4K4 b 99P 1",
    "4k4/9/9/9/9/9/9/9/4K4 b - x",
    "nonsense",
    "kkkkkkkkk/9/9/9/9/9/9/9/K8 b - 1",
]
GO_WORDS = [
    "ponder", "infinite", "btime", "wtime", "byoyomi", "binc", "winc", "movetime", "nodes", "depth", "mate",
    "searchmoves", "random", "moves",
]  # fmt: skip
NAMES = [name for name in USI_NAMES if name not in ("dnn_model", "bookfile", "book_file")]
NOT_FUZZED = {"quit"}


def random_line(rng: random.Random, heavy: bool = False) -> bytes:
    """Return one line without its line feed; `heavy` leaves out what takes a real engine long."""
    kind = rng.random()
    if kind < 0.06:
        return rng.randbytes(rng.randrange(60)).replace(b"\n", b" ").replace(b"quit", b"")
    name = rng.choice(
        [name for name in COMMANDS.names() if name not in NOT_FUZZED] + ["position"] * 4 + ["go"] * 5 + ["stop"] * 3
    )
    words = [name if kind < 0.95 else name.upper()]
    if name == "position":
        words += ["startpos"] if rng.random() < 0.6 else ["sfen", rng.choice(SFENS)]
        if rng.random() < 0.7:
            words += ["moves", *(rng.choice(MOVES) for _ in range(rng.choice([0, 1, 1, 2, 4])))]
    elif name == "go":
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            words += [rng.choice(GO_WORDS), rng.choice(NUMBERS)]
            words += [rng.choice(MOVES)] * rng.choice([0, 0, 1])
    elif name == "setoption":
        words += ["name", rng.choice([*NAMES, "Clear_Tree", "No Such"])]
        words += ["value", rng.choice([*NUMBERS, "true", "CSARule24"])]
    elif rng.random() < 0.2:
        words += [rng.choice(NUMBERS), rng.choice(GO_WORDS)]
    line = bytearray(" ".join(words).encode("utf-8", "surrogatepass"))
    if kind > 0.8 and line:
        line = mutate(rng, line)
    if kind > 0.995:
        line += b" " + b"x" * rng.choice([1000, 100_000, MAX_LINE])
    text = bytes(line).replace(b"\n", b"")
    if heavy and re.search(rb"DNN|UCT_Threads|Hash|Device", text, re.IGNORECASE):
        return b""
    return b"" if re.search(rb"quit", text, re.IGNORECASE) else text


def is_go(line: bytes) -> bool:
    """Whether a line asks for a move. Written down apart from the engine's codec."""
    if len(line) > MAX_LINE:
        return False
    kept = re.sub(rb"[\x00-\x08\x0a-\x1f\x7f]", b"", line).replace(b"\t", b" ")
    words = re.findall(rb"[^ ]+", kept)
    return bool(words) and words[0].lower() == b"go"


class Checker:
    """Follows the output of a session."""

    def __init__(self) -> None:
        self.asked = 0
        self.answered = 0

    def see(self, line: str) -> None:
        """Take a line of output.

        Raises:
            AssertionError: USI does not allow it.
        """
        assert "internal error" not in line, line
        if line.startswith(("bestmove ", "checkmate ")):
            self.answered += 1
            assert self.answered <= self.asked, f"an answer that nobody asked for: {line}"
            assert re.fullmatch(r"(bestmove (resign|win|\S{4,5}( ponder \S{4,5})?)|checkmate .+)", line), line
        elif line.startswith("info depth"):
            assert self.answered < self.asked, f"a report after the answer: {line}"
        else:
            assert line.startswith(("info string ", "id ", "option ", "usiok", "readyok")) or line == "", line


def run_session(lines: int, seed: int) -> None:
    """Send lines to the handlers; a fresh session now and then."""
    rng = random.Random(seed)
    for start in range(0, lines, 500):
        checker = Checker()

        def write(text: str, checker: Checker = checker) -> None:
            for line in text.removesuffix("\n").split("\n"):
                checker.see(line)

        options = Options.for_game("shogi")
        player = FakeShogiPlayer(options, seconds=rng.choice([0.0, 0.0, 0.001]))
        session = Session(options, lambda say, player=player: player, write)  # type: ignore[misc]
        for _ in range(min(500, lines - start)):
            line = random_line(rng)
            answered = checker.answered
            if is_go(line):
                # the last one has its answer before this one starts
                checker.asked += 1
            assert session.handle(line)
            with session.lock:  # a turn counts as answered just before its line is written, both under this lock
                assert checker.answered >= checker.asked - 1, f"{line!r}: no answer to the go before"
                assert checker.answered - answered <= 2
        session.handle(b"stop")
        assert checker.answered == checker.asked


def run_engine(lines: int, seed: int, command: list[str]) -> None:
    """Send lines to an engine through pipes, several at once."""
    rng = random.Random(seed)
    with UsiProcess(*command) as engine:
        engine.ready()
        for start in range(0, lines, 20):
            batch = [random_line(rng, heavy=True) for _ in range(min(20, lines - start))]
            checker = Checker()
            checker.asked = sum(is_go(line) for line in batch)
            engine.write(b"\n".join([*batch, b"stop", b"d", b"unknown-%d" % start, b""]))
            while not (line := engine.line()).startswith(f"info string Error! unknown-{start}:"):
                checker.see(line)
            assert checker.answered == checker.asked, (batch, checker.answered, checker.asked)
        engine.write("quit\n")
        assert engine.end(20) == 0


def test_handlers() -> None:
    run_session(4000, seed=20)


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "command"), [(1000, FAKE), (300, ENGINE)], ids=["fake", "yomi"])
def test_process(lines: int, command: str) -> None:
    run_engine(lines, 21, command.split())


def test_the_checker_sees_faults() -> None:
    assert is_go(b"\tGO infinite")
    assert not is_go(b"going")
    for line in ("bestmove 7g7f", "info depth 1", "nonsense", "info string Error! go: internal error: x"):
        with pytest.raises(AssertionError):
            Checker().see(line)
