"""Real processes outlive their agent, and no change in between is lost."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from podstatus.runtime.process.records.models import PodRecord
from podstatus.runtime.process.state.process_identity import read_identity
from tests.support.processes.agent_process import (
    ENVIRONMENT,
    SECONDS,
    Cluster,
    Document,
    condition,
    container,
    has_phase,
    until,
)
from tests.support.processes.api_servers import NODES, Server
from tests.support.processes.mortal_node import (
    ISOLATIONS,
    TALKER,
    MortalNode,
    end_family,
    events_about,
    mortal_node,
    pod_of,
    read,
    ready_node,
    starts,
)

pytestmark = pytest.mark.slow

POLICIES = ("Never", "OnFailure", "Always")
LOG = "".join(("begin\n", *(f"line {number}\n" for number in range(1, 501))))
NODE = {"bubblewrap": NODES[5], "none": NODES[6]}
RUNS = ("sh", "-c", "trap 'exit 0' TERM; echo begin; sleep 1000 & wait")


def wire_seconds(wire: str) -> float:
    return datetime.fromisoformat(wire).timestamp()


def wait_until_later(moment: float) -> None:
    """Come back when whatever happens now cannot be taken for what happened then."""
    until(lambda: time.time() > moment + 2)


def wait_until_told(node: MortalNode, cluster: Cluster, name: str = "later") -> None:
    """Come back when the agent has said something about all pods: it does so of a new one."""
    cluster.create(pod_of(name, *RUNS, node=node.node))
    cluster.wait_ready(name)
    cluster.wait_for_event("Started", name)


def restarted_once(pod: Document) -> bool:
    return bool(container(pod)["restartCount"] == 1 and container(pod)["state"].get("running"))


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_what_containers_say_and_how_they_end_while_the_agent_is_dead_is_not_lost(
    each_server: Server, tmp_path: Path, isolation: str
) -> None:
    name = NODE[isolation]
    with ready_node(each_server, tmp_path, isolation, name) as (node, cluster):
        pods = [f"talks-{policy.lower()}" for policy in POLICIES]
        for pod_name, policy in zip(pods, POLICIES, strict=True):
            cluster.create(pod_of(pod_name, "sh", "-c", TALKER, node=name, restartPolicy=policy))
        before = cluster.wait_ready(*pods)
        for pod in before:
            cluster.wait_for_event("Started", pod["metadata"]["name"])
            node.attempt(pod).wait_for_text("begin")
        node.kill()
        told_to_end = time.time()
        for pod in before:
            node.attempt(pod).send(signal.SIGUSR1)
        for pod in before:
            node.attempt(pod).wait_for_exit()
        ended = time.time()
        wait_until_later(ended)
        node.start()
        node.wait_ready(cluster)
        never = cluster.wait_for(pods[0], has_phase("Failed"))
        again = [cluster.wait_for(pod_name, restarted_once) for pod_name in pods[1:]]
        wait_until_told(node, cluster)

        exits = [container(never)["state"]["terminated"]]
        exits += [container(pod)["lastState"]["terminated"] for pod in again]
        for exit_, pod in zip(exits, before, strict=True):
            running = container(pod)["state"]["running"]
            assert (exit_["exitCode"], exit_["reason"]) == (7, "Error")
            assert exit_["containerID"] == container(pod)["containerID"]
            assert exit_["startedAt"] == running["startedAt"]
            assert int(told_to_end) <= wire_seconds(exit_["finishedAt"]) <= ended
        assert container(never)["restartCount"] == 0
        assert condition(never, "Ready")["reason"] == "PodFailed"
        for pod, times in zip((never, *again), (1, 2, 2), strict=True):
            assert events_about(cluster, pod) == starts(times)

        assert node.container_logs(never) == LOG
        assert node.logs_command(never) == LOG
        for pod in again:
            assert container(pod)["containerID"] not in {exit_["containerID"] for exit_ in exits}
            assert node.container_logs(pod, "?previous=true") == LOG
            assert node.logs_command(pod, "--previous") == LOG
            node.attempt(pod).wait_for_text("begin")
            assert node.container_logs(pod) == "begin\n"
        assert "Traceback" not in node.log()


def what_lasts(pod: Document | None) -> tuple[list[Document], Document]:
    """A flap would show in the time of the last change."""
    assert pod is not None
    return pod["status"]["containerStatuses"], condition(pod, "Ready")


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_an_upgrade_of_the_agent_is_not_noticed_by_pods(tmp_path: Path, isolation: str) -> None:
    with mortal_node(tmp_path, isolation) as node:
        cluster = node.start_ready()
        limited = {"resources": {"limits": {"cpu": "500m", "memory": "64Mi"}}}
        two = [{"name": n, "image": "busybox", "command": [*RUNS], **limited} for n in "ab"]
        cluster.create(
            pod_of("runs", *RUNS),
            pod_of("restarted", "sh", "-c", TALKER),
            pod_of("two", containers=two),
        )
        (restarted,) = cluster.wait_ready("restarted")
        node.attempt(restarted).wait_for_text("begin")
        node.attempt(restarted).send(signal.SIGUSR1)
        cluster.wait_for("restarted", lambda pod: restarted_once(pod) and pod["status"])
        names = ("runs", "restarted", "two")
        before = cluster.wait_ready(*names)
        wait_until_told(node, cluster, "earlier")
        events = [events_about(cluster, pod) for pod in before]
        shims = [node.shim(pod) for pod in before]
        started = [node.attempts(pod)[-1].started for pod in before]

        refused = subprocess.run(
            node.words,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert refused.returncode == 2
        assert str(node.root_dir) in refused.stderr
        assert "--root-dir" in refused.stderr

        assert node.stop() == 0
        assert all(read_identity(shim.pid) == shim for shim in shims)
        cluster = node.start_ready()
        wait_until_told(node, cluster)
        after = [cluster.pod(name) for name in names]
        assert [what_lasts(pod) for pod in after] == [what_lasts(pod) for pod in before]
        assert [node.shim(pod) for pod in before] == shims
        assert [node.attempts(pod)[-1].started for pod in before] == started
        assert all(read_identity(it.process.pid) == it.process for it in started)
        assert [events_about(cluster, pod) for pod in before] == events
        assert len(node.shims()) == len((*names, "earlier", "later"))
        assert "Traceback" not in node.log()


@contextmanager
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with any pod."""
    with subprocess.Popen(["/bin/sleep", "1000"]) as process:
        yield process
        process.kill()


