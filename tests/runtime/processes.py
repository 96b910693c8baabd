"""`snakekit serve` as a process of its own, and plain requests to it."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from stopwatch import own_time

Started = tuple["subprocess.Popen[str]", str, str, float]
"""The process, the addresses of game and metrics, and when it began by `own_time`."""


@pytest.fixture
def start() -> Iterator[Callable[..., Started]]:
    running: list[subprocess.Popen[str]] = []

    def run(*words: str, **environment: str) -> Started:
        command = [sys.executable, "-m", "snakekit", "serve", "--host", "127.0.0.1", "--port", "0"]
        began = own_time()
        process = subprocess.Popen(
            [*command, "--metrics-port", "0", "--backend", "random", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        running.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.match(r"snakekit listens on (http://\S+) .* metrics=(\S+)", line)
        assert found, line + (process.stderr.read() if process.stderr else "")
        return process, found[1], found[2], began

    yield run
    for process in running:
        process.kill()
        process.communicate()


def get(url: str | urllib.request.Request) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def post(url: str, body: Any) -> tuple[int, Any]:
    data = json.dumps(body).encode()
    with urllib.request.urlopen(url, data=data, timeout=5) as response:
        return response.status, json.load(response)


def wait_ready(url: str) -> None:
    end = time.perf_counter() + 20
    while get(url + "/readyz")[0] != 200:
        assert time.perf_counter() < end
        time.sleep(0.02)
