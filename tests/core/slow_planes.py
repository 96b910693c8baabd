"""The layouts of planes once more, cell by cell from their tables: slow and independent."""

import itertools
import math

import numpy as np
from core_boards import STEPS, Point, after, on_board

from snakekit.core import STANDING_VALUE, TERMS, LearnedValue, State, evaluate

SIDE = 23
TURNS = 64


def living(state: State) -> list[int]:
    return [i for i in range(state.num_snakes) if state.alive(i)]


def slow_v1(state: State, seat: int) -> np.ndarray:
    total = np.zeros((17, SIDE, SIDE), dtype=np.int64)
    snakes = state.snakes()
    hx, hy = snakes[seat].body[0]

    def add(plane: int, point: Point, value: int) -> None:
        row, col = point[1] - hy + SIDE // 2, point[0] - hx + SIDE // 2
        if 0 <= row < SIDE and 0 <= col < SIDE:
            total[plane, row, col] += value

    ours = len(snakes[seat].body)
    alive = living(state)
    for i in alive:
        body = snakes[i].body
        add(0, body[0], snakes[i].health)
        for from_tail, point in enumerate(reversed(body), 1):
            add(1, point, 1)
            add(2, point, min(255, from_tail))
        if len(body) > 1 and body[-1] == body[-2]:
            add(7, body[-1], 1)
        if i == seat:
            add(6, body[0], 1)
            continue
        if len(body) >= ours:
            add(3, body[0], 1)
        for point in body:
            if len(body) >= ours:
                add(8, point, len(body) - ours + 1)
            else:
                add(9, point, ours - len(body))
    for point in state.food():
        add(4, point, 1)
    for x in range(state.width):
        for y in range(state.height):
            add(5, (x, y), 1)
            if len(alive) >= 2:
                add(10 + len(alive) - 2, (x, y), 1)
    return np.minimum(total, 255).astype(np.uint8)


def beside(state: State, point: Point) -> list[Point]:
    out = []
    for dx, dy in STEPS:
        x, y = point[0] + dx, point[1] + dy
        if state.settings.ruleset.startswith("wrapped"):
            x, y = x % state.width, y % state.height
        if on_board(state, (x, y)):
            out.append((x, y))
    return out


def arrivals(state: State) -> dict[int, dict[Point, int]]:
    """First turn of each head on each cell, if bodies move on and nobody eats."""
    alive = living(state)
    bodies = {i: state.snakes()[i].body for i in alive}
    open_at: dict[Point, int] = {}
    for body in bodies.values():
        for j, point in enumerate(body):
            open_at[point] = max(open_at.get(point, 0), len(body) - j)
    near = {(x, y): beside(state, (x, y)) for x in range(state.width) for y in range(state.height)}
    found = {}
    for i in alive:
        head = bodies[i][0]
        reached = {head: 0}
        rim = set(near[head])
        for turn in range(1, TURNS + 1):
            fresh = {p for p in rim if open_at.get(p, 0) <= turn}
            reached |= dict.fromkeys(fresh, turn)
            rim = (rim | {p for q in fresh for p in near[q]}) - reached.keys()
        del reached[head]
        found[i] = reached
    return found


