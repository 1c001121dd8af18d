"""Networks for shogi in ONNX files: dlshogi's form and AlphaZero's form."""
