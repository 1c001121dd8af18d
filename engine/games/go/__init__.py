"""Go: rules, the game as it stands, scoring, and the notations below every protocol (vertices, SGF)."""
