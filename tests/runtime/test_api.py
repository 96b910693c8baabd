"""What a request means: defaults, odd values, and the board that comes out."""

import json
from typing import Any

import pytest

from snakekit.runtime.api import Position, Request, RequestError, parse, position

Json = dict[str, Any]


def read(request: Json) -> Request:
    return parse(json.dumps(request).encode())


def place(request: Json) -> Position:
    found = position(read(request))
    assert found is not None
    return found


def test_the_whole_board_arrives(request_json: Json) -> None:
    state, seat = place(request_json)
    assert (state.width, state.height, state.turn, seat) == (11, 11, 14, 0)
    assert [s.id for s in state.snakes()] == ["a", "b"]
    assert state.snakes()[0].body == [(5, 4), (5, 3), (6, 3), (6, 2)]
    assert state.snakes()[1].health == 90
    assert state.food() == [(5, 5), (9, 0)]
    assert state.hazards() == [(3, 2), (3, 2)]


def test_width_and_height_are_not_swapped(request_json: Json) -> None:
    request_json["board"].update(width=11, height=22)
    state, _ = place(request_json)
    assert (state.width, state.height) == (11, 22)


def test_settings_by_name(request_json: Json) -> None:
    request_json["game"]["ruleset"] = {
        "name": "royale",
        "settings": {
            "foodSpawnChance": 33,
            "minimumFood": 7,
            "hazardDamagePerTurn": -5,
            "royale": {"shrinkEveryNTurns": 9},
        },
    }
    settings = place(request_json).state.settings
    assert settings.ruleset == "royale"
    assert settings.food_spawn_chance == 33
    assert settings.minimum_food == 7
    assert settings.hazard_damage == -5
    assert settings.shrink_every == 9


@pytest.mark.parametrize(
    "ruleset",
    [None, {}, {"name": None}, {"settings": None}, {"name": "squad", "settings": {}}, "absent"],
)
def test_settings_by_default(request_json: Json, ruleset: Any) -> None:
    request_json["game"]["ruleset"] = ruleset
    if ruleset == "absent":
        del request_json["game"]["ruleset"]
    settings = place(request_json).state.settings
    assert settings.ruleset in ("standard", "squad")
    assert (settings.food_spawn_chance, settings.minimum_food) == (15, 1)
    assert (settings.hazard_damage, settings.shrink_every) == (14, 25)
    assert not settings.solo


def test_many_settings_do_not_fill_memory(request_json: Json) -> None:
    from snakekit.runtime import api

    for number in range(2 * api._CACHE_LIMIT):
        request_json["game"]["ruleset"]["name"] = f"rules {number}"
        place(request_json)
    assert len(api._cache) <= api._CACHE_LIMIT


def test_wrapped_rules_reach_the_core(request_json: Json) -> None:
    request_json["board"]["snakes"][0]["body"] = [{"x": 5, "y": 10}, {"x": 5, "y": 9}]
    assert not place(request_json).state.legal_mask(0) & 1
    request_json["game"]["ruleset"]["name"] = "wrapped"
    assert place(request_json).state.legal_mask(0) & 1


@pytest.mark.parametrize(
    ("given", "expected"), [(None, 500), (0, 500), (33, 33), (1.5, 1.5), ("absent", 500)]
)
def test_timeout(request_json: Json, given: Any, expected: float) -> None:
    request_json["game"]["timeout"] = given
    if given == "absent":
        del request_json["game"]["timeout"]
    assert read(request_json).timeout_ms == expected


def test_you_is_added_if_it_fits(request_json: Json) -> None:
    request_json["board"]["snakes"].pop(0)
    state, seat = place(request_json)
    assert (seat, state.snakes()[1].id, state.head(1)) == (1, "a", (5, 4))
    request_json["you"]["body"] = []
    assert position(read(request_json)) is None
    request_json["you"]["body"] = [{"x": 5, "y": 11}]
    assert position(read(request_json)) is None


def test_you_is_not_the_ninth(request_json: Json) -> None:
    other = request_json["board"]["snakes"][1]
    request_json["board"]["snakes"] = [{**other, "id": f"s{i}"} for i in range(8)]
    assert position(read(request_json)) is None


def test_a_bad_board_is_refused_even_without_you_on_it(request_json: Json) -> None:
    request_json["board"]["snakes"].pop(0)
    request_json["board"]["food"] = [{"x": 50, "y": 0}]
    with pytest.raises(RequestError, match=r"board\.food\[0\]") as error:
        position(read(request_json))
    assert (error.value.status, error.value.cause) == (422, "invalid")


def test_pending_hazards_are_kept(request_json: Json) -> None:
    request_json["board"]["hazards"] = [{"x": 2, "y": 13}]
    assert place(request_json).state.hazards() == [(2, 13)]


@pytest.mark.parametrize(
    ("ids", "result"),
    [([], "draw"), (["b"], "lost"), (["a"], "won"), (["a", "b"], "unfinished")],
)
def test_result(request_json: Json, ids: list[str], result: str) -> None:
    snakes = request_json["board"]["snakes"]
    request_json["board"]["snakes"] = [s for s in snakes if s["id"] in ids]
    assert read(request_json).result == result
