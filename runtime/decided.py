"""One answered move as plain data: what the recorder keeps and the watch page shows."""

import time
from typing import TYPE_CHECKING

import msgspec

from snakekit import __version__
from snakekit.runtime.contract import MOVE_ORDER, ModelCard
from snakekit.runtime.deadline import latency_ms
from snakekit.runtime.decide import softmax

if TYPE_CHECKING:
    # The recording process needs none of what the engine imports.
    from snakekit.runtime.api import Request
    from snakekit.runtime.backends.base import BackendInfo
    from snakekit.runtime.engine import Answer


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """A move, why it was made, from what, and how long it took.

    Lists have one item a move, in the order up, down, left, right. None stands for what was not
    asked or came too late. Times are in milliseconds.
    """

    at: int
    """When it was answered, ms since 1970 UTC."""
    game: str
    you: str
    turn: int
    ruleset: str
    width: int
    height: int
    snakes: int
    """Living snakes, the own one included."""
    move: str
    reason: str
    answer_ms: float
    """From arrival to answer."""
    budget_ms: float
    timeout_ms: float
    latency_ms: float | None
    """What the engine measured for the turn before."""
    policy: list[float] | None
    """Probabilities of the network."""
    policy_move: str | None
    """What the network alone would have played."""
    value: float | None
    """The network's expected result, -1..1."""
    stage: str | None = None
    """Which game an equilibrium was found for; None for a model that answers for one seat."""
    plies: int | None = None
    """Turns that it looked ahead."""
    leaves: int | None = None
    """Boards that the model judged."""
    gap: float | None = None
    """NashConv among the actions that took part."""
    oracle_rounds: int | None = None
    oracle_added: int | None = None
    solve_ms: float | None = None
    """Time of the equilibrium."""
    search_scores: list[int | None] | None
    search_labels: list[str] | None
    """`win` or `loss` where it is proved, else `none`."""
    search_distances: list[int] | None
    """Turns to the proved end."""
    search_best: str | None
    search_depth: int | None
    """Whole turns completed."""
    search_nodes: int | None
    search_ms: float | None
    search_line: list[str] | None
    """The own moves that the search expects."""
    version: str
    """Of snakekit."""
    model: str
    """Name and first digits of the weights' hash, or none."""
    backend: str


def decided(
    asked: "Request", answer: "Answer", card: ModelCard | None, info: "BackendInfo | None"
) -> Decided:
    """Put together what is known of one answered move."""
    decision, evaluation, search = answer.choice
    stage = evaluation.stage if evaluation is not None else None
    ruleset = asked.game.ruleset.name if asked.game.ruleset is not None else None
    return Decided(
        at=time.time_ns() // 1_000_000,
        game=asked.game.id,
        you=asked.you.id,
        turn=asked.turn,
        ruleset=ruleset or "standard",
        width=asked.board.width,
        height=asked.board.height,
        snakes=len(asked.board.snakes or ()),
        move=MOVE_ORDER[answer.move],
        reason=answer.reason.value,
        answer_ms=round(answer.seconds * 1000, 3),
        budget_ms=round(answer.budget_ms, 3),
        timeout_ms=asked.timeout_ms,
        latency_ms=latency_ms(asked.you.latency),
        policy=[round(p, 4) for p in softmax(evaluation.logits)]
        if evaluation is not None
        else None,
        policy_move=MOVE_ORDER[decision.policy_move] if decision.policy_move is not None else None,
        value=round(evaluation.value, 4) if evaluation is not None else None,
        stage=stage.name if stage is not None else None,
        plies=stage.plies if stage is not None else None,
        leaves=stage.leaves if stage is not None else None,
        gap=round(stage.gap, 4) if stage is not None else None,
        oracle_rounds=stage.rounds if stage is not None else None,
        oracle_added=stage.added if stage is not None else None,
        solve_ms=round(stage.seconds * 1000, 3) if stage is not None else None,
        search_scores=search.scores if search is not None else None,
        search_labels=search.labels if search is not None else None,
        search_distances=search.distances if search is not None else None,
        search_best=MOVE_ORDER[search.best] if search is not None else None,
        search_depth=search.depth if search is not None else None,
        search_nodes=search.nodes if search is not None else None,
        search_ms=round(search.seconds * 1000, 3) if search is not None else None,
        search_line=[MOVE_ORDER[m] for m in search.pv] if search is not None else None,
        version=__version__,
        model=f"{card.name}@{card.weights_sha256[:12]}" if card is not None else "none",
        backend=info.actual if info is not None else "none",
    )
