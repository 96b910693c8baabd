"""Acting: many games side by side, whose decisions by the learner are then learned from.

A worker's games go on from one iteration to the next. Which player has which seat is drawn when a
game starts and kept until it ends. Every random choice is a pure function of (seed, worker,
iteration) or (seed, worker, game, episode), so a worker put back to an earlier `Place` repeats
itself bit for bit.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer import symmetry
from snakekit.trainer.agents import opponent
from snakekit.trainer.canonical import transformed
from snakekit.trainer.device import Forward, open_device
from snakekit.trainer.generate import Cancelled, best_allowed
from snakekit.trainer.league import LEARNER, League, Weights
from snakekit.trainer.model import build, kind_of
from snakekit.trainer.ppo.advantage import Course, estimate
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.ppo.loss import FORBIDDEN, Batch

_STRAIGHT = -1
"""A move that the rules read as straight on."""
_NOWHERE = -1
_ENVIRONMENT, _CHOICES, _CASTS = 20, 21, 22


@dataclass(frozen=True)
class Place:
    """Where a worker's games are: enough to repeat everything that follows."""

    iteration: int
    """The next one to act in."""
    episodes: NDArray[np.int32]
    """`[games]`, games finished so far."""
    turns: NDArray[np.int32]
    """`[games]`."""
    moves: NDArray[np.int8]
    """`[games, longest, seats]`, the moves of the running games."""
    seats: NDArray[np.int32]
    """`[games, seats]`, who has them."""

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, for a checkpoint."""
        names = ("episodes", "turns", "moves", "seats")
        return {"iteration": np.array([self.iteration])} | {n: getattr(self, n) for n in names}

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]]) -> "Place":
        """Return what `pack` packed; raises KeyError for a missing array."""
        found = {n: arrays[n] for n in ("episodes", "turns", "moves", "seats")}
        return cls(int(arrays["iteration"][0]), **found)


@dataclass(frozen=True)
class Rollout:
    """What a worker brings back."""

    batch: Batch
    counts: Counter[str]
    """What happened, as sums over the games; see `figures.py`."""
    seconds: dict[str, float]
    """Spent on `env` (rules and observations), `infer` (nets) and `act` (all)."""
    place: Place


def choose(
    logits: NDArray[np.float32], mask: NDArray[np.bool_], generator: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Sample a move a row by the policy over allowed moves (Gumbel); return it and its log-prob.

    Where `mask` allows none, all four are.
    """
    allowed = mask | ~mask.any(-1, keepdims=True)
    shown = np.where(allowed, logits, np.float32(FORBIDDEN))
    shown = shown - shown.max(1, keepdims=True)
    log_probs = shown - np.log(np.exp(shown).sum(1, keepdims=True))
    noise = generator.gumbel(size=logits.shape)
    moves = (log_probs + noise).argmax(1)
    return moves, np.take_along_axis(log_probs, moves[:, None], 1)[:, 0].astype(np.float32)


def turned(
    obs: torch.Tensor, mask: NDArray[np.bool_], generator: np.random.Generator
) -> tuple[torch.Tensor, NDArray[np.bool_], NDArray[np.intp]]:
    """Return observations and masks, each row under a random symmetry, and the symmetries.

    The decision is made and learned in the turned view, so that the probability ratio compares
    like with like. Observations are turned where they lie, on a GPU if that has them.
    """
    kept = symmetry.shape_keeping(obs.shape[-2], obs.shape[-1])
    drawn = generator.integers(len(kept), size=len(obs))
    out, out_mask = torch.empty_like(obs), np.empty_like(mask)
    for s in kept:
        rows = np.flatnonzero(drawn == s)
        if len(rows):
            index = torch.from_numpy(rows).to(obs.device)
            out[index] = transformed(obs[index], s)
            out_mask[rows] = symmetry.transform_policy(mask[rows], s)
    return out, out_mask, drawn


_BACK = np.argsort(symmetry.MOVE_TABLE, axis=1)
"""`_BACK[s, m]` is the move that becomes `m` under symmetry `s`."""


