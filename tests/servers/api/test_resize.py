"""What a resize may change, what it does to a pod, and who refuses it."""

import copy
from collections.abc import Iterator

import pytest

from tests.servers.api.resize_scene import (
    BURSTABLE,
    FEATURES,
    SIDECAR,
    ResizeScene,
    asking,
    container,
    init,
    resources,
)
from tests.servers.pods import IMAGE, refusal
from tests.support.processes.api_servers import JSON_PATCH, MERGE, Document, Server

GUARANTEED = resources("1 64Mi", "1 64Mi")
CONTAINER = 'Pod "web" is invalid: spec.containers[0]'
INIT = 'Pod "web" is invalid: spec.initContainers[0]'
POD = 'Pod "web" is invalid: spec'
CLASS_CHANGES = "Pod QOS Class may not change as a result of resizing"
ABOVE_LIMIT = "must be less than or equal to cpu limit of 200m"
ONLY = "only cpu and memory resources{} are mutable"
LACKS = 'pod update requires features {} which are not available on node "NODE"'
FORBIDDEN = 'pods "web" is forbidden:'


@pytest.fixture
def scene(server: Server, namespace: str) -> Iterator[ResizeScene]:
    scene = ResizeScene(server, namespace)
    yield scene
    scene.close()


def running(**more: Document) -> Document:
    """What a node says of a container that runs; with `resources` if it can resize."""
    state = {"name": "app", "image": IMAGE, "imageID": "", "ready": True, "restartCount": 0}
    state |= {"state": {"running": {}}, **more}
    return {"status": {"phase": "Running", "containerStatuses": [state]}}


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (asking(BURSTABLE), asking(resources("200m")), resources("200m 64Mi", "200m 128Mi")),
        (asking(BURSTABLE), asking(resources("", "- 96Mi")), resources("100m 64Mi", "200m 96Mi")),
        (asking(GUARANTEED), asking(resources("2", "2")), resources("2 64Mi", "2 64Mi")),
        (
            asking(resources("100m")),
            asking(resources("- 64Mi", "200m")),
            resources("100m 64Mi", "200m"),
        ),
        (init(BURSTABLE), init(resources("150m")), resources("150m 64Mi", "200m 128Mi")),
        (
            init(BURSTABLE, **SIDECAR),
            init(resources("150m")),
            resources("150m 64Mi", "200m 128Mi"),
        ),
        (
            asking(resources=BURSTABLE),
            {"resources": resources("150m")},
            resources("150m 64Mi", "200m 128Mi"),
        ),
        (asking(BURSTABLE), {"resources": BURSTABLE}, BURSTABLE),
    ],
    ids=[
        "raised",
        "memory-limit-lowered",
        "guaranteed",
        "added",
        "init",
        "sidecar",
        "pod-level",
        "pod-level-added",
    ],
)
def test_cpu_and_memory_are_changed_and_the_generation_goes_on(
    scene: ResizeScene, before: Document, change: Document, after: Document
) -> None:
    old = scene.pod(before)
    code, new = scene.resize(change)
    assert code == 200, new
    spec = new["spec"]
    changed = (
        spec if "resources" in change else (spec.get("initContainers") or spec["containers"])[0]
    )
    assert changed["resources"] == after
    assert new["metadata"]["generation"] == old["metadata"]["generation"] + 1
    assert new["status"] == old["status"]


@pytest.mark.parametrize("cpu", ["100m", "0.1"])
def test_what_changes_nothing_is_no_new_generation(scene: ResizeScene, cpu: str) -> None:
    scene.pod(asking(BURSTABLE))
    code, new = scene.resize(asking(resources(cpu)))
    assert (code, new["metadata"]["generation"]) == (200, 1)


