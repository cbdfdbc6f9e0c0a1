"""`podstatus get` and `describe` with data of the agent."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from podstatus.cli.register_commands import app
from tests.cli.fake_node import FakeNode, fake_node
from tests.support.processes.on_terminal import on_terminal

AWAY = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    kubeconfig = tmp_path / "away"
    kubeconfig.write_text(AWAY)
    with fake_node(tmp_path / "root", kubeconfig=str(kubeconfig)) as node:
        node.pods = [pod("web"), pod("crash", crashing=True), pod("proxy", "kube-system")]
        node.responses["/v1/events"] = {
            "transitions": [event(1, "web", "Started"), event(2, "crash")]
        }
        node.responses["/v1/nodes"] = {
            "nodes": [
                {
                    "name": "n1",
                    "conditions": {"Ready": "True"},
                    "capacity": {"cpu": "2"},
                    "version": "v1.36.4",
                    "load": {"cpu": {"used": 0.5, "allocatable": 2, "usedFraction": 0.25}},
                }
            ]
        }
        yield node


def pod(name: str, namespace: str = "default", *, crashing: bool = False) -> dict[str, Any]:
    state = {"waiting": {"reason": "CrashLoopBackOff"}} if crashing else {"running": {}}
    ready = "False" if crashing else "True"
    status = {"name": "app", "ready": not crashing, "restartCount": 4 * crashing, "state": state}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": {"app": name},
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "app", "image": "nginx"}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [status],
        },
    }


def event(number: int, name: str, reason: str = "BackOff") -> dict[str, Any]:
    return {
        "id": number,
        "at": f"2026-11-15T10:00:0{number}.123Z",
        "uid": f"uid-{name}",
        "namespace": "default",
        "name": name,
        "kind": "event",
        "subject": "app",
        "after": "Normal" if reason == "Started" else "Warning",
        "reason": reason,
        "message": "It was said.",
    }


def asked(root_dir: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--root-dir", str(root_dir / "root")])


def lines(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.stderr
    return [line.split() for line in result.stdout.splitlines()]


def test_nodes_have_the_load_that_the_agent_measured(node: FakeNode, tmp_path: Path) -> None:
    wide = asked(tmp_path, "get", "nodes", "-o", "wide").stdout.splitlines()
    assert wide[0].split()[-3:] == ["CPU", "MEMORY", "DISK"]
    assert wide[1].split()[-4:] == ["500m", "(25%)", "<unknown>", "<unknown>"]
    described = asked(tmp_path, "describe", "node", "n1").stdout.splitlines()
    row = described[described.index("Load:") + 3].split()
    assert row == ["cpu", "500m", "(25%)", "-", "-", "-", "-", "2000m"]
    node.responses["/v1/nodes"] |= {"nodes": [{"name": "n1"}]}
    unknown = asked(tmp_path, "get", "nodes", "-o", "wide").stdout.splitlines()[1]
    assert unknown.split()[-3:] == ["<unknown>"] * 3


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("source", ["auto", "agent"])
def test_pods_look_as_kubectl_shows_them(tmp_path: Path, source: str) -> None:
    result = asked(tmp_path, "get", "pods", "--from", source)
    heading, crash, web = lines(result)
    assert heading == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert crash[:4] == ["crash", "0/1", "CrashLoopBackOff", "4"]
    assert web[:4] == ["web", "1/1", "Running", "0"]
    message = "showing the data of the agent"
    assert (message in result.stderr) is (source == "auto")


@pytest.mark.usefixtures("node")
def test_wide_has_the_health(tmp_path: Path) -> None:
    heading, crash, web, proxy = lines(
        asked(tmp_path, "get", "pods", "-A", "-o", "wide", "--from", "agent")
    )
    assert heading[-1] == "HEALTH"
    assert [row[-1] for row in (crash, web, proxy)] == ["crashing", "healthy", "healthy"]


@pytest.mark.usefixtures("node")
def test_a_terminal_gets_colors_unless_no_color_is_set(tmp_path: Path) -> None:
    words = ("get", "pods", "-o", "wide", "--from", "agent", "--root-dir", str(tmp_path / "root"))
    assert b"\x1b[31mcrashing" in on_terminal(*words)[1]
    assert b"\x1b" not in on_terminal(*words, environment={"NO_COLOR": "1"})[1]


@pytest.mark.usefixtures("node")
def test_other_forms_are_whole_pods(tmp_path: Path) -> None:
    listed = json.loads(asked(tmp_path, "get", "pods", "-o", "json", "--from", "agent").stdout)
    assert [item["kind"] for item in listed["items"]] == ["Pod", "Pod"]
    assert listed["items"][1]["spec"]["nodeName"] == "n1"
    names = asked(tmp_path, "get", "pods", "-o", "name", "--from", "agent").stdout
    assert names == "pod/crash\npod/web\n"


@pytest.mark.usefixtures("node")
def test_the_node_and_events_are_shown(tmp_path: Path) -> None:
    _, node = lines(asked(tmp_path, "get", "node", "--from", "agent"))
    assert node == ["n1", "Ready", "<none>", "<unknown>", "v1.36.4"]
    _, first, second = lines(asked(tmp_path, "get", "events", "--from", "agent"))
    assert first[1:4] == ["Normal", "Started", "pod/web"]
    assert second[1:4] == ["Warning", "BackOff", "pod/crash"]


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("-l", "app in (web)"), "pod/web\n"),
        (("-A", "--field-selector", "metadata.name!=web", "-l", "app"), "pod/crash\npod/proxy\n"),
    ],
)
def test_selectors_select(tmp_path: Path, words: tuple[str, ...], names: str) -> None:
    result = asked(tmp_path, "get", "pods", "-o", "name", "--from", "agent", *words)
    assert (result.stdout, result.stderr) == (names, "")


@pytest.mark.usefixtures("node")
def test_an_unknown_field_is_reported(tmp_path: Path) -> None:
    words = ("get", "pods", "--from", "agent", "--field-selector", "spec.fase=x")
    result = asked(tmp_path, *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "podstatus: --field-selector: field label not supported: spec.fase; supported for pods: "
        "metadata.name, metadata.namespace, spec.hostNetwork, spec.nodeName, "
        "spec.restartPolicy, spec.schedulerName, spec.serviceAccountName, "
        "status.nominatedNodeName, status.phase, status.podIP, status.podIPs\n"
    )


@pytest.mark.usefixtures("node")
def test_the_node_is_described(tmp_path: Path) -> None:
    text = asked(tmp_path, "describe", "node", "--from", "agent").stdout
    assert "Name:              n1\n" in text
    assert "(3 in total)" in text
    assert "Events:            <none>" in text


@pytest.mark.usefixtures("node")
def test_a_pod_is_described_with_its_events_and_its_health(tmp_path: Path) -> None:
    result = asked(tmp_path, "describe", "pod", "crash", "--from", "agent")
    text = result.stdout
    assert result.exit_code == 0, result.stderr
    assert "Health:            crashing: Container app exited" in text
    assert "BackOff" in text
    assert "Started" not in text.partition("Events:")[2]


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("get", "pods", "none", "--from", "agent"),
            1,
            "pod 'none' not found in namespace default on the agent",
        ),
        (("get", "pods", "--from", "server"), 1, "cannot connect to http://127.0.0.1:1"),
        (("get", "pods", "-w", "--from", "agent"), 2, "get --watch requires the API server"),
        (("get", "pods", "-w"), 1, "cannot connect to http://127.0.0.1:1"),
        (("get", "pods", "--from", "agent", "--kubeconfig", "x"), 2, "cannot be combined with"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    result = asked(tmp_path, *words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_undecodable_response_is_reported(node: FakeNode, tmp_path: Path) -> None:
    node.responses["/v1/nodes"] = {"nodes": 7}
    result = asked(tmp_path, "get", "node", "--from", "agent")
    assert result.exit_code == 1
    assert "cannot decode the response of the agent" in result.stderr


@pytest.mark.usefixtures("node")
def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "podstatus.cli", "get", "pods", "--from", "agent"]
    words += ["--root-dir", str(tmp_path / "root")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (0, b"")


def summary(name: str) -> dict[str, Any]:
    return {
        "uid": f"uid-{name}",
        "namespace": "shop",
        "name": name,
        "node": "n7",
        "phase": "Running",
        "containers": [
            {
                "name": "app",
                "image": "nginx",
                "state": {"state": "waiting", "reason": "CrashLoopBackOff"},
                "lastState": {"state": "terminated", "reason": "Error", "exitCode": 3},
                "restarts": 4,
            }
        ],
        "health": {"state": "crashing", "message": "It ends again and again."},
    }


@pytest.fixture
def observer(tmp_path: Path) -> Iterator[FakeNode]:
    with fake_node(tmp_path / "root", node="", observes=True) as node:
        node.responses["/v1/pods"] = {"pods": [summary("web"), summary("web-2")]}
        node.responses["/v1/events"] = {"transitions": []}
        yield node


def test_a_type_that_the_embedded_server_lacks_is_no_type_for_kubectl(tmp_path: Path) -> None:
    kubectl = f"kubectl --kubeconfig {tmp_path / 'away'}"
    embedded = {"kubeconfig": str(tmp_path / "away"), "certificate_authority": "ca.crt"}
    with fake_node(tmp_path / "root", **embedded):
        for verb in ("get", "describe", "delete"):
            message = asked(tmp_path, verb, "web").stderr
            remedy = f"unsupported type 'web'; to {verb} the pod: podstatus {verb} pod web"
            assert message.startswith(f"podstatus: {remedy} ")
            assert "; supported types: pods" in message
            assert message.endswith(f"of the embedded API server: {kubectl} api-resources\n")
        for name in ("deployments", "Deployment", "deploy", "ingress", "networkpolicy", "job"):
            message = asked(tmp_path, "get", name).stderr
            assert message.startswith(f"podstatus: unsupported type '{name}'; supported types: pod")
        message = asked(tmp_path, "delete", "cm", "a", "b").stderr
    assert message.endswith(f"; use pods; for other types: {kubectl} delete cm a b\n")


@pytest.mark.usefixtures("observer")
def test_of_an_observer_pods_are_shown_as_far_as_it_knows_them(tmp_path: Path) -> None:
    result = asked(tmp_path, "get", "pods", "-A", "-o", "wide", "--from", "agent")
    rows = lines(result)
    assert rows[1][:5] == ["shop", "web", "0/1", "CrashLoopBackOff", "4"]
    assert "n7" in rows[1]
    assert rows[1][-1] == "crashing"


@pytest.mark.usefixtures("observer")
def test_of_an_observer_a_pod_is_described(tmp_path: Path) -> None:
    result = asked(tmp_path, "describe", "pod", "web", "-n", "shop", "--from", "agent")
    assert result.exit_code == 0, result.output
    assert "CrashLoopBackOff" in result.stdout
    assert "Exit Code:" in result.stdout
    for unknown in ("0001-", "Started:", "Finished:", "Container ID:", "Image ID:"):
        assert unknown not in result.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["logs", "web"], "a cluster observer runs no pods; use kubectl logs or kubectl exec"),
        (
            ["drain"],
            (
                "a cluster observer has no pods to drain; "
                "for a node of its cluster: kubectl drain NODE"
            ),
        ),
    ],
)
def test_an_observer_is_no_node(
    observer: FakeNode, tmp_path: Path, words: list[str], says: str
) -> None:
    result = asked(tmp_path, *words)
    assert (result.exit_code, result.stderr) == (1, f"podstatus: {says}\n")
    assert observer.asked == []


@pytest.mark.parametrize("source", ["auto", "agent"])
@pytest.mark.parametrize(
    "words", [("get", "pods"), ("describe", "pod", "web"), ("timeline", "web")]
)
def test_an_observer_that_hears_nothing_says_so(
    tmp_path: Path, words: tuple[str, ...], source: str
) -> None:
    (tmp_path / "away").write_text(AWAY)
    health = {"state": "healthy", "message": "Ready."}
    web = {"uid": "u", "namespace": "default", "name": "web", "health": health}
    with fake_node(tmp_path / "root", observes=True, kubeconfig=str(tmp_path / "away")) as observer:
        observer.responses = {
            "/v1/status": {"freshness": {"serverReachable": False, "serverAgeSeconds": 253}},
            "/v1/pods": {"pods": [web]},
            "/v1/pods/default/web": {"pod": web},
            "/v1/pods/default/web/timeline": {"transitions": []},
            "/v1/events": {"transitions": []},
        }
        asks = () if words[0] == "timeline" else ("--from", source)
        result = asked(tmp_path, *words, *asks)
    assert result.exit_code == 0, result.stderr
    *before, last = result.stderr.splitlines()
    assert last == "podstatus: no response from the API server for 4 min 13 s"
    assert all(line.endswith("; showing the data of the observer") for line in before)
    assert bool(before) is ("auto" in asks)


def test_a_pod_that_waits_for_a_drained_node_has_a_remedy(node: FakeNode, tmp_path: Path) -> None:
    late = pod("late")
    late["spec"].pop("nodeName")
    late["status"] = {"phase": "Pending"}
    node.pods.append(late)
    words = ["describe", "pod", "late", "--from", "agent", "--root-dir", str(tmp_path / "root")]
    lines = [line.strip() for line in CliRunner().invoke(app, words).stdout.splitlines()]
    at = lines.index("Node n1 is drained; to let it accept pods again:")
    assert lines[at - 1].endswith("it is not bound to a node.")
    assert lines[at + 1] == f"podstatus drain --cancel --root-dir {tmp_path}/root"
    node.progress = [{"state": "off"}]
    assert "drain" not in CliRunner().invoke(app, words).stdout


def test_a_pod_that_the_node_terminates_has_the_health_of_the_agent(
    node: FakeNode, tmp_path: Path
) -> None:
    message = "The pod is terminating; container app is still running. Terminated: shutdown"
    web = {
        "uid": "uid-web",
        "namespace": "default",
        "name": "web",
        "health": {"state": "ending", "message": message},
        "terminating": "Terminated: shutdown",
    }
    node.responses["/v1/pods"] = {"pods": [web]}
    wide = lines(asked(tmp_path, "get", "pods", "-o", "wide", "--from", "agent"))
    assert [row[-1] for row in wide[1:]] == ["crashing", "ending"]
    assert "/v1/pods?limit=1000&health=ending" in node.asked
    described = asked(tmp_path, "describe", "pod", "web", "--from", "agent").stdout
    assert f"Health:            ending: {message}\n" in described
    # Without an answer, the health is that of the pod.
    node.responses["/v1/pods"] = {"pods": "invalid"}
    wide = lines(asked(tmp_path, "get", "pods", "-o", "wide", "--from", "agent"))
    assert [row[-1] for row in wide[1:]] == ["crashing", "healthy"]


def test_a_deleted_pod_is_not_described_but_has_a_history(node: FakeNode, tmp_path: Path) -> None:
    node.responses["/v1/pods/default/gone/timeline"] = {"transitions": [{"id": 1}]}
    result = asked(tmp_path, "describe", "pod", "gone", "--from", "agent")
    timeline = f"podstatus timeline gone --root-dir {tmp_path}/root"
    hint = f"; to see what happened to an earlier one: {timeline}\n"
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith(hint)
    both = asked(tmp_path, "describe", "pod", "gone", "web", "--from", "agent")
    assert both.exit_code == 1
    assert "Name:              web" in both.stdout
    assert both.stderr.endswith(hint)
    never = asked(tmp_path, "describe", "pod", "never", "--from", "agent")
    assert "timeline" not in never.stderr
