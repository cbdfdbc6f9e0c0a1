"""The agent and its API server are killed and come back without an effect on pods."""

import json
import os
import signal
import time
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from tests.support.processes.agent_process import (
    Document,
    agent,
    condition,
    container,
    has_phase,
    make_pod,
    until,
    words_of,
)
from tests.support.processes.programs import api_server

pytestmark = pytest.mark.slow

PROBED = [{"name": "app", "image": "busybox", "readinessProbe": {"exec": {"command": ["true"]}}}]
RUNS_SECONDS = 10
"""Long enough to be seen running."""
ENDS = f"run={RUNS_SECONDS}s, exit=3"


def crashed_once(pod: Document) -> bool:
    return bool(pod["status"].get("containerStatuses") and container(pod)["restartCount"] == 1)


def wait_ended(pod: Document) -> None:
    """Come back when its container must have ended by itself."""
    wire = container(pod)["state"]["running"]["startedAt"]
    started = datetime.fromisoformat(wire).timestamp()
    until(lambda: time.time() > started + RUNS_SECONDS + 1)


def what_lasts(pod: Document) -> tuple[Document, Document]:
    """A flap of Ready would show in the time of its last change."""
    return container(pod), condition(pod, "Ready")


def test_pods_outlive_a_killed_agent(tmp_path: Path) -> None:
    with agent(tmp_path, "--no-samples") as started:
        cluster = started.start_ready()
        cluster.create(
            make_pod("ends", ENDS, restartPolicy="Never"),
            make_pod("crashed", "run=100ms, exit=1; run=forever"),
            make_pod("probed", "ready=-500ms+", containers=PROBED),
            make_pod("deleted", "stop=200ms"),
        )
        ends = cluster.wait_for("ends", has_phase("Running"))
        cluster.wait_for("crashed", crashed_once)
        before = [what_lasts(pod) for pod in cluster.wait_ready("crashed", "probed")]
        cluster.wait_ready("deleted")
        server = started.server()
        started.kill()
        server.wait(60)
        with api_server("--root-dir", str(started.root_dir / "apiserver")) as meanwhile:
            cluster.access.url = meanwhile.told.split()[1].rstrip(";")
            cluster.delete("deleted")
        wait_ended(ends)
        cluster = started.start_ready()
        ended = cluster.wait_for("ends", has_phase("Failed"))
        assert container(ended)["state"]["terminated"]["exitCode"] == 3
        assert container(ended)["containerID"] == container(ends)["containerID"]
        cluster.wait_gone("deleted")
        # By now it has said something about all of them.
        cluster.create(make_pod("later"))
        cluster.wait_ready("later")
        assert [what_lasts(pod) for pod in cluster.wait_ready("crashed", "probed")] == before
        assert "Traceback" not in started.log()


def test_a_killed_server_comes_back_and_hears_what_happened_meanwhile(tmp_path: Path) -> None:
    with agent(tmp_path, "--no-samples") as started:
        cluster = started.start_ready()
        cluster.create(
            make_pod("ends", ENDS, restartPolicy="Never"),
            make_pod("steady"),
        )
        ends = cluster.wait_for("ends", has_phase("Running"))
        (steady,) = cluster.wait_ready("steady")
        before, agent_before, server = cluster.node(), started.endpoints(), started.server()
        server.suspend()
        wait_ended(ends)
        server.kill()
        ended = cluster.wait_for("ends", has_phase("Failed"))
        assert container(ended)["state"]["terminated"]["exitCode"] == 3
        assert started.endpoints() == agent_before
        assert started.server().pid != server.pid
        after = cluster.node()
        assert before is not None
        assert after is not None
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert [what_lasts(pod) for pod in cluster.wait_ready("steady")] == [what_lasts(steady)]
        # The watch goes on, too.
        cluster.create(make_pod("later"))
        cluster.wait_ready("later")


def test_a_supervised_agent_is_back_and_its_node_says_why(tmp_path: Path) -> None:
    with agent(tmp_path, "--supervise", "--no-samples") as started:
        cluster = started.start_ready()
        cluster.create(make_pod("steady"))
        (steady,) = cluster.wait_ready("steady")
        killed = started.endpoints()["pid"]
        os.kill(killed, signal.SIGKILL)
        until(lambda: started.endpoints().get("pid", killed) != killed, started.log)
        cluster = started.cluster
        event = cluster.wait_for_event("AgentRestarted", started.node, "was killed by SIGKILL")
        assert event["type"] == "Warning"
        assert event["involvedObject"]["kind"] == "Node"
        (line,) = (started.root_dir / "restarts.jsonl").read_text().splitlines()
        assert json.loads(line)["signal"] == "SIGKILL"
        assert [what_lasts(pod) for pod in cluster.wait_ready("steady")] == [what_lasts(steady)]
        family = started.family()
        # Beside those that evaluate alert rules.
        evaluator = "podstatus.alerts.evaluator.child_main"
        assert len([it for it in family if evaluator not in words_of(it)]) == 3
        assert started.stop(signal.SIGINT) == 0
        psutil.wait_procs(family, 60)
        assert not [process for process in family if process.is_running()]
