"""What the server remembers of running games: helpful, bounded, and never needed to answer."""

from collections import Counter, OrderedDict
from collections.abc import Callable

from snakekit.runtime.deadline import TimeBudget

Key = tuple[str, str]


class Seat:
    """One snake of one game."""

    __slots__ = ("budget", "seen_at")

    def __init__(self, budget: TimeBudget, seen_at: float) -> None:
        self.budget = budget
        self.seen_at = seen_at


class GameStore:
    """Seats by (game id, you id); the longest unseen go first when full or too old."""

    def __init__(
        self, make_budget: Callable[[], TimeBudget], *, capacity: int = 2048, ttl_s: float = 600.0
    ) -> None:
        self._make_budget = make_budget
        self._capacity = capacity
        self._ttl = ttl_s
        self._seats: OrderedDict[Key, Seat] = OrderedDict()
        self._games: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._seats)

    @property
    def games(self) -> int:
        """Distinct games at the moment."""
        return len(self._games)

    def seat(self, game: str, you: str, now: float) -> Seat:
        """Return the seat, made on first sight, at the monotonic time `now` in seconds."""
        key = (game, you)
        seat = self._seats.get(key)
        if seat is None:
            self.expire(now)
            while len(self._seats) >= self._capacity:
                self._drop(next(iter(self._seats)))
            seat = self._seats[key] = Seat(self._make_budget(), now)
            self._games[game] += 1
        else:
            self._seats.move_to_end(key)
            seat.seen_at = now
        return seat

    def knows(self, game: str, you: str) -> bool:
        """Return whether a seat is remembered."""
        return (game, you) in self._seats

    def end(self, game: str, you: str) -> bool:
        """Forget a seat; return whether it was known."""
        known = (game, you) in self._seats
        if known:
            self._drop((game, you))
        return known

    def expire(self, now: float) -> int:
        """Forget the seats not seen for the time to live; return how many."""
        dropped = 0
        while self._seats:
            key, seat = next(iter(self._seats.items()))
            if now - seat.seen_at <= self._ttl:
                break
            self._drop(key)
            dropped += 1
        return dropped

    def _drop(self, key: Key) -> None:
        del self._seats[key]
        self._games[key[0]] -= 1
        if not self._games[key[0]]:
            del self._games[key[0]]
