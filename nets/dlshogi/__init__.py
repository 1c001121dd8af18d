"""Networks for shogi in ONNX files: dlshogi's, and those of AlphaZero's form."""
