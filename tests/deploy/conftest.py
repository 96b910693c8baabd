"""What the tests of deploy/ share."""

import socket
from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def free_port() -> Callable[[], int]:
    """Give a function that finds a port of the loopback address that is free now."""

    def find() -> int:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            return int(found.getsockname()[1])

    return find
