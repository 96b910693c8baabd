"""Two servers behind Debian's nginx with the shipped configuration: one game across both."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from snakekit.bench.served import Served, served

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NGINX is None, reason="the package nginx is not installed"),
]
CONFIGURATION = Path(__file__).parents[2] / "deploy/nginx/snakekit.conf"
OPTIONS = ["--model", "standard", "--budget-ms", "30"]


def run_nginx(folder: Path, port: int, servers: list[Served]) -> "subprocess.Popen[bytes]":
    """Start nginx with the shipped configuration, other ports put in."""
    text = CONFIGURATION.read_text()
    text = re.sub(r"listen 8000", f"listen 127.0.0.1:{port}", text)
    for old, place in zip(("127.0.0.1:8001", "127.0.0.1:8002"), servers, strict=True):
        assert text.count(old) == 1
        text = text.replace(old, place.url.removeprefix("http://"))
    (folder / "snakekit.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    (folder / "nginx.conf").write_text(
        f"{user} pid {folder}/pid; error_log stderr; worker_processes 1;"
        "events { worker_connections 256; } http {"
        + "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        + f"include {folder}/snakekit.conf; }}"
    )
    command = [str(NGINX), "-e", "stderr", "-c", f"{folder}/nginx.conf", "-g", "daemon off;"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stderr=log)


@pytest.fixture
def balanced(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[tuple[str, Served, Served]]:
    """The balancer's address and the two servers behind it."""
    with served(OPTIONS) as one, served(OPTIONS) as two:
        url = f"http://127.0.0.1:{(port := free_port())}"
        nginx = run_nginx(tmp_path, port, [one, two])
        try:
            end = time.monotonic() + 20
            while not answers(url):
                assert time.monotonic() < end, (tmp_path / "log").read_text()
                time.sleep(0.1)
            yield url, one, two
        finally:
            nginx.terminate()
            nginx.wait(20)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url + "/readyz", timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def moves(place: Served) -> float:
    with urllib.request.urlopen(place.metrics_url, timeout=5) as response:
        found = re.search(rb"^snakekit_move_seconds_count (\S+)", response.read(), re.M)
    assert found
    return float(found[1])


def start_play(url: str, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "snakekit", "play", url, "search:2", "greedy"]
    return subprocess.Popen(
        [*command, "--games", "1", "--max-turns", "80", "--require-clean", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_one_game_is_played_across_both(balanced: tuple[str, Served, Served]) -> None:
    url, one, two = balanced
    play = start_play(url, "--seed", "4")
    out, _ = play.communicate(timeout=110)
    assert play.returncode == 0, out
    counts = moves(one), moves(two)
    assert min(counts) >= 0.2 * sum(counts) > 0, counts
    refused = urllib.request.Request(url + "/move", b"{")
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(refused, timeout=5)
    with error.value as response:
        assert response.code == 400
        assert "not JSON" in json.load(response)["error"]


def test_a_server_that_dies_in_the_middle_of_a_game_costs_no_move(
    balanced: tuple[str, Served, Served], tmp_path: Path
) -> None:
    url, one, two = balanced
    play = start_play(url, "--seed", "4", "--pace-ms", "60", "--out", str(tmp_path / "games"))
    end = time.monotonic() + 60
    while min(moves(one), moves(two)) < 5:
        assert time.monotonic() < end
        assert play.poll() is None
        time.sleep(0.05)
    before = moves(two)
    os.kill(one.pid, signal.SIGKILL)
    out, _ = play.communicate(timeout=110)
    assert play.returncode == 0, out
    assert moves(two) > before + 5
