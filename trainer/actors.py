"""Processes of many machines as Ray actors, whose calls survive their deaths.

What an actor needs travels with each call, so an actor that dies is replaced by a new one that
repeats the call, with the same result.
"""

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from snakekit.trainer.gate import Counted, Gate, GateJob, OnGames, judge, nothing
from snakekit.trainer.generate import Cancelled
from snakekit.trainer.league import League, Weights

_ASKED_S = 0.2
_TRIES = 8
_REACH_S = 5.0


def share_of(total: int, count: int, index: int) -> int:
    """Return the part of `total` games that worker `index` of `count` has."""
    return len(np.array_split(np.arange(total), count)[index])


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
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
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


class ActorPool:
    """A fixed number of actors of one class; each has a method `process`, its process id."""

    def __init__(self, ray: Any, make: Callable[[int], Any], count: int) -> None:
        """Start `count` actors.

        Args:
            ray: what `open_ray` returned.
            make: starts actor number `index`; called again when that one has died.
            count: how many.
        """
        self.count = count
        self._ray, self._make = ray, make
        self._actors = [make(index) for index in range(count)]
        self._stored: dict[int, Any] = {}

    def processes(self) -> list[int]:
        """Return the actors' process ids."""
        return list(self._ray.get([actor.process.remote() for actor in self._actors]))

    def put(self, value: Any) -> Any:
        """Return a reference to `value` in the object store."""
        return self._ray.put(value)

    def league(self, league: League) -> dict[int, Any]:
        """Return references to all weights of `league`; those it dropped are let go."""
        self._stored = {
            number: self._stored.get(number) or self._ray.put(weights)
            for number, weights in league.weights.items()
        }
        return self._stored

    def ask(
        self,
        calls: Sequence[Callable[[Any], Any]],
        stop: Callable[[], bool],
        *,
        fixed: bool,
        answered: Callable[[int], None] = lambda index: None,
    ) -> list[Any]:
        """Return the answers to `calls`, each a function of an actor that starts a task.

        Call `i` goes to actor `i` if `fixed`, otherwise to whoever is free. A call whose actor
        died is made again with a new one. `answered` hears the number of each that is done.

        Raises:
            Cancelled: `stop()` was true.
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
                    answered(index)
                except self._ray.exceptions.RayActorError:
                    tries[index] += 1
                    if tries[index] == _TRIES:
                        raise
                    self._actors[actor] = self._make(actor)
                    waiting.insert(0, index)
        return answers

    def gate(
        self,
        jobs: Sequence[GateJob],
        candidate: Weights,
        league: League,
        needed: float,
        stop: Callable[[], bool],
        progress: OnGames = nothing,
    ) -> Gate:
        """Play a gate by the actors' method `gate(job, candidate, rivals)`.

        The candidate meets all that the league draws from, the current best last.

        Raises:
            Cancelled: `stop()` was true.
        """
        shared, stored = self.put(candidate), self.league(league)
        rivals = [stored[entry.number] for entry in league.drawn]

        def call(job: GateJob) -> Callable[[Any], Any]:
            return lambda actor: actor.gate.remote(job, shared, rivals)

        count = Counted(jobs, progress)
        calls = [call(job) for job in jobs]
        return judge(jobs, self.ask(calls, stop, fixed=False, answered=count), needed)

    def close(self) -> None:
        """End the actors."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []
