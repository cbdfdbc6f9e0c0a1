"""The end of a job as the bridge of the tutorial reports it."""

import asyncio
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from bridge import Bridge

import podstatus as ps
from podstatus.testing.clock import FakeClock
from podstatus.testing.in_memory_pod_api import InMemoryPodApi

SECONDS = 60.0
OBEYS = ["sh", "-c", "touch up; exec sleep 600"]


class Node:
    """A bridge with one pod, and an API server in memory."""

    def __init__(self, spool: Path, *command: str) -> None:
        self.spool = spool
        document: dict[str, Any] = {
            "metadata": {"name": "job", "namespace": "default", "uid": "uid-job"},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "command": list(command)}],
            },
        }
        self.pods = ps.PodManager()
        self.api = InMemoryPodApi(ps.from_document(document, ps.Pod), watcher=self.pods)
        self.start()

    def start(self) -> None:
        """Start a bridge, the first one or the next."""
        self.bridge = Bridge(self.spool)
        self.manager = ps.StatusManager(
            self.api, self.pods, self.bridge, outbox=self.bridge.outbox, clock=FakeClock()
        )

    def report_until(self, state: str) -> Any:
        """Report until the container has this state; return that."""
        end = time.monotonic() + SECONDS
        while True:
            self.bridge.report(self.manager, self.pods)
            status = self.manager.pod_status("uid-job")
            assert status is not None
            assert status.container_statuses
            if found := getattr(status.container_statuses[0].state, state):
                return found
            assert time.monotonic() < end, status

    @property
    def phase(self) -> str:
        status = self.manager.pod_status("uid-job")
        assert status is not None
        return status.phase

    @property
    def stored(self) -> ps.PodStatus:
        """What the API server has."""
        pod = self.api.pod("default", "job")
        assert pod is not None
        return pod.status

    def close(self) -> None:
        for job in self.bridge.batch.jobs():
            self.bridge.batch.send(job.number, signal.SIGKILL)


@pytest.fixture
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path, *getattr(request, "param", OBEYS))
    yield node
    node.close()


@pytest.mark.parametrize(
    ("node", "phase", "exit_code", "reason"),
    [
        (["true"], "Succeeded", 0, "Completed"),
        (["sh", "-c", "exit 3"], "Failed", 3, "Error"),
        (["sh", "-c", "kill -KILL $$"], "Failed", 137, "Error"),
        (["/no/such/program"], "Failed", 128, "Error"),
        ([], "Failed", 128, "Error"),
    ],
    indirect=["node"],
)
def test_the_end_of_a_job_is_the_status_of_its_pod(
    node: Node, phase: str, exit_code: int, reason: str
) -> None:
    ended = node.report_until("terminated")
    assert (node.phase, ended.exit_code, ended.reason) == (phase, exit_code, reason)


def test_a_cancelled_job_is_reported_as_such(node: Node) -> None:
    node.report_until("running")
    node.bridge.batch.cancel(1)
    ended = node.report_until("terminated")
    assert (node.phase, ended.exit_code, ended.reason) == ("Failed", 143, "Cancelled")


def test_a_job_that_waits_is_queued_and_may_be_cancelled(node: Node) -> None:
    others = [node.bridge.batch.submit(str(number), OBEYS, {}).number for number in range(2)]
    assert node.report_until("waiting").reason == "Queued"
    node.bridge.batch.cancel(others[-1] + 1)
    ended = node.report_until("terminated")
    assert (node.phase, ended.exit_code, ended.reason) == ("Failed", 143, "Cancelled")


def test_a_job_that_vanished_has_failed(node: Node) -> None:
    node.report_until("running")
    shutil.move(node.spool / "jobs" / "1", node.spool / "gone")
    ended = node.report_until("terminated")
    shutil.move(node.spool / "gone", node.spool / "jobs" / "1")  # to be killed
    assert (node.phase, ended.exit_code) == ("Failed", 137)
    assert ended.reason == "ContainerStatusUnknown"


def test_a_job_whose_exit_was_not_seen_has_failed(node: Node) -> None:
    node.report_until("running")
    (runner,) = [
        process
        for process in psutil.process_iter(["cmdline"])
        if {"--run", str(node.spool)} <= set(process.info["cmdline"] or ())
    ]
    (job,) = runner.children()
    runner.kill()
    ended = node.report_until("terminated")
    job.kill()
    assert (node.phase, ended.exit_code) == ("Failed", 137)
    assert ended.reason == "ContainerStatusUnknown"


def test_a_job_is_submitted_once_by_all_bridges(node: Node) -> None:
    node.bridge.report(node.manager, node.pods)
    node.start()  # the first died before it sent a status
    node.report_until("running")
    assert [job.comment for job in node.bridge.batch.jobs()] == ["uid-job"]


async def test_an_end_is_delivered_by_the_next_bridge_without_a_record_of_the_job(
    node: Node,
) -> None:
    """The API server is down when the job ends; the batch system forgets the job meanwhile."""
    node.report_until("running")
    node.api.fail("patch", "default", "job", code=503, times=1000)
    node.bridge.batch.cancel(1)
    node.report_until("terminated")
    running = asyncio.create_task(node.manager.run())
    while not list((node.spool / "outbox").glob("*.json")):
        node.bridge.report(node.manager, node.pods)
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])
    shutil.rmtree(node.spool / "jobs" / "1")

    before = node.api.pod("default", "job")
    assert before is not None
    assert before.status.phase != "Failed"
    node.api = InMemoryPodApi(before, watcher=node.pods)
    node.start()
    running = asyncio.create_task(node.manager.run())
    while node.stored.phase != "Failed":
        node.bridge.report(node.manager, node.pods)
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])
    assert node.stored.container_statuses
    ended = node.stored.container_statuses[0].state.terminated
    assert ended is not None
    assert (ended.exit_code, ended.reason) == (143, "Cancelled")
