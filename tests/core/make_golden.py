"""Write the golden planes of all encoder versions. Only for a new version of an encoder.

python tests/core/make_golden.py
"""

import json
import random

import numpy as np
from core_boards import DATA, from_json, play, rebuilt, scattered, to_json

from snakekit.core import MAX_SLOTS, Settings, State, encode_all

# Width, height, snakes, ruleset, hazards, damage, turns played before the picture.
KINDS = [
    (11, 11, 2, "standard", 0.0, 14, 60),
    (11, 11, 4, "standard", 0.0, 14, 25),
    (11, 11, 4, "royale", 0.3, 14, 12),
    (7, 7, 3, "wrapped", 0.0, 14, 12),
    (3, 3, 1, "solo", 0.0, 14, 4),
    (5, 9, 2, "constrictor", 0.0, 14, 6),
    (19, 19, 8, "standard", 0.1, 3, 30),
    (25, 25, 8, "wrapped_constrictor", 0.0, 14, 12),
    (25, 25, 2, "standard", 0.2, -15, 80),
    (19, 21, 5, "wrapped", 0.4, 30, 20),
    (11, 7, 6, "standard", 0.0, 14, 8),
    (8, 8, 3, "royale", 0.5, 0, 10),
]


def boards() -> list[State]:
    rng = random.Random(20)
    made = []
    for width, height, snakes, ruleset, hazards, damage, turns in KINDS:
        rules = Settings(ruleset=ruleset, hazard_damage=damage, minimum_food=3)
        state = scattered(rng, width, height, snakes, rules, food=4, hazards=hazards)
        for _ in play(state, rng, turns):
            pass
        # Stacked layers and a coordinate that is hard to mistake for its mirror image.
        made.append(rebuilt(state, hazards=[*state.hazards(), *state.hazards()[:3]]))
    return made


def main() -> None:
    states = boards()
    text = np.array([json.dumps(to_json(state)) for state in states])
    for version in (1, 2):
        planes = {
            f"planes_{i}": from_json(json.loads(str(text[i]))).encode(
                version, list(range(state.num_snakes))
            )
            for i, state in enumerate(states)
        }
        np.savez_compressed(DATA / f"golden_v{version}.npz", boards=text, **planes)
    planes = {
        f"planes_{i}": encode_all([from_json(json.loads(str(text[i])))], slots=MAX_SLOTS)[0]
        for i in range(len(states))
    }
    np.savez_compressed(DATA / "golden_v3.npz", boards=text, **planes)


if __name__ == "__main__":
    main()
