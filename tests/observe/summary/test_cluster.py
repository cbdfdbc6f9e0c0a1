"""Summaries of cluster objects."""

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.cluster import Lease
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.cluster import to_cluster_node, to_cluster_pod, to_node_lease
from podstatus.observe.summary.pod import summarize_pod
from tests.support.data.deployment_pods import pod, status


def seen(number: int, phase: str = "Running", node: str | None = None) -> Pod:
    document = pod(number)
    document["metadata"] |= {"namespace": "shop", "uid": f"uid-{number}", "resourceVersion": "7"}
    document["status"] = status(number) | {"phase": phase}
    if node is not None:
        document["spec"]["nodeName"] = node
    return from_document(document, Pod)


def test_of_a_pod_its_summary_is_kept_and_which_state_of_it_this_is() -> None:
    kept = to_cluster_pod(seen(1))
    assert kept.summary == summarize_pod(seen(1))
    assert (kept.metadata.namespace, kept.metadata.name) == ("shop", kept.summary.name)
    assert (kept.metadata.uid, kept.metadata.resource_version) == ("uid-1", "7")


def test_what_pods_ask_for_alike_is_kept_once() -> None:
    first, second = to_cluster_pod(seen(1)), to_cluster_pod(seen(2))
    assert first.requests == {"cpu": "300m", "memory": "320Mi"}
    assert first.requests is second.requests


def test_a_pod_that_has_ended_or_has_no_node_takes_nothing() -> None:
    assert to_cluster_pod(seen(1, "Failed")).requests is None
    assert to_cluster_pod(seen(1, "Pending", node="")).requests is None


def test_requests_that_cannot_be_added_up_do_not_hide_a_pod() -> None:
    document = pod(1)
    for container in document["spec"]["containers"]:
        container["resources"] = {"requests": {"cpu": "1" + "0" * 500}}
    assert to_cluster_pod(from_document(document, Pod)).summary.name == document["metadata"]["name"]


def test_a_lease_says_when_it_was_renewed() -> None:
    at = "2026-11-16T02:48:00.500000Z"
    lease = from_document({"metadata": {"name": "n"}, "spec": {"renewTime": at}}, Lease)
    assert (
        to_node_lease(lease).renewed_at
        == Time.parse("2026-11-16T02:48:00Z").unix_nanos() + 500_000_000
    )
    assert to_node_lease(from_document({"metadata": {"name": "n"}}, Lease)).renewed_at is None


def test_of_a_node_its_summary_is_kept() -> None:
    node = from_document(
        {
            "metadata": {"name": "n", "uid": "u", "labels": {"zone": "a"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
        Node,
    )
    kept = to_cluster_node(node)
    assert (kept.metadata.name, kept.summary.ready, kept.summary.labels) == (
        "n",
        True,
        {"zone": "a"},
    )
