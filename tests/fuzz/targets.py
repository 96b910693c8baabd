"""What is fuzzed: each target takes bytes and lets no exception out but a fault of ours.

As a program it runs one target under atheris: `targets.py TARGET CORPUS [libFuzzer options]`.
"""

import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

from mutations import SIZE, damaged, valid

from snakekit.bench import gamefile, protocol
from snakekit.runtime import api, boardjson, frames


def server(data: bytes) -> bool:
    """The server's lenient reader."""
    try:
        api.position(api.parse(data))
    except api.RequestError as error:
        _check(error)
        return False
    return True


def request(data: bytes) -> bool:
    """The strict reader of requests; what it takes it also gives back."""
    try:
        record = boardjson.read_request(data)
    except boardjson.BoardError as error:
        _check(error)
        return False
    assert boardjson.read_request(boardjson.write_request(record)) == record
    return True


def game(data: bytes) -> bool:
    """The strict reader of game files."""
    try:
        file = boardjson.read_game(data)
    except boardjson.BoardError as error:
        _check(error)
        return False
    assert boardjson.read_game(boardjson.write_game(file)) == file
    return True


def frame(data: bytes) -> bool:
    """The reader of frames."""
    try:
        record = frames.read_frame(data, *SIZE)
    except boardjson.BoardError as error:
        _check(error)
        return False
    assert frames.read_frame(frames.write_frame(record), *SIZE) == record
    return True


def game_file(data: bytes) -> bool:
    """The lenient reader of game files, from a file."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        Path(file.name).write_bytes(data)
        try:
            gamefile.read_game(Path(file.name))
        except gamefile.GameFileError as error:
            _check(error)
            return False
    return True


def answer(data: bytes) -> bool:
    """The reader of other servers' answers, which judges and never raises."""
    return protocol.read_answer(200, data, 1.0).move is not None


def _check(error: Exception) -> None:
    text = str(error)
    assert text
    assert "\n" not in text
    assert len(text) < 2000


TARGETS: dict[str, Callable[[bytes], bool]] = {
    "server": server,
    "request": request,
    "game": game,
    "frame": frame,
    "game_file": game_file,
    "answer": answer,
}
# The kind of valid input that a target starts from.
SEEDS = {
    "server": "request",
    "request": "request",
    "game": "game",
    "frame": "frame",
    "game_file": "game",
    "answer": "answer",
}


def main() -> None:
    """Fuzz until libFuzzer's limits are reached; the exit code is its own."""
    import atheris

    name = sys.argv.pop(1)
    target, seeds = TARGETS[name], valid(SEEDS[name])
    for module in (api, boardjson, frames, gamefile, protocol):
        for value in vars(module).values():
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                atheris.instrument_func(value)

    def once(data: bytes) -> None:
        target(data)

    def mutate(data: bytes, limit: int, seed: int) -> bytes:
        dice = random.Random(seed)
        # The readers' own coverage is coarse, so libFuzzer soon keeps only stunted inputs.
        start = dice.choice(seeds) if dice.random() < 0.3 else data
        try:
            made = damaged(start, dice) if dice.random() < 0.5 else atheris.Mutate(start, limit)
        except (ValueError, RecursionError, IndexError):
            made = atheris.Mutate(data, limit)
        return bytes(made[:limit])

    atheris.Setup(sys.argv, once, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