@pytest.mark.parametrize(
    ("before", "change", "message"),
    [
        (
            asking(BURSTABLE),
            asking(resources("200m 128Mi")),
            f'{POD}: Invalid value: "Burstable": {CLASS_CHANGES}',
        ),
        (
            asking(),
            asking(resources("200m")),
            f'{POD}: Invalid value: "BestEffort": {CLASS_CHANGES}',
        ),
        (
            asking(GUARANTEED),
            asking(resources("500m")),
            f'{POD}: Invalid value: "Guaranteed": {CLASS_CHANGES}',
        ),
        (
            asking(BURSTABLE),
            asking(resources("300m")),
            f'{CONTAINER}.resources.requests: Invalid value: "300m": {ABOVE_LIMIT}',
        ),
        (
            asking(BURSTABLE),
            asking({"limits": {"cpu": None}}),
            f"{CONTAINER}.resources.limits: Forbidden: resource limits cannot be removed",
        ),
        (
            asking(BURSTABLE),
            asking({"requests": {"ephemeral-storage": "1Gi"}}),
            f"{POD}: Forbidden: {ONLY.format('')}",
        ),
        (
            asking(BURSTABLE),
            {
                "containers": [
                    {
                        "name": "app",
                        "resizePolicy": [
                            {"resourceName": "cpu", "restartPolicy": "RestartContainer"}
                        ],
                    }
                ]
            },
            f"{POD}: Forbidden: {ONLY.format('')}",
        ),
        (
            asking(BURSTABLE),
            {"containers": [container("more")]},
            f"{POD}.containers: Forbidden: containers may not be added or removed on resize",
        ),
        (
            init(BURSTABLE),
            init({"requests": {"ephemeral-storage": "1Gi"}}),
            f"{INIT}: Forbidden: {ONLY.format(' for init or sidecar containers')}",
        ),
        (
            init(BURSTABLE),
            init({"limits": {"cpu": None}}),
            f"{INIT}.resources.limits: Forbidden: resource limits cannot be removed",
        ),
        (
            init(BURSTABLE, **SIDECAR),
            init({"limits": {"cpu": None}}),
            f"{INIT}.resources.limits: Forbidden: resource limits cannot be removed",
        ),
        (
            asking(resources=BURSTABLE),
            {"resources": None},
            f"{POD}.resources: Forbidden: pod-level resources cannot be removed",
        ),
        (
            asking(resources=BURSTABLE),
            {"resources": {"limits": {"cpu": None}}},
            f"{POD}.resources.limits: Forbidden: pod-level resource limits cannot be removed",
        ),
        (
            asking(BURSTABLE, os={"name": "windows"}),
            asking(resources("150m")),
            'Pod "web" is invalid: []: Forbidden: windows pods cannot be resized',
        ),
    ],
)
def test_what_may_not_change_is_refused_in_upstreams_words(
    scene: ResizeScene, before: Document, change: Document, message: str
) -> None:
    old = scene.pod(before)
    answer = scene.resize(change)
    told = answer[1]["message"]
    assert refusal(answer) == (422, "Invalid")
    # Some changes break several rules at once.
    assert message.removeprefix('Pod "web" is invalid: ') in told
    assert scene.stored() == old


def test_static_pods_are_not_resized(scene: ResizeScene) -> None:
    scene.pod(asking(BURSTABLE), annotations={"kubernetes.io/config.mirror": "x"})
    code, answer = scene.resize(asking(resources("150m")))
    words = 'Pod "web" is invalid: []: Forbidden: static pods cannot be resized'
    assert (code, answer["message"]) == (422, words)


def test_a_node_that_tells_no_resources_of_what_runs_cannot_resize(scene: ResizeScene) -> None:
    scene.pod(asking(BURSTABLE))
    scene.client.patch(scene.path(subresource="status"), running())
    code, answer = scene.resize(asking(resources("150m")))
    words = f"{POD}: Forbidden: Pod running on node without support for resize"
    assert (code, answer["message"]) == (422, words)
    scene.client.patch(scene.path(subresource="status"), running(resources=BURSTABLE))
    assert scene.resize(asking(resources("150m")))[0] == 200


def test_more_than_the_node_has_is_refused_at_once(scene: ResizeScene) -> None:
    scene.pod(asking(resources("100m")))
    answer = scene.resize(asking(resources("64 1Ti")))
    assert refusal(answer) == (403, "Forbidden")
    assert answer[1]["message"] == (
        f"{FORBIDDEN} node didn't have enough allocatable resources: cpu, requested: 64000, "
        "allocatable: 4000; memory, requested: 1099511627776, allocatable: 8589934592"
    )
    assert answer[1]["details"] == {
        "name": "web",
        "kind": "pods",
        "causes": [{"reason": "NodeCapacity"}],
    }
    assert scene.resize(asking(resources("4 8Gi")))[0] == 200


@pytest.mark.parametrize(
    ("node", "before", "change", "why"),
    [
        (
            {"bare": True},
            asking(resources("100m")),
            asking(resources("200m")),
            "node didn't have enough allocatable resources: cpu, requested: 200, allocatable: 0",
        ),
        (
            {"system": "windows"},
            asking(resources("100m")),
            asking(resources("200m")),
            'pod resize is only supported on linux nodes, node "NODE" is "windows"',
        ),
        (
            {"features": FEATURES[1:]},
            asking(resources=BURSTABLE),
            {"resources": resources("150m")},
            LACKS.format(FEATURES[0]),
        ),
        (
            {"features": FEATURES[:1]},
            init(BURSTABLE),
            init(resources("150m")),
            LACKS.format(FEATURES[1]),
        ),
        (
            {"features": ()},
            {**init(resources("10m")), "resources": BURSTABLE},
            {**init(resources("20m")), "resources": resources("150m")},
            LACKS.format(", ".join(FEATURES)),
        ),
    ],
    ids=["nothing-allocatable", "windows", "pod-level", "init", "both"],
)
def test_a_node_that_cannot_do_it_is_not_asked(
    scene: ResizeScene, node: Document, before: Document, change: Document, why: str
) -> None:
    name = scene.add_node(f"{scene.node}-other", **node)
    scene.pod({**before, "nodeName": name})
    code, answer = scene.resize(change)
    assert (code, answer["message"]) == (403, f"{FORBIDDEN} {why.replace('NODE', name)}")


