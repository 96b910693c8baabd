"""The server: API, backends, batching, decision, metrics. Never imports torch or onnx."""
