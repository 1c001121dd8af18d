"""Playing on servers: CGOS (Go) and servers of the CSA protocol such as floodgate (shogi)."""
