"""Training of networks with PyTorch (extra `train`) on the data sets of `yomi.nets.data`.

Begin reading in `loop`. `config` and `schedule` can be imported without PyTorch.
"""
