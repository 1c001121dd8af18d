"""Guesses the rules of records that name none, from the result, the server and the komi."""

import math
import re
from dataclasses import dataclass

from yomi.engine.color import BLACK
from yomi.engine.go.game import GoGame
from yomi.engine.go.rules import PRESETS, Rules
from yomi.engine.go.scoring import dead_stones, final_score, ownership_by_rollouts, read_result
from yomi.native.go.board import PASS

JAPANESE, CHINESE = PRESETS["japanese"], PRESETS["chinese"]
# Servers that count territory, as AP, PC, SO or the file's format name them.
TERRITORY_SERVERS = re.compile(
    r"\b(?:tygem|tom|cyberoro|oro|wbaduk|hangame|pandanet|panda-?(?:egg|glgo)|gl?go|igs|igs-pandanet|nihon ki-?in)\b"
    r"|joygames\.me|東洋囲碁|幽玄の間|日本棋院|弈城|타이젬|오로",
    re.IGNORECASE,
)
TERRITORY_KOMI = (4.5, 5.5, 6.5)
AREA_KOMI = (7.0, 7.5, 8.0)


@dataclass(frozen=True, slots=True)
class Source:
    """Facts of a record's header that suggest rules."""

    server: str = ""  # text of AP, PC and SO, or the server of the file's format
    komi_in_stones: bool = False  # such as KM[3.75], which Chinese rules count


@dataclass(frozen=True, slots=True)
class Guess:
    rules: Rules
    reason: str


def guess_rules(source: Source, komi: float | None, result: str, final: GoGame | None) -> Guess:
    """Return the most likely rules of a record without RU.

    Args:
        source: see `Source`.
        komi: the record's komi in points.
        result: the result as in SGF.
        final: the game at the end of the record; None if its moves cannot be played.
    """
    return (None if final is None else _from_result(final, komi, result)) or _from_header(source, komi)


def _from_header(source: Source, komi: float | None) -> Guess:
    if source.komi_in_stones:
        return Guess(CHINESE, "the komi is in stones")
    if server := TERRITORY_SERVERS.search(source.server):
        return Guess(JAPANESE, f"{server[0]} counts territory")
    if komi in TERRITORY_KOMI:
        return Guess(JAPANESE, f"the komi is {komi:g}")
    if komi in AREA_KOMI:
        return Guess(CHINESE, f"the komi is {komi:g}")
    return Guess(CHINESE, "nothing suggests others")


def _from_result(final: GoGame, komi: float | None, result: str) -> Guess | None:
    """Return the rules that the result and the final board suggest; None if they suggest no rules or both."""
    winner, _, points = read_result(result)
    if winner is None or math.isnan(points):
        return None
    if points % 0.5 == 0.25:
        return Guess(CHINESE, f"the result {result} is in stones")
    margin = points if winner == BLACK else -points
    if len(final.moves) > 1 and all(move == PASS for _, move in final.moves[-2:]):
        found = [rules for rules in (JAPANESE, CHINESE) if _score(final, rules, komi) == margin]
        if len(found) == 1:
            return Guess(found[0], f"the final position gives {result}")
    # Without seki, an odd number of points is divided under area scoring: the difference is odd.
    has_bonus = final.handicap_bonus or final.handicap
    if komi is not None and final.board.area % 2 and not has_bonus and (margin + komi) % 2 == 0:
        return Guess(JAPANESE, f"area scoring with komi {komi:g} cannot give {result}")
    return None


def _score(final: GoGame, rules: Rules, komi: float | None) -> float:
    game = final.copy()
    game.set_rules(rules)
    game.set_komi(rules.komi if komi is None else komi)
    return final_score(game, dead_stones(game, ownership_by_rollouts(game)))
