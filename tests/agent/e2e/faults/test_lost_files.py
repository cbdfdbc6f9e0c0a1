"""Files of the root directory that are deleted while the agent runs are reported and recreated."""

import time
from pathlib import Path

import pytest

from podstatus.observe.history.sqlite_store import open_history_reader
from tests.support.processes.agent_process import agent, make_pod, until

pytestmark = pytest.mark.slow


def moments(history: Path) -> int:
    with open_history_reader(history) as reader:
        return reader.count()


def test_a_deleted_history_begins_again_and_health_says_if_it_cannot(tmp_path: Path) -> None:
    with agent(tmp_path, "--no-samples") as own:
        cluster = own.start_ready()
        cluster.create(make_pod("web"))
        cluster.wait_ready("web")
        history = own.root_dir / "history.db"
        alerts = own.root_dir / "alerts.db"
        until(lambda: moments(history), own.log)
        history.unlink()
        alerts.unlink()
        until(lambda: history.exists() and alerts.exists(), own.log)
        cluster.wait_for_event("HistoryLost", own.node, f"{history} was deleted")
        assert own.health("/history") == (200, "ok")
        history.unlink()
        history.mkdir()
        until(lambda: own.health("/history")[0] == 500, own.log)
        assert "not a regular file" in own.health("/history")[1]
        began = time.monotonic()
        own.stop()
        assert time.monotonic() - began < 5
