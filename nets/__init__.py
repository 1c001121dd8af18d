"""Networks: definitions, feature sets, file formats, training, and the bundled networks.

This package is imported quickly: onnx and onnxruntime are imported only when they are needed.
"""
