"""Nodes, leases, events, namespaces, configmaps and secrets; bindings; names and images."""

import base64
from typing import Any

import pytest

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.resources import RESOURCES
from podstatus.apiserver.strategies.base import Document, MalformedObjectError
from podstatus.apiserver.strategies.by_resource import STRATEGIES
from podstatus.apiserver.strategies.pod.binding import bind_pod, check_binding_name
from podstatus.kube.scalars.time import Time
from podstatus.kube.validation.addresses import family
from podstatus.kube.validation.images import is_latest
from podstatus.kube.validation.names import (
    dns_label,
    dns_subdomain,
    label_value,
    port_name,
    qualified_name,
)

NOW = Time.parse("2026-01-02T03:04:05Z")


def create(plural: str, **parts: Any) -> Document:
    meta = {"name": "a", "namespace": "ns"}
    if plural in ("nodes", "namespaces"):
        meta.pop("namespace")
    return STRATEGIES[plural].prepare_create({"metadata": meta} | parts)


def wrong_change(plural: str, old: Document, **parts: Any) -> list[str]:
    strategy = STRATEGIES[plural]
    new = strategy.prepare_update(strategy.decode(old | parts), old, "")
    return [cause.field for cause in strategy.validate_update(new, old, "")]


def test_every_resource_has_rules() -> None:
    assert {resource.plural for resource in RESOURCES} == set(STRATEGIES)


@pytest.mark.parametrize("plural", sorted(STRATEGIES))
def test_a_name_is_needed(plural: str) -> None:
    strategy = STRATEGIES[plural]
    document = strategy.prepare_create({"metadata": {}})
    fields = [cause.field for cause in strategy.validate_create(document)]
    assert "metadata.name" in fields or plural == "events"


@pytest.mark.parametrize("plural", sorted(STRATEGIES))
def test_a_uid_may_not_change(plural: str) -> None:
    old = create(plural)
    old["metadata"]["uid"] = "u"
    other = old["metadata"] | {"uid": "v"}
    assert "metadata.uid" in wrong_change(plural, old, metadata=other)


def test_a_node_starts_tainted_with_all_of_its_capacity_allocatable() -> None:
    node = create("nodes", status={"capacity": {"cpu": "4000m"}})
    assert node["spec"]["taints"] == [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    ]
    assert node["status"]["allocatable"] == {"cpu": "4"}
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert "generation" not in node["metadata"]


def test_updates_of_a_node_and_of_its_status_keep_the_other_part() -> None:
    old = create("nodes", status={"phase": "Running"})
    other = {"metadata": {"name": "a"}, "spec": {"unschedulable": True}, "status": {}}
    nodes = STRATEGIES["nodes"]
    assert nodes.prepare_update(nodes.decode(other), old, "")["status"]["phase"] == "Running"
    assert nodes.prepare_update(nodes.decode(other), old, "status")["spec"] == old["spec"]
    assert nodes.fields(nodes.prepare_update(nodes.decode(other), old, "")) == {
        "spec.unschedulable": "true"
    }


def test_a_lease_is_renewed_to_the_microsecond() -> None:
    with pytest.raises(MalformedObjectError, match="renewTime"):
        create("leases", spec={"renewTime": "2024-01-01T00:00:00Z"})
    lease = create("leases", spec={"renewTime": "2024-01-01T01:00:00.000001+01:00"})
    assert lease["spec"]["renewTime"] == "2024-01-01T00:00:00.000001Z"


def test_events_are_selected_by_what_they_are_about_and_who_tells() -> None:
    event = create("events", involvedObject={"name": "p"}, source={"component": "kubelet"})
    fields = STRATEGIES["events"].fields(event)
    assert fields["involvedObject.name"] == "p"
    assert fields["source"] == "kubelet"
    assert fields["reportingComponent"] == ""


def test_the_text_of_a_secret_becomes_data() -> None:
    secret = create("secrets", stringData={"k": "v"}, data={"j": "aGk="})
    assert secret["data"] == {"j": "aGk=", "k": base64.b64encode(b"v").decode()}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret
    with pytest.raises(MalformedObjectError, match="base64"):
        create("secrets", data={"k": "!"})


def test_a_bound_pod_is_scheduled_and_keeps_its_generation() -> None:
    pod = STRATEGIES["pods"].prepare_create({"metadata": {"name": "a", "namespace": "ns"}})
    binding = {
        "metadata": {"name": "a", "labels": {"zone": "z"}},
        "target": {"kind": "Node", "name": "n"},
    }
    bound = bind_pod(pod, binding, NOW)
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["labels"] == {"zone": "z"}
    assert bound["metadata"]["generation"] == 1
    (condition,) = bound["status"]["conditions"]
    assert condition["type"] == "PodScheduled"
    assert condition["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    with pytest.raises(StatusError) as caught:
        bind_pod(bound, binding, NOW)
    assert caught.value.code == 409
    assert caught.value.message.endswith('"a": pod a is already assigned to node "n"')


def test_a_binding_is_for_the_pod_it_names() -> None:
    with pytest.raises(StatusError) as caught:
        check_binding_name("a", {"metadata": {"name": "b"}})
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("image", "latest"),
    [
        ("busybox", True),
        ("nginx:1", False),
        ("nginx:latest", True),
        ("localhost:5000/a", True),
        ("localhost:5000/a:1", False),
        (f"a@sha256:{'0' * 64}", False),
        ("Busybox", False),
        ("0" * 64, False),
        ("", False),
    ],
)
def test_an_image_without_tag_and_digest_is_the_latest(image: str, latest: bool) -> None:
    assert is_latest(image) is latest


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (dns_label, "my-name", "my.name"),
        (dns_subdomain, "x.y", "Bad_Name"),
        (qualified_name, "example.com/My.Name", "bad key!"),
        (qualified_name, "MyName", "a/b/c"),
        (label_value, "", "b d"),
        (port_name, "http", "1"),
    ],
)
def test_names_are_validated(rule: Any, good: str, bad: str) -> None:
    assert rule(good) == []
    assert rule(bad) != []
    assert rule(f"{good}\n") != []


def test_the_limit_of_a_prefix_is_in_bytes_and_that_of_a_name_in_characters() -> None:
    long = "x" * 254
    assert dns_subdomain(long) == ["must be no more than 253 characters"]
    assert qualified_name(f"{long}/name") == ["prefix part must be no more than 253 bytes"]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("1.2.3.4", 4),
        ("01.2.3.04", 4),
        ("::ffff:1.2.3.4", 4),
        ("fd00::1", 6),
        ("fe80::1%eth0", 0),
        ("999.1.1.1", 0),
        ("", 0),
    ],
)
def test_addresses_are_of_a_family(address: str, expected: int) -> None:
    assert family(address) == expected
