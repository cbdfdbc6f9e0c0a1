"""Fixtures of the worker tests."""

from collections.abc import AsyncIterator

import pytest

from tests.support.node_in_memory import NodeInMemory


@pytest.fixture
async def node() -> AsyncIterator[NodeInMemory]:
    """A whole node in virtual time, without pods."""
    async with NodeInMemory() as node:
        yield node
