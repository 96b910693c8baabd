"""ONNX Runtime sessions as the gates use them: one thread on the CPU, as in serving."""

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from snakekit.export.samples import Answers
from snakekit.runtime.contract import INPUT_NAME, OUTPUT_NAMES


class Session:
    """One model from memory."""

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
        return policy, value[:, 0] if value.shape[1] == 1 else value
