"""Sparse networks and NNUE: forward passes, and evaluators of batches."""
