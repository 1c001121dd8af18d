"""The game of Go: everything that the engine needs for Go alone."""
