"""ONNX Runtime sessions as the gates use them: one thread on the CPU, as in serving."""

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from snakekit.runtime.contract import INPUT_NAME, OUTPUT_NAMES

Answers = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Policy logits `[N, 4]` and values `[N]`."""


class Session:
    """One loaded model."""

    def __init__(self, blob: bytes) -> None:
        """Load the ONNX file `blob`."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            blob, options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, obs: NDArray[np.uint8]) -> Answers:
        """Answer one batch `[N, planes, rows, cols]`."""
        policy, value = self._session.run(list(OUTPUT_NAMES), {INPUT_NAME: obs})
        return policy, value[:, 0]

    def batched(self, obs: NDArray[np.uint8], batch: int) -> Answers:
        """Answer `obs` in batches of `batch`; the last one may be smaller."""
        parts = [self(obs[i : i + batch]) for i in range(0, len(obs), batch)]
        return np.concatenate([p for p, _ in parts]), np.concatenate([v for _, v in parts])
