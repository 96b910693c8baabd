"""`snakekit arena`: games among any players, ratings, and how far from an order they are."""

import argparse
import asyncio
import importlib.util
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from snakekit.bench.arena.bout import BoutRecord
from snakekit.bench.arena.entrants import Entrant, parse_entrants, run_entrants
from snakekit.bench.arena.figures import figures, records
from snakekit.bench.arena.lanes import Crew, Hall
from snakekit.bench.arena.models import ModelSource, open_source
from snakekit.bench.arena.options import (
    ArenaConfig,
    check_paths,
    sprt_bounds,
    take_over,
)
from snakekit.bench.arena.page import page
from snakekit.bench.arena.schedule import Job, schedule
from snakekit.bench.arena.session import Played, Session, watched
from snakekit.bench.arena.sprt import Sprt
from snakekit.bench.arena.store import GAMES, REPLAYS, Plan, Store, StoreError, read_plan
from snakekit.bench.arena.summary import Summary, summarize
from snakekit.bench.arena.tables import show
from snakekit.bench.engine_client import EngineClient
from snakekit.bench.players import Player, PlayerError
from snakekit.bench.protocol import Customization
from snakekit.bench.report import environment, write_report
from snakekit.bench.series import check_players
from snakekit.core import StateError
from snakekit.runtime.options import OptionError, add_options, load

_PREFIX = "SNAKEKIT_ARENA_"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the players and the options."""
    parser.add_argument(
        "players",
        nargs="*",
        metavar="[NAME=]PLAYER",
        help="URL, random, greedy, search:MS, search:depth=N, search:nodes=N, "
        "policy:MODEL[@TEMPERATURE], "
        "equilibrium:MODEL[,plies=2][,draw=WORTH][,override=SEARCH][@TEMPERATURE], "
        "plans:MODEL:none|uniform|local[,turns=N], hybrid:MODEL:MS "
        "(searches with options after commas, such as mixing=off or weights=FILE); MODEL is "
        "an ONNX file, a checkpoint folder, or empty for the shipped one",
    )
    parser.add_argument(
        "--run",
        # `run` itself is what the command line calls.
        dest="run_folder",
        metavar="FOLDER",
        help="training run: all its checkpoints take part (default: none)",
    )
    add_options(parser, ArenaConfig)


@dataclass(frozen=True)
class _Arena:
    """An arena ready to be played."""

    config: ArenaConfig
    entrants: list[Entrant]
    sources: dict[str, ModelSource]
    hall: Hall
    jobs: list[Job]
    folder: Path
    plan: Plan

    @property
    def names(self) -> list[str]:
        return [entrant.name for entrant in self.entrants]


def run(args: argparse.Namespace) -> int:
    """Play, print the tables, write the files; return the exit code."""
    try:
        arena = _prepare(args)
        with Store(arena.folder, arena.plan, resume=arena.config.resume) as store:
            return _play(arena, store)
    except (OptionError, PlayerError, StateError, StoreError, OSError) as error:
        print(f"snakekit arena: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("snakekit arena: interrupted; finished games are kept", file=sys.stderr)
        return 1


def _check_packages() -> None:
    for package in ("scipy", "openskill"):
        if importlib.util.find_spec(package) is None:
            raise OptionError(
                f"ratings need the package {package}; run: pip install 'snakekit[bench]'"
            )


def _prepare(args: argparse.Namespace) -> _Arena:
    _check_packages()
    if args.resume and args.out:
        take_over(args, read_plan(Path(args.out)))
    config = load(ArenaConfig, args, env_prefix=_PREFIX)
    check_paths(config)
    checkpoints = run_entrants(Path(args.run_folder)) if args.run_folder else []
    texts = [*checkpoints, *args.players]
    entrants = parse_entrants(texts)
    _check_fit(config, entrants)
    rules = config.rules(config.size, max_turns=config.max_turns)
    sources = {e.name: open_source(e, config.backend) for e in entrants if e.has_model}
    looks = asyncio.run(_check_servers(entrants, config.timeout_ms))
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    folder = Path(config.out or f"runs/{stamp}-arena")
    hall = Hall(
        entrants={entrant.name: entrant for entrant in entrants},
        sources=sources,
        rules=rules,
        seed=config.seed,
        temperature=config.temperature,
        out=folder / REPLAYS if config.save_games else None,
        looks=looks,
    )
    plan = Plan(
        players=texts,
        fingerprints={e.name: text for e in entrants if (text := _fingerprint(e, sources))},
        options=config.deciding(),
    )
    jobs = schedule([e.name for e in entrants], config.size, config.games, config.seed)
    return _Arena(config, entrants, sources, hall, jobs, folder, plan)


def _fingerprint(entrant: Entrant, sources: Mapping[str, ModelSource]) -> str:
    """Return what tells the contents of the player's files, empty without any."""
    source, plan = sources.get(entrant.name), entrant.plan
    parts = [source.fingerprint if source else "", plan.fingerprint if plan else ""]
    return "+".join(part for part in parts if part)


