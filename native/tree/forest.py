"""Memory of many small trees, for games that are played at the same time.

A forest is a `Tree` whose arrays have one more axis, the first: the number of the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from yomi.native.tree.arrays import Tree, bytes_per_node, make_tree

if TYPE_CHECKING:
    from yomi.native.spec import GameSpec


def make_forest(spec: GameSpec, count: int, playouts: int) -> Tree:
    """Return `count` empty trees without a cache, each for `playouts` playouts."""
    one = make_tree(int((playouts + 1) * bytes_per_node(spec.mean_moves)), spec.mean_moves, 0, spec.policy_size)
    arrays = {name: np.repeat(array[None], count, 0) for name, array in one._asdict().items()}
    arrays["locks"] = arrays["nodes"].view(np.uint8)
    return Tree(**arrays)


def tree_of(forest: Tree, number: int) -> Tree:
    return Tree(*(array[number] for array in forest))
