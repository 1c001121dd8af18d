"""Evaluators of shogi positions: networks by format, and material."""

from yomi.engine.shogi.networks.dlshogi import Dlshogi
from yomi.engine.shogi.networks.nnue import Nnue
from yomi.engine.shogi.networks.sparse import ShogiSparse

# Formats in the order in which they try to recognise a file.
FORMATS = (ShogiSparse, Nnue, Dlshogi)
