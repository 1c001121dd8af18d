"""Networks as PyTorch modules (extra `train`); playing never imports this package.

Start reading in `catalog`, which lists every network by name.
"""
