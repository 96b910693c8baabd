"""Many machines: workers that act and play gates as Ray actors, learners as Ray Train workers.

The actors run the same `Worker` as one process does. What an actor needs travels with each call:
the learner's weights and the opponents' by way of the object store, its league, and its place. So
an actor that dies is replaced by a new one that repeats the call, with the same result.
"""

import itertools
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from snakekit.trainer.device import set_threads
from snakekit.trainer.gate import Gate, GateJob, judge, play_job
from snakekit.trainer.generate import Cancelled
from snakekit.trainer.league import League, Weights
from snakekit.trainer.model import Net
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.ppo.loss import Batch
from snakekit.trainer.ppo.rollout import Place, Rollout, Worker
from snakekit.trainer.ppo.workers import Places, net_player, share_of

_ASKED_S = 0.2
_TRIES = 8
_REACH_S = 5.0


class RayMissing(ValueError):
    """Ray is not installed, or no cluster answers."""


def open_ray(address: str, cpus: int) -> Any:
    """Return the module `ray`, connected to the cluster at `address` or to one started here.

    Raises:
        RayMissing: the package is not installed, or nothing answers there.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise RayMissing(
            "ray_workers and learners need Ray; run: pip install 'snakekit[distributed]'"
        ) from None
    if ray.is_initialized():
        return ray
    if address:
        _reach(address)
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address:
            ray.init(address=address, **quiet)
        else:
            ray.init(num_cpus=cpus, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        line = str(error).splitlines()[0]
        raise RayMissing(f"ray_address: no Ray cluster at {address!r}: {line}") from None
    return ray


def _reach(address: str) -> None:
    """Raise RayMissing unless something listens there; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_REACH_S).close()
    except (OSError, ValueError) as error:
        raise RayMissing(f"ray_address: no Ray cluster at {address!r}: {error}") from None


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
        self.config, self.count = config, config.ray_workers
        self._ray = open_ray(config.ray_address, config.ray_workers + config.learners)
        self._device = torch.device(config.device)
        # max_restarts stays 0: a new actor is made here, as only here its place is known.
        self._make = self._ray.remote(num_cpus=1)(Actor).remote
        self._rank = rank
        self._actors = [self._new(index) for index in range(self.count)]
        self._pool: dict[int, Any] = {}

    def _new(self, index: int) -> Any:
        envs = share_of(self.config.envs, self.count, index)
        return self._make(self.config, self._rank * self.count + index, envs)

    def processes(self) -> list[int]:
        """Return the actors' process ids."""
        return list(self._ray.get([actor.process.remote() for actor in self._actors]))

    def _stored(self, league: League) -> dict[int, Any]:
        """Return references to all weights of `league`; those it dropped are let go."""
        self._pool = {
            number: self._pool.get(number) or self._ray.put(weights)
            for number, weights in league.weights.items()
        }
        return self._pool

    def _ask(
        self, calls: Sequence[Callable[[Any], Any]], stop: Callable[[], bool], *, fixed: bool
    ) -> list[Any]:
        """Return the answers to `calls`, each a function of an actor that starts a task.

        Call `i` goes to actor `i` if `fixed`, otherwise to whoever is free. A call whose actor
        died is made again with a new one.
        """
        answers: list[Any] = [None] * len(calls)
        waiting = list(range(len(calls)))
        running: dict[Any, tuple[int, int]] = {}
        tries = [0] * len(calls)
        free = list(range(self.count))
        while waiting or running:
            while waiting and free:
                index = waiting.pop(0)
                actor = index if fixed else free[0]
                free.remove(actor)
                running[calls[index](self._actors[actor])] = (index, actor)
            done, _ = self._ray.wait(list(running), timeout=_ASKED_S)
            if stop():
                for task in running:
                    self._ray.cancel(task)
                raise Cancelled
            for task in done:
                index, actor = running.pop(task)
                free.append(actor)
                try:
                    answers[index] = self._ray.get(task)
                except self._ray.exceptions.RayActorError:
                    tries[index] += 1
                    if tries[index] == _TRIES:
                        raise
                    self._actors[actor] = self._new(actor)
                    waiting.insert(0, index)
        return answers

    def collect(
        self,
        weights: Weights,
        league: League,
        iteration: int,
        places: Places,
        stop: Callable[[], bool],
    ) -> list[Rollout]:
        """See `Workers`."""
        shared, bare = self._ray.put(weights), league.bare()
        pool = self._stored(league)

        def call(place: Place | None) -> Callable[[Any], Any]:
            return lambda actor: actor.collect.remote(shared, bare, pool, iteration, place)

        found = self._ask([call(place) for place in places], stop, fixed=True)
        return [Rollout(unpacked(batch, self._device), *rest) for batch, *rest in found]

    def gate(
        self,
        jobs: Sequence[GateJob],
        candidate: Weights,
        league: League,
        needed: float,
        stop: Callable[[], bool],
    ) -> Gate:
        """See `Workers`."""
        shared, pool = self._ray.put(candidate), self._stored(league)
        rivals = [pool[entry.number] for entry in league.drawn]

        def call(job: GateJob) -> Callable[[Any], Any]:
            return lambda actor: actor.gate.remote(job, shared, rivals)

        return judge(jobs, self._ask([call(job) for job in jobs], stop, fixed=False), needed)

    def close(self) -> None:
        """End the actors."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []


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
