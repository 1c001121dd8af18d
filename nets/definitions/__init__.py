"""Networks as PyTorch modules (extra `train`); playing never imports this package.

Begin reading in `catalog`, where every network stands by its name.
"""
