"""Puts a learned value of `snakekit train value` into the library: FOLDER holds its two files.

    python .ci/embed_value.py runs/value

writes csrc/value/shipped.inc, its bytes as 64-bit numbers, and csrc/value/shipped.json. Observation
v3 keeps the value that it had: where it shared the old one, csrc/value/standing.inc becomes a copy.
"""

import shutil
import struct
import sys
from pathlib import Path

PLACE = Path(__file__).resolve().parent.parent / "csrc" / "value"
PER_LINE = 4


def main(folder: Path) -> None:
    """Embed `folder`/search.value and its card."""
    data = (folder / "search.value").read_bytes()
    padded = data + bytes(-len(data) % 8)
    words = [f"0x{word:016x}" for (word,) in struct.iter_unpack("<Q", padded)]
    lines = [", ".join(words[i : i + PER_LINE]) for i in range(0, len(words), PER_LINE)]
    text = f"// {len(data)} bytes\n" + ",\n".join(lines) + "\n"
    standing = PLACE / "standing.inc"
    if standing.read_text(encoding="ascii").startswith("#include"):
        shutil.copy(PLACE / "shipped.inc", standing)
    (PLACE / "shipped.inc").write_text(text, encoding="ascii")
    shutil.copy(folder / "search.json", PLACE / "shipped.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