class Opponents:
    """The nets of earlier bests, made from their weights when they are first met."""

    def __init__(self, config: PpoConfig) -> None:
        """Hold no net yet; `fetch` has to be set before one is asked for."""
        self._config = config
        self.fetch: Callable[[int], Weights] = dict[int, Weights]().__getitem__
        self._nets: dict[int, Forward] = {}

    def net(self, number: int) -> Forward:
        """Return the net of entry `number`."""
        if number not in self._nets:
            config = self._config
            net = Forward(
                build(config.net, config.net_options()),
                torch.device(config.device),
                precision=config.precision,
            )
            net.load(self.fetch(number))
            self._nets[number] = net
        return self._nets[number]

    def keep(self, numbers: set[int]) -> None:
        """Drop all nets but those of `numbers`."""
        self._nets = {n: net for n, net in self._nets.items() if n in numbers}


class Worker:
    """Some games and the nets that play them; belongs to one thread at a time."""

    def __init__(self, config: PpoConfig, index: int, envs: int) -> None:
        """Start `envs` games; `index` tells workers of one run apart."""
        self.config, self.index = config, index
        self.kind = kind_of(config.net)
        self.device = open_device(config.device, config.precision, compiled=config.compile)
        self.snakes = np.array([s.snakes for s in config.games], np.int32)
        self.env = core.VectorEnv(
            [
                core.Scenario(s.width, s.height, s.snakes, s.settings(), s.weight)
                for s in config.games
            ],
            count=envs,
            seed=int(np.random.default_rng([config.seed, _ENVIRONMENT, index]).integers(2**62)),
            encoder=self.kind.encoder,
            threads=config.env_threads,
            max_turns=config.max_turns,
        )
        self.actor = Forward(
            build(config.net, config.net_options()),
            self.device,
            precision=config.precision,
            compiled=config.compile,
        )
        shape = (envs, self.env.seats)
        self.iteration = 0
        self.seats = np.full(shape, LEARNER, np.int32)
        self.moves = np.zeros((envs, 64, self.env.seats), np.int8)
        self.opponents = Opponents(config)
        self.builtins = [opponent(name) for name in config.builtins]
        self._beginning = self.place()

    def place(self) -> Place:
        """Return where the games are."""
        longest = int(self.env.turns.max(initial=0))
        return Place(
            self.iteration,
            self.env.episodes.copy(),
            self.env.turns.copy(),
            self.moves[:, : max(longest, 1)].copy(),
            self.seats.copy(),
        )

    def put(self, place: Place) -> None:
        """Go back to `place`; raises ValueError if it is of other games."""
        self.env.replay(place.episodes, place.turns, place.moves)
        self.iteration = place.iteration
        self.seats = place.seats.copy()
        self.moves = place.moves.copy()

    def collect(
        self,
        weights: Weights,
        league: League,
        fetch: Callable[[int], Weights],
        iteration: int,
        place: Place | None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Rollout:
        """Act for one iteration.

        Args:
            weights: the learner's, to act with.
            league: draws the opponents of new games.
            fetch: returns an opponent's weights by number.
            iteration: counted from 0.
            place: where the last iteration ended, or None to begin new games.
            stop: asked every turn.

        Raises:
            Cancelled: `stop()` was true; the next call begins at its `place` all the same.
        """
        begun = time.perf_counter()
        self.opponents.fetch = fetch
        self.actor.load(weights)
        if place is None:
            self.put(self._beginning)
            self._cast(league, np.ones(self.env.count, np.bool_))
        elif place.iteration != self.iteration:
            self.put(place)
        self.iteration = _NOWHERE
        record = _Record(self, iteration)
        for turn in range(self.config.steps):
            if stop():
                raise Cancelled
            record.turn(turn, league)
        batch = record.finish()
        self.iteration = iteration + 1
        self.opponents.keep(set(np.unique(self.seats).tolist()))
        record.seconds["act"] = time.perf_counter() - begun
        return Rollout(batch, record.counts, record.seconds, self.place())

    def _cast(self, league: League, fresh: NDArray[np.bool_]) -> None:
        """Draw the players of games that have just started."""
        for game in np.flatnonzero(fresh).tolist():
            episode = int(self.env.episodes[game])
            key = [self.config.seed, _CASTS, self.index, game, episode]
            snakes = int(self.snakes[self.env.scenarios[game]])
            self.seats[game] = LEARNER
            self.seats[game, :snakes] = league.cast(snakes, np.random.default_rng(key))


class _Record:
    """The turns of one iteration."""

    def __init__(self, worker: Worker, iteration: int) -> None:
        config, env = worker.config, worker.env
        self.worker, self.config, self.env = worker, config, env
        self.random = np.random.default_rng([config.seed, _CHOICES, worker.index, iteration])
        shape = (config.steps, env.count, env.seats)
        self.live = np.zeros(shape, np.bool_)
        self.rewards, self.values, self.final_values = (np.zeros(shape, np.float32) for _ in "abc")
        self.terminated, self.truncated = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        self.obs: list[torch.Tensor] = []
        self.masks: list[NDArray[np.bool_]] = []
        self.chosen: list[NDArray[np.intp]] = []
        self.log_probs: list[NDArray[np.float32]] = []
        self.counts: Counter[str] = Counter()
        self.seconds = {"env": 0.0, "infer": 0.0}

    def turn(self, turn: int, league: League) -> None:
        worker, env = self.worker, self.env
        live = env.alive & (worker.seats == LEARNER)
        moves = np.full(live.shape, _STRAIGHT, np.int8)
        begun = time.perf_counter()
        self._act(turn, live, moves)
        self._answer(live, moves)
        self.seconds["infer"] += time.perf_counter() - begun
        turns, episodes = env.turns.copy(), env.episodes.copy()
        self._remember(turns, moves)
        begun = time.perf_counter()
        env.step(moves)
        self.seconds["env"] += time.perf_counter() - begun
        self._note(turn, live, turns)
        worker._cast(league, env.episodes > episodes)

    def _act(self, turn: int, live: NDArray[np.bool_], moves: NDArray[np.int8]) -> None:
        config, env, actor = self.config, self.env, self.worker.actor
        rows = np.nonzero(live)
        self.live[turn] = live
        if not len(rows[0]):
            return
        # Torch copies with all its threads, numpy with one.
        every = torch.from_numpy(env.obs.reshape(live.size, *env.obs.shape[2:]))
        shown = actor.put(every.index_select(0, torch.from_numpy(np.flatnonzero(live))))
        mask = env.masks[rows] if config.mask_moves else np.ones((len(shown), 4), np.bool_)
        drawn = None
        if config.symmetry == "random":
            shown, mask, drawn = turned(shown, mask, self.random)
        logits, self.values[turn][rows] = actor.ask(shown)
        chosen, log_probs = choose(logits, mask, self.random)
        moves[rows] = chosen if drawn is None else _BACK[drawn, chosen]
        self.obs.append(shown)
        self.masks.append(mask)
        self.chosen.append(chosen)
        self.log_probs.append(log_probs)

    def _answer(self, live: NDArray[np.bool_], moves: NDArray[np.int8]) -> None:
        """Let the opponents move in games that the learner still plays; others may run out."""
        env, seats = self.env, self.worker.seats
        played: NDArray[np.bool_] = np.any(live, axis=1)
        theirs = env.alive & (seats != LEARNER) & played[:, None]
        opponents, config = self.worker.opponents, self.config
        for number in np.unique(seats[theirs]).tolist():
            rows = np.argwhere(theirs & (seats == number)).astype(np.int32)
            at = rows[:, 0], rows[:, 1]
            if number < 0:
                player = self.worker.builtins[-1 - number]
                moves[at] = player(env, rows, int(self.random.integers(2**31)))
                continue
            logits = opponents.net(number)(env.obs[at])[0]
            allowed = env.masks[at]
            moves[at] = (
                best_allowed(logits, allowed)
                if config.opponent_best_move
                else choose(logits, allowed, self.random)[0]
            )

    def _remember(self, turns: NDArray[np.int32], moves: NDArray[np.int8]) -> None:
        worker = self.worker
        if turns.max(initial=0) >= worker.moves.shape[1]:
            worker.moves = np.concatenate([worker.moves, np.zeros_like(worker.moves)], 1)
        worker.moves[np.arange(len(turns)), turns] = moves

    def _note(self, turn: int, live: NDArray[np.bool_], turns: NDArray[np.int32]) -> None:
        config, env = self.config, self.env
        self.terminated[turn], self.truncated[turn] = env.terminated & live, env.truncated & live
        rewards = np.where(env.results == 2, np.float32(config.draw_reward), env.rewards)
        rewards += config.kill_bonus * env.kills - config.eat_cost * env.ate
        self.rewards[turn] = np.where(live, rewards, 0)
        cut = np.nonzero(self.truncated[turn])
        if len(cut[0]):
            self.final_values[turn][cut] = self.worker.actor(env.final_obs[cut])[1]
        self._count(live, turns)

    def _count(self, live: NDArray[np.bool_], turns: NDArray[np.int32]) -> None:
        env, counts = self.env, self.counts
        counts["decisions"] += int(live.sum())
        counts["turns"] += int(live.any(1).sum())
        counts["eaten"] += int((env.ate & live).sum())
        counts["kills"] += int(env.kills[live].sum())
        ended = live & env.terminated
        if not (ended.any() or (env.truncated & live).any()):
            return
        counts["cut"] += int((env.truncated & live).sum())
        counts["ended"] += int(ended.sum())
        counts["lifetime"] += int(np.broadcast_to(turns[:, None] + 1, live.shape)[ended].sum())
        pool: NDArray[np.bool_] = np.any(self.worker.seats != LEARNER, axis=1)
        mixed = ended & pool[:, None]
        for key, where in (("own", ended & ~mixed), ("pool", mixed)):
            results = env.results[where]
            counts[f"{key}_ended"] += len(results)
            counts[f"{key}_won"] += int((results == 1).sum())
            counts[f"{key}_drawn"] += int((results == 2).sum())
        for cause, count in enumerate(np.bincount(env.causes[ended]).tolist()):
            if cause and count:
                counts[f"cause/{core.CAUSES[cause]}"] += count

    def finish(self) -> Batch:
        """Return the decisions with their advantages, in the order of turns, games and seats."""
        env, shape = self.env, (self.config.steps, -1)
        going = env.alive & self.live[-1] & ~self.terminated[-1] & ~self.truncated[-1]
        last = np.zeros(going.shape, np.float32)
        rows = np.nonzero(going)
        if len(rows[0]):
            last[rows] = self.worker.actor(env.obs[rows])[1]
        course = Course(
            live=self.live.reshape(shape),
            rewards=self.rewards.reshape(shape),
            values=self.values.reshape(shape),
            terminated=self.terminated.reshape(shape),
            truncated=self.truncated.reshape(shape),
            final_values=self.final_values.reshape(shape),
            last_values=last.ravel(),
        )
        advantage = estimate(course, self.config.gamma, self.config.gae_lambda)
        at = course.live
        value = course.values[at]
        device = self.worker.device

        def tensor(array: NDArray[Any]) -> torch.Tensor:
            return torch.from_numpy(array).to(device)

        return Batch(
            obs=torch.cat(self.obs) if self.obs else torch.zeros(0, device=device),
            mask=tensor(np.concatenate(self.masks)),
            moves=tensor(np.concatenate(self.chosen).astype(np.int64)),
            log_probs=tensor(np.concatenate(self.log_probs)),
            values=tensor(value),
            advantages=tensor(advantage[at]),
            returns=tensor(advantage[at] + value),
        )
