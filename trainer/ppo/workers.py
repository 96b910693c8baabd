"""Who acts: the workers of this process. `remote.py` has the same interface on many machines."""

from collections.abc import Callable, Sequence
from typing import Protocol

from snakekit.trainer.contest import Chooser, best_move
from snakekit.trainer.crew import Crew
from snakekit.trainer.device import Forward, open_device
from snakekit.trainer.gate import Gate, GateJob, OnGames, nothing, run_gate
from snakekit.trainer.league import League, Weights
from snakekit.trainer.model import build, kind_of
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.ppo.rollout import Place, Rollout, Worker

Places = list[Place | None]


class Workers(Crew, Protocol):
    """A fixed number of workers that act and play gates."""

    def collect(
        self,
        weights: Weights,
        league: League,
        iteration: int,
        places: Places,
        stop: Callable[[], bool],
    ) -> list[Rollout]:
        """Act one iteration with every worker from its place on; see `Worker.collect`."""


def net_player(config: PpoConfig, weights: Weights) -> Chooser:
    """Return the player that makes the likeliest safe move of the net with `weights`."""
    net = Forward(
        build(config.net, config.net_options()),
        open_device(config.device, config.precision),
        precision=config.precision,
    )
    net.load(weights)
    return best_move(lambda obs: net(obs)[0], kind_of(config.net).encoder)


class LocalWorkers:
    """One worker, in the calling thread."""

    count = 1

    def __init__(self, config: PpoConfig, rank: int = 0) -> None:
        """Start the games of learner `rank`."""
        self.config = config
        self._worker = Worker(config, rank, config.envs)

    def collect(
        self,
        weights: Weights,
        league: League,
        iteration: int,
        places: Places,
        stop: Callable[[], bool],
    ) -> list[Rollout]:
        """See `Workers`."""
        fetch = league.weights.__getitem__
        return [self._worker.collect(weights, league, fetch, iteration, places[0], stop)]

    def gate(
        self,
        jobs: Sequence[GateJob],
        candidate: Weights,
        league: League,
        needed: float,
        stop: Callable[[], bool],
        progress: OnGames = nothing,
    ) -> Gate:
        """See `Workers`."""
        rivals = [net_player(self.config, league.weights[e.number]) for e in league.drawn]
        player = net_player(self.config, candidate)
        return run_gate(jobs, player, rivals, needed, stop=stop, progress=progress)

    def close(self) -> None:
        """Nothing is held that does not end with this object."""
