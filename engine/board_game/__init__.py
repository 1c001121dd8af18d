"""Games of the user by file."""
