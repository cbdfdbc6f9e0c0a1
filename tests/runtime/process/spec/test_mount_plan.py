"""Containers that could replace components of a subPath while it is mounted."""

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container, VolumeMount
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.volumes import EmptyDirVolumeSource, Volume
from podstatus.runtime.process.spec.mount_plan import plan_mounts
from podstatus.testing.builders import make_pod


def mounting(name: str, part: str) -> Container:
    mount = VolumeMount(name="v", mount_path="/data", sub_path=part)
    return Container(name=name, volume_mounts=(mount,))


@pytest.mark.parametrize(
    ("theirs", "ours", "contended"),
    [
        ("", "a/b", True),
        ("a", "a/b", True),
        ("./a", "a/b", True),
        ("a/.", "a/b", True),
        ("a//", "./a/b", True),
        (".", "a", True),
        ("a/b", "a/b", False),
        ("a/b/c", "a/b", False),
        ("other", "a/b", False),
        ("", "", False),
    ],
)
def test_a_container_that_mounts_a_parent_folder_contends(
    theirs: str, ours: str, contended: bool
) -> None:
    own = mounting("own", ours)
    volume = Volume(name="v", empty_dir=EmptyDirVolumeSource())
    spec = PodSpec(containers=(mounting("other", theirs), own), volumes=(volume,))
    (planned,) = plan_mounts(structs.replace(make_pod("web"), spec=spec), own, {})
    assert planned.contender == ("other" if contended else "")
