"""How the local players of an arena choose their moves, for many games at once."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from snakekit.bench.arena.entrants import ALL_SEAT_KINDS, Entrant
from snakekit.bench.arena.models import AllSeats, Batcher, ModelSource, asker
from snakekit.core import Searcher, State, greedy_move, random_move, reflex_move
from snakekit.runtime.decide import decide


@dataclass(frozen=True, slots=True)
class Ask:
    """One living seat that has to move."""

    entrant: Entrant
    state: State
    seat: int
    key: int
    """Random bits of this move, the same whenever the game is played again."""
    searcher: Searcher | None


class Minds:
    """All local players; belongs to one thread, as searches and inferences run in the caller's."""

    def __init__(self, sources: Mapping[str, ModelSource], temperature: float) -> None:
        """Use `sources`, the opened models by the players' names."""
        # Players of one model, such as a policy and its hybrid, share its batches.
        self._batchers: dict[str, Batcher | AllSeats] = {}
        self._key = {name: source.fingerprint for name, source in sources.items()}
        self._sources = {source.fingerprint: source for source in sources.values()}
        self._temperature = temperature

    def moves(self, asks: Sequence[Ask]) -> list[int]:
        """Return a move 0..3 for every ask."""
        logits = self._infer(asks)
        return [self._move(ask, logits.get(index)) for index, ask in enumerate(asks)]

    def _infer(self, asks: Sequence[Ask]) -> dict[int, list[float]]:
        wanted: dict[str, list[int]] = {}
        for index, ask in enumerate(asks):
            if ask.entrant.has_model:
                wanted.setdefault(self._key[ask.entrant.name], []).append(index)
        found: dict[int, list[float]] = {}
        for key, indices in wanted.items():
            if key not in self._batchers:
                self._batchers[key] = asker(self._sources[key])
            batcher = self._batchers[key]
            if isinstance(batcher, AllSeats):
                for i in indices:
                    ask = asks[i]
                    found[i] = batcher.logits(ask.state, ask.seat, ask.entrant.look)
                continue
            logits = batcher.logits([(asks[i].state, asks[i].seat) for i in indices])
            found.update(zip(indices, logits.tolist(), strict=True))
        return found

    def _move(self, ask: Ask, logits: list[float] | None) -> int:
        entrant, state, seat = ask.entrant, ask.state, ask.seat
        if entrant.kind == "random":
            return random_move(state, seat, ask.key)
        if entrant.kind == "greedy":
            return greedy_move(state, seat, ask.key)
        found = None
        if ask.searcher is not None and entrant.plan is not None:
            found = entrant.plan.search(ask.searcher, state, seat, ask.key)
            if entrant.kind == "search":
                return found.best
        legal, safe = state.legal_mask(seat), state.safe_mask(seat)
        heat = self._temperature if entrant.temperature is None else entrant.temperature
        if (
            entrant.kind in ("policy", *ALL_SEAT_KINDS)
            and entrant.plan is None
            and heat > 0
            and logits
            and all(map(math.isfinite, logits))
        ):
            return sample(logits, safe or legal or 15, heat, ask.key)
        return decide(
            legal=legal,
            safe=safe,
            reflex=reflex_move(state, seat),
            logits=logits,
            search=found,
            search_asked=entrant.plan is not None,
        ).move


def sample(logits: Sequence[float], mask: int, temperature: float, key: int) -> int:
    """Draw a move of `mask` with probability proportional to exp(logit / temperature)."""
    moves = [m for m in range(4) if mask >> m & 1]
    scaled = np.array([logits[m] for m in moves]) / temperature
    weights = np.exp(scaled - scaled.max())
    return random.Random(key).choices(moves, weights.tolist())[0]
