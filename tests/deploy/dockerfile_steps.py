"""Carries out a Dockerfile without a container engine: roots from debootstrap, steps by chroot.

Enough of the language for `deploy/Dockerfile`: FROM a Debian image or a stage, ARG, ENV, RUN,
COPY (also from a stage), WORKDIR, USER, EXPOSE, HEALTHCHECK, ENTRYPOINT and CMD. Anything else is
an error.
"""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

from dockerfile_parse import DockerfileParser

BASE_IMAGE = re.compile(r"debian:(\w+)-slim")
START = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
# How a build reaches the package sources from here; a container engine hands such things in too.
PASSED = re.compile(r"(?i)(https?|no|all)_proxy|pip_(index_url|default_timeout|retries)")
HOST_FILES = ("/etc/resolv.conf", "/etc/hosts")
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
# Not where the package ca-certificates would write its own.
PASSED_AUTHORITIES = "/etc/ssl/host.crt"


class StepError(RuntimeError):
    """A step failed; the message has its last lines."""


@dataclass
class Stage:
    """A stage: where its files are and what it has declared."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: dict(START))
    arguments: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "0:0"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)

    def run(self, command: list[str], **environment: str) -> int:
        """Run a command to its end and return its exit code."""
        process = self.start(command, **environment)
        process.communicate(timeout=60)
        return process.returncode

    def start(self, command: list[str], **environment: str) -> "subprocess.Popen[str]":
        """Start a command as a container of this stage would, its files for reading only."""
        variables = self.environment | environment
        return subprocess.Popen(
            _chrooted(self.root, self.user, self.folder, command, read_only=True),
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def stages_of(dockerfile: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the instructions of every stage by its name, its FROM first."""
    parser = DockerfileParser(path=str(dockerfile), cache_content=True)
    found: dict[str, list[tuple[str, str]]] = {}
    steps: list[tuple[str, str]] = []
    for entry in parser.structure:
        word, value = entry["instruction"], entry["value"]
        if word == "COMMENT":
            continue
        if word == "FROM":
            base, _, name = value.partition(" AS ")
            steps = found[name or str(len(found))] = [(word, base)]
        else:
            steps.append((word, value))
    return found


def needed(stages: dict[str, list[tuple[str, str]]], target: str) -> list[str]:
    """Return the stages that `target` needs, in the order of the file, itself included."""
    wanted, rest = set(), [target]
    while rest:
        name = rest.pop()
        wanted.add(name)
        for word, value in stages[name]:
            source = re.match(r"--from=(\S+)", value) if word == "COPY" else None
            for other in [value] if word == "FROM" else [source[1]] if source else []:
                rest += [other] if other in stages and other not in wanted else []
    return [name for name in stages if name in wanted]


