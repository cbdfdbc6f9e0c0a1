"""Every default rule on a real agent: it fires when it should, resolves by itself, and leaves those
alone with whom nothing is wrong.

Rules are those that are shipped, but for the minutes that they wait. What falls out of a window
of ten minutes, a clock that is wrong, and an unobserved exit: test_default_rules_in_time.py.
"""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podstatus.testing.apiserver import ApiAccess, ApiServerProcess
from tests.agent.e2e.alerts.hurried_rules import PROBED, RULES, hurried_rules
from tests.agent.e2e.faults.small_disk import fill, program
from tests.support.processes.agent_process import (
    AgentProcess,
    Cluster,
    agent,
    has_phase,
    is_ready,
    make_pod,
    until,
)

pytestmark = pytest.mark.slow

NODE = "node-alerts"
AWAY = ({"verb": "watch", "action": "stall"}, {"action": "drop"})
OPTIONS = (
    *("--eviction-hard", "nodefs.available<50%"),
    *("--eviction-pressure-transition-period", "1s"),
    *("--node-status-update-frequency", "1s"),
)


class Alerting:
    """The agent, its API server, and what is alerted."""

    def __init__(self, made: AgentProcess, access: ApiAccess) -> None:
        self.agent = made
        self.access = access
        self.cluster = Cluster(access, NODE)
        self.seen: set[str] = set()
        """All that ever fired: `PodNotReady web`."""

    def ask(self) -> dict[str, Any]:
        """What the query API says."""
        return self.agent.ask("/v1/alerts?limit=5000")

    def alerts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask()["alerts"]
        self.seen |= {_named(it) for it in found if it.get("firedAt")}
        return found

    def firing(self) -> set[str]:
        return {_named(it) for it in self.alerts() if it["state"] == "firing"}

    def wait(self, rule: str, name: str, state: str) -> dict[str, Any]:
        """The alert, once it is so: the newest of its name.

        What fires for a pod may be over before we look.
        """

        def look() -> dict[str, Any] | None:
            found = [it for it in self.alerts() if _named(it) == f"{rule} {name}"]
            newest = max(found, key=lambda it: it["activeAt"], default=None)
            if newest is None:
                return None
            has_fired = state == "firing" and name != NODE and newest.get("firedAt")
            return newest if has_fired or newest["state"] == state else None

        return until(look, lambda: (self.alerts(), self.agent.log()[-3000:]))

    def create(self, name: str, script: str = "", **spec: Any) -> None:
        """With a readiness probe, if the script has it say something."""
        probed = {"containers": PROBED} if "ready=" in script else {}
        self.cluster.create(make_pod(name, script, NODE, **probed, **spec))


def _named(alert: dict[str, Any]) -> str:
    return f"{alert['rule']} {alert['subject']['name']}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small disk of its own for the agent, where that can be had."""
    disk: Path = tmp_path_factory.mktemp("alerting") / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", "size=64m", "podstatus-test", str(disk)]
    made = subprocess.run([program("mount"), *options], check=False, capture_output=True)
    yield disk
    if not made.returncode:
        subprocess.run([program("umount"), "--lazy", str(disk)], check=True)


@pytest.fixture(scope="module")
def node(folder: Path) -> Iterator[Alerting]:
    server = ApiServerProcess(folder.parent / "server")
    access = server.start()
    file = folder.parent / "rules.yaml"
    file.write_text(hurried_rules())
    options = (*OPTIONS, "--alert-rules", str(file))
    try:
        with agent(folder, *options, kubeconfig=access.kubeconfig, node=NODE) as made:
            made.start()
            made.wait_serving()
            node = Alerting(made, access)
            made.wait_ready(node.cluster)
            node.create("steady")
            node.cluster.wait_ready("steady")
            yield node
            assert not {it for it in node.seen if it.endswith(" steady")}
            assert "Traceback" not in made.log()
    finally:
        server.stop()


def test_all_rules_are_asked(node: Alerting) -> None:
    assert node.firing() == set()
    rules = node.ask()["rules"]
    assert {it["name"]: it.get("problem", "") for it in rules} == dict.fromkeys(RULES, "")


def test_a_pod_that_is_stuck_terminating(node: Alerting) -> None:
    node.create("stuck", "stop=never, kill=8s", terminationGracePeriodSeconds=1)
    node.create("ends", "stop=0.2s", terminationGracePeriodSeconds=60)
    node.cluster.wait_ready("stuck", "ends")
    node.cluster.delete("stuck")
    node.cluster.delete("ends")
    fired = node.wait("PodStuckTerminating", "stuck", "firing")
    assert "A container is still running" in fired["annotations"]["description"]
    node.wait("PodStuckTerminating", "stuck", "resolved")
    node.cluster.wait_gone("stuck")
    node.cluster.wait_gone("ends")
    assert "PodStuckTerminating ends" not in node.seen


def test_a_pod_that_is_stuck_pending(node: Alerting) -> None:
    node.create("pending", "start=20s")
    node.create("starts", "start=0.5s")
    node.wait("PodStuckPending", "pending", "firing")
    node.wait("PodStuckPending", "pending", "resolved")
    node.cluster.wait_ready("pending", "starts")
    assert "PodStuckPending starts" not in node.seen


