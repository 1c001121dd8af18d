"""Broken lines of the analysis protocol.

Every line but an empty one must get an answer, with the line's id where it tells one, and none may be an internal
error.
"""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from yomi.engine.go.analysis.query import KNOWN
from yomi.engine.go.analysis.session import ACTIONS

SIZES = (2, 3, 5, 9)
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7.5, -400, 10**30, -(10**30), 1e308, 1e-300, "", "a", "1", "N", "N-1", "0", "b",
    "black", "japanese", "chinese", "pass", "A1", "(1,1)", "(-1,1)", "é", "\ud800", "\x00", "x" * 500, [], [[]], {},
    [1, 2], ["B", "A1"], [["B", "A1"]], [["W", "pass"]], [["B", 1]],
    [{"player": "B", "moves": ["A1"], "untilDepth": 1}],
    {"ko": "SIMPLE"}, {"ko": 1}, {"maxVisits": 5}, {"maxVisits": 10**40}, {"rootPolicyTemperature": "x"}, {"": ""},
    {"reportAnalysisWinratesAs": 3}, {"cpuctExploration": None}, {"seed": 1}, {"komi": "7"}, [0], [10**20], [-1],
]  # fmt: skip


def plain_query(rng: random.Random) -> dict[str, Any]:
    """Return a query that is answered with an analysis."""
    size = rng.choice(SIZES)
    return {
        "id": f"q{rng.randrange(10**6)}",
        "moves": [["B", "A1"], ["W", "B2"]][: rng.randrange(3)],
        "rules": "chinese",
        "boardXSize": size,
        "boardYSize": size,
        "maxVisits": rng.randrange(1, 20),
    }


def random_line(rng: random.Random) -> bytes:
    """Return one line without its line feed."""
    kind = rng.random()
    if kind < 0.05:
        return rng.randbytes(rng.randrange(60)).replace(b"\n", b" ")
    if kind < 0.08:
        depth = rng.choice([10, 900, 5000])
        return b'{"id":"deep","moves":' + b"[" * depth + b"]" * depth + b"}"
    if kind < 0.1:
        return b'{"id":"long","komi":' + b"9" * rng.choice([100, 5000]) + b"}"
    query = plain_query(rng)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        name = rng.choice(sorted(KNOWN))
        change = rng.random()
        if change < 0.2:
            query.pop(name, None)
        elif change < 0.3:
            query["action"] = rng.choice(ACTIONS.names())
        elif change < 0.4:
            query[rng.choice(["x", "é", "boardxsize", ""])] = rng.choice(VALUES)
        else:
            query[name] = copy.deepcopy(rng.choice(VALUES))
    if isinstance(query.get("maxVisits"), int):
        query["maxVisits"] = min(query["maxVisits"], 20)
    line = bytearray(json.dumps(query, ensure_ascii=rng.random() < 0.5).encode("utf-8", "replace"))
    if kind > 0.85:
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(line) + 1)
            if rng.random() < 0.4:
                line[at:at] = rng.randbytes(2)
            elif rng.random() < 0.5:
                line = line[:at]
            else:
                del line[at : at + 3]
    return bytes(line).replace(b"\n", b"")


def identity_of(line: bytes) -> str | None:
    """Return the id of a line that is a JSON object with one; written down apart from the protocol's own reader."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    identity = found.get("id") if isinstance(found, dict) else None
    return identity if isinstance(identity, str) else None
