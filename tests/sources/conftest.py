"""The sources need the dependencies of the agent."""

import pytest

pytest.importorskip("aiohttp", reason="sources need podstatus[agent]")
pytest.importorskip("yaml", reason="sources need podstatus[agent]")
