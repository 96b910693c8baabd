"""What the official maps do, as checks of a board before and after a map's update.

They are written from recorded turns and hold for these as well as for this project's own updates.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache

Point = tuple[int, int]
Body = list[Point]


@cache
def rectangle(left: int, bottom: int, right: int, top: int) -> frozenset[Point]:
    """Squares of a rectangle without its last column and row."""
    return frozenset((x, y) for x in range(left, right) for y in range(bottom, top))


@dataclass
class Update:
    """A map's update: the board that the rules left and the one that the map made of it.

    `turn` is the engine's number of the turn just played. Hazards are sorted, one entry a layer.
    """

    map: str
    width: int
    height: int
    turn: int
    chance: int
    minimum: int
    every: int
    royale: bool
    food: list[Point]
    new_food: list[Point]
    hazards: list[Point]
    new_hazards: list[Point]
    living: list[Body]
    dead: list[Body] = field(default_factory=list)
    moved: bool = False
    # Recorded boards can be any; only in a real game do regions follow from its beginning.
    real: bool = True

    def cells(self) -> frozenset[Point]:
        return rectangle(0, 0, self.width, self.height)

    def added(self) -> list[Point]:
        """New food, which comes after the old."""
        assert self.new_food[: len(self.food)] == self.food
        return self.new_food[len(self.food) :]


def around(point: Point) -> set[Point]:
    x, y = point
    return {(x, y), (x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)}


def distance(a: Point, b: Point) -> int:
    return max(abs(a[0] - b[0]), abs(a[1] - b[1]))


def food_squares(u: Update, near: bool = True) -> set[Point]:
    """Where food rule S may put food."""
    free = set(u.cells() - set(u.food))
    for body in u.living:
        free -= set(body)
        free -= around(body[0]) if near else set()
    return free


def check_rule_s(u: Update, free: set[Point] | None = None) -> None:
    free = food_squares(u) if free is None else free
    new = u.added()
    assert set(new) <= free
    assert len(set(new)) == len(new)
    shortage = u.minimum - len(u.food)
    if shortage > 0:
        assert len(new) == min(shortage, len(free))
    else:
        assert len(new) <= 1
        # 1 % is never and 100 % not always: the engine draws from 1..100 and wants less.
        assert u.chance > 1 or not new


def check_dry_rule_s(u: Update) -> None:
    check_rule_s(u, food_squares(u) - set(u.hazards))


def check_no_food(u: Update) -> None:
    assert u.added() == []


LISTS: dict[str, set[Point]] = {
    "hz_castle_wall": {(2, 5), (5, 2), (5, 8), (8, 5)},
    "hz_castle_wall_lg": {
        *((x, y) for x in (2, 3, 15, 16) for y in (8, 10)),
        *((x, y) for x in (8, 10) for y in (2, 3, 15, 16)),
    },
    "hz_castle_wall_xl": {
        *((x, y) for x in (3, 4, 20, 21) for y in (8, 12, 16)),
        *((x, y) for x in (8, 12, 16) for y in (3, 4, 20, 21)),
    },
    "arcade_maze": {
        *((x, y) for x in (4, 14) for y in (7, 17)),
        *((9, y) for y in (1, 5, 11, 17)),
        *((x, 11) for x in (3, 15)),
        *((x, 1) for x in (1, 17)),
    },
}


def check_castle_food(u: Update) -> None:
    free = LISTS[u.map] - set(u.food)
    for body in u.living + u.dead:
        free -= set(body) | around(body[0])
    most = 4 if u.map.endswith("xl") else 2
    wanted = u.turn >= 10 and len(u.food) < most and bool(free)
    assert len(u.added()) == int(wanted)
    assert set(u.added()) <= free


def check_arcade_food(u: Update) -> None:
    free = LISTS[u.map] - set(u.food)
    for body in u.living + u.dead:
        free -= set(body)
    assert len(u.added()) <= min(1, len(free))
    assert set(u.added()) <= free
    if u.chance in (0, 100):
        assert len(u.added()) == int(u.chance == 100 and bool(free))


def check_still(u: Update) -> None:
    assert u.new_hazards == u.hazards


def check_region(u: Update, steps: int) -> None:
    """The complement of a rectangle whose four insets sum to `steps`."""
    assert len(set(u.new_hazards)) == len(u.new_hazards)
    free = u.cells() - set(u.new_hazards)
    if not free:
        assert steps >= min(u.width, u.height)
        return
    xs, ys = {x for x, _ in free}, {y for _, y in free}
    assert free == rectangle(min(xs), min(ys), max(xs) + 1, max(ys) + 1)
    assert u.width - len(xs) + u.height - len(ys) == steps


def check_royale(u: Update) -> None:
    if u.turn + 1 < u.every:
        check_still(u)
    else:
        check_region(u, (u.turn + 1) // u.every)


def new_layers(u: Update) -> list[Point]:
    """What was added, where nothing was taken away."""
    assert not Counter(u.hazards) - Counter(u.new_hazards)
    return sorted((Counter(u.new_hazards) - Counter(u.hazards)).elements())


def shrunk_by_rules(u: Update) -> bool:
    """Whether the hazards are the royale ruleset's and say nothing about what the map did."""
    return u.royale or not u.real


