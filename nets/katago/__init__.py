"""KataGo's networks: reading their files, turning them into ONNX, and reading their outputs."""
