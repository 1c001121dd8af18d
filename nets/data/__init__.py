"""Data sets of training positions as folders of arrays. PyTorch and kernels are not needed to read or write them."""
