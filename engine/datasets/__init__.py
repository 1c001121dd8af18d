"""Training data from game records: reading, choosing, labelling and writing positions (see yomi.nets.data)."""

# Default number of positions in a shard.
SHARD_ROWS = 16384
