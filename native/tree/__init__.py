"""The search tree: flat arrays and the kernels that grow, prune and read them. Knows no game (see yomi.native.game)."""
