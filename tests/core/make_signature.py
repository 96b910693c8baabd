"""Record how many nodes a fresh search visits on a few boards.

A change of the count says that the search does something else; record it again when that is meant.

    python tests/core/make_signature.py
"""

import json
import random

from core_boards import DATA, from_json, play, scattered, to_json

from snakekit.core import Searcher, Settings, State

OUT = DATA / "search_signature.json"

# Width, height, snakes, ruleset, turns played before, depth searched.
KINDS = [
    (11, 11, 2, "standard", 0, 5),
    (11, 11, 2, "standard", 90, 6),
    (11, 11, 4, "standard", 12, 3),
    (7, 7, 2, "wrapped", 12, 5),
    (19, 19, 5, "royale", 15, 2),
    (11, 11, 2, "constrictor", 8, 5),
]


def nodes(state: State, depth: int) -> int:
    seat = state.living()[0]
    return Searcher(4).search(state, seat, budget_us=0, max_depth=depth).nodes


def boards() -> list[tuple[State, int]]:
    rng = random.Random(11)
    made = []
    for width, height, snakes, ruleset, turns, depth in KINDS:
        living = 0
        while living != snakes:
            rules = Settings(ruleset=ruleset, minimum_food=2)
            start = scattered(rng, width, height, snakes, rules, hazards=(ruleset == "royale") / 5)
            for _ in play(start, rng, turns):
                pass
            living = len(start.living())
        made.append((start, depth))
    return made


def main() -> None:
    if OUT.exists():
        old = json.loads(OUT.read_text(encoding="utf-8"))
        kept = [(from_json(entry["board"]), entry["depth"]) for entry in old]
    else:
        kept = boards()
    entries = [
        {"nodes": nodes(state, depth), "depth": depth, "board": to_json(state)}
        for state, depth in kept
    ]
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    OUT.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