def slow_v2(state: State, seat: int) -> np.ndarray:
    rules = state.settings
    out = np.zeros((22, state.height, state.width), dtype=np.int64)
    snakes = state.snakes()
    ours = len(snakes[seat].body)
    alive = living(state)
    others = [i for i in alive if i != seat]
    reached = arrivals(state)
    mine = reached.get(seat, {})
    theirs = {i: reached[i] for i in others}
    out[0] = 1
    for i in alive:
        body = snakes[i].body
        x, y = body[0]
        out[1 if i == seat else 3, y, x] = 1
        for j, (bx, by) in enumerate(body):
            plane = 2 if i == seat else 4
            out[plane, by, bx] = max(out[plane, by, bx], min(255, len(body) - j))
            if i != seat and len(body) >= ours:
                out[5, by, bx] = len(body) - ours + 1
            elif i != seat:
                out[6, by, bx] = ours - len(body)
        if i == seat:
            continue
        out[13, y, x] = snakes[i].health
        for (cx, cy), turn in theirs[i].items():
            if turn == 1:
                out[7 if len(body) >= ours else 8, cy, cx] = 1
    for x, y in state.food():
        out[9, y, x] = 1
    for x, y in state.hazards():
        if y < state.height:
            out[10, y, x] += max(0, rules.hazard_damage)
            out[11, y, x] += max(0, -rules.hazard_damage)
    out[12] = snakes[seat].health
    for x in range(state.width):
        for y in range(state.height):
            us = mine.get((x, y))
            soonest = min((t[x, y] for t in theirs.values() if (x, y) in t), default=None)
            rival = any(theirs[i].get((x, y)) == us and len(snakes[i].body) >= ours for i in others)
            if us is not None:
                out[14, y, x] = TURNS + 1 - us
            if soonest is not None:
                out[15, y, x] = TURNS + 1 - soonest
            first = us is not None and (
                soonest is None or us < soonest or (us == soonest and not rival)
            )
            out[16, y, x] = first
            out[17, y, x] = soonest is not None and not first
    out[18] = ours
    out[19] = len(others)
    out[20] = rules.ruleset in ("wrapped", "wrapped_constrictor")
    out[21] = rules.ruleset in ("constrictor", "wrapped_constrictor")
    return np.minimum(out, 255).astype(np.uint8)


# Weights of observation v3, in the order of TERMS.
STANDING = {
    "duel": (143, 24, -1042, 2550, 2122, 1541, 271, 38, -112, -1893, 186, -1331, -32, 0),
    "many": (137, -25, -755, 1863, 2797, 1736, 934, 90, -44, -2261, 727, -582, -32, -5884),
}
STANDING_WEIGHTS = {
    f"{table}.{term}": weight
    for table, weights in STANDING.items()
    for term, weight in zip(TERMS, weights, strict=True)
}
LEARNED_VALUE = LearnedValue(STANDING_VALUE)
WITHOUT_VALUE = ("wrapped", "constrictor", "wrapped_constrictor")
WON, LOST, DRAWN = 2047, -2047, -1000
WEIGHED, LEARNED = 400, 1200


def candidates(state: State, seat: int) -> list[int]:
    mask = state.safe_mask(seat) or state.legal_mask(seat) or 1
    return [m for m in range(4) if mask >> m & 1]


def joint_lines(state: State) -> list[State]:
    """The boards after every joint candidate move, the last seat's running fastest."""
    return [end for _, end in joint_moves(state)]


def joint_moves(state: State) -> list[tuple[dict[int, int], State]]:
    alive = living(state)
    found = []
    for joint in itertools.product(*(candidates(state, seat) for seat in alive)):
        moves = [-1] * state.num_snakes
        for seat, move in zip(alive, joint, strict=True):
            moves[seat] = move
        found.append((dict(zip(alive, joint, strict=True)), after(state, moves)))
    return found


def judged(state: State, seat: int) -> tuple[int, float]:
    """Score and hope of an open position."""
    duel = len(living(state)) == 2 and not state.hazards()
    if duel and state.settings.ruleset not in WITHOUT_VALUE:
        score = evaluate(state, seat, learned=LEARNED_VALUE)
        return score, hope(score, LEARNED)
    score = evaluate(state, seat, weights=STANDING_WEIGHTS)
    return score, hope(score, WEIGHED)


def standing(state: State, seats: list[int]) -> dict[int, tuple[int, float]]:
    """Score and hope of each of `seats`, who were alive a turn ago."""
    lost, won, drawn = ((score, hope(score, WEIGHED)) for score in (LOST, WON, DRAWN))
    if not state.game_over():
        return {i: judged(state, i) if state.alive(i) else lost for i in seats}
    fates = {i: state.snakes()[i].eliminated_on_turn for i in seats}
    if any(state.alive(i) for i in seats):
        return {i: won if state.alive(i) else lost for i in seats}
    return {i: drawn if fates[i] == max(fates.values()) else lost for i in seats}


