"""`snakekit inspect`: one board from a request, what the server would answer, and why.

The board goes through the server's own engine, so that nothing is seen here which would not happen
there.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from snakekit import core
from snakekit.bench.board_view import SeenBoard, board_panel
from snakekit.bench.replay import decision_table, printable
from snakekit.runtime import api
from snakekit.runtime.backends import BackendError
from snakekit.runtime.config import Mode, ServerConfig
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.decided import Decided, decided
from snakekit.runtime.engine import Answer, Engine
from snakekit.runtime.options import OptionError, add_options, load

T = TypeVar("T")
_LARGEST = 1 << 20


class InspectConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `snakekit inspect`; those of the server mean the same here."""

    mode: Annotated[Mode, Meta(description="what decides, as for serve")] = "hybrid"
    model: Annotated[
        str | None, Meta(description="ONNX file, or name of a shipped model; none: the default")
    ] = None
    backend: Annotated[
        Literal["cpu", "cuda", "ort-tensorrt", "tensorrt", "tensorrt-rtx", "triton", "random"],
        Meta(description="what runs the policy"),
    ] = "cpu"
    budget_ms: Annotated[
        float, Meta(ge=1, le=60_000, description="longest search, ms; the request's timeout holds")
    ] = 250.0
    max_depth: Annotated[int, Meta(ge=1, le=200, description="deepest search, turns")] = 64
    proof: Annotated[
        Literal["sound", "article"], Meta(description="sound proofs, or the article's plain rule")
    ] = "sound"
    planes: Annotated[bool, Meta(description="show the planes that the model sees")] = False
    json: Annotated[bool, Meta(description="print JSON instead")] = False

    def server(self) -> ServerConfig:
        """Return the server's options."""
        names = ("mode", "model", "backend", "budget_ms", "max_depth", "proof")
        # One search and one inference: nothing else is warmed up or started.
        return ServerConfig(
            batch_sizes=(1,), search_workers=1, **{n: getattr(self, n) for n in names}
        )


@dataclass(frozen=True)
class Inspection:
    """Everything that is known of one board."""

    request: api.Request
    place: api.Position
    row: Decided
    exact: list[bool] | None
    """Per move whether its score is its value, not only an upper bound."""
    stopped: str
    evaluation: int
    terms: dict[str, int]
    """Of the evaluation, those that are not 0."""
    stages_ms: dict[str, float]
    planes: NDArray[np.uint8] | None = field(default=None)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file and the options."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="body of a /move request, JSON; - reads stdin"
    )
    add_options(parser, InspectConfig)


