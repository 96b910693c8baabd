"""A model on NVIDIA Triton Inference Server, asked through its own gRPC client.

`snakekit export --target triton` writes the model repository. The card stands among the parameters
of the model's configuration, so no file of the model is needed here.
"""

import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit.runtime.backends.base import BackendError, BackendInfo, Outputs
from snakekit.runtime.backends.options import BackendOptions
from snakekit.runtime.contract import CARD_KEY, INPUT_NAME, OUTPUT_NAMES, ModelCard, load_card

DEFAULT_MODEL = "standard"


class TritonBackend:
    """One model of one server. A call that takes longer than the time-out raises."""

    def __init__(
        self,
        client: Any,
        card: ModelCard,
        info: BackendInfo,
        *,
        model: str,
        most: int,
        timeout_s: float,
    ) -> None:
        self._client = client
        self._card = card
        self._info = info
        self._model = model
        self._most = most
        self._timeout_s = timeout_s
        # The server batches by itself, across all of its clients.
        self.pads = False

    def infer(self, batch: NDArray[np.uint8]) -> Outputs:
        """See `Backend`.

        Raises:
            BackendError: the server is gone, too slow, refuses, or answers in another shape.
        """
        parts = [self._ask(batch[at : at + self._most]) for at in range(0, len(batch), self._most)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([p for p, _ in parts]), np.concatenate([v for _, v in parts])

    def _ask(self, batch: NDArray[np.uint8]) -> Outputs:
        from tritonclient import grpc
        from tritonclient.utils import InferenceServerException

        given = grpc.InferInput(INPUT_NAME, list(batch.shape), "UINT8")
        given.set_data_from_numpy(np.ascontiguousarray(batch))
        wanted = [grpc.InferRequestedOutput(name) for name in OUTPUT_NAMES]
        try:
            result = self._client.infer(
                self._model, [given], outputs=wanted, client_timeout=self._timeout_s
            )
            policy, value = (result.as_numpy(name) for name in OUTPUT_NAMES)
        except InferenceServerException as error:
            raise BackendError(f"backend triton: {_reason(error)}") from None
        count, slots = len(batch), self._card.slots
        shapes = (count, *((slots,) if slots else ()), 4), (count, slots + 1)
        if policy is None or value is None or (policy.shape, value.shape) != shapes:
            raise BackendError(
                f"backend triton: model {self._model} answers in another shape than its card says"
            )
        return policy, value if slots else value.reshape(count)

    def describe(self) -> BackendInfo:
        """Return what runs."""
        return self._info

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def check_client() -> None:
    """Refuse to go on without the client library.

    Raises:
        BackendError: with the command that installs it.
    """
    if importlib.util.find_spec("tritonclient") is None:
        raise BackendError(
            "backend triton: the client is not installed; run: pip install 'tritonclient[grpc]'"
        )


def open_remote(model: str | None, options: BackendOptions) -> tuple[TritonBackend, ModelCard]:
    """Connect to the server of `options` and check that it holds the model.

    Args:
        model: the model's name in the server's repository; a name of a file counts without
            `.onnx`; None means `standard`.
        options: address and time-out.

    Raises:
        BackendError: no client, no server, no such model, or a model of another shape.
        CardError: a model without a readable card.
    """
    check_client()
    from tritonclient import grpc
    from tritonclient.utils import InferenceServerException

    name = (model or DEFAULT_MODEL).removesuffix(".onnx")
    timeout_s = options.triton_timeout_ms / 1000
    # Connecting takes longer than an answer later on.
    first_s = max(5.0, timeout_s)
    client = grpc.InferenceServerClient(options.triton_url)
    try:
        if not client.is_model_ready(name, client_timeout=first_s):
            raise BackendError(
                f"backend triton: {options.triton_url} has no model {name} that is ready; expected "
                "one made by snakekit export --target triton in its repository"
            )
        config = client.get_model_config(name, client_timeout=first_s).config
        card = load_card(
            config.parameters[CARD_KEY].string_value if CARD_KEY in config.parameters else None,
            origin=f"Triton's model {name}",
        )
        _check_config(config, card, name)
    except InferenceServerException as error:
        client.close()
        raise BackendError(
            f"backend triton: {options.triton_url} does not answer ({_reason(error)}); expected "
            "Triton's gRPC address, give --triton-url HOST:PORT"
        ) from None
    except Exception:
        client.close()
        raise
    info = BackendInfo(
        "triton", f"triton:{config.backend or config.platform}", card.precision, options.triton_url
    )
    most = max(config.max_batch_size, 1)
    backend = TritonBackend(client, card, info, model=name, most=most, timeout_s=timeout_s)
    return backend, card


def _check_config(config: Any, card: ModelCard, name: str) -> None:
    inputs = {i.name: list(i.dims) for i in config.input}
    outputs = {o.name: list(o.dims) for o in config.output}
    expected = [card.planes, *(card.view or (-1, -1))]
    found = inputs.get(INPUT_NAME)
    if found != expected or set(outputs) != set(OUTPUT_NAMES) or config.max_batch_size < 1:
        raise BackendError(
            f"backend triton: model {name} takes {inputs} to {outputs}, expected {INPUT_NAME} "
            f"{expected} to {', '.join(OUTPUT_NAMES)}, batched"
        )


def _reason(error: Any) -> str:
    return " ".join(str(error.message() or error.status()).split())[:200]
