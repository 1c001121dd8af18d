"""Training of networks with PyTorch (extra `train`) on the data sets of `yomi.nets.data`.

Start reading in `loop`. `config` and `schedule` can be imported without PyTorch.
"""
