"""The folder from which NVIDIA Triton Inference Server serves a model.

REPOSITORY/NAME/config.pbtxt
REPOSITORY/NAME/1/model.onnx
"""

import json

from snakekit.runtime.contract import CARD_KEY, INPUT_NAME, OUTPUT_NAMES, ModelCard, dump_card

QUEUE_DELAY_US = 200
"""How long Triton's batcher may wait for company."""


def repository(name: str, onnx: bytes, card: ModelCard, batch: tuple[int, ...]) -> dict[str, bytes]:
    """Return the files of a model repository, by their paths in it.

    Args:
        name: the model's name on the server.
        onnx: its file.
        card: its card, which goes into the configuration, so that clients need no file.
        batch: least, usual and largest batch.
    """
    text = config(name, card, batch).encode()
    return {f"{name}/1/model.onnx": onnx, f"{name}/config.pbtxt": text}


def config(name: str, card: ModelCard, batch: tuple[int, ...]) -> str:
    """Return `config.pbtxt`, Triton's ModelConfig in protobuf's text form."""
    rows, cols = card.view or (-1, -1)
    dims = f"{card.planes}, {rows}, {cols}"
    warm = f"{card.planes}, {', '.join(map(str, card.view or (11, 11)))}"
    warm_ups = "".join(
        f"""model_warmup {{
  name: "batch {size}"
  batch_size: {size}
  inputs {{
    key: "{INPUT_NAME}"
    value {{ data_type: TYPE_UINT8 dims: [ {warm} ] random_data: true }}
  }}
}}
"""
        for size in sorted({1, batch[1]})
    )
    policy, value = OUTPUT_NAMES
    moves = f"{card.slots}, 4" if card.slots else "4"
    return f"""name: {_quoted(name)}
backend: "onnxruntime"
max_batch_size: {batch[2]}
input {{ name: "{INPUT_NAME}" data_type: TYPE_UINT8 dims: [ {dims} ] }}
output {{ name: "{policy}" data_type: TYPE_FP32 dims: [ {moves} ] }}
output {{ name: "{value}" data_type: TYPE_FP32 dims: [ {card.slots + 1} ] }}
dynamic_batching {{
  preferred_batch_size: [ {batch[1]} ]
  max_queue_delay_microseconds: {QUEUE_DELAY_US}
}}
instance_group {{ count: 1 kind: KIND_AUTO }}
{warm_ups}parameters {{
  key: "{CARD_KEY}"
  value {{ string_value: {_quoted(dump_card(card))} }}
}}
"""


def _quoted(text: str) -> str:
    # JSON's escapes of quotes, backslashes and line ends are those of protobuf's text form.
    return json.dumps(text, ensure_ascii=False)
