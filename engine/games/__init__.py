"""The games the engine knows; each is a package of its own that imports no other game."""
