"""Self-play and gates on many machines: Ray actors that run the `Worker` of one process."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from snakekit.trainer.actors import ActorPool, open_ray
from snakekit.trainer.device import set_threads
from snakekit.trainer.gate import GateJob, play_job
from snakekit.trainer.league import Weights
from snakekit.trainer.nash.config import NashConfig
from snakekit.trainer.nash.workers import Place, Places, Played, Worker, gate_players


class Actor:
    """What runs in an actor's process."""

    def __init__(self, config: NashConfig, index: int) -> None:
        """Start this actor's part of the games."""
        set_threads(1)
        self._config = config
        self._worker = Worker(config, index, config.ray_workers)

    def process(self) -> int:
        """Return the process id."""
        return os.getpid()

    def collect(self, weights: Weights, number: int, place: Place | None) -> Played:
        """Play a round."""
        return self._worker.collect(weights, number, place)

    def gate(self, job: GateJob, candidate: Weights, rivals: Sequence[Any]) -> Any:
        """Play the games of `job`."""
        import ray

        found = ray.get(list(rivals))
        return play_job(job, *gate_players(self._config, self._worker.agent, candidate, found))


class RayWorkers:
    """See `Workers`."""

    def __init__(self, config: NashConfig) -> None:
        """Start `ray_workers` actors.

        Raises:
            RayMissing: see `open_ray`.
        """
        self.count = config.ray_workers
        ray = open_ray(config.ray_address, config.ray_workers + 1)
        # max_restarts stays 0: a new actor is made here, as only here its place is known.
        actor = ray.remote(num_cpus=1)(Actor)
        self._pool = ActorPool(ray, lambda index: actor.remote(config, index), self.count)
        self.gate = self._pool.gate
        self.processes = self._pool.processes
        self.close = self._pool.close

    def collect(
        self,
        weights: Weights,
        number: int,
        places: Places,
        stop: Callable[[], bool],
    ) -> list[Played]:
        """See `Workers`."""
        shared = self._pool.put(weights)

        def call(place: Place | None) -> Callable[[Any], Any]:
            return lambda actor: actor.collect.remote(shared, number, place)

        return list(self._pool.ask([call(place) for place in places], stop, fixed=True))
