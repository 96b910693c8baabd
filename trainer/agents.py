"""Frozen agents: players whose moves' probabilities are known, to be met and to be exploited.

    random, greedy
    search:nodes=N, search:depth=N          alpha-beta; counts, not times, so that it repeats
    policy:MODEL[@TEMPERATURE]              a net's own policy over safe moves
    equilibrium:MODEL[,draw=WORTH][@TEMPERATURE]
                                            the equilibrium of one turn on a net for all seats
    hybrid:MODEL:nodes=N, :depth=N          the policy, overridden by the search's proofs, as served

MODEL is a run's or checkpoint's folder, or an ONNX file. Temperature 0, the default, is the
likeliest move; 1 draws from the probabilities as they are. WORTH is that of an equal part of a
draw, 0 to 1, the default.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray

from snakekit import core
from snakekit.runtime.backends import BackendError, load_backend
from snakekit.runtime.contract import DRAW_WORTH, CardError, ModelCard
from snakekit.runtime.decide import decide
from snakekit.runtime.models import check_card, find_model
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint, CheckpointError
from snakekit.trainer.contest import BUILTIN, Chooser
from snakekit.trainer.nash.game import Floats
from snakekit.trainer.nash.players import (
    MOVES,
    Index,
    Policies,
    allowed_moves,
    bare_policies,
    drawn,
    equilibrium_policies,
    softened,
)

Kind = Literal["random", "greedy", "search", "policy", "equilibrium", "hybrid"]
_MODELS = ("policy", "equilibrium", "hybrid")
_LIMIT = re.compile(r"(nodes|depth)=(\d{1,9})")
_DRAW = re.compile(r"(.*),draw=(0|1|0?\.\d+|1\.0+)", re.DOTALL)
_HEATED = re.compile(r"(.*)@(\d+(?:\.\d+)?)", re.DOTALL)
_TABLE_MB = 1
_ROWS = 256


class AgentError(ValueError):
    """An agent that cannot be understood or opened; the message is one sentence."""


@dataclass(frozen=True)
class AgentSpec:
    """What an agent's text says."""

    text: str
    kind: Kind
    model: str = ""
    temperature: float = 0.0
    draw_worth: float = DRAW_WORTH
    """Of equilibria: worth of an equal part of a draw."""
    nodes: int = 0
    """Positions of each search, 0 for no limit."""
    depth: int = 64
    """Turns of each search."""


def parse_agent(text: str) -> AgentSpec:
    """Read an agent's text; no file is opened.

    Raises:
        AgentError: it is none of the forms at the top of this module.
    """
    kind, colon, rest = text.partition(":")
    if text in ("random", "greedy"):
        return AgentSpec(text, cast(Kind, text))
    if kind in ("search", "hybrid") and colon:
        model, _, limit = rest.rpartition(":")
        found = _LIMIT.fullmatch(limit)
        if found and int(found[2]) and bool(model) == (kind == "hybrid"):
            limits = {found[1]: min(int(found[2]), 64) if found[1] == "depth" else int(found[2])}
            return AgentSpec(text, cast(Kind, kind), model, **limits)
    if kind in ("policy", "equilibrium") and rest:
        heated = _HEATED.fullmatch(rest)
        model, heat = (heated[1], float(heated[2])) if heated else (rest, 0.0)
        worth = _DRAW.fullmatch(model) if kind == "equilibrium" else None
        if worth:
            return AgentSpec(text, "equilibrium", worth[1], heat, float(worth[2]))
        return AgentSpec(text, cast(Kind, kind), model, heat)
    raise AgentError(
        f"agent {text!r}: expected random, greedy, search:nodes=N, search:depth=N, "
        "policy:MODEL[@TEMPERATURE], equilibrium:MODEL[,draw=WORTH][@TEMPERATURE] "
        "or hybrid:MODEL:nodes=N"
    )


@dataclass(frozen=True)
class Agent:
    """An agent that plays; one thread at a time."""

    spec: AgentSpec
    policies: Policies
    fingerprint: str
    """Hash of its weights, or its text where it has none."""
    card: ModelCard | None = None
    start: Checkpoint | None = None
    """The checkpoint of its net, if it came from one."""

    @property
    def chooser(self) -> Chooser:
        """The agent as a player of `contest`."""
        return drawn(self.policies)


Infer = Callable[[NDArray[np.uint8]], tuple[Floats, Floats]]


@dataclass(frozen=True)
class _Model:
    card: ModelCard
    infer: Infer
    start: Checkpoint | None


def _from_checkpoint(spec: AgentSpec) -> _Model:
    try:
        place = store.latest(Path(spec.model))
        saved = store.load(place)
        check_card(saved.card, origin=str(place))
        net = store.restore_model(saved, origin=str(place)).eval()
    except (CheckpointError, CardError) as error:
        raise AgentError(f"agent {spec.text}: {error}") from None

    def infer(obs: NDArray[np.uint8]) -> tuple[Floats, Floats]:
        with torch.inference_mode():
            policy, value = net(torch.from_numpy(obs))
        return policy.numpy(), value.numpy()

    return _Model(saved.card, infer, saved)


