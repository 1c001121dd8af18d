"""Shogi: the game as it stands, and the notations below every protocol (SFEN, USI, CSA, KIF, books)."""
