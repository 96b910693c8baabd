"""How games begin on the official maps, as checks written from recorded ones."""

from map_rules import LISTS, Update, around, check_maze_board

Point = tuple[int, int]

# Width, height and the most snakes.
DRAWN: dict[str, tuple[int, int, int]] = {
    "arcade_maze": (19, 21, 6),
    "hz_castle_wall": (11, 11, 8),
    "hz_castle_wall_lg": (19, 19, 8),
    "hz_castle_wall_xl": (25, 25, 8),
    "hz_hazard_pits": (11, 11, 4),
    "hz_islands_bridges": (11, 11, 4),
    "hz_islands_bridges_lg": (19, 19, 8),
    "hz_rivers_bridges": (11, 11, 8),
    "hz_rivers_bridges_lg": (19, 19, 8),
    "hz_rivers_bridges_xl": (25, 25, 8),
}


def sizes(name: str) -> list[tuple[int, int, int]]:
    """Width, height and the most snakes of some boards of a map."""
    if name in DRAWN:
        return [DRAWN[name]]
    if name == "solo_maze":
        return [(w, h, 1) for w, h in ((7, 7), (7, 11), (8, 8), (11, 7), (11, 11), (25, 25))]
    if name in ("healing_pools", "sinkholes"):
        return [(side, side, 8) for side in (7, 11, 19)]
    found = [(5, 9, 8), (7, 7, 8), (7, 11, 8), (8, 8, 8), (11, 7, 8), (11, 11, 8), (25, 25, 8)]
    if name in ("hz_inner_wall", "hz_grow_box", "hz_expand_box"):
        return found
    return [(3, 3, 4), *found]


def product(xs: tuple[int, ...], ys: tuple[int, ...]) -> set[Point]:
    return {(x, y) for x in xs for y in ys}


SQUARES: dict[str, set[Point]] = {
    "arcade_maze": {*product((4, 14), (7, 17)), (9, 9), (9, 13)},
    "hz_castle_wall_xl": product((1, 23), (5, 19)) | product((5, 19), (1, 23)),
    "hz_hazard_pits": product((1, 9), (1, 9)),
    "hz_islands_bridges": product((1, 9), (3, 7)) | product((3, 7), (1, 9)),
    "hz_islands_bridges_lg": product((2, 6, 12, 16), (2, 6, 12, 16)),
    "hz_rivers_bridges": {*product((1, 9), (1, 9)), (3, 3), (3, 9), (7, 3), (7, 7)},
    "hz_rivers_bridges_lg": product((1, 5, 13, 17), (1, 5, 13, 17)),
    "hz_rivers_bridges_xl": product((1, 9, 15, 23), (1, 9, 15, 23)),
}


def check_squares(name: str, width: int, height: int, heads: list[Point]) -> None:
    assert len(set(heads)) == len(heads)
    middle = ((width - 1) // 2, (height - 1) // 2)
    if name in SQUARES:
        assert set(heads) <= SQUARES[name]
        if "bridges" in name:
            quarters = [(x > width // 2, y > height // 2) for x, y in heads]
            assert len(set(quarters)) == min(4, len(heads))
            assert quarters[4:] == quarters[: max(0, len(heads) - 4)]
        if name == "arcade_maze":
            assert heads[4:] == [(9, 9), (9, 13)][: max(0, len(heads) - 4)]
    elif width == height and width >= 7:
        corners = product((1, width - 2), (1, height - 2))
        edges = product((1, width - 2), middle[1:]) | product(middle[:1], (1, height - 2))
        assert set(heads) <= corners | edges
        if "castle" not in name:
            first = set(heads[:4])
            assert first <= corners or first <= edges
    else:
        assert all((x + y) % 2 == 0 for x, y in heads)
        assert middle not in heads


def check_near(name: str, width: int, height: int, heads: list[Point], food: list[Point]) -> None:
    """One food a step away diagonally from each start."""
    middle = ((width - 1) // 2, (height - 1) // 2)
    assert len(food) == len(set(food)) == len(heads)
    assert not set(food) & product((0, width - 1), (0, height - 1))
    for x, y in heads:
        close = [f for f in food if abs(f[0] - x) == abs(f[1] - y) == 1]
        away = [
            f for f in close if (f[0] - x) * (x - middle[0]) > 0 or (f[1] - y) * (y - middle[1]) > 0
        ]
        assert away, (heads, food)


def check_set_food(
    name: str, width: int, height: int, minimum: int, heads: list[Point], food: list[Point]
) -> None:
    middle = ((width - 1) // 2, (height - 1) // 2)
    if name == "empty" or "castle" in name:
        assert food == []
    elif name == "arcade_maze":
        assert food == ([(9, 11)] if minimum > 0 else [])
        assert set(food) <= LISTS[name]
    elif "bridges" in name:
        check_near(name, width, height, heads, food)
    elif width == height and width >= 7:
        assert food[-1] == middle
        if len(heads) <= 4 or width * height >= 121:
            check_near(name, width, height, heads, food[:-1])
        else:
            assert len(food) == 1
    else:
        free = {(x, y) for x in range(width) for y in range(height)}
        for head in heads:
            free -= around(head)
        assert len(food) == len(set(food)) == min(len(heads), len(free))
        assert set(food) <= free


def check_hazards(name: str, width: int, height: int, hazards: list[Point]) -> None:
    """Of maps that are drawn by a rule; the others are compared with recorded ones."""
    columns = [(x, y) for x in range(1, width, 2) for y in range(1, height, 2)]
    if name == "hz_columns":
        assert hazards == columns
    elif name == "hz_inner_wall":
        inner = product(tuple(range(1, width - 1)), tuple(range(1, height - 1)))
        middle = product(tuple(range(2, width - 2)), tuple(range(2, height - 2)))
        assert hazards == sorted(inner - middle)
    elif name == "healing_pools":
        assert len(hazards) == {7: 1, 11: 2, 19: 4}[width]
        assert len(set(hazards)) == len(hazards)
        if width != 19:
            # Opposite each other, but for one set of the largest board.
            assert sorted((width - 1 - x, height - 1 - y) for x, y in hazards) == hazards
    elif name != "hz_rings" and name not in DRAWN:
        assert hazards == []


def check_start(
    name: str,
    width: int,
    height: int,
    minimum: int,
    bodies: list[list[Point]],
    food: list[Point] | None,
    hazards: list[Point],
) -> None:
    """All of a board at turn 0; `food` None where it has been taken already."""
    assert all(len(body) == 3 for body in bodies) or food is None
    if name == "solo_maze":
        u = Update(name, width, height, 0, 0, 0, 1, False, [], food or [], [], hazards, bodies)
        if food is not None:
            check_maze_board(u, 0)
        return
    heads = [body[0] for body in bodies]
    assert all(set(body) == {body[0]} for body in bodies)
    check_squares(name, width, height, heads)
    check_hazards(name, width, height, hazards)
    if food is not None:
        check_set_food(name, width, height, minimum, heads, food)
