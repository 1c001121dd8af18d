"""Kernels that training calls: sums over rows of tables, and their gradients, which PyTorch has no operation for."""
