"""Runs that are killed again and again until they end."""

import subprocess
import sys
import time
from pathlib import Path


def killed_until_done(method: str, config: str, run: Path) -> int:
    """Train with `config` in `run`, with kill -9 at ever other moments; return how many kills."""
    arguments = ["--config", config, "--run", str(run)]
    path = run / "metrics.jsonl"
    kills = 0
    for _ in range(60):
        seen = path.read_text().count("\n") if path.exists() else 0
        child = subprocess.Popen(
            [sys.executable, "-m", "snakekit", "train", method, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # A moment after the next round is logged, or before: saving, acting and learning.
        until = time.monotonic() + 120
        while child.poll() is None and time.monotonic() < until:
            if path.exists() and path.read_text().count("\n") > seen:
                break
            time.sleep(0.002)
        time.sleep(0.013 * (kills % 5))
        if child.poll() is None:
            child.kill()
            kills += 1
        if child.wait() == 0:
            break
        if (run / "checkpoints").exists() and any((run / "checkpoints").glob("step-*")):
            arguments = ["--run", str(run), "--resume"]
    return kills
