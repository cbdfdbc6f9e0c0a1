"""Pods without a node are scheduled, seen through a real socket."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from podstatus.testing.apiserver import ApiServerThread, running_api_server
from tests.apiserver.controllers.documents import node, pod

Document = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServerThread]:
    with running_api_server(tmp_path / "server", schedule=True) as server:
        yield server


def create_node(server: ApiServerThread, document: Document) -> None:
    document = {"apiVersion": "v1", "kind": "Node"} | document
    assert server.request("POST", "/api/v1/nodes", document)[0] == 201


def create_pod(server: ApiServerThread, name: str, document: Document | None = None) -> None:
    document = (document or pod()) | {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    code, answered = server.request("POST", PODS, document)
    assert code == 201, answered


def wait_for(server: ApiServerThread, name: str, is_so: Callable[[Document], bool]) -> Document:
    """Return the pod once the predicate holds; by a watch, without polling."""
    with closing(server.connect()) as connection:
        path = f"{PODS}?watch=1&fieldSelector=metadata.name={name}"
        connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}"})
        response = connection.getresponse()
        while True:
            current: Document = json.loads(response.readline())["object"]
            if is_so(current):
                return current


def node_of(document: Document) -> str:
    name: str = document["spec"].get("nodeName", "")
    return name


def scheduled(document: Document) -> Document:
    conditions = document["status"].get("conditions") or []
    condition: Document = next((c for c in conditions if c["type"] == "PodScheduled"), {})
    return condition


def test_a_pod_is_bound_to_a_ready_node(server: ApiServerThread) -> None:
    create_node(server, node())
    create_pod(server, "web")
    bound = wait_for(server, "web", lambda pod: node_of(pod) == "n1")
    assert scheduled(bound)["status"] == "True"


def test_a_pod_that_came_first_is_bound_when_a_node_becomes_ready(server: ApiServerThread) -> None:
    create_node(server, node(ready="False"))
    create_pod(server, "web")
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    server.request("PATCH", "/api/v1/nodes/n1/status", status, MERGE)
    wait_for(server, "web", lambda pod: node_of(pod) == "n1")


def test_without_a_ready_node_nothing_is_written(server: ApiServerThread) -> None:
    create_node(server, node("n0", ready="False"))
    create_pod(server, "early")
    before = server.get_object("pods", "early", "default")
    create_pod(server, "other", pod(nodeName="n0"))
    assert server.get_object("pods", "early", "default") == before
    assert before is not None
    assert scheduled(before) == {}


def test_a_full_node_takes_the_next_pod_when_one_has_gone(server: ApiServerThread) -> None:
    create_node(server, node())
    for name in ("a", "b"):
        create_pod(server, name)
        wait_for(server, name, lambda pod: node_of(pod) == "n1")
    create_pod(server, "c")
    waiting = wait_for(server, "c", lambda pod: bool(scheduled(pod)))
    assert scheduled(waiting) | {"lastTransitionTime": ""} == {
        "type": "PodScheduled",
        "observedGeneration": 1,
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": "",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Too many pods.",
    }
    server.request("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
    bound = wait_for(server, "c", lambda pod: node_of(pod) == "n1")
    assert scheduled(bound)["status"] == "True"


def test_a_pod_that_has_ended_makes_room(server: ApiServerThread) -> None:
    create_node(server, node())
    create_pod(server, "a", pod({"cpu": "2"}))
    wait_for(server, "a", lambda pod: node_of(pod) == "n1")
    create_pod(server, "b", pod({"cpu": "2"}))
    server.request("PATCH", f"{PODS}/a/status", {"status": {"phase": "Succeeded"}}, MERGE)
    wait_for(server, "b", lambda pod: node_of(pod) == "n1")


@pytest.mark.parametrize(
    "spec", [{"schedulerName": "mine"}, {"schedulingGates": [{"name": "example.com/later"}]}]
)
def test_pods_of_others_are_left_alone(server: ApiServerThread, spec: Document) -> None:
    create_node(server, node())
    create_pod(server, "theirs", pod(**spec))
    create_pod(server, "large", pod({"cpu": "9"}, **spec))
    create_pod(server, "ours")
    wait_for(server, "ours", lambda pod: node_of(pod) == "n1")
    for name in ("theirs", "large"):
        theirs = server.get_object("pods", name, "default")
        assert theirs is not None
        assert node_of(theirs) == ""
        assert scheduled(theirs).get("reason") != "Unschedulable"


def events(server: ApiServerThread, pod: str) -> list[Document]:
    events = server.list_objects("events", "default")
    return [event for event in events if event["involvedObject"]["name"] == pod]


def test_decisions_are_recorded_as_events(server: ApiServerThread) -> None:
    create_node(server, node())
    create_pod(server, "web", pod({"cpu": "3"}))
    waiting = wait_for(server, "web", lambda pod: bool(scheduled(pod)))
    (failed,) = events(server, "web")
    assert (failed["type"], failed["reason"]) == ("Warning", "FailedScheduling")
    assert failed["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert failed["message"] == scheduled(waiting)["message"]
    assert failed["reportingComponent"] == "default-scheduler"
    assert failed["involvedObject"]["uid"] == waiting["metadata"]["uid"]
    create_node(server, large_node("n2"))
    wait_for(server, "web", lambda pod: node_of(pod) == "n2")
    (bound,) = [event for event in events(server, "web") if event != failed]
    assert (bound["type"], bound["reason"]) == ("Normal", "Scheduled")
    assert bound["message"] == "Successfully assigned default/web to n2"
    assert "series" not in bound


def large_node(name: str, **spec: Any) -> Document:
    large = node(name, **spec)
    return large | {"status": large["status"] | {"allocatable": {"cpu": "9", "pods": "9"}}}


def says(message: str) -> Callable[[Document], bool]:
    return lambda pod: scheduled(pod).get("message") == message


def test_a_repeated_event_is_counted(server: ApiServerThread) -> None:
    create_node(server, node())
    create_pod(server, "web", pod({"cpu": "3"}))
    short, cordoned = "1 Insufficient cpu", "1 node(s) were unschedulable"
    messages = []
    for number in range(4):
        message = f"0/1 nodes are available: {cordoned if number % 2 else short}."
        wait_for(server, "web", says(message))
        messages.append(message)
        # Scheduled again after a change of capacity, with the same result.
        create_pod(server, f"gone-{number}", pod(nodeName="n1"))
        server.request("DELETE", f"{PODS}/gone-{number}", {"gracePeriodSeconds": 0})
        change = {"spec": {"unschedulable": not number % 2}}
        assert server.request("PATCH", "/api/v1/nodes/n1", change, MERGE)[0] == 200
    by_message = {event["message"]: event for event in events(server, "web")}
    assert set(by_message) == set(messages)
    series = by_message[messages[1]]["series"]
    assert series["count"] == 2
    assert series["lastObservedTime"]


@pytest.mark.parametrize(
    ("where", "waiting", "why"),
    [
        (node(), pod(nodeSelector={"disk": "hdd"}), "didn't match Pod's node affinity/selector"),
        (node(unschedulable=True), pod(), "were unschedulable"),
        (node(taints=[{"key": "own", "effect": "NoSchedule"}]), pod(), "had untolerated taint(s)"),
    ],
)
def test_a_pod_that_a_ready_node_refuses_says_so(
    server: ApiServerThread, where: Document, waiting: Document, why: str
) -> None:
    create_node(server, where)
    create_pod(server, "web", waiting)
    condition = scheduled(wait_for(server, "web", lambda pod: bool(scheduled(pod))))
    message = f"0/1 nodes are available: 1 node(s) {why}."
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        "Unschedulable",
        message,
    )
    assert [event["message"] for event in events(server, "web")] == [message]


def test_a_pod_of_the_same_name_has_events_of_its_own(server: ApiServerThread) -> None:
    create_node(server, node())
    uids = set()
    for _ in range(2):
        create_pod(server, "web", pod({"cpu": "3"}))
        waiting = wait_for(server, "web", lambda pod: bool(scheduled(pod)))
        uids.add(waiting["metadata"]["uid"])
        server.request("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})
    assert {event["involvedObject"]["uid"] for event in events(server, "web")} == uids


def test_long_names_and_long_messages_fit_into_an_event(server: ApiServerThread) -> None:
    create_node(server, node())
    name = ".".join(["a" * 63] * 3 + ["b" * 61])
    requests = {f"example.com/{letter * 60}": "1" for letter in "abcdefghijklmnopqrstuvwxyz"}
    limited = pod(requests)
    limited["spec"]["containers"][0]["resources"]["limits"] = requests
    create_pod(server, name, limited)
    waiting = wait_for(server, name, lambda pod: bool(scheduled(pod)))
    assert len(scheduled(waiting)["message"]) > 1024
    (event,) = events(server, name)
    assert len(event["message"]) == 1024
    assert event["message"].endswith(" ...")
    assert len(event["metadata"]["name"]) == 253


def test_pods_that_wait_are_bound_after_a_restart(tmp_path: Path) -> None:
    with running_api_server(tmp_path, durable=True) as server:
        create_node(server, node())
        create_pod(server, "taken", pod({"cpu": "2"}, nodeName="n1"))
        create_pod(server, "large", pod({"cpu": "1"}))
        create_pod(server, "small")
    with running_api_server(tmp_path, durable=True, schedule=True) as server:
        wait_for(server, "small", lambda pod: node_of(pod) == "n1")
        large = wait_for(server, "large", lambda pod: bool(scheduled(pod)))
        assert scheduled(large)["reason"] == "Unschedulable"
