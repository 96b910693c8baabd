"""Proofs by brute force over every joint move, without any of the search's machinery.

The moves of a turn are a matrix game: we choose a row, the others jointly a column. Give each
ending within the horizon one of two payoffs:

- loss proofs: 0 where we are dead and somebody lives, else 1, the undecided counting as 1;
- win proofs: 1 where we alone are alive, else 0, the undecided counting as 0.

A position is lost where its value is 0 and won where its value is 1, values under the best mixed
play of both sides. No linear program is needed for these two: payoffs lie in 0..1, so a mixed
column holds the value at 0 only if each column in it is 0 in every row, and then one of those
columns alone does it. Hence: lost means that some joint reply loses against all of our moves; won,
likewise, that some move of ours wins against all replies. `value` solves the game itself, so that
a test can compare the two.
"""

import itertools
import math
import random
from collections.abc import Iterator

from core_boards import (
    after,
    corpus,
    joint_moves,
    on_board,
    play,
    scattered,
    state_of,
    target,
)

from snakekit.core import Settings, State, evaluate

LOSS, WIN, DRAW, OPEN = "loss", "win", "draw", "open"


def outcome(state: State, seat: int) -> str:
    """How a contested game stands for a seat."""
    living = state.living()
    if seat in living:
        return WIN if len(living) == 1 else OPEN
    return LOSS if living else DRAW


def rivals(state: State, seat: int) -> list[int]:
    return [i for i in state.living() if i != seat]


def child(state: State, seat: int, move: int, reply: list[int]) -> State:
    moves = list(reply)
    moves[seat] = move
    return after(state, moves)


def lost(state: State, seat: int, depth: int) -> bool:
    """Is an open position lost within `depth` turns?"""
    if depth == 0:
        return False

    def loses(reply: list[int]) -> bool:
        return all(lost_by(child(state, seat, m, reply), seat, depth - 1) for m in range(4))

    return any(loses(reply) for reply in joint_moves(state, rivals(state, seat)))


def lost_by(state: State, seat: int, depth: int) -> bool:
    end = outcome(state, seat)
    return end == LOSS or (end == OPEN and lost(state, seat, depth))


def won(state: State, seat: int, depth: int) -> bool:
    """Is an open position won within `depth` turns?"""
    return depth > 0 and any(move_wins(state, seat, m, depth) for m in range(4))


def move_wins(state: State, seat: int, move: int, depth: int) -> bool:
    """Does a move win within `depth` turns after every reply?"""
    for reply in joint_moves(state, rivals(state, seat)):
        board = child(state, seat, move, reply)
        end = outcome(board, seat)
        if not (end == WIN or (end == OPEN and won(board, seat, depth - 1))):
            return False
    return True


def sane_moves(state: State, seat: int) -> list[int]:
    """Moves that are not suicide: some joint move of the others, all on the board, spares them."""
    others = rivals(state, seat)
    staying = [[m for m in range(4) if on_board(state, target(state, i, m))] for i in others]
    moves = [-1] * state.num_snakes

    def spared(move: int) -> bool:
        moves[seat] = move
        for joint in itertools.product(*staying):
            for other, chosen in zip(others, joint, strict=True):
                moves[other] = chosen
            if after(state, moves).alive(seat):
                return True
        return False

    return [m for m in range(4) if spared(m)] or [0, 1, 2, 3]


def sane_replies(state: State, seat: int) -> list[list[int]]:
    others = rivals(state, seat)
    out = []
    for joint in itertools.product(*(sane_moves(state, i) for i in others)):
        moves = [-1] * state.num_snakes
        for other, chosen in zip(others, joint, strict=True):
            moves[other] = chosen
        out.append(moves)
    return out


def move_loses(
    state: State, seat: int, move: int, depth: int, replies: list[list[int]] | None = None
) -> bool:
    """Is a move lost within `depth` turns after every reply that is not suicide?"""
    if replies is None:
        replies = sane_replies(state, seat)
    return all(lost_by(child(state, seat, move, r), seat, depth - 1) for r in replies)


def value(state: State, seat: int, depth: int, payoff: dict[str, float]) -> float:
    """The game's value with undecided ends worth `payoff[OPEN]`, by linear programming."""
    end = outcome(state, seat)
    if end != OPEN or depth == 0:
        return payoff[end]
    replies = [list(r) for r in joint_moves(state, rivals(state, seat))]
    return matrix_value(
        [
            [value(child(state, seat, m, r), seat, depth - 1, payoff) for r in replies]
            for m in range(4)
        ]
    )


