"""Fixtures of the server tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.web.node_server import Scene, serve


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """A running server with one pod and the default options."""
    async with serve(tmp_path) as scene:
        yield scene
