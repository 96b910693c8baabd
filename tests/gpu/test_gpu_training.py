"""Training on an NVIDIA GPU: the same figures as on a CPU, and everything that is only there."""

import msgspec
import numpy as np
import pytest
import torch

from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.ppo.training import Ppo

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no NVIDIA GPU here"),
]

SMALL = PpoConfig(
    net="article",
    scenarios=("11x11x4",),
    iterations=3,
    envs=16,
    steps=8,
    epochs=1,
    minibatches=2,
    gate_every=2,
    gate_games=8,
    max_turns=100,
    device="cuda",
)


def test_the_first_iteration_is_that_of_a_cpu() -> None:
    found = []
    for device in ("cpu", "cuda"):
        run = Ppo(msgspec.structs.replace(SMALL, device=device))
        found.append(run.iterate())
    cpu, gpu = found
    assert gpu["decisions"] == pytest.approx(cpu["decisions"], rel=0.1)
    for key in ("entropy", "value_loss"):
        assert gpu[key] == pytest.approx(cpu[key], rel=0.1), key


@pytest.mark.parametrize("compiled", [False, True])
def test_mixed_precision_overlap_and_compilation_train(compiled: bool) -> None:
    config = msgspec.structs.replace(SMALL, precision="bf16", overlap=True, compile=compiled)
    run = Ppo(config)
    figures = [run.iterate() for _ in range(3)]
    run.close()
    for one in figures:
        assert all(np.isfinite(value) for value in one.values())
        # The ratio is taken between two passes of the same weights in bf16.
        assert one["kl"] < 0.05
    assert run.last_gate is not None


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no cuda:63"):
        Ppo(msgspec.structs.replace(SMALL, device="cuda:63"))
