"""Moves begin a few at a time, and one whose turn would come too late is refused at once.

Without this a burst would be parsed, encoded and searched all at once, each request a little, and
none be ready in time; and a refusal would come only after all that work.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from snakekit.runtime.api import DEFAULT_TIMEOUT_MS, RequestError

BURST = 8
"""Moves begun in one round of the event loop; the next come in the next round, in order."""
WAIT_SHARE = 0.2
"""A move whose turn is reckoned to come after this share of its timeout is refused."""
FIRST_COST_S = 0.0005
"""Time between two moves begun under load, before it has been measured."""
BUSY_SENTENCE = "server: too busy to answer in time, expected fewer moves at the same time"


class Turns:
    """The queue of moves that wait to be begun. Belongs to one event loop."""

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.cost_s = FIRST_COST_S
        """Time between two moves begun under load, as measured."""
        self._queue: deque[tuple[float, Callable[[], bool]]] = deque()
        """When each move came, and what begins it."""
        self._begun = 0
        self._turn_at = 0.0
        self._turning = False

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def pressed(self) -> bool:
        """Whether a move that comes now has to wait."""
        return self._begun >= BURST or bool(self._queue)

    def begin(self) -> None:
        """Count a move that begins at once."""
        self._begun += 1
        self._go_round()

    def queue(self, begin: Callable[[], bool], timeout_ms: float) -> bool:
        """Let a move wait for its turn; False if that is reckoned to come too late for it.

        Args:
            begin: called at its turn; returns False if nobody waits for it any more.
            timeout_ms: the time that its game allows.
        """
        now = self.clock()
        wait_s = (len(self._queue) + 1) * self.cost_s
        if self._queue:
            # What the first has waited is known, and the last will hardly wait less.
            wait_s = max(wait_s, now - self._queue[0][0])
        if wait_s * 1000 > WAIT_SHARE * (timeout_ms or DEFAULT_TIMEOUT_MS):
            return False
        self._queue.append((now, begin))
        self._go_round()
        return True

    async def wait(self, timeout_ms: float) -> None:
        """Wait for the turn of a move.

        Raises:
            RequestError: 503, its turn is reckoned to come too late.
        """
        if not self.pressed:
            self.begin()
            return
        turn = asyncio.get_running_loop().create_future()

        def begin() -> bool:
            if turn.done():
                return False
            turn.set_result(None)
            return True

        if not self.queue(begin, timeout_ms):
            raise RequestError(503, "busy", BUSY_SENTENCE)
        await turn

    def begin_all(self) -> None:
        """Let all that wait begin now."""
        while self._queue:
            self._queue.popleft()[1]()

    def _go_round(self) -> None:
        if not self._turning:
            self._turning = True
            self._turn_at = self.clock()
            asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        now = self.clock()
        if self._begun and self._queue:
            # Quick to believe that moves take longer, slow to believe that they take less.
            cost_s = (now - self._turn_at) / self._begun
            self.cost_s += (0.5 if cost_s > self.cost_s else 0.05) * (cost_s - self.cost_s)
        self._turn_at = now
        self._begun = 0
        while self._queue and self._begun < BURST:
            self._begun += self._queue.popleft()[1]()
        self._turning = bool(self._begun or self._queue)
        if self._turning:
            asyncio.get_running_loop().call_soon(self._round)
