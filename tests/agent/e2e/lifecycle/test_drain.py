"""Drains by command and before a stop, with whole agents."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.processes.agent_process import (
    AgentProcess,
    Cluster,
    Document,
    agent,
    agent_on,
    condition,
    container,
    has_phase,
    make_pod,
    run_command,
    until,
)
from tests.support.processes.api_servers import NODES, Server
from tests.support.processes.mortal_server import mortal
from tests.support.processes.process_node import command_pod, process_node

pytestmark = pytest.mark.slow

NODE = NODES[18]
MESSAGE = "Pod was terminated in response to imminent node shutdown."
CRITICAL = "system-node-critical"
ON_STOP = ("--on-stop", "drain")


def drain(started: AgentProcess, *words: str) -> subprocess.CompletedProcess[str]:
    return run_command("drain", "--root-dir", str(started.root_dir), *words)


def why(pod: Document) -> tuple[str, str]:
    status = pod["status"]
    return status.get("phase", ""), status.get("reason", "")


def check_terminated(pod: Document) -> Document:
    """It has to look as the kubelet has it; how its container ended."""
    assert why(pod) == ("Failed", "Terminated")
    assert pod["status"]["message"] == MESSAGE
    target = condition(pod, "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert condition(pod, "Ready")["status"] == "False"
    return dict(container(pod)["state"]["terminated"])


def readiness(cluster: Cluster) -> tuple[str, str, str]:
    ready = condition(cluster.node() or {}, "Ready")
    return ready.get("status", ""), ready.get("reason", ""), ready.get("message", "")


def test_a_node_is_drained_by_priority_and_takes_pods_again_when_it_is_cancelled(
    each_server: Server, tmp_path: Path
) -> None:
    with agent_on(each_server, tmp_path, NODE) as (started, cluster):
        cluster.create(
            make_pod("web", "stop=2s, stop-exit=1", NODE),
            make_pod("stubborn", "stop=never, kill=100ms", NODE, terminationGracePeriodSeconds=3),
            make_pod("dns", "stop=1s, stop-exit=1", NODE, priorityClassName=CRITICAL),
            make_pod("polite", "stop-exit=0", NODE),
            make_pod("done", "run=100ms", NODE, restartPolicy="Never"),
        )
        cluster.wait_ready("web", "stubborn", "polite", "dns")
        cluster.wait_for("done", has_phase("Succeeded"))
        drained = drain(started)
        assert drained.returncode == 0, drained.stderr
        assert drained.stdout.splitlines()[1:3] == [
            "terminating 3 pods with priority 0; at most 20 s",
            "terminating 1 pod with priority 2000000000; at most 10 s",
        ]
        assert readiness(cluster) == ("False", "KubeletNotReady", "node is shutting down")
        ends = {}
        for name in ("web", "stubborn", "dns"):
            ends[name] = check_terminated(cluster.wait_for(name, has_phase("Failed")))
        assert ends["stubborn"]["exitCode"] == 137
        assert ends["dns"]["finishedAt"] >= ends["stubborn"]["finishedAt"]
        polite = cluster.wait_for("polite", has_phase("Succeeded"))
        assert condition(polite, "DisruptionTarget")["reason"] == "TerminationByKubelet"
        done = cluster.pod("done") or {}
        assert (why(done), condition(done, "DisruptionTarget")) == (("Succeeded", ""), {})
        cluster.wait_for_event("NodeShutdown", NODE, "Shutdown manager detected shutdown event")
        cluster.wait_for_event("NodeNotReady", NODE)

        cluster.create(make_pod("late", "", NODE))
        late = cluster.wait_for("late", has_phase("Failed"))
        assert why(late) == ("Failed", "NodeShutdown")
        assert late["status"]["message"].endswith("Pod was rejected as the node is shutting down.")
        assert drain(started).returncode == 0, "it is drained already"

        assert drain(started, "--cancel").returncode == 0
        started.wait_ready(cluster)
        cluster.create(make_pod("later", "", NODE))
        cluster.wait_ready("later")
        assert "Traceback" not in started.log()


def test_pods_end_with_an_agent_that_is_to_drain(each_server: Server, tmp_path: Path) -> None:
    with agent_on(each_server, tmp_path, NODE, *ON_STOP) as (started, cluster):
        cluster.create(
            make_pod("web", "stop=6s, stop-exit=1", NODE), make_pod("quick", "stop-exit=1", NODE)
        )
        cluster.wait_ready("web", "quick")
        assert started.stop() == 0, started.log()
        assert "terminating 2 pods with priority 0; at most 20 s\n" in started.log()
        assert "stopped; all pods are terminated\n" in started.log()
        for name in ("web", "quick"):
            check_terminated(cluster.pod(name) or {})
        assert readiness(cluster)[2] == "node is shutting down"
        started.start()
        started.wait_ready(cluster)
        cluster.create(make_pod("next", "", NODE))
        cluster.wait_ready("next")
        check_terminated(cluster.pod("web") or {})


def test_statuses_undelivered_at_the_end_are_sent_by_the_next_agent(
    each_server: Server, tmp_path: Path
) -> None:
    with (
        mortal(each_server, tmp_path / "server") as server,
        agent(
            tmp_path, *ON_STOP, kubeconfig=server.node_access(NODE).kubeconfig, node=NODE
        ) as started,
    ):
        cluster = Cluster(server.access, NODE)
        started.start()
        started.wait_ready(cluster)
        cluster.create(make_pod("web", "stop=1s, stop-exit=7", NODE))
        cluster.wait_ready("web")
        outbox = started.root_dir / "outbox"
        server.pause()
        try:
            code = started.stop()
        finally:
            server.resume()
        assert code == 0, started.log()
        # Of what was sent before, the server may have taken something when it went on.
        assert list(outbox.iterdir()), "the final status is not acknowledged"
        started.start()
        ended = check_terminated(cluster.wait_for("web", has_phase("Failed")))
        assert ended["exitCode"] == 7
        until(lambda: not list(outbox.iterdir()), lambda: list(outbox.iterdir()))


def test_a_node_without_pods_says_so_too_before_it_ends(
    each_server: Server, tmp_path: Path
) -> None:
    with agent_on(each_server, tmp_path, NODE, *ON_STOP) as (started, cluster):
        assert started.stop() == 0, started.log()
        assert readiness(cluster) == ("False", "KubeletNotReady", "node is shutting down")


def test_an_agent_that_is_killed_while_it_drains_leaves_the_rest_running(tmp_path: Path) -> None:
    patient = ("--shutdown-grace-period", "150s")
    with agent(tmp_path, "--no-samples", *patient, node=NODE) as started:
        cluster = started.start_ready()
        cluster.create(
            make_pod("quick", "stop-exit=1", NODE),
            make_pod("slow", "stop=100s", NODE, terminationGracePeriodSeconds=200),
            make_pod("dns", "", NODE, priorityClassName=CRITICAL),
        )
        cluster.wait_ready("quick", "slow", "dns")
        waiting = drain(started, "--timeout", "10s")
        assert waiting.returncode == 1
        assert "left: default/slow, default/dns" in waiting.stderr, waiting.stderr
        check_terminated(cluster.wait_for("quick", has_phase("Failed")))
        started.kill()
        cluster = started.start_ready()
        cluster.create(make_pod("next", "", NODE))
        cluster.wait_ready("dns", "next")
        check_terminated(cluster.pod("quick") or {})
        assert (cluster.pod("dns") or {})["status"]["phase"] == "Running"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_processes_end_by_priority_and_a_second_signal_ends_the_agent_at_once(number: int) -> None:
    with process_node(*ON_STOP, isolation="none") as started:
        cluster = started.start_ready()
        patient = "trap 'sleep 1; exit 5' TERM; echo begin; while :; do sleep 0.1; done"
        stubborn = "trap '' TERM; echo begin; while :; do sleep 0.1; done"
        cluster.create(
            command_pod("web", "/bin/sh", "-c", patient, terminationGracePeriodSeconds=30),
            command_pod("dns", "/bin/sh", "-c", stubborn, priorityClassName=CRITICAL),
        )
        cluster.wait_ready("web", "dns")
        for name in ("web", "dns"):
            started.wait_for_log(name, "begin")
        assert started.stop(number) == 0, started.log()
        assert "terminating 1 pod with priority 2000000000; at most 10 s" in started.log()
        cluster = started.start_ready()
        web, dns = (check_terminated(cluster.pod(name) or {}) for name in ("web", "dns"))
        assert (web["exitCode"], dns["exitCode"]) == (5, 137)
        assert dns["finishedAt"] > web["finishedAt"]

        cluster.create(
            command_pod("again", "/bin/sh", "-c", stubborn, terminationGracePeriodSeconds=60),
            command_pod("dns-2", "/bin/sh", "-c", stubborn, priorityClassName=CRITICAL),
        )
        cluster.wait_ready("again", "dns-2")
        for name in ("again", "dns-2"):
            started.wait_for_log(name, "begin")
        assert started.process is not None
        count = started.log().count("terminating 1 pod with priority 0")
        started.process.send_signal(number)
        until(lambda: started.log().count("terminating 1 pod with priority 0") > count)
        started.process.send_signal(number)
        assert started.wait() == -number
        cluster = started.start_ready()
        assert why(cluster.pod("dns-2") or {})[0] == "Running"
