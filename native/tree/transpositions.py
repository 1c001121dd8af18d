"""Transpositions: different lines to the same position share a node. Source: KataGo's docs/GraphSearch.md.

An edge counts its own visits, a node the visits through all of its edges. If an edge has fewer visits than its child,
the next visit copies the child's statistics instead of descending (yomi.native.tree.backup.visit_shared).
"""

from yomi.native.bits import U, atomic_compare_exchange, atomic_load
from yomi.native.jit import kernel

# The tree becomes a graph. It has no cycles: a node's key depends on the number of moves played
# (yomi.native.game.graph_key).


@kernel
def find_or_insert(tree, key, index):  # type: ignore[no-untyped-def]
    """Return the node with this `key`, or insert the node `index` and return it."""
    # From the exchange below on every thread may find `index`: it must be complete.
    entered = tree.nodes[U(index)]
    entered.key = U(key)
    place = U(key) & U(tree.shared.size - 1)
    first = atomic_load(tree.shared, place)  # acquires the writes of the inserting thread
    while True:
        number = first
        while number != 0:
            node = tree.nodes[U(number) - U(1)]
            if node.key == U(key):
                return U(number) - U(1)
            number = node.next
        entered.next = first
        # Insert at the head of the list, unless another thread has changed it meanwhile.
        seen = atomic_compare_exchange(tree.shared, place, first, U(index) + U(1))
        if seen == first:
            return U(index)
        first = seen


@kernel
def free_node(tree, index):  # type: ignore[no-untyped-def]
    """Free a node that no other thread has been able to reach."""
    # Fails if another node was allocated since. Then this one stays unused until the next compaction.
    atomic_compare_exchange(tree.counters[0], "node_top", index + 1, index)


@kernel
def clear_transpositions(tree):  # type: ignore[no-untyped-def]
    """Empty the hash table. No search thread may run."""
    if tree.counters[0].node_top > 1:  # the root is not in the table
        for i in range(U(tree.shared.size)):
            if tree.shared[i] != U(0):  # a page that was never written takes no memory
                tree.shared[i] = U(0)


@kernel
def insert_all(tree):  # type: ignore[no-untyped-def]
    """Insert all nodes except the root, which no other line reaches. No search thread may run."""
    if tree.parameters[0].graph:
        for i in range(U(tree.counters[0].node_top)):
            if i != U(tree.counters[0].root):
                find_or_insert(tree, tree.nodes[i].key, i)
