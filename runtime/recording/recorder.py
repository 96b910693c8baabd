"""The server's side of recording: hands events to a process, and drops what that cannot take."""

import asyncio
import contextlib
import fcntl
import logging
import sys
from asyncio.subprocess import PIPE, Process

import msgspec

from snakekit.runtime.api import Request
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.decided import decided
from snakekit.runtime.engine import Answer, Engine
from snakekit.runtime.recording import columns
from snakekit.runtime.recording.event import Event, Status, pack

log = logging.getLogger("snakekit.record")

QUEUE_BYTES = 1 << 20
"""What waits here for the process; a pipe of the same size is between them."""
OPEN_S = 20.0
CLOSE_S = 3.0
RESTART_S = 1.0
LONGEST_RESTART_S = 60.0
_DAY_S = 86_400.0
_status_decoder = msgspec.json.Decoder(Status)


class RecorderError(RuntimeError):
    """Nothing can be recorded; one sentence that names the option."""


class Recorder:
    """Owns the recording process and starts it again should it end."""

    def __init__(self, config: ServerConfig, engine: Engine) -> None:
        """Prepare to record into `config.record`."""
        self._config, self._engine = config, engine
        self._metrics = engine.metrics
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._told = Status()
        self._closing = False

    async def open(self) -> None:
        """Start the process and wait until it has the folder.

        Raises:
            RecorderError: pyarrow is missing or the folder cannot be used.
        """
        if not columns.available():
            raise RecorderError(f"record: {columns.INSTALL}")
        try:
            async with asyncio.timeout(OPEN_S):
                await self._start()
        except TimeoutError:
            await self._end_process()
            raise RecorderError(
                f"record: {self._config.record} was not ready within {OPEN_S:g} s"
            ) from None
        self._task = asyncio.create_task(self._keep_running())

    async def close(self) -> None:
        """Let the process finish what it has, but no longer than `CLOSE_S`."""
        self._closing = True
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=CLOSE_S)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._end_process()

    def moved(self, body: bytes, asked: Request, answer: Answer) -> None:
        """Record one answered `/move`, without waiting."""
        row = decided(asked, answer, self._engine.card, self._engine.backend_info)
        self._send(
            Event(
                kind="move",
                game=asked.game.id,
                you=asked.you.id,
                turn=asked.turn,
                body=body,
                decided=row,
            )
        )

    def ended(self, body: bytes, asked: Request) -> None:
        """Record one `/end`, without waiting."""
        self._send(
            Event(kind="end", game=asked.game.id, you=asked.you.id, turn=asked.turn, body=body)
        )

    def _send(self, event: Event) -> None:
        stdin = self._process.stdin if self._process is not None else None
        if stdin is None or stdin.is_closing():
            self._metrics.records_dropped["no_writer"].inc()
        elif stdin.transport.get_write_buffer_size() > QUEUE_BYTES:
            self._metrics.records_dropped["queue_full"].inc()
        else:
            stdin.write(pack(event))

    async def _start(self) -> None:
        config = self._config
        self._told = Status()
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "snakekit.runtime.recording.writer",
            config.record,
            str(config.record_limit_mb << 20),
            str(config.record_days * _DAY_S),
            str(config.game_ttl_s),
            stdin=PIPE,
            stdout=PIPE,
            # Ctrl-C is for the server, which then closes the pipe.
            start_new_session=True,
        )
        assert process.stdin is not None
        _widen(process.stdin)
        status = await self._read_status()
        if status is None or status.refused:
            why = status.refused if status is not None else "the recording process ended at once"
            await self._end_process()
            raise RecorderError(
                f"record: {config.record} cannot be used ({why}); expected a folder of its own "
                "that can be written"
            )

    async def _read_status(self) -> Status | None:
        """Return the next status, None when the process has ended; take its counts in."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            return None
        status = _status_decoder.decode(line)
        metrics, told = self._metrics, self._told
        metrics.recorded_games.inc(status.games - told.games)
        metrics.records_failed.inc(status.failed - told.failed)
        metrics.record_bytes.set(status.bytes)
        if status.failed > told.failed and not told.failed:
            log.warning("records cannot be written", extra={"facts": {"why": status.error}})
        self._told = status
        return status

    async def _keep_running(self) -> None:
        pause = RESTART_S
        while True:
            while self._process is not None and await self._read_status() is not None:
                pause = RESTART_S
            if self._closing:
                return
            await self._end_process()
            log.warning("nothing is recorded", extra={"facts": {"again_in_s": pause}})
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_RESTART_S)
            with contextlib.suppress(RecorderError, OSError):
                await self._start()

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        if process.stdout is not None:
            await process.stdout.read()
        await process.wait()


def _widen(stdin: asyncio.StreamWriter) -> None:
    pipe = stdin.get_extra_info("pipe")
    # Where the system does not allow it, the usual 64 KiB have to do.
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, QUEUE_BYTES)
