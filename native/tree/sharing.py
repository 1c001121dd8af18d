"""Sharing nodes: lines of moves that come to the same position go on in the same node.

So a tree becomes a graph, without cycles, as a key tells how many moves were played. An edge counts the visits through
it, a node those through any of its edges that went on from there. Where an edge has fewer than its node, the next visit
to it does not go on: it takes up what the node says (yomi.native.tree.backup.join). The keys are the game's: see
yomi.native.game.graph_key. Source: KataGo's graph search (docs/GraphSearch.md).
"""

from yomi.native.bits import U, atomic_compare_exchange, atomic_load
from yomi.native.jit import kernel


@kernel
def find_or_enter(tree, key, index):  # type: ignore[no-untyped-def]
    """Return the node that stands for `key`: one entered before, or else `index`, which is entered now.

    From then on every thread may find `index`: it must be complete.
    """
    entered = tree.nodes[U(index)]
    entered.key = U(key)
    place = U(key) & U(tree.shared.size - 1)
    first = atomic_load(tree.shared, place)  # what the thread that entered it wrote is seen, too
    while True:
        number = first
        while number != 0:
            node = tree.nodes[U(number) - U(1)]
            if node.key == U(key):
                return U(number) - U(1)
            number = node.next
        entered.next = first
        seen = atomic_compare_exchange(tree.shared, place, first, U(index) + U(1))
        if seen == first:
            return U(index)
        first = seen


@kernel
def give_back(tree, index):  # type: ignore[no-untyped-def]
    """Free a node that no other thread has ever been able to reach.

    If another node was allocated since, this one takes its place in the pool until the next compaction.
    """
    atomic_compare_exchange(tree.counters[0], "node_top", index + 1, index)


@kernel
def forget_shared(tree):  # type: ignore[no-untyped-def]
    """Let nobody find any node any more. No search thread may run."""
    if tree.counters[0].node_top > 1:  # a root is not among them
        for i in range(U(tree.shared.size)):
            if tree.shared[i] != U(0):  # what was never written takes no memory
                tree.shared[i] = U(0)


@kernel
def enter_all(tree):  # type: ignore[no-untyped-def]
    """Enter all nodes but the root, to which no other line leads. No search thread may run."""
    if tree.parameters[0].graph:
        for i in range(U(tree.counters[0].node_top)):
            if i != U(tree.counters[0].root):
                find_or_enter(tree, tree.nodes[i].key, i)
