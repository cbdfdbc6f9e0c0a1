"""`podstatus run` on a custom runtime: pods are jobs that wait in a queue."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_system import BatchSystem

from tests.support.processes.agent_process import (
    ENVIRONMENT,
    AgentProcess,
    Cluster,
    Document,
    agent,
    condition,
    container,
    has_phase,
    until,
)

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[4] / "examples"
RUNTIME = ("--runtime", "own_runtime:BatchRuntime", "--no-samples")


@pytest.fixture
def batch_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentProcess]:
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", str(EXAMPLES))
    with agent(tmp_path / "agent", *RUNTIME) as made:
        yield made
    batch = batch_of(made)
    for job in batch.jobs():
        batch.send(job.number, signal.SIGKILL)


def batch_of(made: AgentProcess) -> BatchSystem:
    """The batch system itself, as its administrator sees it."""
    return BatchSystem(made.root_dir / "runtime" / "batch")


def make_pod(name: str, *command: str, **spec: Any) -> Document:
    containers = [{"name": "app", "image": "none", "command": command}]
    grace = {"terminationGracePeriodSeconds": 1}
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"containers": containers, **grace, **spec}}


def waits(reason: str) -> Any:
    def look(pod: Document) -> bool:
        (status,) = pod["status"].get("containerStatuses") or [{"state": {}}]
        return bool(status["state"].get("waiting", {}).get("reason") == reason)

    return look


def wait_running(cluster: Cluster, name: str) -> Document:
    return container(cluster.wait_for(name, has_phase("Running")))


def test_a_pod_waits_in_the_queue_and_runs_when_there_is_a_slot(
    batch_agent: AgentProcess,
) -> None:
    cluster = batch_agent.start_ready()
    batch = batch_of(batch_agent)
    for name in ("first", "second"):
        cluster.create(make_pod(name, "sleep", "600"))
        assert wait_running(cluster, name)["containerID"].startswith("batch://")
    cluster.create(make_pod("third", "sleep", "600"))
    third = cluster.wait_for("third", waits("Queued"))
    assert third["status"]["phase"] == "Pending"
    message = container(third)["state"]["waiting"]["message"]
    assert message == "job 3 waits for one of 2 slots"
    cluster.create(make_pod("fourth", "sleep", "600"))
    cluster.wait_for("fourth", waits("Queued"))
    cluster.delete("fourth")
    cluster.wait_gone("fourth")
    assert [job.state.value for job in batch.jobs()] == ["running", "running", "queued"]
    cluster.delete("first")
    running = wait_running(cluster, "third")
    assert (running["containerID"], running["restartCount"]) == ("batch://3", 0)
    cluster.wait_gone("first")
    until(lambda: [job.number for job in batch.jobs()] == [2, 3], batch.jobs)


def test_a_job_that_ended_without_an_agent_is_reported_and_queued_again(
    batch_agent: AgentProcess, tmp_path: Path
) -> None:
    cluster = batch_agent.start_ready()
    batch = batch_of(batch_agent)
    go = tmp_path / "go"
    script = 'while [ ! -e "$0" ]; do sleep 0.05; done; exit 7'
    cluster.create(make_pod("once", "sh", "-c", script, str(go), restartPolicy="Never"))
    cluster.create(make_pod("again", "sh", "-c", script, str(go)))
    wait_running(cluster, "once")
    wait_running(cluster, "again")
    batch_agent.kill()
    go.touch()
    until(lambda: all(job.is_finished for job in batch.jobs()), batch.jobs)
    ends = {f"batch://{job.number}": job.ended for job in batch.jobs()}
    cluster = batch_agent.start_ready()
    once = container(cluster.wait_for("once", has_phase("Failed")))
    ended = once["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], once["restartCount"]) == (7, "Error", 0)
    assert ended["containerID"] in ends
    again = cluster.wait_for("again", lambda pod: container(pod)["restartCount"])
    assert container(again)["lastState"]["terminated"]["exitCode"] == 7
    # It runs for a moment, and ends again.
    assert (condition(again, "Ready")["status"] == "True") is container(again)["ready"]
    cluster.wait_for("again", lambda pod: condition(pod, "Ready")["status"] == "False")
