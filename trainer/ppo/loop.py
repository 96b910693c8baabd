"""A run from its start, or where it was, to its end: logs, checkpoints, time and stopping."""

import time
from collections.abc import Callable

import torch

from snakekit.trainer.generate import Cancelled
from snakekit.trainer.ppo.learner import Group
from snakekit.trainer.ppo.training import Ppo
from snakekit.trainer.rounds import Say


def train(
    run: Ppo,
    *,
    log: Callable[[int, dict[str, float]], None],
    say: Say,
    save: Callable[[Ppo], object],
    stop: Callable[[], bool],
) -> bool:
    """Train until all iterations are made, the time is up or `stop()`; return whether done.

    The state is saved at the start, every `checkpoint_seconds`, when stopped and at the end. A
    stop gives up the iteration in progress.
    """
    config, group, begun = run.config, run.group, time.monotonic()
    save(run)
    saved, ended = time.monotonic(), False
    # Members of a group may only stop where all of them do.
    within = stop if group.size == 1 else lambda: False
    while not run.done:
        ended = 0 < config.minutes * 60 <= time.monotonic() - begun
        if _agreed(group, ended or stop()):
            break
        try:
            figures = run.iterate(within, say)
        except Cancelled:
            break
        except FloatingPointError as error:
            say(run.iteration, str(error), "alarm")
            save(run)
            raise
        measured_now = config.measure_every and run.iteration % config.measure_every == 0
        if (measured_now or (config.measure_every and run.done)) and group.rank == 0:
            figures |= run.measure()
        log(run.iteration, figures)
        late = time.monotonic() - saved >= config.checkpoint_seconds
        if not run.done and _agreed(group, late):
            save(run)
            saved = time.monotonic()
    save(run)
    return run.done or ended


def _agreed(group: Group, wanted: bool) -> bool:
    """Return whether the first of the group wants it, the same answer for all."""
    return float(group.total(torch.tensor([float(wanted and group.rank == 0)]))) > 0
