"""The node's tests need what the agent needs."""

import pytest

for needed in ("aiohttp", "psutil"):
    pytest.importorskip(needed, reason="the node needs podstatus[agent]")
