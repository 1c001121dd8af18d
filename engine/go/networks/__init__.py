"""Evaluators of Go positions: networks by format, and rollouts."""

from yomi.engine.go.networks.katago import KataGo
from yomi.engine.go.networks.partial import Aya, Cosumi

FORMATS = (KataGo, Aya, Cosumi)  # network formats, in the order in which they are tried on a file
