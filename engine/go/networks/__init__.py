"""What judges positions of Go: networks by format, and rollouts."""

from engine.go.networks.katago import KataGo

FORMATS = (KataGo,)
"""The formats of networks for Go, in the order in which they are asked whether they know a file."""
