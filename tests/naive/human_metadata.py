"""The slow, obvious metadata inputs of human-SL networks: one line for each line of KataGo's fillMetadataRow."""

import datetime
import math


def metadata_row(name: str, is_black: bool, area: int) -> list[float]:
    """Return the 192 inputs of a profile for the side to move."""
    ranks = [f"{dan}d" for dan in range(9, 0, -1)] + [f"{kyu}k" for kyu in range(1, 21)]
    kind, *rest = name.split("_")
    row = [0.0] * 192
    row[0], row[1] = 1.0, 1.0
    if kind == "proyear":
        own = other = 1
        main = period = byoyomi = 0
        year = int(rest[0])
        date = datetime.date(year, 6, 1)
        source = 5 if year <= 2020 else 6
        row[74], row[75] = 0.0, 1.0
    else:
        black, white = ranks.index(rest[0]) + 1, ranks.index(rest[-1]) + 1
        own, other = (black, white) if is_black else (white, black)
        main, period, byoyomi = 1200, 30, 5
        date = datetime.date(2016, 9, 1) if kind == "preaz" else datetime.date(2020, 3, 1)
        source = 2
        row[74], row[79] = 0.5, 1.0
    row[6 : 6 + own] = [1.0] * own
    row[40 : 40 + other] = [1.0] * other
    row[82] = 0.4 * (math.log(main + 60) - 6.5)
    row[83] = 0.3 * (math.log(period + 1) - 3)
    row[84] = 0.5 * (math.log(byoyomi + 2) - 1.5)
    row[85] = 0.25 * (math.log(2) - 1.5)
    row[86] = 0.5 * math.log(area / 361)
    days = (date - datetime.date(1970, 1, 1)).days
    for number in range(32):
        turns = days / (7 * 80000 ** (number / 31))
        row[87 + 2 * number] = math.cos(2 * math.pi * turns)
        row[88 + 2 * number] = math.sin(2 * math.pi * turns)
    row[151 + source] = 1.0
    return row
