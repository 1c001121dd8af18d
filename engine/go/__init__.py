"""Go, as the shared parts of the engine see it."""
