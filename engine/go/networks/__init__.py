"""What judges positions of Go: networks by format, and rollouts."""

from yomi.engine.go.networks.katago import KataGo
from yomi.engine.go.networks.partial import Aya, Cosumi

FORMATS = (KataGo, Aya, Cosumi)
"""The formats of networks for Go, in the order in which they are asked whether they know a file."""
