"""KataGo's networks: read their files, convert them to ONNX, and read their outputs."""
