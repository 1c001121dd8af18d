"""Evaluators of shogi: dlshogi's networks and material."""
