"""Resize of cgroups: in a fake of version 2, and on this machine."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import CannotResizeError
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups, unavailable_cgroups
from podstatus.runtime.process.cgroups.resize import resize_cgroups
from tests.runtime.process.cgroups.cgroup_scene import Machine, end, read_line, resources, start

UID = PodUID("u")
MI = 2**20


def pod_of(**containers: ResourceRequirements) -> Pod:
    specs = tuple(Container(name=name, resources=each) for name, each in containers.items())
    pod = Pod(spec=PodSpec(containers=specs))
    return structs.replace(pod, metadata=structs.replace(pod.metadata, name="p", uid=UID))


def make(cgroups: Cgroups, pod: Pod) -> None:
    cgroups.create_pod(pod)
    for container in pod.spec.containers or ():
        cgroups.create(UID, container.name, container.resources)


def resize(cgroups: Cgroups, pod: Pod, *ended: str) -> None:
    resize_cgroups(cgroups, pod, by_id(pod), ended)


def by_id(pod: Pod) -> Mapping[str, Container]:
    """Return the containers by ID; in these tests the IDs are the names."""
    return {container.name: container for container in pod.spec.containers or ()}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_what_is_asked_for_now_is_written(machine: Machine) -> None:
    make(machine.cgroups, pod_of(a=resources("100m 1Mi", "200m 2Mi"), b=resources("", "1 8Mi")))
    pod = pod_of(a=resources("300m 1Mi", "500m 4Mi"), b=resources("", "1 8Mi"))
    resize(machine.cgroups, pod)
    assert machine.text("podu/a/cpu.max") == "50000 100000"
    assert machine.text("podu/a/cpu.weight") == "12"
    assert machine.text("podu/a/memory.max") == str(4 * MI)
    assert machine.text("podu/cpu.max") == "150000 100000"
    assert machine.text("podu/memory.max") == str(12 * MI)
    assert machine.text("podu/a/pids.max") == "max"


def test_only_those_that_are_named_are_touched(machine: Machine) -> None:
    before = pod_of(a=resources("", "1 8Mi"), b=resources("", "1 8Mi"))
    make(machine.cgroups, before)
    after = pod_of(a=resources("", "2 8Mi"), b=resources("", "2 8Mi"))
    resize_cgroups(machine.cgroups, after, {"a": by_id(after)["a"]}, ())
    assert machine.text("podu/a/cpu.max") == "200000 100000"
    assert machine.text("podu/b/cpu.max") == "100000 100000"
    resize_cgroups(machine.cgroups, before, {}, ())
    assert machine.text("podu/cpu.max") == "200000 100000"


def test_memory_that_is_used_is_not_taken_away_and_nothing_else_is_done(machine: Machine) -> None:
    make(machine.cgroups, pod_of(a=resources("", "1 8Mi")))
    (machine.base / "podu/a/memory.current").write_text(str(5 * MI))
    with pytest.raises(CannotResizeError) as caught:
        resize(machine.cgroups, pod_of(a=resources("", "2 4Mi")))
    assert str(caught.value) == (
        "cannot decrease memory limits: attempting to set container "
        '"a" memory limit (4194304) below current usage (5242880)'
    )
    assert machine.text("podu/a/cpu.max") == "100000 100000"
    assert machine.text("podu/a/memory.max") == str(8 * MI)


@pytest.mark.parametrize("file", ["cpu.weight", "cpu.max", "memory.max"])
def test_a_failed_write_is_reported(machine: Machine, file: str) -> None:
    make(machine.cgroups, pod_of(a=resources("", "1 8Mi")))
    machine.kernel.refused = {file}
    with pytest.raises(CannotResizeError, match=rf"^{file} of .* cannot be .*: Permission denied$"):
        resize(machine.cgroups, pod_of(a=resources("", "2 16Mi")))


def test_what_cannot_be_limited_is_passed_over(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "memory pids")
    machine.cgroups.create(UID, "a", resources("", "- 8Mi"))
    resize(machine.cgroups, pod_of(a=resources("", "2 16Mi"), gone=resources("", "2 16Mi")))
    assert machine.text("podu/a/memory.max") == str(16 * MI)
    resize(unavailable_cgroups("this is a mouse"), pod_of(a=resources("", "2 16Mi")))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("100m 32Mi", "300m 64Mi"),
        ("300m 64Mi", "100m 32Mi"),
        ("300m 32Mi", "100m 64Mi"),
        ("-", "300m 64Mi"),
    ],
)
def test_the_kernel_of_this_machine_takes_it(cgroups: Cgroups, before: str, after: str) -> None:
    make(cgroups, pod_of(a=resources(before, before), b=resources("", "50m 16Mi")))
    pod = pod_of(a=resources(after, after), b=resources("", "50m 16Mi"))
    resize(cgroups, pod)
    cpu, memory = after.split()
    holds = ResourceFacts(
        cpu_request=Quantity(cpu), cpu_limit=Quantity(cpu), memory_limit=Quantity(memory)
    )
    assert cgroups.actuated_resources(UID, "a", resources(after, after)) == holds
    whole = cgroups.actuated_pod_resources(UID)
    assert whole is not None
    assert whole.cpu_limit == f"{int(cpu.removesuffix('m')) + 50}m"
    assert whole.memory_limit == f"{int(memory.removesuffix('Mi')) + 16}Mi"


def test_what_has_ended_does_not_keep_the_kernel_from_lowering_a_pod(cgroups: Cgroups) -> None:
    make(cgroups, pod_of(a=resources("", "1 32Mi")))
    cgroups.create(UID, "older", resources("", "1 32Mi"))
    resize(cgroups, pod_of(a=resources("", "100m 32Mi")), "older", "never-made")
    whole = cgroups.actuated_pod_resources(UID)
    assert whole is not None
    assert whole.cpu_limit == "100m"


def test_a_running_process_keeps_its_memory(cgroups: Cgroups) -> None:
    pod = pod_of(a=resources("", "1 128Mi"))
    cgroups.create_pod(pod)
    place = cgroups.create(UID, "a", resources("", "1 128Mi"))
    process = start(place, "eaten = b'x' * (48 << 20); print('ready', flush=True); input()")
    try:
        assert read_line(process) == "ready"
        with pytest.raises(CannotResizeError, match=r'"a" memory limit \(16777216\) below current'):
            resize(cgroups, pod_of(a=resources("", "1 16Mi")))
        resize(cgroups, pod_of(a=resources("", "1 96Mi")))
        assert process.poll() is None
    finally:
        process.kill()
        end(process)
