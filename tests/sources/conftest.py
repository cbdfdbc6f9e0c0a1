"""Sources need more than the library."""

import pytest

pytest.importorskip("aiohttp", reason="sources need podstatus[agent]")
pytest.importorskip("yaml", reason="sources need podstatus[agent]")
