"""Who plays: the worker of this process. `remote.py` has the same interface on many machines."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from snakekit.trainer.actors import share_of
from snakekit.trainer.agents import Agent, open_agent
from snakekit.trainer.contest import Chooser
from snakekit.trainer.crew import Crew
from snakekit.trainer.gate import Gate, GateJob, OnGames, nothing, run_gate
from snakekit.trainer.league import League, Weights
from snakekit.trainer.model import ALL_SEAT, Net, build
from snakekit.trainer.nash.against import AgainstTable
from snakekit.trainer.nash.config import NashConfig
from snakekit.trainer.nash.examples import Examples
from snakekit.trainer.nash.learner import evaluator, infer_policy
from snakekit.trainer.nash.lesson import Lesson
from snakekit.trainer.nash.planning import PlanTeacher
from snakekit.trainer.nash.players import best_response, drawn, equilibrium
from snakekit.trainer.nash.selfplay import Recipe, play
from snakekit.trainer.nash.snakes import SnakeTable
from snakekit.trainer.scenario import draw, parse_all

GATE_ITERATIONS = 64
_NOWHERE = -1
_SUMS = ("positions", "games_finished", "cut_games")
"""Figures that are counts; the others are means over positions."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Place:
    """Where a worker's games are: enough to repeat everything that follows."""

    number: int
    """The next round."""
    tables: tuple[Arrays, ...]
    """What each kind of game packed."""

    def pack(self) -> Arrays:
        """Return everything as named arrays, for a checkpoint."""
        parts = {f"{i}/{n}": a for i, table in enumerate(self.tables) for n, a in table.items()}
        return {"number": np.array([self.number]), **parts}

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], tables: int) -> "Place":
        """Return what `pack` packed; raises KeyError for a missing array."""
        parts: list[Arrays] = [{} for _ in range(tables)]
        for key, array in arrays.items():
            index, slash, name = key.partition("/")
            if slash:
                parts[int(index)][name] = array
        return cls(int(arrays["number"][0]), tuple(parts))


Places = list[Place | None]


@dataclass(frozen=True)
class Played:
    """What a worker brings back."""

    examples: Examples
    figures: dict[str, float]
    place: Place


class Workers(Crew, Protocol):
    """A fixed number of workers that play rounds and gates."""

    def collect(
        self,
        weights: Weights,
        number: int,
        places: Places,
        stop: Callable[[], bool],
    ) -> list[Played]:
        """Play a round with every worker from its place on; see `Worker.collect`."""


def net_of(config: NashConfig, weights: Weights) -> Net:
    """Return the net with `weights`, ready to answer."""
    net = build(ALL_SEAT, config.net_options())
    net.load_state_dict({name: torch.from_numpy(np.array(a)) for name, a in weights.items()})
    return net.eval()


def gate_players(
    config: NashConfig, agent: Agent | None, candidate: Weights, rivals: Sequence[Weights]
) -> tuple[Chooser, list[Chooser]]:
    """Return the players of a gate: the candidate and the others.

    They make the likeliest move of one turn's equilibrium. In a run against a frozen agent the
    candidate makes its best response to the only other player, that agent.
    """
    net, slots = net_of(config, candidate), config.slots
    options: dict[str, Any] = {"iterations": GATE_ITERATIONS, "draw_worth": config.draw_worth}
    if agent is not None:
        best = best_response(evaluator(net), slots, agent.policies, **options)
        return drawn(best), [agent.chooser]
    nets = [net, *(net_of(config, weights) for weights in rivals)]
    players = [equilibrium(net, slots, **options) for net in nets]
    return players[0], players[1:]


