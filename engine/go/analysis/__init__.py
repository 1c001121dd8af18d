"""KataGo's analysis engine: JSON queries and replies."""
