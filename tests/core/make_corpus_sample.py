"""Choose the lines of `tests/data/rules_corpus_sample.jsonl.gz` from a full recording.

A line is kept, in the recording's order, when one of its labels (tag, ruleset with `solo`, board
size, map, number of snakes) has been kept fewer than `PER_LABEL` times, and besides that every
`STRIDE`-th line. Kept lines are not altered.

    python tests/core/make_corpus_sample.py FULL.jsonl.gz
"""

import gzip
import json
import sys
from collections import Counter
from pathlib import Path

PER_LABEL = 35
STRIDE = 29
OUT = Path(__file__).parents[1] / "data" / "rules_corpus_sample.jsonl.gz"


def labels(line: dict) -> list[tuple]:
    return [
        *(("tag", tag) for tag in line["tags"]),
        ("ruleset", line["ruleset"], line["solo"]),
        ("size", line["width"], line["height"]),
        ("map", line["map"]),
        ("snakes", len(line["before"]["snakes"])),
    ]


def choose(lines: list[bytes]) -> list[bytes]:
    kept: list[bytes] = []
    seen: Counter[tuple] = Counter()
    for i, raw in enumerate(lines):
        found = labels(json.loads(raw))
        if i % STRIDE and all(seen[label] >= PER_LABEL for label in found):
            continue
        seen.update(found)
        kept.append(raw)
    return kept


def main() -> None:
    with gzip.open(sys.argv[1], "rb") as source:
        lines = source.readlines()
    kept = choose(lines)
    # No name and no time in the header: the same input gives the same bytes.
    with OUT.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.writelines(kept)
    print(f"kept {len(kept)} of {len(lines)} lines, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