def matrix_value(payoffs: list[list[float]]) -> float:
    """The value of a zero-sum matrix game to the row player."""
    import numpy as np
    from scipy.optimize import linprog

    game = np.array(payoffs)
    rows, columns = game.shape
    low, high = game.min(axis=1).max(), game.max(axis=0).min()
    if low == high:
        return float(low)
    # Maximize v under game^T p >= v, with p a distribution over our moves.
    solved = linprog(
        [0] * rows + [-1],
        A_ub=np.hstack([-game.T, np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=[[1] * rows + [0]],
        b_eq=[1],
        bounds=[(0, 1)] * rows + [(None, None)],
    )
    assert solved.success
    return float(solved.x[rows])


RULES = ("standard", "wrapped", "royale", "constrictor", "wrapped_constrictor")


def positions(seed: int, count: int, snakes: tuple[int, ...] = (2, 2, 3, 4)) -> Iterator[State]:
    """Open positions from the last turns of games on small boards."""
    rng = random.Random(seed)
    made = 0
    while made < count:
        n = rng.choice(snakes)
        width, height = rng.randint(3, 7), rng.randint(3, 7)
        ruleset = rng.choice(RULES)
        rules = Settings(ruleset=ruleset, hazard_damage=rng.choice([14, 40]), minimum_food=2)
        hazards = rng.choice([0.2, 0.5]) if ruleset == "royale" else 0.0
        start = scattered(rng, width, height, n, rules, hazards=hazards, length=rng.randint(2, 5))
        game = [start.copy(), *(state.copy() for state in play(start, rng, 120))]
        late = [state for state in game[-6:] if len(state.living()) > 1]
        for state in rng.sample(late, min(2, len(late))):
            if made < count:
                made += 1
                yield state


def recorded(rng: random.Random, count: int) -> Iterator[State]:
    """Open positions of 2 to 4 living snakes from games of the official engine."""
    lines = [line for line in corpus() if line["moves"] and not line["solo"]]
    rng.shuffle(lines)
    for line in lines:
        state = state_of(line)
        if count and not state.game_over() and 2 <= len(state.living()) <= 4:
            count -= 1
            yield state


WIN_SCORE, DRAW_SCORE, MARGIN = 30000, -1000, 200
LOW_DRAW = -2000
"""Worth of a draw below every evaluation."""


def masked(state: State, seat: int) -> list[int]:
    mask = state.safe_mask(seat)
    return [m for m in range(4) if mask >> m & 1] or [0, 1, 2, 3]


def pessimistic(state: State, seat: int, move: int, depth: int, ply: int = 0) -> int:
    """Score of a move when the others see each of ours; 0 for whatever is undecided.

    Evaluations lie between a draw of `LOW_DRAW` and a win, so taking them all as one number changes
    no decided score: the search must agree on every one of them.
    """
    others = rivals(state, seat)
    worst = WIN_SCORE
    for joint in itertools.product(*(masked(state, i) for i in others)):
        reply = [-1] * state.num_snakes
        for other, chosen in zip(others, joint, strict=True):
            reply[other] = chosen
        board = child(state, seat, move, reply)
        end = outcome(board, seat)
        if end == OPEN and depth > 1:
            score = max(
                pessimistic(board, seat, m, depth - 1, ply + 1) for m in masked(board, seat)
            )
        else:
            score = {
                LOSS: ply + 1 - WIN_SCORE,
                WIN: WIN_SCORE - ply - 1,
                DRAW: LOW_DRAW,
                OPEN: 0,
            }[end]
        worst = min(worst, score)
    return worst


def decided_part(score: int) -> int:
    """A score of the search with evaluations taken as 0."""
    return score if abs(score) > WIN_SCORE - MARGIN or score == LOW_DRAW else 0


def utility(score: int) -> float:
    """What a score is worth to a mixed strategy, as in `csrc/search/exact.cc`."""
    if score > WIN_SCORE - MARGIN:
        return 1 - 1e-4 * (WIN_SCORE - score)
    if score < MARGIN - WIN_SCORE:
        return 1e-4 * (score + WIN_SCORE) - 1
    return 0.9 * math.tanh(score / 600)


def mixed_value(state: State, seat: int, turns: int, ply: int = 0) -> float:
    """Value of the next turns as matrix games, evaluated where they end, by linear programming."""
    end = outcome(state, seat)
    if end != OPEN or turns == 0:
        scores = {LOSS: ply - WIN_SCORE, WIN: WIN_SCORE - ply, DRAW: DRAW_SCORE}
        if end != OPEN:
            return utility(scores[end])
        worth = evaluate(state, seat)
        return utility(worth + (worth == DRAW_SCORE))  # draws are known by their score
    (other,) = rivals(state, seat)
    game = []
    for move in masked(state, seat):
        row = []
        for answer in masked(state, other):
            reply = [-1] * state.num_snakes
            reply[other] = answer
            row.append(mixed_value(child(state, seat, move, reply), seat, turns - 1, ply + 1))
        game.append(row)
    return matrix_value(game)
