"""The tests of the node need the dependencies of the agent."""

import pytest

for needed in ("aiohttp", "psutil"):
    pytest.importorskip(needed, reason="the node needs podstatus[agent]")

from tests.node.scene import NodeScene  # noqa: E402 - needs them


@pytest.fixture
def scene() -> NodeScene:
    return NodeScene()
