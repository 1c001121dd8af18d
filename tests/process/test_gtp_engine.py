"""The real engine in a process, without a network: `yomi gtp` as a GUI starts it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.engine_process import GtpProcess
from yomi.engine.go.descriptor import GAME

pytestmark = pytest.mark.slow

ENGINE = ("yomi", "gtp", "--evaluator", "uniform", "--size", "9", "--workers", "1", "--memory", "64M", "--seed", "1")


@pytest.fixture(scope="module")
def engine() -> Iterator[GtpProcess]:
    with GtpProcess(*ENGINE) as process:
        process.ask("boardsize 9")
        yield process


def test_a_game(engine: GtpProcess) -> None:
    engine.ask("boardsize 5")
    engine.ask("kata-set-param visits 30")
    for i in range(10):
        assert re.fullmatch(r"= ([A-E][1-5]|pass|resign)", engine.ask(f"genmove {'bw'[i % 2]}"))
    assert re.fullmatch(r"= ([BW]\+[0-9.]+|0)", engine.ask("final_score"))
    for _ in range(10):
        assert engine.ask("undo") == "="
    assert engine.ask("undo") == "? cannot undo"
    engine.ask("kata-set-param visits none")
    engine.ask("boardsize 9")


def test_no_network_no_raw_output(engine: GtpProcess) -> None:
    assert engine.ask("kata-raw-nn 0").startswith("? ")
    assert "internal error" not in engine.ask("yomi-policy")
    assert engine.ask("kata-get-models") == "= []"


def test_a_new_installation_plays_with_its_network() -> None:
    with GtpProcess("yomi", "gtp", "--size", "9", "--visits", "20", "--seed", "1") as process:
        assert "katago-b10c384h6nbttflrs" in process.ask("kata-get-models")
        # Not at the edge: what rollouts with 20 visits would play is anywhere.
        for color in ("b", "w"):
            vertex = process.ask(f"genmove {color}").removeprefix("= ")
            assert vertex[0] in "CDEFG"
            assert 3 <= int(vertex[1:]) <= 7


def test_a_network_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "net.bin.gz"
    path.write_bytes(b"nonsense")
    with GtpProcess("yomi", "gtp", "--net", str(path)) as process:
        assert process.end(60) == 2
        errors = b"".join(process.errors).decode()
        assert errors.startswith("yomi: error: ")
        assert errors.count("\n") == 1
        assert process.rest() == ""


def test_a_level_sets_options_until_it_is_off(engine: GtpProcess) -> None:
    names = ["visits", "temperature", "root_noise", "workers", "use_lcb", "seed"]
    before = [engine.ask(f"kata-get-param {name}") for name in names]
    assert engine.ask("kata-set-param level 5") == "="
    assert engine.ask("kata-get-param level") == "= 5"
    assert [engine.ask(f"kata-get-param {name}") for name in names] == [
        "= 10", "= 1", "= 0.25", "= 1", "= false", "= 1",
    ]  # fmt: skip
    assert re.match(r"= [A-J][1-9]|= pass", engine.ask("genmove b"))
    assert engine.ask("kata-set-param visits 7") == "="
    assert engine.ask('kata-set-params {"visits": 9, "temperature": 99}').startswith("? temperature: expected")
    assert engine.ask("kata-get-param visits") == "= 7"
    assert engine.ask("kata-set-param level 4") == "="
    assert engine.ask("kata-get-param visits") == "= 8"
    assert engine.ask("kata-set-param visits none") == "="
    assert (
        engine.ask("kata-set-param level 21")
        == "? level: expected an integer from -1 to 20, or max, or off, or auto, found 21"
    )
    assert engine.ask("kata-set-param level off") == "="
    assert [engine.ask(f"kata-get-param {name}") for name in names] == before
    engine.ask("clear_board")


def test_a_level_plays_with_its_network() -> None:
    with GtpProcess("yomi", "gtp", "--size", "5", "--level", "2", "--visits", "3", "--memory", "64M") as engine:
        assert engine.ask("kata-get-param visits") == "= 3"
        assert engine.ask("kata-get-param people_prior") == f"= {GAME.people_levels[1][2]}"
        assert '"yomi-go-b6c96"' in engine.ask("kata-get-models")
        assert re.match(r"= [A-E][1-5]|= pass", engine.ask("genmove b"))
        assert engine.ask("kata-set-param level 0") == "="
        assert engine.ask("kata-get-param net") == "= none"
        assert '"b10c384h6nbttflrs"' in engine.ask("kata-get-models")


def test_a_network_is_chosen_by_its_name() -> None:
    with GtpProcess("yomi", "gtp", "--size", "5", "--net", "fast", "--memory", "64M") as engine:
        assert engine.ask("kata-get-param net") == "= fast"
        assert '"yomi-go-b6c96"' in engine.ask("kata-get-models")
