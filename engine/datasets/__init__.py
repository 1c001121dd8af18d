"""Training data from game records: reading, choosing, labelling, and writing positions as `yomi.nets.data` keeps
them.
"""

SHARD_ROWS = 16384
"""Positions of a shard, unless told otherwise."""
