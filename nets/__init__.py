"""Networks: definitions, feature sets, file formats, training, and the default networks the engine ships with.

Importing this package is cheap: neither onnx nor onnxruntime is imported before they are needed.
"""
