"""Players of Go."""