def reboot(node: MortalNode, innocent: int) -> None:
    """As after a reboot: no old process runs, and its pids belong to other processes."""
    seen = read_identity(innocent)
    assert seen is not None
    someone = {"pid": seen.pid, "start_ticks": seen.start_ticks, "boot_id": "the one before"}
    for path in (*node.runtime_dir.rglob("shim.json"), *node.runtime_dir.rglob("started.json")):
        record = json.loads(path.read_bytes())
        people = {name: someone for name in ("process", "keeper") if name in record}
        path.write_text(json.dumps(record | people))


def test_after_a_reboot_pods_are_restarted_and_exits_are_known(tmp_path: Path) -> None:
    with bystander() as somebody_else, mortal_node(tmp_path, "none") as node:
        cluster = node.start_ready()
        cluster.create(
            pod_of("ended", "sh", "-c", TALKER, restartPolicy="Never"),
            pod_of("once", *RUNS, restartPolicy="Never"),
            pod_of("always", *RUNS),
        )
        ended, _, always = before = cluster.wait_ready("ended", "once", "always")
        sandboxes = [read(node.pod_folder(pod).record, PodRecord) for pod in before]
        node.attempt(ended).wait_for_text("begin")
        node.kill()
        node.attempt(ended).send(signal.SIGUSR1)
        node.attempt(ended).wait_for_exit()
        end_family(node.shims())
        reboot(node, somebody_else.pid)

        cluster = node.start_ready()
        after = cluster.wait_for("ended", has_phase("Failed"))
        assert container(after)["state"]["terminated"]["exitCode"] == 7
        after = cluster.wait_for("once", has_phase("Failed"))
        assert container(after)["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
        assert container(after)["restartCount"] == 0
        after = cluster.wait_for("always", restarted_once)
        assert container(after)["lastState"]["terminated"]["exitCode"] == 137
        cluster.wait_ready("always")
        sandbox = read(node.pod_folder(always).record, PodRecord)
        assert sandbox.sandbox_id != sandboxes[2].sandbox_id
        assert sandbox.sandbox_attempt == 1
        for name in ("ended", "once", "always"):
            cluster.delete(name)
        for name in ("ended", "once", "always"):
            cluster.wait_gone(name)
        until(lambda: not list((node.runtime_dir / "pods").iterdir()))
        assert somebody_else.poll() is None
        until(lambda: not node.shims(), node.shims)
