"""The outputs of NNUE evaluations that the search computes inside its own kernels."""

from yomi.native.alphabeta.nnue import _output, static_value
from yomi.native.jit import kernel


@kernel
def raw_output(network, scratch, positions, ply):  # type: ignore[no-untyped-def]
    return _output(network, scratch, positions, ply)


@kernel
def value_of(network, scratch, positions, ply):  # type: ignore[no-untyped-def]
    return static_value(network, scratch, positions, ply)
