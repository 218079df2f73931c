"""Fitted models outside of Python: ONNX graphs, and SQL expressions."""
