"""The loads that `snakekit bench server` puts on a server, and the figures that come of them."""

import asyncio
import contextlib
import gc
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from snakekit.bench.flood import Flood
from snakekit.bench.load import (
    Client,
    Player,
    Sample,
    Script,
    Target,
    closed_loop,
    paced,
)
from snakekit.bench.players import PlayerError
from snakekit.bench.report import noise_of, noise_of_share
from snakekit.bench.tally import percentile

HISTOGRAM = "snakekit_move_seconds"
MEMORY = "process_resident_memory_bytes"
PARTS = 7
WARM_UP = 20
OVER = 4.0
"""Times the saturation that the overload asks for."""
OVER_GAMES = 500
PROBE_S = 3.0
SETTLE_S = 5.0


@dataclass(frozen=True)
class Figure:
    """One result, still without the parameters that all share."""

    name: str
    value: float
    samples: int
    unit: str = "ms"
    better: Literal["higher", "lower"] = "lower"
    params: dict[str, float | int | str] = field(default_factory=dict)


@dataclass
class Outcome:
    """What a scenario found, and what went wrong in it."""

    figures: list[Figure]
    sample: Sample
    faults: dict[str, int]


@dataclass(frozen=True)
class Buckets:
    """A Prometheus histogram: upper edges in seconds to how many values lie at or below."""

    counts: dict[float, float]

    def since(self, earlier: "Buckets") -> "Buckets":
        """Return what came between `earlier` and this."""
        return Buckets({e: n - earlier.counts.get(e, 0.0) for e, n in self.counts.items()})

    @property
    def total(self) -> int:
        """How many values there are."""
        return int(self.counts.get(math.inf, 0.0))

    def bound(self, share: float) -> float:
        """Return the edge in seconds that at least `share` of the values do not exceed.

        Infinity if that many lie beyond the last edge; NaN without values.
        """
        if self.total == 0:
            return math.nan
        return next(
            edge for edge, count in sorted(self.counts.items()) if count >= share * self.total
        )


