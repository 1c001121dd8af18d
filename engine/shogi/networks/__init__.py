"""What judges positions of shogi: networks by format, and material."""

from yomi.engine.shogi.networks.dlshogi import Dlshogi
from yomi.engine.shogi.networks.nnue import Nnue
from yomi.engine.shogi.networks.sparse import ShogiSparse

FORMATS = (ShogiSparse, Nnue, Dlshogi)
"""The formats of networks for shogi, in the order in which they are asked whether they know a file."""
