"""Playing on CGOS."""