def test_a_node_without_features_resizes_containers_and_sidecars(scene: ResizeScene) -> None:
    name = scene.add_node(f"{scene.node}-other", features=())
    scene.pod({**init(BURSTABLE, **SIDECAR), "nodeName": name})
    assert scene.resize(init(resources("150m")))[0] == 200


def test_a_pod_on_a_node_that_is_gone_cannot_be_resized(scene: ResizeScene) -> None:
    scene.pod(asking(resources("100m"), nodeName="nowhere"))
    code, answer = scene.resize(asking(resources("200m")))
    assert (code, answer["message"]) == (403, f'{FORBIDDEN} node "nowhere" not found')
    assert scene.resize(asking(resources("100m")))[0] == 200


def test_a_pod_without_a_node_is_resized_as_it_likes(scene: ResizeScene) -> None:
    gate = {"schedulingGates": [{"name": "example.com/wait"}], "nodeName": ""}
    scene.pod(asking(resources("100m"), **gate))
    assert scene.resize(asking(resources("64")))[0] == 200


def test_patches_of_every_kind(scene: ResizeScene) -> None:
    pod = scene.pod(asking(BURSTABLE))
    scene.resize(asking(resources("110m")))  # the node is known from here on
    whole = {"name": "app", "image": "other", "resources": {**BURSTABLE, **resources("120m 64Mi")}}
    code, merged = scene.client.patch(scene.path(), {"spec": {"containers": [whole]}}, MERGE)
    assert code == 200, merged
    assert merged["spec"]["containers"][0]["image"] == IMAGE
    path = "/spec/containers/0/resources/requests/cpu"
    change = [{"op": "replace", "path": path, "value": "130m"}]
    code, patched = scene.client.patch(scene.path(), change, JSON_PATCH)
    assert code == 200, patched
    assert patched["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "130m"
    assert patched["metadata"]["generation"] == 4
    assert pod["metadata"]["uid"] == patched["metadata"]["uid"]


def put(scene: ResizeScene, document: Document) -> tuple[int, Document]:
    """As `kubectl edit --subresource resize` does."""
    return scene.sent(lambda: scene.client.replace(scene.path(), document))


def test_a_put_changes_resources_and_nothing_else(scene: ResizeScene) -> None:
    old = scene.pod(asking(BURSTABLE), labels={"a": "b"})
    edited = copy.deepcopy(old)
    edited["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "150m"
    edited["spec"]["hostname"] = "other"
    edited["metadata"] |= {"labels": {"x": "y"}, "annotations": {"x": "y"}, "finalizers": ["a/b"]}
    edited["status"]["message"] = "hello"
    code, new = put(scene, edited)
    assert code == 200, new
    assert new["metadata"]["generation"] == 2
    assert new["metadata"]["labels"] == {"a": "b"}
    assert not {"annotations", "finalizers"} & new["metadata"].keys()
    assert "hostname" not in new["spec"]
    assert new["status"] == old["status"]


def test_a_put_of_an_old_version_is_a_conflict(scene: ResizeScene) -> None:
    old = scene.pod(asking(BURSTABLE))
    assert scene.resize(asking(resources("150m")))[0] == 200
    assert refusal(put(scene, old)) == (409, "Conflict")
    del old["metadata"]["resourceVersion"]
    assert put(scene, old)[0] == 200


@pytest.mark.parametrize(
    ("containers", "field"),
    [
        ([container("other", BURSTABLE)], "spec.containers[0].name"),
        ([container(asked=BURSTABLE), container("more")], "spec.containers"),
    ],
    ids=["renamed", "added"],
)
def test_a_put_of_other_containers_is_refused(
    scene: ResizeScene, containers: list[Document], field: str
) -> None:
    old = scene.pod(asking(BURSTABLE))
    old["spec"]["containers"] = containers
    answer = put(scene, old)
    assert refusal(answer) == (422, "Invalid")
    assert field in [cause["field"] for cause in answer[1]["details"]["causes"]]


def test_the_pod_itself_may_not_be_changed_so(scene: ResizeScene) -> None:
    scene.pod(asking(BURSTABLE))
    change = {"spec": asking(resources("150m"))}
    answer = scene.client.patch(scene.path(subresource=""), change)
    assert refusal(answer) == (422, "Invalid")


def test_a_resize_is_read_as_the_pod(scene: ResizeScene) -> None:
    pod = scene.pod(asking(BURSTABLE))
    assert scene.client.get(scene.path()) == (200, pod)
    assert refusal(scene.client.create(scene.path(), pod)) == (405, "MethodNotAllowed")
    assert refusal(scene.client.delete(scene.path())) == (405, "MethodNotAllowed")


def test_a_dry_run_stores_nothing(scene: ResizeScene) -> None:
    old = scene.pod(asking(BURSTABLE))
    change = {"spec": asking(resources("150m"))}
    path = f"{scene.path()}?dryRun=All"
    code, answer = scene.sent(lambda: scene.client.patch(path, change))
    assert (code, answer["metadata"]["generation"]) == (200, 2)
    assert scene.stored() == old
