"""NNUE evaluation files of shogi engines (nn.bin)."""
