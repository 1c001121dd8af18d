"""Data sets of Go games."""
