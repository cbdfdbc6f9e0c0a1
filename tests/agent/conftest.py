"""An API server in memory for the tests of a whole node or observer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from podstatus.testing.apiserver import ApiServerThread, running_api_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServerThread]:
    with running_api_server(tmp_path / "server") as running:
        yield running
