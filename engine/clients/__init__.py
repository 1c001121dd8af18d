"""GTP and USI engines as processes that choose moves, ponder and analyse."""