def read_buckets(text: str, name: str) -> Buckets:
    """Add up all series of histogram `name` in a Prometheus text; empty if it is not there."""
    counts: dict[float, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == f"{name}_bucket":
                edge = float(sample.labels["le"])
                counts[edge] = counts.get(edge, 0.0) + sample.value
    return Buckets(counts)


async def scrape(url: str) -> str:
    """Return the metrics as text.

    Raises:
        PlayerError: no answer, or not such metrics.
    """
    timeout = aiohttp.ClientTimeout(total=10)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
            response.raise_for_status()
            text = await response.text()
    except (TimeoutError, ValueError, aiohttp.ClientError) as error:
        raise PlayerError(f"metrics at {url}: {error or 'no answer in 10 s'}") from None
    if not read_buckets(text, HISTOGRAM).counts:
        raise PlayerError(f"metrics at {url}: there is no histogram {HISTOGRAM}")
    return text


def memory_mb(text: str) -> float:
    """Return the server's resident memory from its metrics, MiB; NaN where it does not tell."""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == MEMORY:
                return sample.value / (1 << 20)
    return math.nan


class Load:
    """One server under load, over one set of connections and prepared games."""

    def __init__(
        self, target: Target, games: list[Script], *, timeout_ms: int, metrics_url: str
    ) -> None:
        """Take the prepared games; `timeout_ms` is what an engine waits."""
        self._client = Client(target, timeout_ms)
        self._games = games
        self._timeout_ms = timeout_ms
        self._metrics_url = metrics_url

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _players(self, count: int, name: str) -> list[Player]:
        # Spread over the games, so that not all are at their first turn.
        return [
            Player(self._client, self._games, first=i, name=f"{name} {i}") for i in range(count)
        ]

    async def _prepared(self) -> Iterator[bytes]:
        """Return requests of many games, over and over, whose games have begun."""
        players = self._players(OVER_GAMES, "overload")
        return itertools.cycle([await player.next_move() for player in players for _ in range(4)])

    async def _metrics(self) -> str:
        return await scrape(self._metrics_url) if self._metrics_url else ""

    async def single(self, requests: int) -> Outcome:
        """One game, each move asked for as soon as the one before is answered."""
        players = self._players(1, "single")
        await closed_loop(players, self._client, math.inf, moves=WARM_UP)
        before = read_buckets(await self._metrics(), HISTOGRAM)
        with quiet():
            sample = await closed_loop(players, self._client, math.inf, moves=requests)
        own = read_buckets(await self._metrics(), HISTOGRAM).since(before)
        figures = []
        for name, share in (("p50_ms", 0.5), ("p90_ms", 0.9), ("p99_ms", 0.99), ("max_ms", 1.0)):
            noise = noise_of_share(_parts(sample.answers_ms), share)
            value = sample.answered(share)
            figures.append(Figure(name, value, sample.moves, params={"games": 1, **noise}))
        if own.total:
            bound = own.bound(0.99) * 1000
            figures.append(Figure("own_p99_bound_ms", bound, own.total, params={"games": 1}))
        return Outcome(figures, sample, all_faults(sample))

    async def games(self, count: int, seconds: float) -> Outcome:
        """Many games that each ask for two moves a second."""
        players = self._players(count, "games")
        with quiet():
            sample = await paced(players, self._client, seconds, period_s=0.5)
        facts: dict[str, float | int | str] = {"games": count, "seconds": seconds}
        facts["generator_lag_p99_ms"] = round(percentile(sample.lag_ms, 0.99), 3)
        misses = sample.moves - len(sample.answers_ms)
        figures = [
            Figure("games.p50_ms", sample.answered(0.5), sample.moves, params=facts),
            Figure("games.p99_ms", sample.answered(0.99), sample.moves, params=facts),
            Figure("games.max_ms", sample.answered(1.0), sample.moves, params=facts),
            Figure("games.misses", misses, sample.moves, "moves", params=facts),
        ]
        return Outcome(figures, sample, all_faults(sample))

    async def saturation(self, clients: int, seconds: float) -> Outcome:
        """As many games at once as keep the server busy without a pause."""
        players = self._players(clients, "saturation")
        rates, whole = [], Sample()
        with quiet():
            for _ in range(PARTS):
                sample = await closed_loop(players, self._client, seconds / PARTS)
                rates.append(sample.per_second)
                whole.add(sample)
        facts: dict[str, float | int | str] = {"games": clients, "seconds": seconds}
        figures = [
            Figure(
                "moves_per_s",
                whole.per_second,
                whole.moves,
                "moves/s",
                "higher",
                params={**facts, **noise_of(rates)},
            ),
            Figure("loaded_p99_ms", whole.answered(0.99), whole.moves, params=facts),
        ]
        return Outcome(figures, whole, all_faults(whole))

    async def soak(self, games: int, seconds: float) -> Outcome:
        """Games without a pause between two moves, for long."""
        players = self._players(games, "soak")
        with quiet():
            sample = await closed_loop(players, self._client, seconds)
        facts: dict[str, float | int | str] = {"games": games, "seconds": seconds}
        misses = sample.moves - len(sample.answers_ms)
        figures = [
            Figure("soak.p50_ms", sample.answered(0.5), sample.moves, params=facts),
            Figure("soak.p99_ms", sample.answered(0.99), sample.moves, params=facts),
            Figure("soak.p999_ms", sample.answered(0.999), sample.moves, params=facts),
            Figure("soak.max_ms", sample.answered(1.0), sample.moves, params=facts),
            Figure("soak.misses", misses, sample.moves, "moves", params=facts),
        ]
        return Outcome(figures, sample, all_faults(sample))

    async def overload(self, seconds: float, clients: int) -> Outcome:
        """Ask for four times what the server can answer, whatever becomes of it."""
        requests = await self._prepared()
        some = self._players(clients, "probe")
        rate = (await closed_loop(some, self._client, PROBE_S)).per_second
        before = memory_mb(await self._metrics())
        with quiet():
            flood = Flood(self._client.target, requests, self._timeout_ms / 1000)
            await flood.connect(OVER_GAMES)
            sample = await flood.run(seconds, OVER * rate)
        self._client.close()
        await asyncio.sleep(SETTLE_S)
        after = memory_mb(await self._metrics())
        late = sum(sample.faults.values())
        facts: dict[str, float | int | str] = {
            "asked_per_s": round(sample.moves / sample.seconds, 1),
            "saturation_per_s": round(rate, 1),
            "seconds": seconds,
            "refused": len(sample.refusals_ms),
            "generator_lag_p99_ms": round(percentile(sample.lag_ms, 0.99), 3),
        }
        refused = sample.refusals_ms
        figures = [
            Figure(
                "overload.moves_per_s",
                sample.per_second,
                sample.moves,
                "moves/s",
                "higher",
                params=facts,
            ),
            Figure("overload.late", late, sample.moves, "moves", params=facts),
            Figure("overload.p99_ms", sample.answered(0.99), sample.moves, params=facts),
            Figure("overload.max_ms", sample.answered(1.0), sample.moves, params=facts),
            Figure("overload.refused_p50_ms", percentile(refused, 0.5), len(refused), params=facts),
            Figure(
                "overload.refused_p99_ms", percentile(refused, 0.99), len(refused), params=facts
            ),
            Figure(
                "overload.refused_max_ms",
                percentile(refused, 1.0),
                len(refused),
                params=facts,
            ),
        ]
        if not math.isnan(before):
            memory = {**facts, "before_mb": round(before, 1), "after_mb": round(after, 1)}
            ratio = after / before
            figures.append(Figure("overload.memory_ratio", ratio, 2, "x", params=memory))
        return Outcome(figures, sample, sample.faults)


def all_faults(sample: Sample) -> dict[str, int]:
    """Return what went wrong where no move should be refused."""
    refused = {"refused as too busy": len(sample.refusals_ms)} if sample.refusals_ms else {}
    return sample.faults | refused


def _parts(values: list[float]) -> list[list[float]]:
    size = max(1, len(values) // PARTS)
    return [values[i * size : (i + 1) * size] for i in range(PARTS)]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep this process's garbage collector out of what is measured."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
