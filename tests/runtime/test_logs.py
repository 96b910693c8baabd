"""Logs: one line a move at debug level, as JSON or words, and never a name or a secret."""

import json
import logging
import re
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest

from snakekit.runtime.cli import JsonFormatter, TextFormatter

SECRET = "sesame-sesame"
NAMES = ("Snake a", "Snake b", "Private Name", "shouted", "private-looks")
TEXT = re.compile(r"\d\d:\d\d:\d\d (debug|info|warning|error) +\S.*")


def entry(message: str, **facts: Any) -> logging.LogRecord:
    record = logging.LogRecord("snakekit.move", logging.INFO, "", 0, message, (), None)
    record.facts = facts
    return record


def test_text_is_one_line_whatever_an_id_holds() -> None:
    line = TextFormatter().format(entry("move", game="a\nb\x1b[31m\u2028c", turn=3))
    assert re.fullmatch(r"\d\d:\d\d:\d\d info    move game=a\?b\?\[31m\?c turn=3", line)


def test_json_is_one_line_whatever_an_id_holds() -> None:
    line = JsonFormatter().format(entry("move", game="a\nb\x1b", turn=3))
    assert "\n" not in line
    assert json.loads(line)["game"] == "a\nb\x1b"


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_line_a_move_and_nothing_private(request_json: Any, form: str) -> None:
    snake = request_json["board"]["snakes"][0]
    snake |= {"name": "Private Name", "shout": "shouted"}
    snake["customizations"]["head"] = "private-looks"
    request_json["you"] = snake
    command = [sys.executable, "-m", "snakekit", "serve", "--host", "127.0.0.1", "--port", "0"]
    command += ["--backend", "random", "--metrics-port", "0", "--secret-path", SECRET]
    process = subprocess.Popen(
        [*command, "--budget-ms", "5", "--log-level", "debug", "--log-format", form],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        found = re.search(r"http://\S+", first)
        assert found, process.communicate()
        asked = json.dumps(request_json).encode()
        for path in ("start", "move", "move", "end"):
            urllib.request.urlopen(f"{found[0]}/{SECRET}/{path}", asked, timeout=10).close()
        broken = asked.replace(b'"health": 90', b'"health": "Snake a"')
        for path, body in (("move", broken), ("move", b"Snake a"), ("Private%20Name", asked)):
            with pytest.raises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(f"{found[0]}/{SECRET}/{path}", body, timeout=10)
            error.value.close()
    finally:
        process.terminate()
        out, err = process.communicate(timeout=20)
    for private in (*NAMES, SECRET, "Private%20Name"):
        assert private not in first + out + err
    lines = err.splitlines()
    if form == "json":
        moves = [e for e in map(json.loads, lines) if e["logger"] == "snakekit.move"]
        assert [e["turn"] for e in moves] == [14, 14]
        assert set(moves[0]) >= {"time", "level", "game", "you", "move", "reason", "ms"}
    else:
        assert all(TEXT.fullmatch(line) for line in lines), err
        assert sum(" move game=" in line for line in lines) == 2
