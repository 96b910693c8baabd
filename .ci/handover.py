"""Weights of a run as a few small files, for machines that only hand small ones back.

    python .ci/handover.py pack RUN OUT      # the newest checkpoint as OUT/weights.00, .01, ...
    python .ci/handover.py unpack OUT RUN    # a checkpoint again, to --start from or to export

Halved to float16, and without the optimizer.
"""

import sys
from pathlib import Path

import msgspec
import numpy as np
from safetensors.numpy import load, save

from snakekit.runtime.contract import CARD_KEY, dump_card, load_card
from snakekit.trainer import checkpoint as store

PART = 15 * 2**20
NAME = "weights"


def pack(run: Path, out: Path) -> None:
    """Write the newest weights of `run` into `out`, replacing what is there when all is written."""
    found = store.load(store.latest(run))
    halves = {name: value.astype(np.float16) for name, value in found.weights.items()}
    blob = save(halves, {CARD_KEY: dump_card(found.card)})
    out.mkdir(parents=True, exist_ok=True)
    parts = [blob[start : start + PART] for start in range(0, len(blob), PART)]
    for index, part in enumerate(parts):
        (out / f".{NAME}.{index:02}").write_bytes(part)
    for index in range(len(parts)):
        (out / f".{NAME}.{index:02}").replace(out / f"{NAME}.{index:02}")


def unpack(out: Path, run: Path) -> None:
    """Make a checkpoint in `run` from what `pack` wrote into `out`."""
    blob = b"".join(path.read_bytes() for path in sorted(out.glob(f"{NAME}.*")))
    size = int.from_bytes(blob[:8], "little")
    header = msgspec.json.decode(blob[8 : 8 + size])
    card = load_card(header["__metadata__"][CARD_KEY], origin=str(out))
    weights = {name: value.astype(np.float32) for name, value in load(blob).items()}
    card = store.finish_card(card, weights, card.step)
    folder = run / store.CHECKPOINTS / f"step-{card.step:09d}"
    store.save(folder, store.Checkpoint(card=card, weights=weights))
    print(folder)


if __name__ == "__main__":
    {"pack": pack, "unpack": unpack}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
