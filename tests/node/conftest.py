"""The tests of the node need the dependencies of the agent."""

import pytest

for needed in ("aiohttp", "psutil"):
    pytest.importorskip(needed, reason="the node needs podstatus[agent]")
