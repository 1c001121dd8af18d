"""Reviews of finished games: what the engine thinks of every move."""
