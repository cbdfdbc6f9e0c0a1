import pytest
from msgspec import structs

from podstatus.events.object_references import container_reference, node_reference, pod_reference
from podstatus.kube.objects.containers import EphemeralContainer
from podstatus.kube.objects.meta import ObjectReference
from podstatus.testing.builders import make_pod

POD = make_pod("p", namespace="n", containers=["a"], init_containers=["i"], sidecars=["s"])


def test_a_pod_is_named_with_its_version() -> None:
    pod = structs.replace(POD, metadata=structs.replace(POD.metadata, resource_version="7"))
    assert pod_reference(pod) == ObjectReference(
        kind="Pod",
        api_version="v1",
        namespace="n",
        name="p",
        uid="uid-p",
        resource_version="7",
    )


@pytest.mark.parametrize(
    ("container", "path"),
    {
        "a": "spec.containers{a}",
        "i": "spec.initContainers{i}",
        "s": "spec.initContainers{s}",
        "debug": "spec.ephemeralContainers{debug}",
        "unknown": "",
    }.items(),
)
def test_a_container_is_named_by_its_place_in_the_spec(container: str, path: str) -> None:
    spec = structs.replace(POD.spec, ephemeral_containers=(EphemeralContainer(name="debug"),))
    about = container_reference(structs.replace(POD, spec=spec), container)
    assert about == structs.replace(pod_reference(POD), field_path=path)


def test_a_node_has_its_name_for_a_uid() -> None:
    """`kubectl describe node` looks for it there."""
    assert node_reference("x") == ObjectReference(kind="Node", api_version="v1", name="x", uid="x")
