"""Alpha-beta search of shogi positions with NNUE evaluations."""
