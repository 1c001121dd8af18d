"""Profiles for human-SL networks, by KataGo's names. A profile describes the players that a network imitates."""

import datetime
import re
from dataclasses import dataclass

EXPECTED = "rank_5k, preaz_3d, rank_5k_2d (Black, White) or proyear_1990"
# Sources of the games that the networks learned from, by KataGo's numbers.
KGS, GOGOD, GO4GO = 2, 5, 6
FIRST_YEAR, FIRST_GO4GO_YEAR, LAST_YEAR = 1800, 2021, 2023  # of professionals
RANKS = (*(f"{dan}d" for dan in range(9, 0, -1)), *(f"{kyu}k" for kyu in range(1, 21)))  # 9d has the number 1
RANKED_DATES = {"rank": datetime.date(2020, 3, 1), "preaz": datetime.date(2016, 9, 1)}
EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class HumanProfile:
    source: int  # KGS for ranked players, with byo-yomi; GOGOD or GO4GO for professionals
    black_rank: int  # 1: 9d, 9: 1d, 10: 1k, 29: 20k
    white_rank: int
    days: int  # date of the games, since 1970-01-01

    @classmethod
    def parse(cls, name: str) -> "HumanProfile":
        """Return the profile for a name such as rank_5k. Raises ValueError."""
        kind, _, rest = name.partition("_")
        if kind in RANKED_DATES:
            ranks = rest.split("_")
            if len(ranks) in (1, 2) and all(rank in RANKS for rank in ranks):
                black, white = RANKS.index(ranks[0]) + 1, RANKS.index(ranks[-1]) + 1
                return cls(KGS, black, white, (RANKED_DATES[kind] - EPOCH).days)
        elif kind == "proyear" and re.fullmatch(r"[0-9]{4}", rest, re.ASCII):
            year = int(rest)
            if FIRST_YEAR <= year <= LAST_YEAR:
                source = GOGOD if year < FIRST_GO4GO_YEAR else GO4GO
                return cls(source, 1, 1, (datetime.date(year, 6, 1) - EPOCH).days)
        raise ValueError(f"Unknown human SL network profile: {name[:100]}: expected {EXPECTED}")


def check_profile(name: str) -> str | None:
    """Return the name of a profile, or None for KataGo's names of no profile. Raises ValueError."""
    if name in ("", "_", '""'):
        return None
    HumanProfile.parse(name)
    return name
