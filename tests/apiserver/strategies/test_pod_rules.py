"""Defaults, updates and deletion of pods."""

from typing import Any

import pytest

from podstatus.apiserver.strategies.base import DeleteOptions, Document, MalformedObjectError
from podstatus.apiserver.strategies.by_resource import STRATEGIES

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


def with_status(document: Document, **status: Any) -> Document:
    return document | {"status": document["status"] | status}


def fields_of(causes: list[Any]) -> list[str]:
    return [cause.field for cause in causes]


def status_causes(old: Document, **status: Any) -> list[Any]:
    new = PODS.prepare_update(PODS.decode(with_status(old, **status)), old, "status")
    return PODS.validate_update(new, old, "status")


def ended(exit_code: int, name: str = "c0") -> list[Document]:
    return [{"name": name, "state": {"terminated": {"exitCode": exit_code}}}]


def running(name: str = "c0") -> list[Document]:
    return [{"name": name, "state": {"running": {"startedAt": "2024-01-01T00:00:00Z"}}}]


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


def test_limits_are_requested_too() -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1000m"}}}
    created = PODS.prepare_create(pod(containers=[container]))
    resources = created["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    assert created["status"]["qosClass"] == "Burstable"


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


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": []}, "spec.containers"),
        ({"containers": [{"name": "c", "image": "i"}] * 2}, "spec.containers[1].name"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
        ({"nodeName": "BAD"}, "spec.nodeName"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"ephemeralContainers": [{"name": "e", "image": "i"}]}, "spec.ephemeralContainers"),
    ],
)
def test_a_bad_spec_is_refused_by_field(spec: Document, field: str) -> None:
    assert fields_of(PODS.validate_create(PODS.prepare_create(pod(**spec)))) == [field]


def test_an_image_may_change_and_the_generation_tells() -> None:
    old = stored(nodeName="n")
    container = old["spec"]["containers"][0] | {"image": "nginx:2"}
    new = PODS.prepare_update(
        PODS.decode(old | {"spec": old["spec"] | {"containers": [container]}}), old, ""
    )
    assert new["metadata"]["generation"] == 2
    assert PODS.validate_update(new, old, "") == []


def test_the_node_may_not_change() -> None:
    old = stored(nodeName="n")
    new = PODS.prepare_update(PODS.decode(old | {"spec": old["spec"] | {"nodeName": "m"}}), old, "")
    (cause,) = PODS.validate_update(new, old, "")
    assert cause.field == "spec"
    assert cause.message.startswith("Forbidden: pod updates may not change fields other than")
    assert cause.message.endswith("changed: spec.nodeName")


def test_an_update_leaves_the_status_alone_and_a_status_update_the_spec() -> None:
    old = stored()
    other = pod(status={"phase": "Running"}, nodeName="m")
    assert PODS.prepare_update(PODS.decode(other), old, "")["status"] == old["status"]
    updated = PODS.prepare_update(PODS.decode(other), old, "status")
    assert updated["spec"] == old["spec"]
    assert updated["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert updated["metadata"]["generation"] == 1


def test_a_status_update_may_change_labels_but_not_owners() -> None:
    old = stored()
    owner = {"apiVersion": "v1", "kind": "X", "name": "n", "uid": "u"}
    meta = old["metadata"] | {"labels": {"a": "b"}, "ownerReferences": [owner]}
    new = PODS.prepare_update(PODS.decode(old | {"metadata": meta}), old, "status")
    assert new["metadata"]["labels"] == {"a": "b"}
    assert "ownerReferences" not in new["metadata"]


@pytest.mark.parametrize(
    ("policy", "exit_code", "legal"),
    [
        ("Always", 0, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 0, False),
        ("Never", 1, False),
    ],
)
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_an_ended_container_runs_again_only_if_it_should_restart(
    kind: str, policy: str, exit_code: int, legal: bool
) -> None:
    name = "c0" if kind == "containers" else "i0"
    key = "containerStatuses" if kind == "containers" else "initContainerStatuses"
    init = [{"name": "i0", "image": "i"}]
    old = stored(restartPolicy=policy, initContainers=init, status={key: ended(exit_code, name)})
    causes = status_causes(old, **{key: running(name)})
    assert fields_of(causes) == ([] if legal else [f"status.{key}[0].state"])


def test_restart_rules_of_a_container_count() -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}
    container = {
        "name": "c0",
        "image": "i",
        "restartPolicy": "Never",
        "restartPolicyRules": [rule],
    }
    for exit_code, legal in ((3, True), (4, False)):
        old = stored(
            containers=[container],
            restartPolicy="Never",
            status={"containerStatuses": ended(exit_code)},
        )
        assert bool(status_causes(old, containerStatuses=running())) is not legal


