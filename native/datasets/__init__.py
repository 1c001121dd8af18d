"""Kernels for data sets: network inputs, replayed games, packed shogi boards."""
