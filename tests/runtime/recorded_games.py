"""Games as the recorder is told of them, and what it leaves in its folder."""

import copy
import json
from pathlib import Path
from typing import Any

from snakekit.runtime.decided import Decided
from snakekit.runtime.recording.event import Event
from snakekit.runtime.recording.store import Store

Json = dict[str, Any]


def row(game: str = "g", you: str = "a", turn: int = 0, **changes: Any) -> Decided:
    values: Json = {
        "at": 1_700_000_000_123, "game": game, "you": you, "turn": turn, "ruleset": "standard",
        "width": 11, "height": 11, "snakes": 2, "move": "up", "reason": "policy",
        "answer_ms": 1.5, "budget_ms": 400.0, "timeout_ms": 500.0, "latency_ms": None,
        "policy": [0.5, 0.25, 0.125, 0.125], "policy_move": "up", "value": -0.5,
        "search_scores": [3, None, -2, 0], "search_labels": ["none", "loss", "none", "win"],
        "search_distances": [0, 2, 0, 5], "search_best": "right", "search_depth": 4,
        "search_nodes": 1 << 40, "search_ms": 10.25, "search_line": ["up", "right"],
        "version": "1", "model": "standard@0123", "backend": "cpu",
    }  # fmt: skip
    return Decided(**(values | changes))


class Game:
    """Requests of one game, turn by turn."""

    def __init__(self, request: Json, game: str = "g") -> None:
        self.request = copy.deepcopy(request)
        self.request["game"]["id"] = game
        self.request["turn"] = -1

    def body(self) -> bytes:
        # As a client might: not compact, and with text beyond ASCII.
        self.request["board"]["snakes"][0]["shout"] = "zug\u2028 ä"
        self.request["you"] = self.request["board"]["snakes"][0]
        return json.dumps(self.request, indent=2, ensure_ascii=False).encode()

    def move(self) -> Event:
        self.request["turn"] += 1
        game, turn = self.request["game"]["id"], self.request["turn"]
        decision = row(game, "a", turn)
        body = self.body()
        return Event(kind="move", game=game, you="a", turn=turn, body=body, decided=decision)

    def end(self, *survivors: str) -> Event:
        self.request["turn"] += 1
        body = self.body()
        last = json.loads(body)
        last["board"]["snakes"] = [s for s in last["board"]["snakes"] if s["id"] in survivors]
        return Event(
            kind="end",
            game=last["game"]["id"],
            you="a",
            turn=last["turn"],
            body=json.dumps(last).encode(),
        )


def open_store(folder: Path, **changes: Any) -> Store:
    values: Json = {"limit_bytes": 1 << 30, "keep_s": 1e6, "idle_s": 600.0}
    return Store(folder, **(values | changes))


def names(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.glob(pattern))


def only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    assert len(found) == 1, found
    return found[0]
