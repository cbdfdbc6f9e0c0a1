"""Defaults, updates and deletion of pods."""

from typing import Any

import pytest

from podstatus.apiserver.strategies.base import Document, MalformedObjectError
from podstatus.apiserver.strategies.by_resource import STRATEGIES
from podstatus.kube.objects.cluster import DeleteOptions

PODS = STRATEGIES["pods"]


def pod(*, status: Document | None = None, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "ns", "uid": "u"},
        "spec": {"containers": [{"name": "c0", "image": "nginx:1"}]} | spec,
    } | ({"status": status} if status is not None else {})


def stored(*, status: Document | None = None, **spec: Any) -> Document:
    document = PODS.prepare_create(pod(**spec))
    return document | {"status": document["status"] | (status or {})}


def test_a_new_pod_is_pending_of_generation_one_with_all_defaults() -> None:
    created = PODS.prepare_create(pod(status={"phase": "Running", "podIP": "1.2.3.4"}))
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert created["metadata"]["generation"] == 1
    spec = created["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["securityContext"] == {}
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert [toleration["key"] for toleration in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


def test_decoding_again_changes_nothing() -> None:
    spec = {"volumes": [{"name": "v"}], "hostNetwork": True}
    once = PODS.decode(pod(status={"podIP": "1.2.3.4"}, **spec))
    assert PODS.decode(once) == once


def test_a_gated_pod_tells_that_it_is_not_scheduled() -> None:
    document = pod(schedulingGates=[{"name": "g"}])
    document["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z"
    (condition,) = PODS.prepare_create(document)["status"]["conditions"]
    assert condition["reason"] == "SchedulingGated"
    assert condition["lastTransitionTime"] == "2024-01-01T00:00:00Z"


def test_fields_of_wrong_type_are_refused() -> None:
    with pytest.raises(MalformedObjectError, match="phase"):
        PODS.decode(pod(status={"phase": 5}))


def test_fields_that_pods_do_not_have_are_dropped() -> None:
    document = pod(bogus=1) | {"more": {}}
    assert "bogus" not in PODS.decode(document)["spec"]
    assert "more" not in PODS.decode(document)


def test_the_node_may_not_change() -> None:
    old = stored(nodeName="n")
    new = PODS.prepare_update(PODS.decode(old | {"spec": old["spec"] | {"nodeName": "m"}}), old, "")
    (cause,) = PODS.validate_update(new, old, "")
    assert cause.field == "spec"
    assert cause.message.startswith("Forbidden: pod updates may not change fields other than")
    assert cause.message.endswith("changed: spec.nodeName")


RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}
WITH_RULE = {"name": "c0", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [RULE]}


@pytest.mark.parametrize(
    ("key", "name", "policy", "exit_code", "legal"),
    [
        ("initContainerStatuses", "i0", "Never", 1, False),
        ("initContainerStatuses", "i0", "OnFailure", 0, False),
        ("initContainerStatuses", "i0", "OnFailure", 1, True),
        ("ephemeralContainerStatuses", "e0", "Always", 1, False),
        ("containerStatuses", "c0", "Never", 3, True),
        ("containerStatuses", "c0", "Never", 4, False),
    ],
)
def test_an_ended_container_runs_again_only_if_it_should_restart(
    key: str, name: str, policy: str, exit_code: int, legal: bool
) -> None:
    """Cases that the recordings of upstream lack: init, ephemeral, restart rules."""
    ended = {"name": name, "state": {"terminated": {"exitCode": exit_code}}}
    runs = {"name": name, "state": {"running": {"startedAt": "2024-01-01T00:00:00Z"}}}
    old = stored(
        restartPolicy=policy,
        containers=[WITH_RULE],
        initContainers=[{"name": "i0", "image": "i"}],
        status={key: [ended]},
    )
    body = old | {"status": old["status"] | {key: [runs]}}
    new = PODS.prepare_update(PODS.decode(body), old, "status")
    causes = PODS.validate_update(new, old, "status")
    assert [cause.field for cause in causes] == ([] if legal else [f"status.{key}[0].state"])


def test_a_new_pod_has_no_ephemeral_containers() -> None:
    created = PODS.prepare_create(pod(ephemeralContainers=[{"name": "e", "image": "i"}]))
    assert [cause.field for cause in PODS.validate_create(created)] == ["spec.ephemeralContainers"]


def test_generations_once_observed_are_kept() -> None:
    old = stored(
        status={
            "observedGeneration": 3,
            "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}],
        }
    )
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    new = PODS.prepare_update(PODS.decode(old | {"status": status}), old, "status")
    assert new["status"]["observedGeneration"] == 3
    assert new["status"]["conditions"][0]["observedGeneration"] == 2


@pytest.mark.parametrize(
    ("spec", "phase", "requested", "granted"),
    [
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 5}, "Running", None, 5),
        ({"nodeName": "n"}, "Running", 7, 7),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", -1, 1),
        ({}, "Pending", 7, 0),
        ({"nodeName": "n"}, "Succeeded", 7, 0),
        ({"nodeName": "n"}, "Failed", None, 0),
    ],
)
def test_a_pod_stays_while_its_node_may_have_to_stop_it(
    spec: Document, phase: str, requested: int | None, granted: int
) -> None:
    document = stored(status={"phase": phase}, **spec)
    options = DeleteOptions(grace_period_seconds=requested)
    assert PODS.grace_period(document, options) == granted


def test_pods_are_selected_by_node_phase_and_address() -> None:
    status = {"phase": "Running", "podIPs": [{"ip": "1.1.1.1"}]}
    fields = PODS.fields(stored(nodeName="n", status=status))
    assert fields["spec.nodeName"] == "n"
    assert fields["status.phase"] == "Running"
    assert fields["status.podIP"] == "1.1.1.1"
    assert fields["spec.hostNetwork"] == "false"