def run(args: argparse.Namespace) -> int:
    """Inspect and print; return the exit code."""
    try:
        config = load(InspectConfig, args, env_prefix="SNAKEKIT_INSPECT_")
        body = _read(args.file)
        found = asyncio.run(inspect(body, config))
    except (OptionError, BackendError, api.RequestError, core.StateError, OSError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            text = f"{error.filename}: {error.strerror}"
        print(f"snakekit inspect: {' '.join(text.split())}", file=sys.stderr)
        return 2
    if config.json:
        print(json.dumps(plain(found)))
    else:
        Console().print(view(found))
    return 0


def _read(path: Path) -> bytes:
    if str(path) == "-":
        return sys.stdin.buffer.read(_LARGEST + 1)
    with path.open("rb") as file:
        return file.read(_LARGEST + 1)


async def inspect(body: bytes, config: InspectConfig) -> Inspection:
    """Let the engine answer a request and collect what it was made from.

    Raises:
        RequestError: not a request, or a board that no engine sends.
        BackendError: the model cannot be used.
    """
    if len(body) > _LARGEST:
        raise api.RequestError(413, "too_large", "body: expected at most 1 MiB")
    stages: dict[str, float] = {}
    request = _timed(stages, "parse", lambda: api.parse(body))
    place = _timed(stages, "board", lambda: api.position(request))
    if place is None or not place.state.alive(place.seat):
        raise api.RequestError(422, "invalid", "you: expected one of board.snakes, alive")
    engine = Engine(config.server())
    try:
        await engine.open()
        answer = await engine.move(request, time.perf_counter())
        row = decided(request, answer, engine.card, engine.backend_info)
        card, metrics = engine.card, engine.metrics
        seconds = metrics.registry.get_sample_value("snakekit_policy_seconds_sum")
    finally:
        await engine.close()
    planes = None
    if card is not None:
        planes = _timed(stages, "encode", lambda: encode(place, card))
    if answer.choice.evaluation is not None and seconds is not None:
        stages["policy"] = seconds * 1000
    search = answer.choice.search
    if search is not None:
        stages["search"] = search.seconds * 1000
    stages["answer"] = answer.seconds * 1000
    return Inspection(
        request=request,
        place=place,
        row=row,
        exact=search.exact if search is not None else None,
        stopped=_stopped(answer),
        evaluation=core.evaluate(place.state, place.seat),
        terms=_terms(place),
        stages_ms={name: round(ms, 3) for name, ms in stages.items()},
        planes=planes if config.planes else None,
    )


def _timed(stages: dict[str, float], name: str, work: Callable[[], T]) -> T:
    begun = time.perf_counter()
    result = work()
    stages[name] = (time.perf_counter() - begun) * 1000
    return result


def encode(place: api.Position, card: ModelCard) -> NDArray[np.uint8]:
    """Return the planes `[planes, rows, cols]` that a model sees."""
    if card.slots:
        rows = core.encode_all([place.state], slots=card.slots)
    else:
        rows = place.state.encode(card.encoder, [place.seat])
    return np.asarray(rows[0])


def _terms(place: api.Position) -> dict[str, int]:
    values = core.evaluation_terms(place.state, place.seat)
    return {name: value for name, value in zip(core.TERMS, values, strict=True) if value}


def _stopped(answer: Answer) -> str:
    search = answer.choice.search
    return search.stopped if search is not None else ""


def plain(found: Inspection) -> dict[str, Any]:
    """Return everything as plain data."""
    content: dict[str, Any] = msgspec.to_builtins(found.row)
    content |= {
        "search_exact": found.exact,
        "search_stopped": found.stopped or None,
        "evaluation": found.evaluation,
        "evaluation_terms": found.terms,
        "stages_ms": found.stages_ms,
    }
    if found.planes is not None:
        content["planes"] = found.planes.tolist()
    return content


def view(found: Inspection) -> RenderableType:
    """Return everything for the terminal."""
    row, weights = found.row, "many" if found.row.snakes > 2 else "duel"
    parts: list[RenderableType] = [
        board_panel(SeenBoard.from_state(found.place.state), f"{printable(row.you)}, "),
        decision_table(row),
    ]
    if found.exact is not None and not all(found.exact):
        parts.append(Text("scores of other moves than the best may be upper bounds", "dim"))
    if found.stopped:
        parts.append(Text(f"search ended by: {found.stopped}"))
    terms = Table(title="Evaluation of this board", title_justify="left", box=None, pad_edge=False)
    for column in ("term", "value", "weight", "points"):
        terms.add_column(column, justify="left" if column == "term" else "right")
    for name, value in found.terms.items():
        weight = core.WEIGHTS[f"{weights}.{name}"]
        terms.add_row(name, str(value), f"{weight / 16:.1f}", f"{value * weight / 16:+.0f}")
    terms.add_row("all", "", "", f"{found.evaluation:+d}")
    parts.append(terms)
    stages = ", ".join(f"{name} {ms:.3f}" for name, ms in found.stages_ms.items())
    parts.append(Text(f"ms: {stages}"))
    if found.planes is not None:
        parts += [plane_view(number, plane) for number, plane in enumerate(found.planes)]
    return Group(*parts)


def plane_view(number: int, plane: NDArray[np.uint8]) -> RenderableType:
    """Return one plane as numbers, its top row first; an empty one as a line."""
    if not plane.any():
        return Text(f"plane {number}: empty", "dim")
    width = len(str(plane.max()))
    lines = [
        " ".join(f"{value:>{width}}" if value else "·".rjust(width) for value in line)
        for line in plane[::-1].tolist()
    ]
    return Text(f"plane {number}:\n" + "\n".join(lines), no_wrap=True)
