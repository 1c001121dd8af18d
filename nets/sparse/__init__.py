"""Sparse networks: their file."""
