"""The game of shogi: everything that the engine needs for shogi alone."""
