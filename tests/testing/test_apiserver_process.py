"""A server in a process of its own, for tests of others."""

from pathlib import Path

import pytest

from podstatus.testing.apiserver import ApiServerProcess


def test_a_server_that_runs_is_not_started_twice(tmp_path: Path) -> None:
    process = ApiServerProcess(tmp_path)
    access = process.start()
    try:
        with pytest.raises(RuntimeError, match="is running already; stop"):
            process.start()
        assert access.request("GET", "/api/v1/namespaces/default")[0] == 200
    finally:
        process.stop()
