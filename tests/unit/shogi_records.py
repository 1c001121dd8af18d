"""Records of shogi for tests: random ones, and texts in each form."""

import random
from dataclasses import replace

import cshogi

from tests.unit.shogi_boards import random_moves, walk
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.placement import Placement, parse_sfen
from yomi.engine.shogi.records.packed import read_hcpe
from yomi.engine.shogi.records.record import GameRecord, RecordedMove

MIDDLE = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w GR5pnsg 1"


STARTS = (
    None,
    MIDDLE,
    "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "4k4/9/9/3SGS3/3S1S3/9/2+P+P+P4/2+P1+P4/4K4 b G 1",
    "4k4/9/2s1s4/9/2s1s4/3g5/2g1g4/9/4K4 w 2Pg 1",
    "8k/4R1R2/9/9/3N1N3/9/9/3L5/K8 b NL 1",
)
"""Where random games begin; None for the usual position."""


def random_record(seed: int, *, notes: bool = True, sfen: str | None = None) -> GameRecord:
    """Return the record of a random game with names, times, evaluations and comments."""
    rng = random.Random(seed)
    record = GameRecord(black="Sente 先手", white="Gote", comment="before it\nall", info={"EVENT": "a, b"})
    if sfen:
        record.initial = parse_sfen(sfen)
        *_, board = walk(seed, 40, sfen)
        moves = tuple(cshogi.move_to_usi(move) for move in board.history)
    else:
        moves = random_moves(seed, 60)
    for text in moves:
        move = RecordedMove(parse_usi(text))
        if notes:
            move.seconds = float(rng.randrange(200))
            move.score = rng.randrange(-3000, 3000) if rng.random() < 0.8 else None
            move.pv = "+7776FU -3334FU" if move.score is not None else ""
            move.comment = rng.choice(["", "", "good", "bad\nworse"])
        record.moves.append(move)
    record.ending = rng.choice(["TORYO", "SENNICHITE", "KACHI", "TIME_UP", "CHUDAN", "+ILLEGAL_ACTION", "TSUMI"])
    record.ending_seconds = 3.0
    return record


def hcpe_rows(data: bytes) -> list[tuple[Placement, RecordedMove]]:
    """Return the positions of an hcpe file, each with its move."""
    return [
        (placement, recorded)
        for record in read_hcpe(data)
        for placement, recorded in zip(record.placements(), record.moves, strict=False)
    ]


def without_pv(record: GameRecord) -> GameRecord:
    """Return a record without the expected lines, whose text is each form's own."""
    return replace(record, moves=[replace(recorded, pv="") for recorded in record.moves])


FLOODGATE = """V2
N+one
N-two
'Max_Moves:256
$EVENT:wdoor+floodgate
P1-KY-KE-GI-KI-OU-KI-GI-KE-KY
P2 * -HI *  *  *  *  * -KA *
P3-FU-FU-FU-FU-FU-FU-FU-FU-FU
P4 *  *  *  *  *  *  *  *  *
P5 *  *  *  *  *  *  *  *  *
P6 *  *  *  *  *  *  *  *  *
P7+FU+FU+FU+FU+FU+FU+FU+FU+FU
P8 * +KA *  *  *  *  * +HI *
P9+KY+KE+GI+KI+OU+KI+GI+KE+KY
+
+7776FU,T12
'** 35 -3334FU +2726FU
-3334FU
T1
'** -40
'*a comment
%TORYO
'summary:toryo:one lose:two win
"""


KIF_TEXT = """# ---- 棋譜ファイル ----
開始日時：2026/11/21 10:00:00
手合割：平手
先手：先手の人
後手：後手の人
手数----指手---------消費時間--
*始め
   1 ７六歩(77)   ( 0:16/00:00:16)
*良い手
   2 ３四歩(33)   ( 0:02/00:00:02)+
   3 ２二角成(88) ( 1:05/00:01:21)
   4 同　銀(31)   ( 0:00/00:00:02)
   5 ５五角打     ( 0:00/00:01:21)
   6 投了         ( 0:00/00:00:02)
まで5手で先手の勝ち

変化：2手
   2 ８四歩(83)   ( 0:00/00:00:00)
"""

KI2_TEXT = """手合割：平手
先手：a
後手：b

▲７六歩    △３四歩    ▲２二角成  △同　銀
▲５五角    △３三銀    ☗３三角不成 ☖同　桂
まで8手で後手の勝ち
"""


MATED_BY_A_PAWN = parse_sfen("7nk/9/7G1/9/9/9/9/9/4K4 b P2r2b3g4s3n4l17p 1")


BOD = """後手の持駒：飛　角
  ９ ８ ７ ６ ５ ４ ３ ２ １
+---------------------------+
| ・ ・ ・ ・ ・ ・ ・ ・v玉|一
| ・ ・ ・ ・ ・ ・ ・ ・ ・|二
| ・ ・ ・ ・ ・ ・ ・ ・ 歩|三
| ・ ・ ・ ・ ・ ・ ・ ・ ・|四
| ・ ・ ・ ・ ・ ・ ・ ・ ・|五
| ・ ・ ・ ・ ・ ・ ・ ・ ・|六
| ・ ・ ・ ・ ・ ・ ・ ・ ・|七
| ・ ・ ・ ・ ・ ・ ・ ・ ・|八
| ・ ・ ・ ・ ・ ・ ・ ・ ・|九
+---------------------------+
先手の持駒：金　歩十七
手数＝40  △１一玉 まで
"""


JKF = {
    "header": {"先手": "甲", "後手": "乙", "開始日時": "2026/01/02", "手合割": "平手"},
    "initial": {"preset": "HIRATE"},
    "moves": [
        {"comments": ["始め"]},
        {
            "move": {"from": {"x": 7, "y": 7}, "to": {"x": 7, "y": 6}, "color": 0, "piece": "FU"},
            "time": {"now": {"m": 1, "s": 2}},
            "comments": ["#評価値=20", "良い手"],
        },
        {"move": {"to": {"x": 3, "y": 4}, "color": 1, "piece": "FU"}},
        {
            "move": {"from": {"x": 8, "y": 8}, "to": {"x": 2, "y": 2}, "piece": "KA", "promote": True},
            "forks": [
                [
                    {"move": {"to": {"x": 5, "y": 8}, "piece": "KI", "relative": "R"}},
                    {
                        "move": {"from": {"x": 8, "y": 3}, "to": {"x": 8, "y": 4}, "piece": "FU"},
                        "forks": [[{"move": {"from": {"x": 1, "y": 3}, "to": {"x": 1, "y": 4}, "piece": "FU"}}]],
                    },
                ],
                [{"move": {"from": {"x": 2, "y": 7}, "to": {"x": 2, "y": 6}, "piece": "FU"}}],
            ],
        },
        {
            "move": {"from": {"x": 3, "y": 1}, "same": True, "piece": "GI"},
            "forks": [[{"move": {"from": {"x": 8, "y": 2}, "to": {"x": 2, "y": 2}, "piece": "HI"}}]],
        },
        {"move": {"to": {"x": 5, "y": 5}, "piece": "KA", "relative": "H"}},
        {"special": "TORYO", "time": {"now": {"m": 0, "s": 3}}, "comments": ["終わり"]},
    ],
}
