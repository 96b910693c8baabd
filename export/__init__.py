"""Checkpoint to ONNX, each export behind a parity gate."""
