"""Files that are whole or not there."""

import contextlib
import os
from pathlib import Path


def write_whole(path: Path, blob: bytes) -> None:
    """Write `blob` to `path` by way of a temporary file beside it, flushed to the disk.

    Folders above it are made.

    Raises:
        OSError: the disk refuses; what was at `path` before is still there.
    """
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