def _from_file(spec: AgentSpec) -> _Model:
    try:
        backend, card = load_backend("cpu", find_model(spec.model))
    except BackendError as error:
        raise AgentError(f"agent {spec.text}: {error}") from None
    return _Model(card, backend.infer, None)


def _in_parts(infer: Infer, index: int) -> Callable[[NDArray[np.uint8]], Floats]:
    """Return output `index` of `infer` for any number of observations."""

    def ask(obs: NDArray[np.uint8]) -> Floats:
        starts = range(0, max(len(obs), 1), _ROWS)
        return np.concatenate([infer(obs[start : start + _ROWS])[index] for start in starts])

    return ask


def _net_policies(spec: AgentSpec, model: _Model) -> Policies:
    card, slots = model.card, model.card.slots
    if spec.kind == "equilibrium":
        if not slots:
            raise AgentError(f"agent {spec.text}: the model answers for one seat, not for all")
        judge = _in_parts(model.infer, 1)

        def evaluate(obs: NDArray[np.uint8]) -> Floats:
            return judge(obs) if len(obs) else np.zeros((0, slots + 1), np.float32)

        return equilibrium_policies(
            evaluate, slots, temperature=spec.temperature, draw_worth=spec.draw_worth
        )
    ask = _in_parts(model.infer, 0)
    if slots:
        return bare_policies(ask, slots, temperature=spec.temperature)

    def policies(states: Sequence[core.State], board: Index, seats: Index) -> Floats:
        pairs = zip(board.tolist(), seats.tolist(), strict=True)
        obs = np.concatenate([states[b].encode(card.encoder, [seat]) for b, seat in pairs])
        return softened(ask(obs), allowed_moves(states, board, seats), spec.temperature)

    return policies


def _search(spec: AgentSpec, state: core.State, seat: int) -> core.SearchResult:
    # A fresh table each time: what an earlier position left in it would change the move.
    searcher = core.Searcher(_TABLE_MB)
    return searcher.search(state, seat, max_nodes=spec.nodes, max_depth=spec.depth)


def _overridden(spec: AgentSpec, base: Policies) -> Policies:
    """Return `base` with each of its moves replaced where the search has proofs."""

    def policies(states: Sequence[core.State], board: Index, seats: Index) -> Floats:
        wanted = base(states, board, seats)
        out = np.zeros_like(wanted)
        for row, (b, seat) in enumerate(zip(board.tolist(), seats.tolist(), strict=True)):
            state = states[b]
            found = _search(spec, state, seat)
            for move in np.flatnonzero(wanted[row]).tolist():
                decision = decide(
                    legal=state.legal_mask(seat),
                    safe=state.safe_mask(seat),
                    reflex=core.reflex_move(state, seat),
                    logits=np.eye(MOVES)[move].tolist(),
                    search=found,
                )
                out[row, decision.move] += wanted[row, move]
        return out

    return policies


def _moves(move: Callable[[core.State, int], int]) -> Policies:
    """Return the policies of a player that always makes the same move on the same board."""

    def policies(states: Sequence[core.State], board: Index, seats: Index) -> Floats:
        pairs = zip(board.tolist(), seats.tolist(), strict=True)
        chosen = [move(states[b], seat) for b, seat in pairs]
        return np.eye(MOVES, dtype=np.float32)[chosen]

    return policies


def _uniform(states: Sequence[core.State], board: Index, seats: Index) -> Floats:
    allowed = allowed_moves(states, board, seats).astype(np.float32)
    return np.asarray(allowed / allowed.sum(1, keepdims=True), np.float32)


def open_agent(text: str) -> Agent:
    """Return the agent that `text` describes, its model loaded.

    Raises:
        AgentError: see `parse_agent`, or a model that is not there or does not fit.
    """
    spec = parse_agent(text)
    if spec.kind == "random":
        return Agent(spec, _uniform, text)
    if spec.kind == "greedy":
        return Agent(spec, _moves(lambda state, seat: core.greedy_move(state, seat, 0)), text)
    if spec.kind == "search":
        return Agent(spec, _moves(lambda state, seat: _search(spec, state, seat).best), text)
    model = _from_checkpoint(spec) if Path(spec.model).is_dir() else _from_file(spec)
    policies = _net_policies(spec, model)
    if spec.kind == "hybrid":
        policies = _overridden(spec, policies)
    return Agent(spec, policies, model.card.weights_sha256, model.card, model.start)


def opponent(text: str) -> Chooser:
    """Return a built-in player by its name, or an agent by its text.

    Raises:
        AgentError: see `open_agent`.
    """
    return BUILTIN[text] if text in BUILTIN else open_agent(text).chooser
