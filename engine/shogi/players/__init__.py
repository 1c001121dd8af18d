"""Players of shogi."""
