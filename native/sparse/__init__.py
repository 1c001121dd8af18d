"""Sparse networks: forward passes, and evaluators of batches."""
