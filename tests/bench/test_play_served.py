"""`snakekit play` against `snakekit serve` in a process of its own, over real HTTP."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from snakekit.__main__ import main

pytestmark = pytest.mark.slow


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "snakekit", "serve", "--host", "127.0.0.1", "--port", "0"]
    command += ["--no-metrics", "--mode", "search", "--budget-ms", "30"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
    ) as server:
        assert server.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
        try:
            assert found
            yield found[0]
        finally:
            server.terminate()
            server.wait(20)


def test_duels_and_four_snake_games(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    clean = ["--require-clean", "--timeout-ms", "500"]
    duels = ["play", f"us={url}", "random", "--games", "10", "--min-win-rate", "0.8", *clean]
    assert main(duels) == 0, capsys.readouterr().err
    fours = ["play", f"us={url}", f"also={url}", "greedy", "random", "--games", "2", *clean]
    assert main(fours) == 0, capsys.readouterr().err
