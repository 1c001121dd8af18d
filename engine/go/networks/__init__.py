"""Evaluators of Go positions: networks by format, and rollouts."""

from yomi.engine.go.networks.aya_cosumi import Aya, Cosumi
from yomi.engine.go.networks.katago import KataGo

FORMATS = (KataGo, Aya, Cosumi)  # network formats, in the order in which they are tried on a file
