"""What a status may say, and what of a pod a status may change."""

import pytest

from tests.servers.pods import IMAGE, causes, created, pod, pods
from tests.support.processes.api_servers import Document, Server

STARTED = {"startedAt": "2024-08-14T05:52:41Z"}
ENDED = {**STARTED, "finishedAt": "2024-08-14T05:52:42Z", "containerID": "c://1"}
WAITING: Document = {"waiting": {"reason": "CrashLoopBackOff"}}
RUNNING: Document = {"running": STARTED}
COMPLETED: Document = {"terminated": {"exitCode": 0, "reason": "Completed", **ENDED}}
FAILED: Document = {"terminated": {"exitCode": 1, "reason": "Error", **ENDED}}
REFUSED = ["status.containerStatuses[0].state"]


def reported(state: Document) -> Document:
    """A status with one container in this state."""
    container = {"name": "app", "image": IMAGE, "imageID": "", "ready": False, "restartCount": 0}
    return {"status": {"phase": "Running", "containerStatuses": [{**container, "state": state}]}}


def conditions(stored: Document) -> dict[str, str]:
    return {c["type"]: c["status"] for c in stored["status"]["conditions"]}


@pytest.mark.parametrize(
    ("policy", "before", "after", "refused"),
    [
        ("Never", COMPLETED, RUNNING, REFUSED),
        ("Never", FAILED, RUNNING, REFUSED),
        ("Never", FAILED, WAITING, REFUSED),
        ("OnFailure", COMPLETED, RUNNING, REFUSED),
        ("OnFailure", COMPLETED, WAITING, REFUSED),
        ("OnFailure", FAILED, RUNNING, []),
        ("OnFailure", FAILED, WAITING, []),
        ("Always", COMPLETED, RUNNING, []),
        ("Always", FAILED, WAITING, []),
        ("Never", RUNNING, WAITING, []),
        ("Never", WAITING, RUNNING, []),
        ("Never", RUNNING, FAILED, []),
        ("Never", COMPLETED, FAILED, []),
    ],
)
def test_what_has_ended_for_good_does_not_run_again(
    server: Server,
    namespace: str,
    policy: str,
    before: Document,
    after: Document,
    refused: list[str],
) -> None:
    body = pod("a")
    body["spec"]["restartPolicy"] = policy
    created(server.client, pods(namespace), body)
    path = pods(namespace, "a", "status")
    assert server.client.patch(path, reported(before))[0] == 200
    answer = server.client.patch(path, reported(after))
    if refused:
        assert causes(answer) == refused
    stored = server.client.get(pods(namespace, "a"))[1]["status"]
    (container,) = stored["containerStatuses"]
    assert container["state"].keys() == (before if refused else after).keys()


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        ({"qosClass": "Guaranteed"}, ["status.qosClass"]),
        ({"observedGeneration": -1}, ["status.observedGeneration"]),
        ({"podIP": "999.1.1.1"}, ["status.podIPs[0]"]),
        (
            {"podIPs": [{"ip": "10.1.1.1"}, {"ip": "10.1.1.2"}], "podIP": "10.1.1.1"},
            ["status.podIPs"],
        ),
        ({"nominatedNodeName": "x"}, ["status.nominatedNodeName"]),
        ({"resourceClaimStatuses": [{"name": "x"}]}, ["status.resourceClaimStatuses[0].name"]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_status_that_cannot_be_is_refused(
    server: Server, namespace: str, status: Document, fields: list[str]
) -> None:
    before = created(server.client, pods(namespace), pod("a"))
    assert causes(server.client.patch(pods(namespace, "a", "status"), {"status": status})) == fields
    assert server.client.get(pods(namespace, "a"))[1] == before


def test_any_phase_is_stored(server: Server, namespace: str) -> None:
    created(server.client, pods(namespace), pod("a"))
    path = pods(namespace, "a", "status")
    for phase in ("Succeeded", "Running", "Bogus"):
        code, stored = server.client.patch(path, {"status": {"phase": phase}})
        assert (code, stored["status"]["phase"]) == (200, phase)


def test_a_status_changes_neither_spec_nor_owners(server: Server, namespace: str) -> None:
    before = created(server.client, pods(namespace), pod("a"))
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    patch = {
        "metadata": {"ownerReferences": [owner], "labels": {"seen": "yes"}},
        "spec": {"activeDeadlineSeconds": 5, "containers": [{"name": "app", "image": "other"}]},
        "status": {"phase": "Running"},
    }
    code, stored = server.client.patch(pods(namespace, "a", "status"), patch)
    assert (code, stored["spec"]) == (200, before["spec"])
    assert "ownerReferences" not in stored["metadata"]
    assert stored["metadata"]["labels"] == {"seen": "yes"}
    assert stored["metadata"]["generation"] == before["metadata"]["generation"]


def test_what_is_sent_to_the_pod_does_not_change_the_status(server: Server, namespace: str) -> None:
    before = created(server.client, pods(namespace), pod("a"))
    code, stored = server.client.patch(pods(namespace, "a"), {"status": {"phase": "Running"}})
    assert (code, stored) == (200, before)


def test_conditions_of_others_survive(server: Server, namespace: str) -> None:
    created(server.client, pods(namespace), pod("a"))
    path = pods(namespace, "a", "status")
    for kind, status in (("example.com/gate", "True"), ("Ready", "False"), ("Ready", "True")):
        patch = {"status": {"conditions": [{"type": kind, "status": status}]}}
        code, stored = server.client.patch(path, patch)
        assert code == 200
    assert conditions(stored) == {"example.com/gate": "True", "Ready": "True"}
    removal = {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}}
    assert conditions(server.client.patch(path, removal)[1]) == {"example.com/gate": "True"}


def test_lists_without_a_key_are_replaced_whole(server: Server, namespace: str) -> None:
    created(server.client, pods(namespace), pod("a"))
    path = pods(namespace, "a", "status")
    server.client.patch(path, reported(RUNNING))
    code, stored = server.client.patch(path, {"status": {"containerStatuses": []}})
    assert (code, stored["status"].get("containerStatuses")) == (200, None)
