"""`snakekit serve`: options in, exit code out."""

import argparse
import asyncio
import logging
import sys
import time
from pathlib import Path

import msgspec

from snakekit.runtime.config import ServerConfig
from snakekit.runtime.options import OptionError, add_options, load

FAILED = 2


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message and the record's `facts`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "facts", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


class TextFormatter(logging.Formatter):
    """Words to read: time, level, message and the record's `facts` as `key=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and below it the traceback if there is one."""
        moment = time.strftime("%H:%M:%S", time.localtime(record.created))
        words = [moment, record.levelname.lower().ljust(7), record.getMessage()]
        words += [f"{key}={value}" for key, value in getattr(record, "facts", {}).items()]
        # Ids come from outside: a line break in one must not look like another line.
        line = "".join(c if c.isprintable() else "?" for c in " ".join(words))
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `snakekit serve`."""
    parser.add_argument("--config", metavar="FILE", help="TOML file of options, keys as below")
    add_options(parser, ServerConfig)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal; return 0, or 2 after one line on stderr if that cannot be."""
    try:
        config = load(ServerConfig, args, toml=Path(args.config) if args.config else None)
    except OptionError as error:
        return _refuse(error)
    _set_up_logs(config)
    from prometheus_client import disable_created_metrics

    from snakekit.runtime.backends import BackendError
    from snakekit.runtime.process import serve
    from snakekit.runtime.recording.recorder import RecorderError

    # The time of creation of every child would double what Prometheus has to store.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    try:
        _check_early(config)
        asyncio.run(serve(config))
    except (BackendError, RecorderError) as error:
        return _refuse(error)
    except KeyboardInterrupt:
        pass
    return 0


def _refuse(error: Exception) -> int:
    print("snakekit serve: " + " ".join(str(error).split()), file=sys.stderr, flush=True)
    return FAILED


def _check_early(config: ServerConfig) -> None:
    """Refuse, before any port opens, what can be known without loading the model.

    Raises:
        BackendError: see `load_backend`.
    """
    if config.mode == "search" or config.backend == "random":
        return
    from snakekit.runtime.backends import check_installed
    from snakekit.runtime.models import find_model

    check_installed(config.backend, config)
    if config.backend != "triton":
        find_model(config.model)


def _set_up_logs(config: ServerConfig) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if config.log_format == "json" else TextFormatter())
    logger = logging.getLogger()
    logger.handlers = [handler]
    logger.setLevel(logging.WARNING)
    logging.getLogger("snakekit").setLevel(config.log_level.upper())
    # aiohttp logs a traceback for every broken transfer; our own errors are logged before.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
