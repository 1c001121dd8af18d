"""Metadata inputs of KataGo's human-SL networks: the players that a network imitates, for the side to move."""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.go.board import BLACK
from yomi.native.jit import kernel

# The form and all numbers are those of KataGo's SGFMetadata (cpp/neuralnet/sgfmetadata.cpp). A profile is one of two
# kinds: ranked players on the server KGS, with byo-yomi, or professionals, of whom the time control is unknown.

METADATA = 192
SOURCE_KGS, SOURCE_GOGOD, SOURCE_GO4GO = 2, 5, 6
MAIN_TIME, PERIOD_TIME, PERIODS = 1200.0, 30.0, 5.0  # byo-yomi on KGS, in seconds
RANKS = 34  # inputs for the rank of each side
OWN_RANK, OTHER_RANK = 6, 6 + RANKS
RATED, UNKNOWN_TIME, BYOYOMI = 74, 75, 79
MAIN, PERIOD, COUNT, STONES, AREA = 82, 83, 84, 85, 86
DATE, SOURCE = 87, 151
PERIODS_OF_DATE = 32  # wavelengths of the date
SHORTEST, GROWTH = 7.0, 80000.0 ** (1.0 / (PERIODS_OF_DATE - 1))  # days, and the ratio of two wavelengths


@kernel
def write_metadata(pos, first, numbers):  # type: ignore[no-untyped-def]
    """Write the inputs of the position's profile to numbers[first : first + METADATA]: zeros without a profile."""
    for k in range(U(METADATA)):
        numbers[U(first) + k] = 0.0
    if pos.human_source == 0:
        return
    row = numbers[first:]
    own = U(0) if pos.side_to_move == BLACK else U(1)
    row[0] = row[1] = 1.0  # both sides are people
    for k in range(min(np.int64(pos.human_rank[own]), RANKS)):
        row[U(OWN_RANK + k)] = 1.0
    for k in range(min(np.int64(pos.human_rank[U(1) - own]), RANKS)):
        row[U(OTHER_RANK + k)] = 1.0
    is_ranked = pos.human_source == SOURCE_KGS
    row[RATED] = 0.5 if is_ranked else 0.0
    row[BYOYOMI if is_ranked else UNKNOWN_TIME] = 1.0
    row[MAIN] = 0.4 * (math.log((MAIN_TIME if is_ranked else 0.0) + 60.0) - 6.5)
    row[PERIOD] = 0.3 * (math.log((PERIOD_TIME if is_ranked else 0.0) + 1.0) - 3.0)
    row[COUNT] = 0.5 * (math.log((PERIODS if is_ranked else 0.0) + 2.0) - 1.5)
    row[STONES] = 0.25 * (math.log(2.0) - 1.5)
    row[AREA] = 0.5 * math.log(np.int64(pos.size) * np.int64(pos.height) / 361.0)
    length = SHORTEST
    for k in range(PERIODS_OF_DATE):
        angle = np.float64(pos.human_date) / length * (2.0 * math.pi)
        row[U(DATE + 2 * k)] = math.cos(angle)
        row[U(DATE + 2 * k + 1)] = math.sin(angle)
        length *= GROWTH
    row[U(SOURCE) + U(pos.human_source)] = 1.0
