"""The API servers that users' tests have, for ours."""

import pytest

pytest.importorskip("aiohttp", reason="the client needs podstatus[agent]")

from podstatus.testing.apiserver import api_server, api_server_process

__all__ = ["api_server", "api_server_process"]
