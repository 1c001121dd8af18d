"""Other programs that play, as processes: GTP and USI engines that choose moves, ponder and analyse."""