def spiral(count: int) -> list[Point]:
    """Steps away from the start: up first, then clockwise in ever larger squares."""
    path = [(0, 0)]
    for r in range(1, count):
        path += [(x, r) for x in range(1 - r, r)]
        path += [(r, y) for y in range(r, -r, -1)]
        path += [(x, -r) for x in range(r, -r, -1)]
        path += [(-r, y) for y in range(-r, r + 1)]
    return path


SPIRAL = spiral(25)


def centres(u: Update, low: float, high: float) -> Iterable[Point]:
    """Squares between two parts of each side."""
    for x in range(int(low * u.width), int(high * u.width) + 1):
        for y in range(int(low * u.height), int(high * u.height) + 1):
            yield x, y


def check_spiral(u: Update) -> None:
    new = new_layers(u)
    assert len(new) <= int(u.turn % 3 == 2)
    if shrunk_by_rules(u):
        return
    count = (u.turn + 1) // 3
    board = u.cells()

    def path(x: int, y: int) -> list[Point]:
        return sorted(board & {(x + dx, y + dy) for dx, dy in SPIRAL[:count]})

    assert count == 0 or any(path(*p) == u.new_hazards for p in centres(u, 0.3, 0.7))


def check_scatter(u: Update) -> None:
    new = new_layers(u)
    k = u.turn // 2
    assert len(new) == int(u.turn % 2 == 1 and k < len(u.cells()))
    if not shrunk_by_rules(u):
        assert len(set(u.new_hazards)) == len(u.new_hazards)
        assert len(u.new_hazards) == min(len(u.cells()), (u.turn + 1) // 2)


def check_expand_scatter(u: Update) -> None:
    # On a flat board the engine can start above the board, which we do not.
    off = [p for p in u.new_hazards if p[1] >= u.height]
    new = new_layers(u)
    assert len(new) == int(u.turn % 2 == 0 and u.turn // 2 < len(u.cells()))
    if shrunk_by_rules(u) or off or u.width > u.height:
        return
    filled = set(u.new_hazards)
    assert len(filled) == len(u.new_hazards) == min(len(u.cells()), u.turn // 2 + 1)

    def fits(x: int, y: int) -> bool:
        reach = max(distance((x, y), p) for p in filled)
        inner = rectangle(x - reach + 1, y - reach + 1, x + reach, y + reach)
        return (x, y) in filled and inner & u.cells() <= filled

    assert any(fits(x, y) for x in range(1, u.width) for y in range(1, min(u.width, u.height)))


def check_expand_box(u: Update) -> None:
    new = new_layers(u)
    assert u.turn % 20 == 0 or not new
    if shrunk_by_rules(u):
        return
    reach = u.turn // 20

    def box(x: int, y: int) -> list[Point]:
        square = rectangle(x - reach, y - reach, x + reach + 1, y + reach + 1)
        return sorted(square & u.cells())

    assert any(
        box(x, y) == u.new_hazards for x in range(2, u.width - 1) for y in range(2, u.height - 1)
    )


def check_grow_box(u: Update) -> None:
    new = new_layers(u)
    assert u.turn % 12 == 0 or not new
    if shrunk_by_rules(u):
        return
    xs, ys = {x for x, _ in u.new_hazards}, {y for _, y in u.new_hazards}
    assert u.new_hazards == sorted((x, y) for x in xs for y in ys)
    assert len(xs) == max(xs) - min(xs) + 1
    assert len(ys) == max(ys) - min(ys) + 1
    full = len(xs) == u.width and len(ys) == u.height
    assert full or len(xs) + len(ys) - 2 == u.turn // 12


def check_pools(u: Update) -> None:
    gone = Counter(u.hazards) - Counter(u.new_hazards)
    assert not Counter(u.new_hazards) - Counter(u.hazards)
    due = u.turn > 0 and u.turn % u.every == 0 and bool(u.hazards)
    assert gone.total() == int(due)


def expected_sinkholes(u: Update) -> list[Point]:
    """Hazards after the turn, exactly."""
    last = {7: 2, 11: 4, 19: 6}[u.width]
    r, rest = divmod(u.turn - 1, u.every)
    if u.turn == 0 or rest or r > last:
        return u.hazards
    mid = u.width // 2
    hole = [p for p in u.cells() if distance((mid, mid), p) <= r]
    corners = {(mid + i * r, mid + j * r) for i in (-1, 1) for j in (-1, 1)} if r else set()
    return sorted(u.hazards + [p for p in hole if p not in corners])


def expected_pits(u: Update) -> list[Point]:
    """Hazards after the turn, exactly."""
    steps, rest = divmod(u.turn, u.every)
    if rest or u.turn == 0:
        return u.hazards
    starts = {(1, 1), (1, 9), (9, 1), (9, 9)}
    pits = [(x, y) for x in range(1, 11, 2) for y in range(1, 11, 2) if (x, y) not in starts]
    return sorted(pits * min(4, steps % 7))


def expected_trail(u: Update) -> list[Point]:
    """Hazards after the turn, exactly; those above the board are still to come."""
    heads = {body[0] for body in u.living}
    after: Counter[Point] = Counter()
    for (x, y), layers in Counter(u.hazards).items():
        if y < u.height:
            after[x, y] += layers - 1
        elif (x, y - u.height) not in heads:
            after[x, y - u.height] += layers
    for body in u.living:
        if len(body) == 1 or body[-1] != body[-2]:
            after[body[-1][0], body[-1][1] + u.height] += len(body)
    return sorted(after.elements())


def maze_level(u: Update, hazards: list[Point]) -> int:
    return sum(1 << (u.width - 1 - x) for x, y in set(hazards) if y == 0)


def check_maze(u: Update) -> None:
    if u.food:
        assert u.new_food == u.food
        assert not u.moved
        check_still(u)
        return
    level = maze_level(u, u.hazards) + 1
    level = level // 2 if level >> u.width else level
    assert maze_level(u, u.new_hazards) == level
    check_maze_board(u, level)


def check_maze_board(u: Update, level: int) -> None:
    """One maze of the level's size in the middle, of which every open square can be reached."""
    side = min(u.height - 2, u.width, level + 7)
    left, bottom = (u.width - side) // 2, (u.height - side) // 2
    (body,) = u.living + u.dead
    assert body[0] == (left, bottom)
    assert set(body[1:]) <= {(left, bottom - 1)}
    walls = set(u.new_hazards)
    assert len(walls) == len(u.new_hazards)
    maze = {(left + x, bottom + y) for x in range(side) for y in range(side)}
    outside = u.cells() - maze - {(left, bottom - 1)} - {(x, 0) for x in range(u.width)}
    assert outside <= walls
    assert len(maze & walls) >= side - 2
    reached, edge = set(), {body[0]}
    while edge:
        reached |= edge
        edge = set().union(*(around(p) for p in edge)) & maze - walls - reached
    assert reached == maze - walls
    assert len(u.new_food) == 1
    assert set(u.new_food) <= reached - {body[0]}


STATIC = {
    *("standard", "empty", "arcade_maze", "hz_columns", "hz_inner_wall", "hz_rings"),
    *("hz_castle_wall", "hz_castle_wall_lg", "hz_castle_wall_xl"),
    *("hz_islands_bridges", "hz_islands_bridges_lg"),
    *("hz_rivers_bridges", "hz_rivers_bridges_lg", "hz_rivers_bridges_xl"),
}
EXACT: dict[str, Callable[[Update], list[Point]]] = {
    **{name: lambda u: u.hazards for name in STATIC},
    "sinkholes": expected_sinkholes,
    "hz_hazard_pits": expected_pits,
    "snail_mode": expected_trail,
}
REGIONS: dict[str, Callable[[Update], None]] = {
    "royale": check_royale,
    "healing_pools": check_pools,
    "hz_spiral": check_spiral,
    "hz_scatter": check_scatter,
    "hz_grow_box": check_grow_box,
    "hz_expand_box": check_expand_box,
    "hz_expand_scatter": check_expand_scatter,
    "solo_maze": check_maze,
}


def check_food(u: Update) -> None:
    if u.map == "empty":
        check_no_food(u)
    elif "castle" in u.map:
        check_castle_food(u)
    elif "bridges" in u.map:
        check_dry_rule_s(u)
    elif u.map == "arcade_maze":
        check_arcade_food(u)
    elif u.map != "solo_maze":
        check_rule_s(u)


def check_update(u: Update) -> None:
    check_food(u)
    if u.map in EXACT:
        assert u.new_hazards == EXACT[u.map](u)
    else:
        REGIONS[u.map](u)
    assert not u.moved or u.map == "solo_maze"
