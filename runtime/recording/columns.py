"""Decisions as Parquet, one file a game, one row a move.

pyarrow is imported by the functions: serving and replay do without it as long as they can.
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from snakekit.runtime.decided import Decided

INSTALL = "needs pyarrow, which is not installed; expected `pip install 'snakekit[record]'`"


def available() -> bool:
    """Return whether pyarrow is installed, without importing it."""
    return importlib.util.find_spec("pyarrow") is not None


def schema() -> Any:
    """Return the Arrow schema; the fields are those of `Decided`, where they are explained."""
    import pyarrow as pa

    name, figure = pa.string(), pa.float32()
    types = {
        "at": pa.timestamp("ms", tz="UTC"),
        "turn": pa.int32(),
        **dict.fromkeys(("width", "height", "snakes", "search_depth"), pa.int32()),
        "search_nodes": pa.int64(),
        **dict.fromkeys(("answer_ms", "budget_ms", "timeout_ms", "latency_ms"), figure),
        **dict.fromkeys(("plies", "leaves", "oracle_rounds", "oracle_added"), pa.int32()),
        **dict.fromkeys(("value", "search_ms", "gap", "solve_ms"), figure),
        "policy": pa.list_(figure),
        "search_scores": pa.list_(pa.int32()),
        "search_distances": pa.list_(pa.int32()),
        "search_labels": pa.list_(name),
        "search_line": pa.list_(name),
    }
    return pa.schema([(field, types.get(field, name)) for field in Decided.__struct_fields__])


def write(rows: Sequence[Decided], path: Path) -> None:
    """Write one file.

    Raises:
        OSError: the disk refuses.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([msgspec.structs.asdict(row) for row in rows], schema())
    pq.write_table(table, path, compression="zstd")


def read(path: Path) -> list[Decided]:
    """Read one file back.

    Raises:
        ValueError: not such a file.
        OSError: it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        at = table.column("at").cast(pa.int64())
        table = table.set_column(table.column_names.index("at"), "at", at)
        return msgspec.convert(table.to_pylist(), list[Decided])
    except (pa.ArrowInvalid, KeyError, msgspec.ValidationError) as error:
        raise ValueError(f"{path}: not a file of decisions ({error})") from None
