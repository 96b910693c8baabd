"""Many machines: workers that act and play gates as Ray actors, learners as Ray Train workers.

The actors run the same `Worker` as one process does. What an actor needs travels with each call:
the learner's weights and the opponents' by way of the object store, its league, and its place. So
an actor that dies is replaced by a new one that repeats the call, with the same result.
"""

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from snakekit.trainer.actors import ActorPool, open_ray, share_of
from snakekit.trainer.device import set_threads
from snakekit.trainer.gate import GateJob, play_job
from snakekit.trainer.league import League, Weights
from snakekit.trainer.model import Net
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.ppo.loss import Batch
from snakekit.trainer.ppo.rollout import Place, Rollout, Worker
from snakekit.trainer.ppo.workers import Places, net_player


def packed(batch: Batch) -> dict[str, Any]:
    """Return the batch as arrays, which the object store hands over without a copy."""
    return {name: getattr(batch, name).cpu().numpy() for name in batch.__dataclass_fields__}


def unpacked(arrays: Mapping[str, Any], device: torch.device) -> Batch:
    """Return what `packed` packed, on `device`."""
    return Batch(**{n: torch.from_numpy(np.array(a)).to(device) for n, a in arrays.items()})


class Actor:
    """What runs in an actor's process."""

    def __init__(self, config: PpoConfig, index: int, envs: int) -> None:
        """Start `envs` games on this process's CPU."""
        set_threads(1)
        self._config = msgspec.structs.replace(
            config, device="cpu", precision="fp32", compile=False
        )
        self._worker = Worker(self._config, index, envs)

    def process(self) -> int:
        """Return the process id."""
        return os.getpid()

    def collect(
        self, weights: Weights, league: League, pool: Mapping[int, Any], iteration: int, place: Any
    ) -> tuple[dict[str, Any], Any, dict[str, float], Place]:
        """Act for one iteration; `pool` holds references to opponents' weights by number."""
        import ray

        found = self._worker.collect(
            weights, league, lambda number: ray.get(pool[number]), iteration, place
        )
        return packed(found.batch), found.counts, found.seconds, found.place

    def gate(self, job: GateJob, candidate: Weights, rivals: Sequence[Any]) -> Any:
        """Play the games of `job`."""
        import ray

        players = [net_player(self._config, weights) for weights in ray.get(list(rivals))]
        return play_job(job, net_player(self._config, candidate), players)


class RayWorkers:
    """The actors of one learner; see `Workers`."""

    def __init__(self, config: PpoConfig, rank: int = 0) -> None:
        """Start `ray_workers` actors.

        Raises:
            RayMissing: see `open_ray`.
        """
        self.count = config.ray_workers
        self._device = torch.device(config.device)
        ray = open_ray(config.ray_address, config.ray_workers + config.learners)
        # max_restarts stays 0: a new actor is made here, as only here its place is known.
        actor = ray.remote(num_cpus=1)(Actor)

        def make(index: int) -> Any:
            envs = share_of(config.envs, config.ray_workers, index)
            return actor.remote(config, rank * config.ray_workers + index, envs)

        self._pool = ActorPool(ray, make, self.count)
        self.gate = self._pool.gate
        self.processes = self._pool.processes
        self.close = self._pool.close

    def collect(
        self,
        weights: Weights,
        league: League,
        iteration: int,
        places: Places,
        stop: Callable[[], bool],
    ) -> list[Rollout]:
        """See `Workers`."""
        shared, bare = self._pool.put(weights), league.bare()
        stored = self._pool.league(league)

        def call(place: Place | None) -> Callable[[Any], Any]:
            return lambda actor: actor.collect.remote(shared, bare, stored, iteration, place)

        found = self._pool.ask([call(place) for place in places], stop, fixed=True)
        return [Rollout(unpacked(batch, self._device), *rest) for batch, *rest in found]


class TorchGroup:
    """The learners of one Ray Train group, by torch.distributed."""

    def __init__(self, device: torch.device) -> None:
        """Join the group that Ray Train has set up in this process."""
        self.rank = torch.distributed.get_rank()
        self.size = torch.distributed.get_world_size()
        self._device = device

    def total(self, values: Tensor) -> Tensor:
        """Return the sum of `values` over all learners."""
        summed = values.detach().clone().to(self._device)
        torch.distributed.all_reduce(summed)
        return summed.to(values.device)

    def gather(self, places: Any) -> list[Any]:
        """Return what every learner gave, by rank."""
        found: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(found, places)
        return found

    def wrap(self, net: Net, device: torch.device) -> nn.Module:
        """Return `net` as torch's DistributedDataParallel."""
        from ray.train.torch import prepare_model

        wrapped: nn.Module = prepare_model(
            net, move_to_device=self._device, parallel_strategy_kwargs={"broadcast_buffers": False}
        )
        return wrapped


def train_together(
    session: Callable[[Any, TorchGroup], int], plan: Any, config: PpoConfig, storage: str
) -> None:
    """Run `session(plan, group)` in `config.learners` Ray Train workers, and wait.

    Args:
        session: trains; the same on every learner.
        plan: its first argument.
        config: says how many learners, and on what device.
        storage: a folder that all of them see, for Ray Train's own notes.

    Raises:
        ValueError: a learner failed; its reason.
    """
    open_ray(config.ray_address, (config.ray_workers + 1) * config.learners)
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer, get_device

    def learn(_: dict[str, Any]) -> None:
        device = get_device()
        if device.type == "cuda":
            # Ray shows all GPUs of a machine to each of its learners.
            torch.cuda.set_device(device)
        session(plan, TorchGroup(device))

    trainer = TorchTrainer(
        learn,
        train_loop_config={},
        scaling_config=ScalingConfig(
            num_workers=config.learners, use_gpu=config.device.startswith("cuda")
        ),
        run_config=RunConfig(name="ray-train", storage_path=storage),
    )
    try:
        trainer.fit()
    except Exception as error:
        causes = itertools.chain(getattr(error, "worker_failures", {}).values(), [error])
        raise ValueError(f"a learner failed: {str(next(causes)).splitlines()[-1]}") from error
