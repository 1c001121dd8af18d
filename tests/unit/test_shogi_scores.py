"""Winrates as centipawns, for records and for USI."""

import math

from yomi.engine.records import MATE_SCORE, MAX_USI_CENTIPAWNS, record_score, usi_centipawns, winrate_of


def test_scores_of_records_tell_mates_from_winrates() -> None:
    assert record_score(0.5, None, 756.0) == 0
    assert record_score(0.9, None, 600.0) == -record_score(0.1, None, 600.0) == 1318
    assert record_score(1.0 - 1e-10, None, 600.0) == usi_centipawns(1.0 - 1e-10, 600.0) == 13816
    assert record_score(1.0, None, 756.0) == MATE_SCORE / 2 == 15000
    assert record_score(0.0, None, 756.0) == -15000
    assert record_score(0.9, 5, 756.0) == 29995
    assert record_score(0.1, -4, 756.0) == -29996


def test_centipawns_of_usi() -> None:
    assert usi_centipawns(0.5, 756) == 0
    assert usi_centipawns(0.75, 756) == round(756 * math.log(3)) == -usi_centipawns(0.25, 756)
    assert usi_centipawns(1.0, 756) == MAX_USI_CENTIPAWNS == -usi_centipawns(0.0, 756)
    assert usi_centipawns(1 - 1e-16, 10000) == MAX_USI_CENTIPAWNS


def test_scores_lead_back_to_winrates() -> None:
    for score in (-900, 0, 35):
        winrate = winrate_of(score, 756)
        assert usi_centipawns(winrate, 756) == score == record_score(winrate, None, 756)
    assert winrate_of(-99999, 1) == 0.0
