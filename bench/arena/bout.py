"""One game of an arena: its board, its seats, and the record that is kept of it."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from snakekit.bench.arena.entrants import Entrant
from snakekit.bench.arena.minds import Ask
from snakekit.bench.arena.schedule import Job
from snakekit.bench.gamefile import GameWriter
from snakekit.bench.match import GameRules, derive_seed
from snakekit.bench.palette import PALETTE
from snakekit.bench.protocol import Customization, Seat, Turn, game_object
from snakekit.core import State

_UP = 0
_TURN_STRIDE = 0x9E3779B1
_MASK63 = (1 << 63) - 1


class BoutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A finished game as a line of `games.jsonl`; lists are by seat."""

    game: int
    block: int
    rotation: int
    seed: int
    """Of the start, shared by the block."""
    seats: list[str]
    places: list[int]
    """1 is best; equal numbers are a tie."""
    died: list[int]
    """Turn of death, 0 for those alive at the end."""
    causes: list[str]
    lengths: list[int]
    turns: int
    cut: bool = False
    """Ended by the limit of turns."""
    faults: list[int] = []
    """Moves not answered properly over HTTP; empty in local games."""
    file: str = ""


def places_of(died: Sequence[int]) -> list[int]:
    """Return the place of every seat from the turns of death (0: alive, which beats all)."""
    ranks = [turn or float("inf") for turn in died]
    return [1 + sum(other > own for other in ranks) for own in ranks]


class Bout:
    """A game in progress, driven from outside: ask `asks`, give `play` the answers."""

    def __init__(
        self,
        job: Job,
        entrants: Mapping[str, Entrant],
        rules: GameRules,
        seed: int,
        *,
        out: Path | None = None,
        looks: Mapping[str, Customization] | None = None,
    ) -> None:
        """Set the board up.

        Args:
            job: which game.
            entrants: the players by name.
            rules: what all games share.
            seed: the arena's seed.
            out: folder for the game file, or None.
            looks: of servers, by name.
        """
        self.job, self.rules = job, rules
        self.entrants = [entrants[name] for name in job.seats]
        self._start_seed = derive_seed(seed, "board", job.block)
        self._map_seed = derive_seed(seed, "food", job.block)
        ids = [f"{job.game}-{seat}" for seat in range(len(job.seats))]
        self.state = State.new_game(
            rules.width, rules.height, ids, self._start_seed, rules.settings
        )
        self._keys = [derive_seed(seed, "player", job.game, seat) for seat in range(len(ids))]
        self._searchers = [e.plan.searcher() if e.plan else None for e in self.entrants]
        self._last = [_UP] * len(ids)
        self.faults = [0] * len(ids)
        self.game_id = str(uuid.UUID(int=derive_seed(seed, "id", job.game)))
        looks = looks or {}
        self.seats = [
            Seat(id, name, looks.get(name) or Customization(color=PALETTE[seat % len(PALETTE)]))
            for seat, (id, name) in enumerate(zip(ids, job.seats, strict=True))
        ]
        self.object = game_object(
            game_id=self.game_id,
            ruleset=rules.ruleset,
            map_name=rules.map,
            timeout_ms=rules.timeout_ms,
            settings=rules.settings,
        )
        stem = f"game-{job.game + 1:06d}"
        self._writer = GameWriter(out, stem, self.object) if out is not None else None
        self._write_turn()

    @property
    def over(self) -> bool:
        """Whether the game has ended, by the rules or by the limit of turns."""
        return self.state.game_over() or self.cut

    @property
    def cut(self) -> bool:
        """Whether the limit of turns ends the game here."""
        limit = self.rules.max_turns
        return bool(limit) and self.state.turn >= limit and not self.state.game_over()

    def asks(self) -> list[Ask]:
        """Return the living seats of local players, each with this turn's random bits."""
        state, stride = self.state, self.state.turn * _TURN_STRIDE
        return [
            Ask(
                self.entrants[seat],
                state,
                seat,
                (self._keys[seat] + stride) & _MASK63,
                self._searchers[seat],
            )
            for seat in state.living()
            if self.entrants[seat].kind != "http"
        ]

    def play(self, moves: Mapping[int, int]) -> None:
        """Play one turn; a living seat without a move goes where it went before."""
        for seat, move in moves.items():
            self._last[seat] = move
        self.state.advance(self._last, self._map_seed)
        self._write_turn()

    def _write_turn(self) -> None:
        if self._writer is not None:
            self._writer.turn(Turn(self.object, self.state, self.seats).recorded())

    def abort(self) -> None:
        """Give the game up; what was written of it is kept as an aborted game."""
        if self._writer is not None:
            self._writer.abort()
            self._writer = None

    def finish(self) -> BoutRecord:
        """Return the record of the finished game and close its file."""
        snakes = self.state.snakes()
        died = [s.eliminated_on_turn if s.eliminated_cause else 0 for s in snakes]
        places = places_of(died)
        file = ""
        if self._writer is not None:
            first = [seat for seat, place in enumerate(places) if place == 1]
            won = self.seats[first[0]] if len(first) == 1 else Seat("", "")
            file = self._writer.finish(won.id, won.name, is_draw=len(first) > 1).name
            self._writer = None
        remote = any(entrant.kind == "http" for entrant in self.entrants)
        return BoutRecord(
            game=self.job.game,
            block=self.job.block,
            rotation=self.job.rotation,
            seed=self._start_seed,
            seats=list(self.job.seats),
            places=places,
            died=died,
            causes=[s.eliminated_cause for s in snakes],
            lengths=[len(s.body) for s in snakes],
            turns=self.state.turn,
            cut=self.cut,
            faults=list(self.faults) if remote else [],
            file=file,
        )
