"""Benchmark positions of Go: openings, middle games and endgames from the engine's own play."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.game import BenchmarkPositions
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.setup import make_queue, search_settings, spec_for
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.vertex import parse_vertex
from yomi.engine.options import Options
from yomi.engine.search.settings import SearchSettings
from yomi.native.go.planes import write_bits, write_planes
from yomi.native.go.spec import go_spec

# Board size -> moves of each position, Black first.
LINES: dict[int, tuple[str, ...]] = {
    9: (
        "",
        "E5 C4 G6 E3 D3 F4 D4",
        "E5 E3 D3 F3 C4 F5 F6 G6 E6 G7 D2 E4 D5 C7 D7",
        "F5 D4 D5 E5 E4 E6 F6 E3 F4 D6 C5 C4 F3 E2 F7 B5 C6 B6 C7 B7 D7",
    ),
    13: ("", "D4 K10 K4 D10 C8 F10 C11 C10 B10 D11", "K10 D4 D10 K4 F3 C6 H3 J6 L8 G4 G3 F4 E3 D3 E4 E5 D2 C3"),
    19: (
        "",
        "Q16 D4 Q3 D16 R5 C14 F3 D6 K4 R14 O17 S16 R17 Q10",
        "Q16 D16 Q4 D4 F17 C14 R10 C6 O3 K3 D10 F3 C17 C16 B16 B17 D17 E16 B15 C18 E17 B14 A17",
        "R16 D4 Q3 D17 D15 E15 D14 F16 E14 C16 C14 H17 C6 F3 C3 D3 C4 C5 B5 D5 B6 B4 B3 D2 B2 R6 R9 P6 O3 R12 P10",
    ),
}


def go_positions(size: int) -> list[GoGame]:
    """Return the games to search. Sizes without entries get the empty board."""
    games = []
    for line in LINES.get(size, ("",)):
        game = GoGame(size, PRESETS["tromp-taylor"], 7.5 if size > 9 else 7.0)
        for word in line.split():
            game.play(game.side_to_move, parse_vertex(word, size))
        games.append(game)
    return games


def go_subject(size: int) -> BenchmarkPositions:
    return BenchmarkPositions(f"{size}x{size}", go_spec(size), tuple(go_positions(size)), write_planes, write_bits)


@contextlib.contextmanager
def measured(options: Options) -> Iterator[tuple[BenchmarkPositions, EvaluationQueue, SearchSettings]]:
    with contextlib.closing(make_queue(options, options.size, PRESETS["tromp-taylor"])) as queue:
        subject = replace(go_subject(options.size), spec=spec_for(options.size, queue.evaluator))
        yield subject, queue, search_settings(options, queue)