def hope(score: int, one: int) -> float:
    return 127 * (math.copysign(1, score) if abs(score) == WON else math.tanh(score / one))


def prospects(state: State, seat: int) -> dict[int, tuple[int, float]]:
    """Of each legal move: the worst score and the mean hope over the others' replies."""
    alive = living(state)
    legal = [m for m in range(4) if state.legal_mask(seat) >> m & 1]
    own = candidates(state, seat)
    found: dict[int, tuple[int, float]] = dict.fromkeys(legal, (LOST, -127.0))
    joints = math.prod(len(candidates(state, i)) for i in alive)
    if joints > 81 or state.game_over():
        return found | dict.fromkeys(own, judged(state, seat))
    lines = joint_moves(state)
    for move in own:
        ends = [standing(end, alive)[seat] for joint, end in lines if joint[seat] == move]
        found[move] = (min(s for s, _ in ends), sum(h for _, h in ends) / len(ends))
    return found


def show_standing(state: State, seat: int, planes: np.ndarray) -> None:
    hx, hy = state.snakes()[seat].body[0]
    shown = {}
    for move, seen in prospects(state, seat).items():
        x, y = hx + STEPS[move][0], hy + STEPS[move][1]
        if state.settings.ruleset.startswith("wrapped"):
            x, y = x % state.width, y % state.height
        if on_board(state, (x, y)):
            shown[x, y] = seen
    shown[hx, hy] = judged(state, seat)
    for (x, y), (score, mean) in shown.items():
        planes[0, y, x] = (score + 2048) // 256
        planes[1, y, x] = (score + 2048) % 256
        planes[2, y, x] = 128 + round(mean)


def slow_v3(state: State, slots: int) -> np.ndarray:
    """Planes of all seats; no more than `slots` of them live."""
    rules = state.settings
    out = np.zeros((6 + 12 * slots, state.height, state.width), dtype=np.int64)
    snakes = state.snakes()
    out[0] = 1
    for x, y in state.food():
        out[1, y, x] = 1
    for x, y in state.hazards():
        if y < state.height:
            out[2, y, x] += max(0, rules.hazard_damage)
            out[3, y, x] += max(0, -rules.hazard_damage)
    out[4] = rules.ruleset in ("wrapped", "wrapped_constrictor")
    out[5] = rules.ruleset in ("constrictor", "wrapped_constrictor")
    reached = arrivals(state)
    alive = living(state)
    length = {i: len(snakes[i].body) for i in alive}
    for slot, i in enumerate(alive):
        block = out[6 + 12 * slot :]
        body = snakes[i].body
        block[0, body[0][1], body[0][0]] = 1
        for j, (x, y) in enumerate(body):
            block[1, y, x] = max(block[1, y, x], min(255, len(body) - j))
        block[2] = snakes[i].health
        block[3] = len(body)
        others = [j for j in alive if j != i]
        longest = max((length[j] for j in others), default=0)
        block[4] = min(max(16 + len(body) - longest, 0), 32)
        for (x, y), turn in reached[i].items():
            block[5, y, x] = TURNS + 1 - turn
            rivals = {j: reached[j].get((x, y), TURNS + 2) for j in others}
            block[6, y, x] = all(
                turn < t or (turn == t and length[j] < len(body)) for j, t in rivals.items()
            )
            meet = [j for j, t in rivals.items() if t == turn == 1]
            stronger = any(length[j] >= len(body) for j in meet)
            block[7, y, x] = stronger
            block[8, y, x] = bool(meet) and not stronger
        show_standing(state, i, block[9:12])
    return np.minimum(out, 255).astype(np.uint8)
