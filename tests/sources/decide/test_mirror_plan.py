"""Plans for mirror pods."""

import json

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import CONFIG_MIRROR, CONFIG_SOURCE, Pod
from podstatus.kube.scalars.time import Time
from podstatus.sources.decide.mirror_plan import (
    CreateMirror,
    MirrorStep,
    RemoveMirror,
    ReplaceMirror,
    mirror_body,
    plan_mirrors,
)
from podstatus.sources.decide.pod_changes import CONFIG_HASH
from podstatus.testing.builders import make_pod
from tests.support.manifests import WEB, read


def static(name: str, hashed: str = "1") -> Pod:
    return make_pod(name, annotations={CONFIG_SOURCE: "file", CONFIG_HASH: hashed})


def mirror(name: str, hashed: str = "1", *, deleted: bool = False) -> Pod:
    pod = make_pod(name, uid=f"api-{name}", annotations={CONFIG_MIRROR: hashed})
    going = Time.parse("2026-01-01T00:00:00Z") if deleted else None
    return structs.replace(pod, metadata=structs.replace(pod.metadata, deletion_timestamp=going))


@pytest.mark.parametrize(
    ("pods", "mirrors", "expected"),
    [
        ([], [], []),
        ([static("a")], [mirror("a")], []),
        ([static("a")], [], [CreateMirror(static("a"))]),
        ([static("a", "2")], [mirror("a")], [ReplaceMirror(mirror("a"), static("a", "2"))]),
        (
            [static("a")],
            [mirror("a", deleted=True)],
            [ReplaceMirror(mirror("a", deleted=True), static("a"))],
        ),
        ([], [mirror("a")], [RemoveMirror(mirror("a"))]),
        ([], [mirror("a", deleted=True)], [RemoveMirror(mirror("a", deleted=True))]),
        ([], [mirror("busy")], []),
        ([static("busy")], [], [CreateMirror(static("busy"))]),
        (
            [static("a"), static("b")],
            [mirror("c"), mirror("a")],
            [CreateMirror(static("b")), RemoveMirror(mirror("c"))],
        ),
        ([static("a"), static("a", "2")], [mirror("a")], []),
        ([static("a"), static("a", "2")], [], [CreateMirror(static("a"))]),
    ],
)
def test_steps(pods: list[Pod], mirrors: list[Pod], expected: list[MirrorStep]) -> None:
    steps = plan_mirrors(pods, mirrors, lambda name: name != ("default", "busy"))
    assert list(steps.values()) == expected


def test_a_mirror_pod_belongs_to_its_node_and_says_nothing_about_its_status() -> None:
    (pod,) = read(WEB.replace("name: web", "name: web\n  finalizers: [a/b]\n  labels: {a: b}")).pods
    body = json.loads(mirror_body(pod, "node-1", "uid-of-node"))
    annotations = pod.metadata.annotations or {}
    assert body["metadata"] == {
        "name": "web-node-1",
        "namespace": "default",
        "labels": {"a": "b"},
        "annotations": {**annotations, CONFIG_MIRROR: annotations[CONFIG_HASH]},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "name": "node-1",
                "uid": "uid-of-node",
                "controller": True,
            }
        ],
    }
    assert "status" not in body
    assert body["spec"]["nodeName"] == "node-1"
    assert (body["apiVersion"], body["kind"]) == ("v1", "Pod")
