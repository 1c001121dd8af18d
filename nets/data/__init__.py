"""Data sets of training positions as folders of arrays; no PyTorch and no kernels are needed to read or write them."""