def combined(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the figures of several workers as one's: sums of counts, means over positions."""
    out: dict[str, float] = {}
    for key in dict.fromkeys(key for part in parts for key in part):
        known = [(part[key], part["positions"]) for part in parts if key in part]
        if key in _SUMS:
            out[key] = sum(value for value, _ in known)
            continue
        total = max(sum(positions for _, positions in known), 1.0)
        out[key] = sum(value * positions for value, positions in known) / total
    return out


class Worker:
    """Some games of each kind and the net that judges them; one thread at a time."""

    def __init__(self, config: NashConfig, index: int = 0, count: int = 1) -> None:
        """Start the games of worker `index` of `count`."""
        self.config, self.index, self.count = config, index, count
        self.scenarios = parse_all(config.scenarios)
        self.net = build(ALL_SEAT, config.net_options()).eval()
        self.agent = open_agent(config.against) if config.against else None
        self.tables = [self._table(number) for number in range(len(self.scenarios))]
        self.number = 0
        self._beginning = self.place()

    def _table(self, number: int) -> SnakeTable:
        config, scenario = self.config, self.scenarios[number]
        games = share_of(config.games, self.count, self.index)
        options: dict[str, Any] = {
            "seed": config.seed * 1000 + number + 1_000_003 * self.index,
            "max_turns": config.max_turns,
            "draw_worth": config.draw_worth,
        }
        if self.agent is None:
            return SnakeTable(scenario, games, config.slots, **options)
        return AgainstTable(scenario, games, config.slots, agent=self.agent, **options)

    def place(self) -> Place:
        """Return where the games are."""
        return Place(self.number, tuple(table.pack() for table in self.tables))

    def put(self, place: Place) -> None:
        """Go back to `place`; raises ValueError if it is of other games."""
        for table, arrays in zip(self.tables, place.tables, strict=True):
            table.unpack(arrays)
        self.number = place.number

    def recipe(self, number: int) -> Recipe:
        """Return how to play in round `number`; the first ones learn from outcomes."""
        config = self.config
        usual = Recipe(
            turns=config.turns,
            iterations=config.iterations,
            explore=config.explore,
            opening_explore=config.opening_explore,
            opening_turns=config.opening_turns,
            trust=config.trust,
            discount=config.discount,
        )
        if number >= max(config.imitate, config.pretrain):
            return usual
        # Whole games without exploration, which would cut them off from their outcomes; play on
        # the values of an untrained net is random enough, a search's needs other openings.
        opening = config.opening_explore if number < config.imitate else 0.0
        return replace(
            usual, turns=config.pretrain_turns, explore=0.0, opening_explore=opening, trust=1.0
        )

    def collect(
        self,
        weights: Weights,
        number: int,
        place: Place | None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Played:
        """Play round `number` of one kind of game.

        Args:
            weights: of the value net.
            number: of the round.
            place: where the last round ended, or None to begin new games.
            stop: asked every turn.

        Raises:
            Cancelled: `stop()` was true; the next call begins at its `place` all the same.
        """
        place = place or self._beginning
        if place.number != self.number or place is self._beginning:
            self.put(place)
        self.number = _NOWHERE
        self.net.load_state_dict({n: torch.from_numpy(np.array(a)) for n, a in weights.items()})
        kinds = draw(
            self.scenarios, self.count, np.random.default_rng([self.config.seed, 4, number])
        )
        table = self.tables[self.scenarios.index(kinds[self.index])]
        generator = np.random.default_rng([self.config.seed, 3, number, self.index])
        judge = evaluator(self.net)
        teacher = PlanTeacher(self.config.plan_recipe(), judge, partial(infer_policy, self.net))
        lesson = number < self.config.imitate
        played = Lesson(table, self.config.imitate_nodes) if lesson else table
        begun = time.perf_counter()
        examples, figures = play(played, judge, self.recipe(number), generator, stop, teacher)
        figures["generate_seconds"] = time.perf_counter() - begun
        self.number = number + 1
        return Played(examples, figures, self.place())


class LocalWorkers:
    """One worker, in the calling thread."""

    count = 1

    def __init__(self, config: NashConfig) -> None:
        """Start all games."""
        self.config = config
        self._worker = Worker(config)

    def collect(
        self,
        weights: Weights,
        number: int,
        places: Places,
        stop: Callable[[], bool],
    ) -> list[Played]:
        """See `Workers`."""
        return [self._worker.collect(weights, number, places[0], stop)]

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
        rivals = [league.weights[e.number] for e in league.drawn]
        player, others = gate_players(self.config, self._worker.agent, candidate, rivals)
        return run_gate(jobs, player, others, needed, stop=stop, progress=progress)

    def close(self) -> None:
        """Nothing is held that does not end with this object."""
