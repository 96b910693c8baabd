"""The Dockerfile, its steps carried out in a Debian root, and the server that comes of them."""

import json
import os
import re
import shutil
import subprocess
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dockerfile_steps import Builder, Stage, StepError, needed, stages_of

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy/Dockerfile"
LARGEST = 330 << 20
"""Bytes of the CPU image's root, Debian included."""
NOT_IN_IMAGES = re.compile(r"(var/cache|var/lib/apt/lists|usr/share/(doc|man|locale|info))/")
"""What Debian's slim images lack and debootstrap leaves."""


def test_the_last_stage_is_the_cpu_one_and_none_is_left_over() -> None:
    stages = stages_of(DOCKERFILE)
    assert list(stages)[-1] == "cpu"
    assert set(needed(stages, "cpu")) | set(needed(stages, "gpu")) == set(stages)
    assert "gpu-packages" not in needed(stages, "cpu")
    assert "cpu-packages" not in needed(stages, "gpu")
    assert [stages[name][0][1] for name in ("debian", "server", "cpu", "gpu")] == [
        "debian:bookworm-slim",
        "debian",
        "server",
        "server",
    ]


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_compilers_stay_behind_and_the_process_is_nobody(target: str) -> None:
    stages = stages_of(DOCKERFILE)
    users = [v for n in ("debian", "server", target) for w, v in stages[n] if w == "USER"]
    assert users[-1] == "10001:10001"
    shipped = " ".join(v for n in ("debian", "server", target) for _, v in stages[n])
    assert not re.search(r"g\+\+|-dev|pip", shipped.replace(f"{target}-packages", ""))
    assert any(word == "HEALTHCHECK" for word, _ in stages["server"])


def test_the_extras_exist_and_the_files_are_sent() -> None:
    text = DOCKERFILE.read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(re.findall(r"\[(\w+)\$\{EXTRAS\}\]", text)) == {"cpu", "gpu"} <= set(extras)
    assert set(re.findall(r"EXTRAS=,(\w+)", text)) <= set(extras)
    ignored = (ROOT / "deploy/Dockerfile.dockerignore").read_text().splitlines()
    for line in re.findall(r"^COPY (?!--)(.*)$", text, re.M):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists()
            assert f"!{name}" in ignored
    for link in (ROOT / "src/snakekit").iterdir():
        if link.is_symlink():
            assert re.search(rf"^COPY {link.name} {link.name}$", text, re.M), link.name


def missing() -> str:
    """Return why the steps cannot be carried out here, or nothing."""
    if os.geteuid() != 0:
        return "chroot needs root"
    for tool in ("debootstrap", "chroot", "unshare", "mount"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        return "mounts are not allowed here"
    return ""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The CPU image's root. It lies in memory, since dpkg syncs every file."""
    if reason := missing():
        pytest.skip(reason)
    place = tmp_path_factory.mktemp("roots")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4g,mode=755", "tmpfs", str(place)], check=False
    )
    try:
        yield Builder(ROOT, DOCKERFILE, place).build("cpu")
    except StepError as error:
        if re.search(r"Temporary failure|Could not resolve|Couldn't download", str(error)):
            pytest.skip("no network")
        raise
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", str(place)], check=True)


def get(url: str, data: bytes | None = None) -> Any:
    with urllib.request.urlopen(url, data, timeout=5) as response:
        return json.load(response)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1500)
def test_the_steps_make_a_small_server_that_answers(
    image: Stage, free_port: Callable[[], int]
) -> None:
    sizes = {
        str(path.relative_to(image.root)): path.lstat().st_size
        for path in image.root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    size = sum(n for name, n in sizes.items() if not NOT_IN_IMAGES.match(name))
    packages = sum(n for name, n in sizes.items() if name.startswith("opt/snakekit/"))
    print(f"root {size / 2**20:.0f} MiB, of that packages {packages / 2**20:.0f} MiB")
    assert size < LARGEST
    for tool in ("g++", "gcc", "pip", "pip3", "cmake"):
        assert not list(image.root.glob(f"usr/bin/{tool}"))
        assert not list(image.root.glob(f"opt/snakekit/bin/{tool}"))
    port, private = str(free_port()), str(free_port())
    settings = {"SNAKEKIT_PORT": port, "SNAKEKIT_METRICS_PORT": private}
    assert image.run(["touch", "/records/x", "/tmp/x", "/opt/snakekit/x"]) != 0
    server = image.start([*image.entrypoint, *image.command], **settings)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert f":{port} mode=hybrid model=standard backend=cpu" in line, server.communicate()
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert re.search(r"^Uid:\s+10001\s+10001", status, re.M)
        end = time.monotonic() + 30
        while image.run(image.health, **settings) != 0:
            assert time.monotonic() < end
            time.sleep(0.2)
        body = {"x": 5, "y": 5}, {"x": 5, "y": 4}, {"x": 5, "y": 3}
        snake = {"id": "a", "health": 90, "body": body}
        board = {"width": 11, "height": 11, "snakes": [snake], "food": [], "hazards": []}
        asked = json.dumps({"game": {"id": "g"}, "turn": 3, "board": board, "you": snake})
        answer = get(f"http://127.0.0.1:{port}/move", asked.encode())
        assert answer["move"] in ("up", "left", "right")
        server.terminate()
        assert server.wait(20) == 0
        assert image.run(image.health, **settings) != 0
    finally:
        server.kill()
        server.communicate()
