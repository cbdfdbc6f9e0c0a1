"""The disk is full for a while: no change is lost, and every service recovers."""

import signal
from pathlib import Path

import pytest

from podstatus.observe.history.sqlite_store import HistoryEntry, open_history_reader
from tests.agent.e2e.faults.small_disk import fill, small_disk
from tests.support.processes.agent_process import (
    Cluster,
    Document,
    condition,
    container,
    has_phase,
    is_ready,
    until,
)
from tests.support.processes.api_servers import EmbeddedServer
from tests.support.processes.mortal_node import MortalNode, mortal_node, pod_of

__all__ = ["small_disk"]

pytestmark = pytest.mark.slow

NODE = "node-w"
ENDS_WITH_7 = "trap 'exit 7' USR1; echo begin; sleep 1000 & wait"


def run_pod(node: MortalNode, cluster: Cluster, name: str, policy: str) -> Document:
    cluster.create(pod_of(name, "sh", "-c", ENDS_WITH_7, node=NODE, restartPolicy=policy))
    (pod,) = cluster.wait_ready(name)
    node.attempt(pod).wait_for_text("begin")
    return pod


def has_ended_with_7(pod: Document) -> bool:
    end = container(pod)["state"].get("terminated") or container(pod)["lastState"]["terminated"]
    return bool(end["exitCode"] == 7)


def runs_again(pod: Document) -> bool:
    return is_ready(pod) and container(pod)["restartCount"] == 1


def noted(node: MortalNode, cluster: Cluster, name: str) -> list[HistoryEntry]:
    with open_history_reader(node.root_dir / "history.db") as history:
        return history.timeline(cluster.namespace, name)


def test_on_a_full_disk_exits_are_reported_pods_are_deleted_and_starts_wait(
    embedded_server: EmbeddedServer, small_disk: Path
) -> None:
    cluster = Cluster(embedded_server.access, NODE, embedded_server.new_namespace())
    # Pods are to outlive the full disk here: tests/agent/e2e/eviction has those that do not.
    options = ("--eviction-hard", "")
    running = mortal_node(small_disk, "none", *options, server=embedded_server, node=NODE)
    with running as node:
        # What it says is not to be lost.
        node.log_file = small_disk.parent / "agent.log"
        node.start()
        node.wait_ready(cluster)
        once = run_pod(node, cluster, "once", "Never")
        again = run_pod(node, cluster, "again", "Always")
        gone = run_pod(node, cluster, "gone", "Always")
        filler = fill(small_disk)
        node.attempt(once).send(signal.SIGUSR1)
        node.attempt(again).send(signal.SIGUSR1)
        cluster.create(pod_of("late", "sleep", "1000", node=NODE))
        cluster.wait_for_event("FailedSync", "late", "o space left on device")
        cluster.delete("gone")
        cluster.wait_gone("gone")
        assert not node.pod_folder(gone).path.exists()
        assert has_ended_with_7(cluster.wait_for("once", has_phase("Failed")))
        cluster.wait_for("again", lambda pod: not is_ready(pod) and has_ended_with_7(pod))
        node.kill()
        (node.root_dir / "endpoints.json").unlink()
        fill(small_disk)
        node.start()
        until(
            lambda: "cannot write endpoints.json because the disk is full" in node.log(), node.log
        )
        assert "history is not recorded" not in node.log()
        assert "alerts will not survive a restart" not in node.log()
        cluster.delete("once")
        cluster.wait_gone("once")
        filler.unlink()
        node.wait_serving()
        assert has_ended_with_7(cluster.wait_for("again", runs_again))
        cluster.wait_ready("late")
        until(lambda: noted(node, cluster, "late"), node.log)
        assert "Traceback" not in node.log()
        assert len(node.log()) < 100_000


def test_a_disk_that_has_room_again_keeps_no_pods_away(
    embedded_server: EmbeddedServer, small_disk: Path
) -> None:
    cluster = Cluster(embedded_server.access, NODE, embedded_server.new_namespace())

    def is_under_pressure() -> bool:
        return bool(condition(cluster.node() or {}, "DiskPressure")["status"] == "True")

    with mortal_node(small_disk, "none", server=embedded_server, node=NODE) as node:
        # What it says is not to be lost.
        node.log_file = small_disk.parent / "agent.log"
        node.start()
        node.wait_ready(cluster)
        filler = fill(small_disk)
        until(is_under_pressure, node.log)
        filler.unlink()
        # Within 2 minutes; while the condition is shown nothing is scheduled, and that was 5.
        until(lambda: not is_under_pressure(), node.log)