def test_an_ephemeral_container_never_runs_again() -> None:
    old = stored(status={"ephemeralContainerStatuses": ended(1)})
    causes = status_causes(old, ephemeralContainerStatuses=running())
    assert fields_of(causes) == ["status.ephemeralContainerStatuses[0].state"]


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"qosClass": "Guaranteed"}, "status.qosClass"),
        ({"observedGeneration": -1}, "status.observedGeneration"),
        ({"podIP": "not-an-ip"}, "status.podIPs[0]"),
        ({"podIPs": [{"ip": "1.1.1.1"}, {"ip": "2.2.2.2"}]}, "status.podIPs"),
        ({"hostIP": "1.1.1.1", "hostIPs": [{"ip": "fd00::1"}]}, "status.hostIPs[0].ip"),
        ({"resourceClaimStatuses": [{"name": "x"}]}, "status.resourceClaimStatuses[0].name"),
        ({"conditions": [{"type": "no type", "status": "True"}]}, "status.conditions[0].Type"),
        ({"nominatedNodeName": "BAD"}, "status.nominatedNodeName"),
    ],
)
def test_a_bad_status_is_refused_by_field(status: Document, field: str) -> None:
    assert fields_of(status_causes(stored(), **status)) == [field]


def test_an_address_that_was_bad_before_may_stay() -> None:
    old = stored(status={"podIP": "x", "podIPs": [{"ip": "x"}]})
    assert status_causes(old, phase="Running") == []


def test_the_one_address_counts_more_than_the_list() -> None:
    status = {"podIP": "1.1.1.1", "podIPs": [{"ip": "2.2.2.2"}, {"ip": "fd00::1"}]}
    assert PODS.decode(pod(status=status))["status"]["podIPs"] == [{"ip": "1.1.1.1"}]


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


def test_resizing_changes_resources_and_nothing_else() -> None:
    container = {
        "name": "c0",
        "image": "i",
        "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
    }
    old = stored(containers=[container])
    resources = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    changed = old["spec"]["containers"][0] | {"resources": resources, "image": "other"}
    body = old | {"spec": old["spec"] | {"containers": [changed]}}
    new = PODS.prepare_update(PODS.decode(body), old, "resize")
    assert new["spec"]["containers"][0]["image"] == "i"
    assert new["spec"]["containers"][0]["resources"] == resources
    assert new["metadata"]["generation"] == 2
    assert PODS.validate_update(new, old, "resize") == []


def test_resizing_may_not_change_the_qos_class() -> None:
    old = stored()
    bigger = old["spec"]["containers"][0] | {"resources": {"requests": {"cpu": "2"}}}
    body = old | {"spec": old["spec"] | {"containers": [bigger]}}
    new = PODS.prepare_update(PODS.decode(body), old, "resize")
    assert fields_of(PODS.validate_update(new, old, "resize")) == ["spec"]


def test_pods_are_selected_by_node_phase_and_address() -> None:
    status = {"phase": "Running", "podIPs": [{"ip": "1.1.1.1"}]}
    fields = PODS.fields(stored(nodeName="n", status=status))
    assert fields["spec.nodeName"] == "n"
    assert fields["status.phase"] == "Running"
    assert fields["status.podIP"] == "1.1.1.1"
    assert fields["spec.hostNetwork"] == "false"
