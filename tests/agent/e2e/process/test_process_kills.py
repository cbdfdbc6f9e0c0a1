"""The shim of a container is killed: its exit is reported as unobserved.

Nothing of it is left then, also no daemon that ignores all signals, and its policy says whether
it is started again.
"""

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.processes.agent_process import (
    Cluster,
    Document,
    container,
    has_phase,
    is_ready,
    until,
)
from tests.support.processes.api_servers import NODES, Server
from tests.support.processes.mortal_node import (
    DAEMON,
    ISOLATIONS,
    MortalNode,
    commands,
    end_family,
    events_about,
    is_alive,
    mortal_node,
    pod_of,
    ready_node,
    starts,
)
from tests.support.processes.process_runtime import need_bubblewrap

pytestmark = pytest.mark.slow

NODE = NODES[3]
UNSEEN = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
}


def kill_shim(node: MortalNode, pod: Document) -> None:
    os.kill(node.shim(pod).pid, signal.SIGKILL)


def kill_monitor(node: MortalNode, pod: Document) -> None:
    os.kill(node.attempt(pod).started.monitor.pid, signal.SIGKILL)


def kill_both(node: MortalNode, pod: Document) -> None:
    """So that neither sees the other end."""
    monitor = node.attempt(pod).started.monitor.pid
    shim = psutil.Process(node.shim(pod).pid)
    os.kill(monitor, signal.SIGSTOP)
    kill_shim(node, pod)
    # A process that is killed needs the processor once more, and on a busy machine it waits for it.
    until(lambda: not is_alive(shim))
    os.kill(monitor, signal.SIGKILL)


Kill = Callable[[MortalNode, Document], None]
VICTIMS: dict[str, Kill] = {"shim": kill_shim, "monitor": kill_monitor, "both": kill_both}


class Victim:
    """A pod with a daemon, and what was seen of it before it happens."""

    def __init__(self, kind: str, policy: str, number: int, node: str = "") -> None:
        self.kind, self.policy, self._node = kind, policy, node
        self.name = f"{kind}-{policy.lower()}-{number}"
        self.sleep = f"1000.{os.getpid()}{number:03}"
        self.before: Document = {}
        self.end: Document = {}
        self.family: list[psutil.Process] = []

    @property
    def manifest(self) -> Document:
        command = ("sh", "-c", DAEMON, self.sleep)
        return pod_of(self.name, *command, node=self._node, restartPolicy=self.policy)

    def meet(self, node: MortalNode, cluster: Cluster) -> None:
        """Look at it while all is well."""
        (self.before,) = cluster.wait_ready(self.name)
        cluster.wait_for_event("Started", self.name)
        until(self.daemons)
        self.family = [*node.family_of(self.before), *self.daemons()]

    def daemons(self) -> list[psutil.Process]:
        return commands("sleep", self.sleep)

    def check(self, cluster: Cluster) -> None:
        """What came of it."""
        if self.policy == "Never":
            self._check_ended(cluster)
        else:
            self._check_restarted(cluster)

    def _check_ended(self, cluster: Cluster) -> None:
        status = container(cluster.wait_for(self.name, has_phase("Failed")))
        self._check_end(status["state"]["terminated"])
        assert status["restartCount"] == 0
        assert not status["lastState"]
        until(lambda: not self._alive(self.family), lambda: self._alive(self.family))
        assert self.daemons() == []
        until(lambda: events_about(cluster, self.before) == starts(1))

    def _check_restarted(self, cluster: Cluster) -> None:
        status = container(cluster.wait_for(self.name, self._is_another))
        self._check_end(status["lastState"]["terminated"])
        assert status["restartCount"] == 1
        old = [p for p in self.family if self.kind != "monitor" or p != self.family[0]]
        until(lambda: not self._alive(old), lambda: self._alive(old))
        (daemon,) = until(self.daemons)
        assert daemon not in self.family
        sandboxes = {} if self.kind == "monitor" else {"SandboxChanged": 1}
        until(lambda: events_about(cluster, self.before) == starts(2, **sandboxes))

    def _check_end(self, end: Document) -> None:
        assert {name: end[name] for name in UNSEEN} == UNSEEN
        assert end["containerID"] == container(self.before)["containerID"]
        assert end["startedAt"] == container(self.before)["state"]["running"]["startedAt"]
        # A later relist, also of another agent, has the same result.
        self.end = self.end or end
        assert end == self.end

    def _is_another(self, pod: Document) -> bool:
        known = container(self.before)["containerID"]
        return is_ready(pod) and container(pod)["containerID"] != known

    def _alive(self, processes: list[psutil.Process]) -> list[psutil.Process]:
        return [process for process in processes if is_alive(process)]


