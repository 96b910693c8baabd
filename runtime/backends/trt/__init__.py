"""TensorRT: one builder and one runner for `tensorrt` and `tensorrt-rtx`, which share their API."""
