"""Kernels that make data sets: feature sets beside the two that play, replays of games, packed boards of shogi."""
