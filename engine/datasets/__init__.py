"""Training data from game records: reading, choosing, labelling and writing positions (see yomi.nets.data)."""

SHARD_ROWS = 16384
"""Default number of positions in a shard."""
