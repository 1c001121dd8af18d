"""What a start imports. Modules take nearly all of its time, so these lists stand for it, on busy machines, too."""

import subprocess
import sys

import pytest

from tests.process.engine_process import ROOT

HELP = """
    yomi yomi.engine yomi.engine.cli yomi.engine.cli.main yomi.engine.protocols yomi.engine.protocols.streams
    yomi.errors yomi.language yomi.system
"""
ENGINE = f"""{HELP}
    yomi.children yomi.engine.cli.flags yomi.engine.cli.engines yomi.engine.cli.output
    yomi.engine.cli.parser
    yomi.engine.default_network yomi.engine.game yomi.engine.levels yomi.engine.machine
    yomi.engine.options yomi.engine.protocols.session yomi.engine.records yomi.engine.screen
    yomi.nets yomi.nets.errors yomi.nets.models yomi.settings
"""
USI = f"""{ENGINE}
    yomi.engine.shogi yomi.engine.shogi.descriptor yomi.engine.shogi.usi yomi.engine.shogi.usi.codec
    yomi.engine.shogi.usi.commands yomi.engine.shogi.usi.session
"""
GTP = f"""{ENGINE}
    yomi.engine.clock yomi.engine.color yomi.engine.evaluators yomi.engine.evaluators.base
    yomi.engine.go yomi.engine.go.descriptor yomi.engine.go.gtp yomi.engine.go.gtp.codec yomi.engine.go.gtp.engine
    yomi.engine.go.gtp.session
"""
SLOW = {"asyncio", "email", "importlib.metadata", "json", "numpy", "platform", "random", "socket", "tempfile"}


def imported(code: str) -> set[str]:
    """Return the modules of a Python that has run `code`."""
    code = f"from yomi.engine.cli.main import build, main; {code}; import sys; print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(ended.stderr.split())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("main(['--help'])", HELP),
        ("build(['usi']); import yomi.engine.shogi.usi.commands", USI),
        ("build(['gtp']); import yomi.engine.go.gtp.session", GTP),  # beside its first answers it loads the player
    ],
)
def test_a_start_imports_nothing_slow(code: str, expected: str) -> None:
    found = imported(code)
    assert {name for name in found if name.partition(".")[0] == "yomi"} == set(expected.split())
    assert not found & SLOW


def test_help_makes_no_parser() -> None:
    assert not imported("main(['--help'])") & {"argparse", "dataclasses", "logging", "pathlib"}
