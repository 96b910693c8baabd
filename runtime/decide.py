"""The override rule: which of policy, search and reflex decides. Pure: no clock, no I/O."""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

ALL = 0b1111
SINGLE = (1, 2, 4, 8)


class Reason(StrEnum):
    """Why a move was chosen; the whole list, since it labels a metric."""

    FORCED = "forced"
    """Only one move is not certain death."""
    POLICY = "policy"
    """The policy's move, and the search has no proof against it (or none better)."""
    SEARCH_AVOIDS_LOSS = "search_avoids_loss"
    """The policy's move is a proved loss."""
    SEARCH_WIN = "search_win"
    """Another move than the policy's is a proved win, or a sooner one."""
    SEARCH_ONLY = "search_only"
    """Mode `search`."""
    SEARCH_NO_POLICY = "search_no_policy"
    """The policy was asked and gave nothing usable."""
    POLICY_NO_SEARCH = "policy_no_search"
    """The search was asked and gave nothing usable."""
    REFLEX = "reflex"
    """Neither gave anything usable."""


class SearchView(Protocol):
    """What is read of a `core.SearchResult`."""

    @property
    def best(self) -> int:
        """Best move, 0..3."""
        ...

    @property
    def labels(self) -> Sequence[str]:
        """`win`, `loss` or `none` for each of the four moves; a proof, not an opinion."""
        ...

    @property
    def distances(self) -> Sequence[int]:
        """Turns to the proved end for each move."""
        ...


class Decision(NamedTuple):
    """A move 0..3, why, and what the policy alone would have played (None without a policy)."""

    move: int
    reason: Reason
    policy_move: int | None


def decide(
    *,
    legal: int,
    safe: int,
    reflex: int,
    logits: Sequence[float] | None = None,
    search: SearchView | None = None,
    policy_asked: bool = True,
    search_asked: bool = True,
) -> Decision:
    """Choose one move.

    Args:
        legal: bit m set where move m stays on the board and off the own neck.
        safe: bit m set where move m is not certain death this turn.
        reflex: the move from the rules alone, played when all else is missing.
        logits: the policy's four numbers, or None; anything not finite counts as None.
        search: the search's result, or None.
        policy_asked: whether the mode uses the policy.
        search_asked: whether the mode uses the search.
    """
    if safe in SINGLE:
        return Decision(SINGLE.index(safe), Reason.FORCED, None)
    candidates = safe & ALL or legal & ALL or ALL
    if search is not None and not usable(search, legal & ALL or ALL):
        search = None
    wanted = best_of(logits, candidates)
    if wanted is None:
        if search is None:
            return Decision(reflex, Reason.REFLEX, None)
        reason = Reason.SEARCH_NO_POLICY if policy_asked else Reason.SEARCH_ONLY
        return Decision(search.best, reason, None)
    if search is None:
        reason = Reason.POLICY_NO_SEARCH if search_asked else Reason.POLICY
        return Decision(wanted, reason, wanted)
    return _override(wanted, search, legal & ALL or ALL)


def _override(wanted: int, search: SearchView, legal: int) -> Decision:
    wins = [m for m in range(4) if legal >> m & 1 and search.labels[m] == "win"]
    if wins:
        soonest = min(wins, key=lambda m: (search.distances[m], m != wanted, m))
        reason = Reason.POLICY if soonest == wanted else Reason.SEARCH_WIN
        return Decision(soonest, reason, wanted)
    if search.labels[wanted] == "loss" and search.best != wanted:
        return Decision(search.best, Reason.SEARCH_AVOIDS_LOSS, wanted)
    return Decision(wanted, Reason.POLICY, wanted)


def best_of(logits: Sequence[float] | None, mask: int) -> int | None:
    """Return the move of `mask` with the highest logit, the first of equals; None if unusable."""
    if logits is None or len(logits) != 4 or not all(math.isfinite(x) for x in logits):
        return None
    moves = [m for m in range(4) if mask >> m & 1]
    return max(moves, key=lambda m: logits[m]) if moves else None


def softmax(logits: Sequence[float]) -> list[float]:
    """Return probabilities of finite logits."""
    most = max(logits)
    weights = [math.exp(x - most) for x in logits]
    total = sum(weights)
    return [w / total for w in weights]


def usable(search: SearchView, legal: int) -> bool:
    """Return whether a search result names a legal move and speaks of all four moves."""
    best = search.best
    return (
        0 <= best < 4
        and bool(legal >> best & 1)
        and len(search.labels) == 4
        and len(search.distances) == 4
    )
