"""Sparse networks: their forward pass, and what evaluates a batch of each game's positions by it."""
