from collections.abc import AsyncIterator

import pytest
from fake_snake import FakeSnake


@pytest.fixture
async def snake() -> AsyncIterator[FakeSnake]:
    server = FakeSnake()
    await server.start()
    yield server
    await server.close()
