"""What `snakekit export` prints."""

from pathlib import Path
from typing import Any

import msgspec
from rich.table import Table

from snakekit.export.parity import Gate


def gates_table(title: str, gates: "tuple[Gate, ...]") -> Table:
    """Return figures of gates, a column each."""
    table = Table(title=title, title_justify="left", min_width=len(title))
    table.add_column("gate")
    for gate in gates:
        table.add_column(gate.name, justify="right")
    keys = dict.fromkeys(key for gate in gates for key in gate.figures)
    for key in keys:
        cells = [figure(key, gate.figures.get(key)) for gate in gates]
        table.add_row(key, *cells)
    table.add_row("passed", *("yes" if gate.passed else "no" for gate in gates))
    return table


def figure(key: str, value: float | None) -> str:
    """Return one figure of a gate in words."""
    if value is None:
        return ""
    if key.startswith("agreement"):
        return f"{value:.2%}"
    return f"{value:.0f}" if key in ("observations", "compared") else f"{value:.3g}"


def model_table(path: Path) -> Table:
    """Describe an ONNX file.

    Raises:
        ModelFileError: missing, unreadable, cut, foreign, or with weights that are not finite.
    """
    from snakekit.export.onnxfile import describe

    found = describe(path)
    table = _table(path.name)
    table.add_row("size", f"{found.bytes:,} bytes")
    table.add_row("parameters", f"{found.parameters:,}")
    rows, cols = found.board
    table.add_row("multiply-adds", f"{found.multiply_adds:,} for one position of {rows}x{cols}")
    table.add_row("opset", f"{found.opset} (IR version {found.ir_version})")
    table.add_row("inputs", "\n".join(found.inputs))
    table.add_row("outputs", "\n".join(found.outputs))
    table.add_row("operators", ", ".join(f"{k} {n}" for k, n in found.operators.items()))
    _add_facts(table, "card", msgspec.to_builtins(found.card))
    return table


def engine_table(path: Path) -> Table:
    """Describe an engine by its manifest, once its bytes are known to be those it names.

    Raises:
        BackendError: missing, damaged, or without a manifest.
    """
    from snakekit.runtime.backends.trt.engine_file import read_engine, read_manifest

    manifest = read_manifest(path)
    table = _table(path.name)
    table.add_row("size", f"{len(read_engine(path, manifest)):,} bytes")
    facts = msgspec.to_builtins(manifest)
    card = facts.pop("card")
    for key in ("target", "profile"):
        _add_facts(table, key, facts.pop(key))
    _add_facts(table, "engine", facts)
    _add_facts(table, "card", card)
    return table


def _table(title: str) -> Table:
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column()
    table.add_column(overflow="fold")
    return table


def _add_facts(table: Table, what: str, facts: dict[str, Any]) -> None:
    for key, value in facts.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        table.add_row(f"{what}.{key}", text)