class Builder:
    """Builds stages below one folder, which had better be in memory: dpkg syncs all the time."""

    def __init__(self, context: Path, dockerfile: Path, place: Path) -> None:
        self._context, self._place = context, place
        self._stages = stages_of(dockerfile)
        self._built: dict[str, Stage] = {}

    def build(self, target: str) -> Stage:
        """Carry out all that `target` needs.

        Raises:
            StepError: a step failed.
        """
        for name in needed(self._stages, target):
            self._built[name] = self._stage(name)
            for word, value in self._stages[name][1:]:
                self._step(self._built[name], word, value)
        return self._built[target]

    def _stage(self, name: str) -> Stage:
        base = self._stages[name][0][1]
        root = self._place / name
        if base in self._built:
            subprocess.run(["cp", "-a", str(self._built[base].root), str(root)], check=True)
            return replace(
                self._built[base],
                root=root,
                environment=dict(self._built[base].environment),
                arguments={},
                ports=list(self._built[base].ports),
            )
        image = BASE_IMAGE.fullmatch(base)
        if image is None:
            raise StepError(f"FROM {base}: not a Debian image")
        debootstrap(image[1], root)
        return Stage(root)

    def _step(self, stage: Stage, word: str, value: str) -> None:
        match word:
            case "ARG":
                name, _, default = value.partition("=")
                stage.arguments[name] = default
            case "ENV":
                pairs = re.findall(r"(\w+)=(\S+)", value)
                stage.environment |= {k: self._expand(stage, v) for k, v in pairs}
            case "WORKDIR":
                stage.folder = value
                (stage.root / value.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "USER":
                stage.user = "0:0" if value == "root" else value
            case "RUN":
                self._run(stage, value)
            case "COPY":
                self._copy(stage, value)
            case "EXPOSE":
                stage.ports += [int(port) for port in value.split()]
            case "HEALTHCHECK":
                stage.health = json.loads(value.partition("CMD ")[2])
            case "ENTRYPOINT":
                stage.entrypoint = json.loads(value)
            case "CMD":
                stage.command = json.loads(value)
            case _:
                raise StepError(f"{word}: not known here")

    def _expand(self, stage: Stage, text: str) -> str:
        return re.sub(r"\$(\w+)", lambda name: stage.environment.get(name[1], ""), text)

    def _run(self, stage: Stage, script: str) -> None:
        passed = {name: value for name, value in os.environ.items() if PASSED.fullmatch(name)}
        passed["DEBIAN_FRONTEND"] = "noninteractive"
        if Path(AUTHORITIES).is_file():
            passed["PIP_CERT"] = PASSED_AUTHORITIES
        command = _chrooted(stage.root, stage.user, stage.folder, ["/bin/sh", "-c", script])
        done = subprocess.run(
            command,
            env=stage.environment | stage.arguments | passed,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        if done.returncode:
            raise StepError(f"RUN {script}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")

    def _copy(self, stage: Stage, value: str) -> None:
        words = value.split()
        source, owner = self._context, None
        while words[0].startswith("--"):
            option, _, given = words.pop(0).partition("=")
            if option != "--from":
                raise StepError(f"COPY {option}: not known here")
            source, owner = self._built[given].root, given
        *sources, target = words
        into = stage.root / os.path.join(stage.folder, target).lstrip("/")
        for name in sources:
            path = source / name.lstrip("/")
            place = into / path.name if target.endswith("/") else into
            if owner is not None:
                place.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", "-a", str(path), str(place)], check=True)
            elif path.is_dir():
                shutil.copytree(
                    path, place, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)


def _chrooted(
    root: Path, user: str, folder: str, command: list[str], *, read_only: bool = False
) -> list[str]:
    """Return the command as it runs in `root`, with its mounts seen by nobody else."""
    sealed = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && ' if read_only else ""
    inner = (
        sealed + 'mount --bind /proc "$0/proc" && mount --bind /dev "$0/dev" && cd "$0" && '
        'exec chroot --userspec="$1" "$0" /bin/sh -c \'cd "$0" && exec "$@"\' "${@:2}"'
    )
    return ["unshare", "--mount", "bash", "-c", inner, str(root), user, folder, *command]


def mirror() -> str:
    """Return where this machine gets Debian's packages."""
    for path in sorted(Path("/etc/apt").glob("sources.list*")):
        for file in [path] if path.is_file() else sorted(path.iterdir()):
            text = file.read_text()
            found = re.search(r"^(?:URIs:|deb)\s+(?:\[.*\]\s+)?(\S*/debian)/?\s", text, re.M)
            if found:
                return found[1]
    return "http://deb.debian.org/debian"


def debootstrap(suite: str, root: Path) -> None:
    """Make a small Debian with this machine's package sources.

    Raises:
        StepError: it cannot be had.
    """
    command = ["debootstrap", "--variant=minbase", suite, str(root), mirror()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise StepError(f"debootstrap: {done.stdout[-800:]}{done.stderr[-800:]}")
    handed = {name: name for name in HOST_FILES} | {AUTHORITIES: PASSED_AUTHORITIES}
    for name, inside in handed.items():
        if Path(name).is_file():
            target = root / inside.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, target)
