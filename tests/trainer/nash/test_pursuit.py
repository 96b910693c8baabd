"""The trainer on a tiny game whose equilibrium is known exactly."""

import numpy as np
import torch

from snakekit.trainer.nash.examples import Ring
from snakekit.trainer.nash.learner import Learner, evaluator
from snakekit.trainer.nash.net import AllSeatNet
from snakekit.trainer.nash.pursuit import Pursuit, nash_values
from snakekit.trainer.nash.selfplay import Recipe, play
from snakekit.trainer.nash.table import GameTable

GAME = Pursuit()


def trained(rounds: int, *, seed: int = 0, trust: float = 0.0) -> AllSeatNet:
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    net = AllSeatNet((1, 1, 1, GAME.limit), heads=(1, 2), actions=5, channels=32, blocks=2)
    learner = Learner(net, lr=3e-3, steps=rounds * 8, weight_decay=0.0)
    table = GameTable(GAME, 64, seed=seed, max_turns=100)
    ring = Ring(4096, table.shape, 2, 5)
    recipe = Recipe(
        turns=4, iterations=64, explore=0.2, opening_explore=0.2, opening_turns=0, trust=trust
    )
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        ring.add(play(table, evaluator(net), recipe, generator)[0])
        for _ in range(8):
            learner.update(ring.sample(256, generator))
    return net.eval()


def value_errors(net: AllSeatNet) -> np.ndarray:
    exact = nash_values(GAME)
    logits = evaluator(net)(GAME.features(list(exact)))
    chances = np.exp(logits - logits.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    return np.abs(chances[:, 0] + chances[:, 2] / 2 - np.array(list(exact.values())))


if __name__ == "__main__":
    import sys
    import time

    for trust in (0.0, 0.5):
        t = time.perf_counter()
        net = trained(int(sys.argv[1]), trust=trust)
        e = value_errors(net)
        print(trust, e.mean(), np.quantile(e, [0.5, 0.9, 0.99, 1]), time.perf_counter() - t)