def _check_fit(config: ArenaConfig, entrants: list[Entrant]) -> None:
    names = [entrant.name for entrant in entrants]
    if len(names) < config.size:
        raise OptionError(
            f"mode: {config.mode} needs at least {config.size} players, found {len(names)}; "
            "name players again for copies of them"
        )
    if config.ruleset == "solo":
        raise OptionError("ruleset: expected rules for several snakes, found 'solo'")
    if config.anchor and config.anchor not in names:
        raise OptionError(
            f"anchor: no player is called {config.anchor!r}, expected one of {', '.join(names)}"
        )
    if config.sprt:
        sprt_bounds(config.sprt)
        if len(names) != 2:
            raise OptionError(f"sprt: compares exactly 2 players, found {len(names)}")


async def _check_servers(entrants: list[Entrant], timeout_ms: int) -> dict[str, Customization]:
    players = [Player(e.name, e.spec, url=e.url) for e in entrants if e.kind == "http"]
    client = EngineClient(timeout_ms)
    try:
        await check_players(players, client)
    finally:
        await client.close()
    return {player.name: player.looks for player in players}


def _play(arena: _Arena, store: Store) -> int:
    config = arena.config
    sprt = Sprt(arena.names[0], *sprt_bounds(config.sprt)) if config.sprt else None
    done = {record.game for record in store.records}
    for record in store.records:
        if sprt is not None:
            sprt.add(record)
    pending = [job for job in arena.jobs if job.game not in done]
    decided = sprt is not None and sprt.state.verdict != "undecided"
    played = None
    if pending and not decided:
        crew = Crew(
            arena.hall,
            pending,
            threads=config.lanes,
            parallel=config.parallel,
            remote=config.remote,
        )
        session = Session(crew, store, sprt)
        played = watched(session, len(arena.jobs), len(done), Console(stderr=True))
    return _tell(arena, store.records, sprt, played)


def _tell(arena: _Arena, games: list[BoutRecord], sprt: Sprt | None, played: Played | None) -> int:
    config, console = arena.config, Console()
    stopped = played is not None and played.stopped
    if games:
        found = summarize(
            sorted(games, key=lambda record: record.game),
            arena.names,
            resamples=config.bootstrap,
            seed=config.seed,
            anchor=config.anchor,
            sprt=sprt.state if sprt is not None else None,
        )
        console.print(show(found))
        if played is not None and played.games:
            console.print(
                f"played {played.games} games in {played.seconds:.1f} s "
                f"({played.per_minute:.0f} a minute); kept in {arena.folder / GAMES}",
                style="dim",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
        _write(arena, found, played)
    if stopped:
        print(
            f"snakekit arena: stopped after {len(games)} of {len(arena.jobs)} games; go on with: "
            + _resume_command(arena),
            file=sys.stderr,
        )
    refused = sprt is not None and sprt.state.verdict != "first is stronger"
    return 1 if stopped or refused else 0


def _resume_command(arena: _Arena) -> str:
    config = arena.config
    words = ["snakekit", "arena", "--resume", "--out", str(arena.folder)]
    words += ["--games", str(config.games)]
    if config.save_games:
        words.append("--save-games")
    for name in ("sprt", "anchor", "json", "html"):
        if getattr(config, name):
            words += [f"--{name}", getattr(config, name)]
    return shlex.join(words)


def _write(arena: _Arena, found: Summary, played: Played | None) -> None:
    config = arena.config
    params: dict[str, Any] = {
        **config.deciding(),
        "players": [entrant.spec for entrant in arena.entrants],
        "threads": config.lanes,
        "parallel": config.parallel,
        "backend": config.backend,
        "bootstrap": config.bootstrap,
    }
    if config.json:
        results = figures(found, arena.entrants, played, params)
        write_report(Path(config.json), results, **records(found, arena.entrants))
    if config.html:
        path = Path(config.html)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(found, environment(), params), encoding="utf-8")
