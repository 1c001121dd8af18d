"""The priors of a tree's root: its own temperature, and Dirichlet noise that lasts one search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from yomi.native.tree.edges import PRIOR_SCALE, PRIOR_STEP, all_moves, all_quantized, with_quantized
from yomi.native.tree.report import restore_root_order

if TYPE_CHECKING:
    import numpy.typing as npt

    from yomi.native.tree.arrays import Tree


class RootPriors:
    """Changes the priors of the root's edges in place, while no search thread runs."""

    def __init__(self, tree: Tree, generator: np.random.Generator) -> None:
        """Take the tree, which is empty, and what draws the noise."""
        self._tree = tree
        self._generator = generator
        self._clean: npt.NDArray[np.uint32] | None = None
        """The root's edges without noise, in any order, while there is noise in the tree."""
        self._is_tempered = True
        """Whether the priors have the root's temperature, as those of a root that was expanded as one have."""

    def clear(self) -> None:
        """Take note that the tree is empty."""
        self._clean = None
        self._is_tempered = True

    def move_on(self) -> None:
        """Take note that a node from further down the tree has become the root."""
        self._clean = None
        self._is_tempered = False

    def remove_noise(self) -> None:
        """Give the root its own priors back."""
        if self._clean is None:
            return
        edges, clean = self._edges(), self._clean
        edges[np.argsort(all_moves(edges))] = clean[np.argsort(all_moves(clean))]
        self._clean = None
        self._bring_up_to_date()

    def temper(self, exponent: float) -> None:
        """Raise the priors of a root that was expanded further down the tree to a power, once."""
        if self._is_tempered or exponent == 1.0:
            return
        edges = self._edges()
        priors = all_quantized(edges).astype(np.float64)
        priors = (priors / priors.max()) ** exponent
        edges[:] = with_quantized(edges, priors * (PRIOR_SCALE / priors.sum()))
        self._is_tempered = True
        self._bring_up_to_date()

    def add_noise(self, share: float, total: float) -> None:
        """Mix a `share` of Dirichlet noise into the priors.

        Args:
            share: of the noise, [0, 1].
            total: sum of the noise's parameters, which are equal for all moves.
        """
        edges = self._edges()
        if len(edges) == 0:
            return
        self._clean = edges.copy()
        noise = self._generator.dirichlet(np.full(len(edges), total / len(edges)))
        edges[:] = with_quantized(edges, all_quantized(edges) * (1.0 - share) + PRIOR_SCALE * share * noise)
        self._bring_up_to_date()

    def replace(self, other: Tree) -> None:
        """Take the priors of another tree's root, which stands for the same position and was expanded as a root."""
        edges, new = self._edges(), _edges_of(other)
        edges[np.argsort(all_moves(edges))] = new[np.argsort(all_moves(new))]
        self._is_tempered = True
        self._bring_up_to_date()

    def _edges(self) -> npt.NDArray[np.uint32]:
        """Return the root's edges, a view of the tree."""
        return _edges_of(self._tree)

    def _bring_up_to_date(self) -> None:
        """Make the root's order of edges and its sum of tried priors those of its priors."""
        root = self._tree.counters[0].root
        tried = self._edges()[: int(self._tree.nodes[root]["tried"])]
        self._tree.nodes[root]["tried_prior"] = float(all_quantized(tried).sum()) * PRIOR_STEP
        restore_root_order(self._tree)


def _edges_of(tree: Tree) -> npt.NDArray[np.uint32]:
    node = tree.nodes[tree.counters[0].root]
    first = int(node["edges"])
    edges: npt.NDArray[np.uint32] = tree.edges[first : first + int(node["edge_count"])]
    return edges
