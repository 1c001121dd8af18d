"""KataGo's networks: reads their files, converts them to ONNX, and reads their outputs."""
