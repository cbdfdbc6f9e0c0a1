"""`podstatus get` and `describe` on an embedded server."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.client.server_objects import WatchableObjects, sort_events
from podstatus.cli.register_commands import app
from podstatus.cli.render.describe_pod import describe_pod
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.testing.apiserver import ApiServerThread, running_api_server
from podstatus.testing.builders import make_pod as make_desired

STARTED = "2026-11-15T10:00:00Z"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerThread]:
    with running_api_server(tmp_path_factory.mktemp("served") / "apiserver") as server:
        create(server, "/api/v1/nodes", {"kind": "Node", "metadata": {"name": "n1"}})
        make_pod(server, "default", "web", running())
        make_pod(server, "default", "crash", crashing())
        make_pod(server, "kube-system", "proxy", {"phase": "Pending"})
        make_event(server, "web", "Started", "Container started", 1, "2026-11-15T10:00:05Z")
        make_event(server, "crash", "BackOff", "Back-off restarting", 7, "2026-11-15T10:00:01Z")
        yield server


def create(server: ApiServerThread, path: str, document: dict[str, Any]) -> None:
    code, answer = server.request("POST", path, {"apiVersion": "v1", **document})
    assert code == 201, answer


def make_pod(server: ApiServerThread, namespace: str, name: str, status: dict[str, Any]) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {
        "nodeName": "n1",
        "containers": [
            {
                "name": "app",
                "image": "nginx:1",
                "command": ["nginx"],
                "resources": {"limits": {"cpu": "1"}},
            }
        ],
    }
    metadata = {"name": name, "labels": {"app": "x", "tier": name}}
    create(server, path, {"kind": "Pod", "metadata": metadata, "spec": spec})
    patch = "application/strategic-merge-patch+json"
    code, answer = server.request("PATCH", f"{path}/{name}/status", {"status": status}, patch)
    assert code == 200, answer


def make_event(
    server: ApiServerThread, pod: str, reason: str, message: str, count: int, last: str
) -> None:
    event = {
        "kind": "Event",
        "metadata": {"name": f"{pod}.1"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": pod},
        "type": "Normal",
        "reason": reason,
        "message": message,
        "count": count,
        "firstTimestamp": STARTED,
        "lastTimestamp": last,
        "source": {"component": "kubelet", "host": "n1"},
    }
    create(server, "/api/v1/namespaces/default/events", event)


def running() -> dict[str, Any]:
    status = container({"running": {"startedAt": STARTED}}, ready=True, started=True)
    return {"phase": "Running", "podIP": "10.0.0.7", "containerStatuses": [status]}


def crashing() -> dict[str, Any]:
    message = "back-off 40s restarting failed container"
    ended = {"exitCode": 1, "reason": "Error", "startedAt": STARTED, "finishedAt": STARTED}
    status = container(
        {"waiting": {"reason": "CrashLoopBackOff", "message": message}},
        restartCount=3,
        lastState={"terminated": ended},
    )
    conditions = [
        {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "[app]"}
    ]
    return {"phase": "Running", "containerStatuses": [status], "conditions": conditions}


def container(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    named = {"name": "app", "image": "nginx:1", "imageID": "", "containerID": "simulated://1"}
    return {**named, "ready": False, "restartCount": 0, "state": state, **more}


def asked(server: ApiServerThread, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--kubeconfig", str(server.kubeconfig)])


def lines(server: ApiServerThread, *words: str) -> list[list[str]]:
    result = asked(server, *words)
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.stdout.splitlines()]


def test_pods_look_as_kubectl_shows_them(server: ApiServerThread) -> None:
    heading, crash, web = lines(server, "get", "pods")
    assert heading == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert crash[:4] == ["crash", "0/1", "CrashLoopBackOff", "3"]
    assert web[:4] == ["web", "1/1", "Running", "0"]


def test_all_namespaces_have_a_column(server: ApiServerThread) -> None:
    heading, *rows = lines(server, "get", "po", "-A")
    assert heading[:2] == ["NAMESPACE", "NAME"]
    assert [row[:2] for row in rows] == [
        ["default", "crash"],
        ["default", "web"],
        ["kube-system", "proxy"],
    ]


def test_wide_has_more_columns(server: ApiServerThread) -> None:
    heading, _, web = lines(server, "get", "pods", "-o", "wide")
    assert heading[5:7] == ["IP", "NODE"]
    assert web[5:7] == ["10.0.0.7", "n1"]


def test_nodes_and_events_are_shown_events_by_time(server: ApiServerThread) -> None:
    assert lines(server, "get", "node")[1][:2] == ["n1", "Unknown"]
    assert lines(server, "get", "nodes", "-A")[0][0] == "NAME"
    heading, first, second = lines(server, "get", "events")
    assert heading[-1] == "MESSAGE"
    assert first[1:4] == ["Normal", "BackOff", "pod/crash"]
    assert second[1:4] == ["Normal", "Started", "pod/web"]


def test_other_forms_are_whole_objects(server: ApiServerThread) -> None:
    assert asked(server, "get", "pods", "-o", "name").stdout == "pod/crash\npod/web\n"
    listed = json.loads(asked(server, "get", "pods", "-o", "json").stdout)
    assert listed["kind"] == "List"
    assert [item["kind"] for item in listed["items"]] == ["Pod", "Pod"]
    one = yaml.safe_load(asked(server, "get", "pods", "web", "-o", "yaml").stdout)
    assert (one["kind"], one["metadata"]["name"]) == ("Pod", "web")


@pytest.mark.parametrize(
    "words",
    [("pods", "web", "crash"), ("pod/web", "po/crash"), ("Pods/web", "crash")],
)
def test_several_objects_are_shown_in_the_order_of_their_names(
    server: ApiServerThread, words: tuple[str, ...]
) -> None:
    assert asked(server, "get", *words, "-o", "name").stdout == "pod/web\npod/crash\n"
    described = asked(server, "describe", *words).stdout.splitlines()
    names = [line.split()[1] for line in described if line.startswith("Name: ")]
    assert names == ["web", "crash"]


def test_a_missing_object_does_not_hide_the_others(server: ApiServerThread) -> None:
    for verb, shown in [("get", "\nweb "), ("describe", "Name:              web\n")]:
        result = asked(server, verb, "pods", "none", "web")
        assert result.exit_code == 1
        assert shown in result.stdout
        assert result.stderr.startswith("podstatus: pod 'none' not found in namespace default")


def test_labels_are_the_last_column(server: ApiServerThread) -> None:
    heading, crash, web = lines(server, "get", "pods", "-o", "wide", "--show-labels")
    assert (heading[-1], crash[-1], web[-1]) == ("LABELS", "app=x,tier=crash", "app=x,tier=web")


def test_other_formats_and_types_refer_to_kubectl(server: ApiServerThread) -> None:
    kubectl = f"kubectl --kubeconfig {server.kubeconfig}"
    result = asked(server, "get", "pods", "web", "-o", "jsonpath={.spec}")
    assert "use wide, json, yaml, name; for others: " in result.stderr
    assert result.stderr.endswith(f"{kubectl} get pods web -o 'jsonpath={{.spec}}'\n")
    assert asked(server, "get", "cm").stderr.endswith(
        f"; use pods, nodes, events or alerts; for other types: {kubectl} get cm\n"
    )


def test_the_name_of_a_pod_is_not_that_of_its_events(server: ApiServerThread) -> None:
    option = f" --kubeconfig {server.kubeconfig}"
    for words, where in ((("crash",), ""), (("crash", "web", "-n", "shop"), " -n shop")):
        result = asked(server, "get", "events", *words)
        assert (result.exit_code, result.stdout) == (1, "")
        for name in words[: 2 if where else 1]:
            describe = f"podstatus describe pod {name}{where}{option}"
            assert f"podstatus: event '{name}' not found in namespace " in result.stderr
            assert f"; for the events of a pod: {describe}\n" in result.stderr


def test_an_empty_list_prints_kubectls_message(server: ApiServerThread) -> None:
    result = asked(server, "get", "pods", "-n", "kube-public")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No resources found in kube-public namespace.\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("get", "pods", "none"),
            1,
            "pod 'none' not found in namespace default; see: podstatus get",
        ),
        (("get", "secrets"), 2, "unsupported type 'secrets'; use pods, nodes, events or alerts"),
        (("get", "pods", "web", "-A"), 2, "NAME cannot be combined with -A or a selector"),
        (("get", "pods", "web", "-l", "app=x"), 2, "NAME cannot be combined with -A or a selector"),
        (("get", "pods", "-l", "app=x,"), 2, "--selector: found '', expected: identifier after"),
        (
            ("get", "pods", "--field-selector", "spec.fase=x"),
            1,
            "--field-selector: field label not supported: spec.fase; supported for pods: metadata.",
        ),
        (("get", "pods", "a/b"), 2, "'a/b' is not of type pods; pass objects of one type"),
        (("get", "pod/web", "nodes/n1"), 2, "'nodes/n1' is not of type pod; pass objects of one"),
        (("get", "pod/"), 2, "the name of an object is missing; write it as in pod/NAME"),
        (("get", "pods", "web", "crash", "-w"), 2, "--watch takes one NAME"),
        (("get", "pods", "-o", "custom-columns=A:.b"), 2, "--output: no such format 'custom-"),
        (
            ("describe", "events"),
            2,
            "cannot describe events, only pods and nodes; to list them: podstatus",
        ),
        (("describe", "node", "none"), 1, "node 'none' not found; see: podstatus get nodes"),
        (
            ("describe", "web"),
            2,
            "unsupported type 'web'; to describe the pod: podstatus describe pod web ",
        ),
        (("describe", "pod/none"), 1, "pod 'none' not found in namespace default"),
        (("describe", "pod", "none"), 1, "pod 'none' not found in namespace default"),
    ],
)
def test_errors_are_one_line(
    server: ApiServerThread, words: tuple[str, ...], code: int, message: str
) -> None:
    result = asked(server, *words)
    assert result.exit_code == code
    assert result.stderr.startswith(f"podstatus: {message}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("-l", "tier=web"), ["web"]),
        (("-l", "tier in (web, db), app"), ["web"]),
        (("--selector", "tier notin (web),!old"), ["crash"]),
        (("-l", "!app"), []),
        (("-A", "--field-selector", "status.phase=Pending"), ["proxy"]),
        (("-A", "--field-selector", "metadata.namespace!=default", "-l", "tier"), ["proxy"]),
    ],
)
def test_selectors_select(
    server: ApiServerThread, words: tuple[str, ...], names: list[str]
) -> None:
    found = asked(server, "get", "pods", "-o", "name", *words).stdout
    assert found == "".join(f"pod/{name}\n" for name in names)


def test_events_within_a_second_are_in_the_order_of_their_writes() -> None:
    newest = {"eventTime": "2026-11-15T10:00:05.000001Z", "metadata": {"resourceVersion": "9"}}
    precise = {"eventTime": "2026-11-15T10:00:04.700000Z", "metadata": {"resourceVersion": "7"}}
    later = {"lastTimestamp": "2026-11-15T10:00:04Z", "metadata": {"resourceVersion": "8"}}
    assert sort_events([newest, later, precise]) == [precise, later, newest]


def test_a_node_is_described_with_its_pods(server: ApiServerThread) -> None:
    text = asked(server, "describe", "Node").stdout
    by_name = asked(server, "describe", "nodes", "n1").stdout
    # The second is later: an age may differ.
    assert re.sub(r"\d+s\b", "0s", text) == re.sub(r"\d+s\b", "0s", by_name)
    lines = [line.split() for line in text.splitlines()]
    assert ["Name:", "n1"] in lines
    assert ["default", "web", "1", "1", "0", "0"] in [line[:6] for line in lines]
    assert ["cpu", "3", "(0%)", "3", "(0%)"] in lines


def test_all_pods_of_the_namespace_are_described(server: ApiServerThread) -> None:
    text = asked(server, "describe", "PODS").stdout
    assert [line for line in text.splitlines() if line.startswith("Name: ")] == [
        "Name:              crash",
        "Name:              web",
    ]


def test_a_pod_is_described(server: ApiServerThread) -> None:
    text = asked(server, "describe", "pod", "crash").stdout
    for line in [
        "Name:              crash",
        "Node:              n1",
        "Labels:            app=x",
        "                   tier=crash",
        "    State:             Waiting",
        "      Reason:          CrashLoopBackOff",
        "      Message:         back-off 40s restarting failed container",
        "    Last State:        Terminated",
        "      Exit Code:       1",
        "    Restart Count:     3",
        "      cpu:             1",
        "  Ready   False    ContainersNotReady: [app]",
    ]:
        assert line in text.splitlines(), line
    (event,) = [line for line in text.splitlines() if "BackOff " in line]
    assert "(x7 over " in event
    assert "Container started" not in text


def test_a_pod_that_fits_nowhere_says_why_when_it_is_described() -> None:
    why = "0/1 nodes are available: 1 Insufficient cpu."
    condition = PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", message=why
    )
    pod = make_desired("web", status=PodStatus(phase="Pending", conditions=(condition,)))
    series = {"count": 3, "lastObservedTime": "2026-11-15T10:00:20.000000Z"}
    event = {
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": why,
        "eventTime": "2026-11-15T10:00:00.000000Z",
        "reportingComponent": "default-scheduler",
    }
    now = Time.parse("2026-11-15T10:00:30Z")
    text = describe_pod(pod, [event, event | {"series": series}], now)
    once, thrice = text.splitlines()[-2:]
    assert f"  PodScheduled   False    Unschedulable: {why}" in text.splitlines()
    assert once.split()[:4] == ["Warning", "FailedScheduling", "30s", "default-scheduler"]
    assert "10s (x3 over 30s)  default-scheduler" in thrice


def test_an_agents_root_dir_is_enough(server: ApiServerThread, tmp_path: Path) -> None:
    words = ["get", "pods", "-o", "name", "--root-dir", str(tmp_path)]
    before = CliRunner().invoke(app, words)
    assert before.exit_code == 1
    message = f"no agent runs in {tmp_path}; start one with: podstatus run --root-dir {tmp_path}"
    assert message in before.stderr
    endpoints = AgentEndpoints(
        apiserver=server.url, agent="", kubeconfig=str(server.kubeconfig), node="n1", pid=1
    )
    with RootDir(tmp_path) as root:
        root.write_endpoints(endpoints)
        during = CliRunner().invoke(app, words)
        assert during.stdout == "pod/crash\npod/web\n"
    killed = CliRunner().invoke(app, words)
    assert message in killed.stderr


def test_an_unreachable_server_is_reported(tmp_path: Path) -> None:
    with running_api_server(tmp_path / "gone") as gone:
        pass
    result = asked(gone, "get", "pods")
    assert result.exit_code == 1
    assert "cannot connect to https://127.0.0.1" in result.stderr


def test_a_watch_goes_on_below_its_list(
    server: ApiServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = {"metadata": {"name": "later"}, "spec": {"containers": [{"name": "app"}]}}

    def changes(*_: object) -> Iterator[dict[str, Any]]:
        yield later
        raise RequestError("that was all")

    monkeypatch.setattr(WatchableObjects, "watch", changes)
    one = asked(server, "get", "pod/web", "-w").stdout.splitlines()
    assert [line.split()[0] for line in one] == ["NAME", "web", "later"]
    result = asked(server, "get", "pods", "-w")
    heading, _, _, row = result.stdout.splitlines()
    assert row.startswith("later ")
    assert row.index("0/1") == heading.index("READY")
    assert result.stderr == "podstatus: that was all\n"
    empty = asked(server, "get", "pods", "-w", "-n", "kube-public").stdout.splitlines()
    assert [line.split()[0] for line in empty] == ["NAME", "later"]