def test_a_pod_in_a_crash_loop(node: Alerting) -> None:
    node.create("crashes", "run=0.2s, exit=3")
    node.create("once", "run=0.2s, exit=3; run=forever")
    fired = node.wait("PodCrashLooping", "crashes", "firing")
    assert "last exit: Error 3" in fired["annotations"]["description"]
    node.cluster.delete("crashes")
    node.wait("PodCrashLooping", "crashes", "resolved")
    assert "PodCrashLooping once" not in node.seen


def test_a_pod_whose_readiness_flaps(node: Alerting) -> None:
    node.create("flaps", "ready=+1s-1s*")
    node.create("calms", "ready=-1s+1s-1s+")
    node.wait("PodFlappingReady", "flaps", "firing")
    node.cluster.wait_for("calms", is_ready)
    node.cluster.delete("flaps")
    node.wait("PodFlappingReady", "flaps", "resolved")
    assert "PodFlappingReady calms" not in node.seen


def test_a_pod_that_is_not_ready_for_long(node: Alerting) -> None:
    node.create("unready", "ready=-20s+")
    node.create("soon", "ready=-1s+")
    fired = node.wait("PodNotReady", "unready", "firing")
    assert "containers app" in fired["annotations"]["description"]
    node.wait("PodNotReady", "unready", "resolved")
    node.cluster.wait_ready("unready", "soon")
    assert "PodNotReady soon" not in node.seen


def test_a_foreign_status_write(node: Alerting) -> None:
    node.create("written")
    node.create("gated", readinessGates=[{"conditionType": "example.com/warm"}])
    node.cluster.wait_ready("written")
    patch(node, "written", "Ready", "False")
    # What is theirs they may write.
    node.cluster.wait_for("gated", has_phase("Running"))
    patch(node, "gated", "example.com/warm", "True")
    node.wait("ForeignStatusWriter", "written", "firing")
    node.cluster.wait_ready("written", "gated")
    node.cluster.delete("written")
    node.wait("ForeignStatusWriter", "written", "resolved")
    assert "ForeignStatusWriter gated" not in node.seen


def patch(node: Alerting, name: str, kind: str, status: str) -> None:
    body = {"status": {"conditions": [{"type": kind, "status": status, "reason": "Meddling"}]}}
    path = f"/api/v1/namespaces/default/pods/{name}/status"
    content = "application/strategic-merge-patch+json"
    code, answer = node.access.request("PATCH", path, body, content)
    assert code == 200, answer


def test_a_status_that_the_server_rejects(node: Alerting) -> None:
    refused = {"verb": "patch", "resource": "pods/status", "name": "rejected", "code": 422}
    node.access.inject(refused)
    try:
        node.create("rejected", "ready=+20s-60s+")
        fired = node.wait("StatusQuarantined", NODE, "firing")
        assert "of 1 pod on" in fired["annotations"]["summary"]
    finally:
        node.access.inject()
    # Its next change is sent at once, and taken.
    node.wait("StatusQuarantined", NODE, "resolved")
    assert "StatusSyncLagging" not in {it.split()[0] for it in node.seen}


def test_a_lease_that_cannot_be_renewed(node: Alerting) -> None:
    node.access.inject({"resource": "leases", "code": 500})
    try:
        node.wait("NodeLeaseLate", NODE, "firing")
        assert f"ApiServerUnreachable {NODE}" not in node.seen
    finally:
        node.access.inject()
    node.wait("NodeLeaseLate", NODE, "resolved")


def test_an_api_server_that_is_away_for_more_than_a_minute(node: Alerting) -> None:
    node.create("ends-alone", "run=15s", restartPolicy="Never")
    node.cluster.wait_ready("ends-alone")
    node.access.inject(*AWAY)
    began = time.monotonic()
    try:
        node.wait("ApiServerUnreachable", NODE, "firing")
        assert f"StatusSyncLagging {NODE}" not in node.firing()
        until(lambda: time.monotonic() - began > 40.0)
        node.wait("NodeLeaseLate", NODE, "firing")
        late = node.wait("StatusSyncLagging", NODE, "firing")
        assert "does not respond" in late["annotations"]["description"]
        assert time.monotonic() - began > 60.0
    finally:
        node.access.inject()
    for rule in ("ApiServerUnreachable", "StatusSyncLagging", "NodeLeaseLate"):
        node.wait(rule, NODE, "resolved")
    node.cluster.wait_for("ends-alone", has_phase("Succeeded"))


def test_a_disk_that_fills_and_the_pressure_of_it(node: Alerting, folder: Path) -> None:
    if not folder.is_mount():
        pytest.skip("a disk of its own takes root")
    assert not {f"NodeDiskFilling {NODE}", f"NodePressure {NODE}"} & node.seen
    filler = fill(folder)
    try:
        pressed = node.wait("NodePressure", NODE, "firing")
        assert pressed["annotations"]["summary"] == f"{NODE} is short of disk"
        filled = node.wait("NodeDiskFilling", NODE, "firing")
        assert filled["annotations"]["summary"] == f"The disk of {NODE} is nearly full"
    finally:
        filler.unlink()
    node.wait("NodePressure", NODE, "resolved")
    node.wait("NodeDiskFilling", NODE, "resolved")


def test_in_the_end_nothing_fires(node: Alerting) -> None:
    until(lambda: node.firing() <= {"PodNotReady rejected"}, node.alerts)
