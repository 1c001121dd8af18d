"""Data sets of shogi positions."""