@contextmanager
def no_daemons_after(victims: list[Victim]) -> Iterator[None]:
    """Clean up also if the test fails."""
    try:
        yield
    finally:
        end_family([daemon for victim in victims for daemon in victim.daemons()])


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_an_unobserved_exit_is_reported_and_leaves_nothing(tmp_path: Path, isolation: str) -> None:
    kinds = itertools.product(VICTIMS, ("Never", "Always"), range(2))
    victims = [Victim(kind, policy, number) for number, (kind, policy, _) in enumerate(kinds)]
    now, later = victims[::2], victims[1::2]
    with no_daemons_after(victims), mortal_node(tmp_path, isolation) as node:
        cluster = node.start_ready()
        cluster.create(*(victim.manifest for victim in victims))
        for victim in victims:
            victim.meet(node, cluster)
        for victim in now:
            VICTIMS[victim.kind](node, victim.before)
        for victim in now:
            victim.check(cluster)
        node.kill()
        for victim in later:
            VICTIMS[victim.kind](node, victim.before)
        cluster = node.start_ready()
        for victim in later:
            victim.check(cluster)
        # Earlier changes were reported once. By now every pod has had a status.
        for victim in now:
            victim.check(cluster)
        assert "Traceback" not in node.log()
        assert "status refused" not in node.log()


@need_bubblewrap
def test_either_server_gets_the_status_of_a_pod_whose_shim_was_killed(
    each_server: Server, tmp_path: Path
) -> None:
    policies = enumerate(("Never", "Always"), 900)
    victims = [Victim("shim", policy, number, NODE) for number, policy in policies]
    running = ready_node(each_server, tmp_path, "bubblewrap", NODE)
    with no_daemons_after(victims), running as (node, cluster):
        cluster.create(*(victim.manifest for victim in victims))
        for victim in victims:
            victim.meet(node, cluster)
        for victim in victims:
            kill_shim(node, victim.before)
        for victim in victims:
            victim.check(cluster)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_one_container_of_two_is_lost_and_the_other_runs_on(tmp_path: Path, isolation: str) -> None:
    command = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"]
    both = [{"name": name, "image": "busybox", "command": command} for name in ("a", "b")]
    with mortal_node(tmp_path, isolation) as node:
        cluster = node.start_ready()
        cluster.create(pod_of("once", containers=both, restartPolicy="Never"))
        (before,) = cluster.wait_ready("once")
        attempts = {found.launch.container: found for found in node.attempts(before)}
        os.kill(attempts["a"].started.monitor.pid, signal.SIGKILL)
        after = cluster.wait_for("once", lambda pod: not is_ready(pod))
        a, b = after["status"]["containerStatuses"]
        assert UNSEEN.items() <= a["state"]["terminated"].items()
        assert b == before["status"]["containerStatuses"][1]
        # It is not started again: its policy says so.
        attempts["b"].send(signal.SIGTERM)
        ended = cluster.wait_for("once", has_phase("Failed"))
        assert [c["restartCount"] for c in ended["status"]["containerStatuses"]] == [0, 0]
        assert len(node.attempts(before)) == 2
        until(lambda: events_about(cluster, before) == starts(2))
        assert "status refused" not in node.log()


def test_agents_whose_nodes_have_the_same_name_let_each_other_be(tmp_path: Path) -> None:
    with (
        mortal_node(tmp_path / "one", "none") as one,
        mortal_node(tmp_path / "two", "none") as two,
    ):
        cluster = one.start_ready()
        cluster.create(pod_of("runs", "sleep", "1000", restartPolicy="Never"))
        (before,) = cluster.wait_ready("runs")
        other = two.start_ready()
        other.create(pod_of("runs", "sleep", "1000"))
        other.wait_ready("runs")
        assert all(p.is_running() for p in one.family_of(before))
        assert cluster.pod("runs") == before
