"""The Universal Shogi Interface."""
