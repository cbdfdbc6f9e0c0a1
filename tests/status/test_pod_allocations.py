"""What the manager remembers about resources, and when it forgets it."""

import logging
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import structs

from podstatus import DamagedCheckpointError, FileState, MemoryState, StatusManager
from podstatus.checkpoint.formats import KUBELET_V1_28
from podstatus.kube.encoding.frozen_copy import FieldTypeError
from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.containers import Container, EphemeralContainer, ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.quantity import Quantity
from podstatus.pods.pod_manager import PodManager
from podstatus.status.pod_allocations import allocation_from_pod
from podstatus.testing.builders import make_pod, make_status
from podstatus.testing.fakes import FakeDeletionSafety, RecordingStartupLatency
from podstatus.testing.in_memory_pod_api import InMemoryPodApi


def cpu(amount: str) -> ResourceRequirements:
    return ResourceRequirements(requests={"cpu": Quantity(amount)})


def pod_with_cpu(amount: str, name: str = "web") -> Pod:
    pod = make_pod(name)
    container = Container(name="app", resources=cpu(amount))
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=(container,)))


def make_manager(
    state: Any = None, *pods: Pod, client: InMemoryPodApi | None = None
) -> StatusManager:
    return StatusManager(client, PodManager(pods), FakeDeletionSafety(), state=state)


# Allocated resources


def test_every_container_but_ephemeral_ones_and_the_pod_itself_are_allocated() -> None:
    pod = make_pod(containers=("app", "log"), init_containers=("init",), sidecars=("proxy",))
    spec = structs.replace(
        pod.spec, ephemeral_containers=(EphemeralContainer(name="debug"),), resources=cpu("2")
    )
    info = allocation_from_pod(structs.replace(pod, spec=spec))
    assert sorted(info.container_resources) == ["app", "init", "log", "proxy"]
    assert info.pod_level_resources == cpu("2")


def test_a_pod_without_containers_has_an_empty_allocation() -> None:
    pod = make_pod(containers=())
    spec = structs.replace(pod.spec, containers=None)
    assert allocation_from_pod(structs.replace(pod, spec=spec)) == PodResourceInfo()


def test_what_was_allocated_is_known() -> None:
    manager = make_manager(MemoryState())
    manager.set_pod_allocation(pod_with_cpu("1"))
    assert manager.container_resource_allocation("uid-web", "app") == cpu("1")
    assert manager.container_resource_allocation("uid-web", "other") is None
    assert manager.container_resource_allocation("other", "app") is None


def test_a_new_allocation_replaces_the_old_one() -> None:
    manager = make_manager(MemoryState())
    manager.set_pod_allocation(make_pod("web", containers=("gone",)))
    manager.set_pod_allocation(pod_with_cpu("2"))
    assert manager.container_resource_allocation("uid-web", "gone") is None
    assert manager.container_resource_allocation("uid-web", "app") == cpu("2")


def full_pod() -> Pod:
    """A pod with requests and limits of every kind of container, and of the pod."""
    pod = make_pod(containers=("app",), init_containers=("init",), sidecars=("proxy",))
    resources = ResourceRequirements(
        requests={"cpu": Quantity("1")}, limits={"cpu": Quantity("2"), "memory": Quantity("1Gi")}
    )
    spec = structs.replace(
        pod.spec,
        containers=tuple(
            structs.replace(c, resources=resources) for c in pod.spec.containers or ()
        ),
        init_containers=tuple(
            structs.replace(c, resources=resources) for c in pod.spec.init_containers or ()
        ),
        resources=resources,
    )
    return structs.replace(pod, spec=spec)


def test_in_the_file_of_v1_28_are_requests_of_regular_containers(tmp_path: Path) -> None:
    pod = full_pod()
    make_manager(FileState(tmp_path, format=KUBELET_V1_28)).set_pod_allocation(pod)
    after = FileState(tmp_path, format=KUBELET_V1_28)
    assert after.allocated.pod_resource_info(pod.uid) == PodResourceInfo(
        container_resources={"app": cpu("1")}
    )
    assert make_manager(after).container_resource_allocation(pod.uid, "app") == cpu("1")


def test_other_states_have_limits_and_all_containers(tmp_path: Path) -> None:
    pod = full_pod()
    for state in (MemoryState(), FileState(tmp_path)):
        make_manager(state).set_pod_allocation(pod)
        assert state.allocated.pod_resource_info(pod.uid) == allocation_from_pod(pod)


def test_a_removed_status_ends_the_startup_tracking() -> None:
    latency, pod = RecordingStartupLatency(), pod_with_cpu("1")
    manager = StatusManager(None, PodManager([pod]), FakeDeletionSafety(), startup_latency=latency)
    manager.set_pod_status(pod, make_status("Pending"))
    manager.remove_status(pod.uid)
    assert latency.deleted == [pod.uid]


def test_an_empty_resize_status_is_none() -> None:
    manager = make_manager(MemoryState())
    manager.set_pod_resize_status("uid-web", "Deferred")
    assert manager.pod_resize_status("uid-web") == "Deferred"
    manager.set_pod_resize_status("uid-web", "")
    assert manager.pod_resize_status("uid-web") is None


def test_without_a_state_nothing_is_remembered() -> None:
    manager = make_manager()
    manager.set_pod_allocation(pod_with_cpu("1"))
    manager.set_pod_resize_status("uid-web", "Deferred")
    assert manager.container_resource_allocation("uid-web", "app") is None
    assert manager.pod_resize_status("uid-web") is None
    manager.remove_orphaned_statuses(())


def test_what_is_no_allocation_is_refused_with_its_place() -> None:
    manager = make_manager(MemoryState())
    pod = make_pod()
    odd = Container(name="app", resources=cast(ResourceRequirements, {"requests": {}}))
    odd_pod = structs.replace(pod, spec=structs.replace(pod.spec, containers=(odd,)))
    with pytest.raises(FieldTypeError, match=r"^container_resources\[app\]: expected Resource"):
        manager.set_pod_allocation(odd_pod)
    with pytest.raises(ValueError, match="has no UID"):
        manager.set_pod_allocation(Pod())


@pytest.mark.parametrize("state", ["text", object(), PodManager()])
def test_what_is_no_state_is_refused_at_once(state: object) -> None:
    with pytest.raises(TypeError, match=r"state is a .*, which lacks restore, resize_status"):
        make_manager(state)


def test_a_state_without_allocated_resources_is_refused_at_once() -> None:
    class Half(MemoryState):
        def __init__(self) -> None:
            super().__init__()
            del self.allocated

    with pytest.raises(TypeError, match=r"state.allocated is a NoneType, which lacks container_"):
        make_manager(Half())


# Removal


def test_orphans_are_forgotten_also_without_a_cached_status() -> None:
    state = MemoryState()
    kept, gone = pod_with_cpu("1", "kept"), pod_with_cpu("1", "gone")
    manager = make_manager(state, kept)
    for pod in (kept, gone):
        manager.set_pod_allocation(pod)
        state.actuated.set_container_resources(pod.uid, "app", cpu("1"))
        manager.set_pod_resize_status(pod.uid, "InProgress")
    manager.set_pod_status(kept, make_status("Running"))
    manager.remove_orphaned_statuses([kept.uid])
    known = state.allocations()
    assert [*known.allocated] == [*known.actuated] == [*known.resize_statuses] == [kept.uid]


def test_one_pod_is_forgotten_and_no_other() -> None:
    state = MemoryState()
    kept, gone = pod_with_cpu("1", "kept"), pod_with_cpu("1", "gone")
    manager = make_manager(state, kept, gone)
    for pod in (kept, gone):
        manager.set_pod_allocation(pod)
    manager.set_pod_status(gone, make_status("Running"))
    manager.remove_status(gone.uid)
    assert manager.pod_status(gone.uid) is None
    assert [*state.allocations().allocated] == [kept.uid]  # without any status yet


async def test_a_pod_that_is_deleted_is_forgotten() -> None:
    pod = make_pod(deleted_at="2024-01-01T00:00:00Z")
    state = MemoryState()
    manager = make_manager(state, pod, client=InMemoryPodApi(pod))
    manager.set_pod_allocation(pod)
    manager.set_pod_allocation(pod_with_cpu("1", "other"))
    manager.set_pod_resize_status(pod.uid, "Deferred")
    manager.set_pod_status(pod, make_status("Failed"))
    manager.terminate_pod(pod)
    await manager.sync_batch(full=False)
    assert manager.pod_status(pod.uid) is None
    assert [*state.allocations().allocated] == ["uid-other"]
    assert state.allocations().resize_statuses == {}


async def test_a_state_that_cannot_forget_does_not_keep_the_manager_from_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Stubborn(MemoryState):
        def remove_pod(self, uid: str) -> None:
            raise OSError("no")

    pod = make_pod(deleted_at="2024-01-01T00:00:00Z")
    api = InMemoryPodApi(pod)
    manager = make_manager(Stubborn(), pod, client=api)
    manager.terminate_pod(pod)
    with caplog.at_level(logging.ERROR):
        await manager.sync_batch(full=False)
    assert api.pods() == []
    assert manager.pod_status(pod.uid) is None
    assert "cannot remove the allocation of a deleted pod" in caplog.text
    assert "OSError: no" in caplog.text
    assert "will retry" not in caplog.text


# Across a restart


def test_allocations_and_resize_statuses_survive_a_restart(tmp_path: Path) -> None:
    before = make_manager(FileState(tmp_path))
    before.set_pod_allocation(pod_with_cpu("1"))
    before.set_pod_resize_status("uid-web", "Infeasible")
    after = make_manager(FileState(tmp_path))
    after.start()
    assert after.container_resource_allocation("uid-web", "app") == cpu("1")
    assert after.pod_resize_status("uid-web") == "Infeasible"
    after.stop()


@pytest.mark.parametrize("client", [None, InMemoryPodApi()], ids=["no client", "client"])
async def test_a_damaged_checkpoint_stops_start_run_and_sync_batch_in_the_callers_thread(
    tmp_path: Path, client: InMemoryPodApi | None
) -> None:
    (tmp_path / "allocated_pods_state").write_text("{}")
    manager = make_manager(FileState(tmp_path), client=client)
    with pytest.raises(DamagedCheckpointError, match=str(tmp_path / "allocated_pods_state")):
        manager.start()
    with pytest.raises(DamagedCheckpointError):
        _ = manager.run()
    with pytest.raises(DamagedCheckpointError):
        await manager.sync_batch(full=False)
    manager.stop()
    assert (tmp_path / "allocated_pods_state").read_text() == "{}"


def test_a_manager_that_could_not_start_starts_once_the_file_is_away(tmp_path: Path) -> None:
    (tmp_path / "actuated_pods_state").write_text("")
    manager = make_manager(FileState(tmp_path))
    with pytest.raises(DamagedCheckpointError):
        manager.start()
    (tmp_path / "actuated_pods_state").unlink()
    manager.start()
    manager.stop()


def test_a_set_before_start_does_not_overwrite_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "allocated_pods_state").write_text("damaged")
    manager = make_manager(FileState(tmp_path))
    with pytest.raises(DamagedCheckpointError):
        manager.set_pod_allocation(pod_with_cpu("1"))
    with pytest.raises(DamagedCheckpointError):
        manager.set_pod_resize_status("uid-web", "Deferred")
    assert (tmp_path / "allocated_pods_state").read_text() == "damaged"
    assert [path.name for path in tmp_path.iterdir()] == ["allocated_pods_state"]


async def test_the_state_is_never_called_under_the_managers_lock() -> None:
    class Nosy(MemoryState):
        """Calls the manager from every method."""

        def allocations(self) -> Any:
            manager.pod_status("uid-web")
            return super().allocations()

        def remove_pod(self, uid: str) -> None:
            manager.pod_status(uid)
            super().remove_pod(uid)

        def remove_orphaned_pods(self, active_uids: Any) -> None:
            manager.pod_status("uid-web")
            super().remove_orphaned_pods(active_uids)

    pod = make_pod("web", deleted_at="2024-01-01T00:00:00Z")
    manager = make_manager(Nosy(), pod, client=InMemoryPodApi(pod))
    manager.set_pod_allocation(pod)
    manager.set_pod_resize_status(pod.uid, "Deferred")
    assert manager.pod_resize_status(pod.uid) == "Deferred"
    manager.terminate_pod(pod)
    await manager.sync_batch(full=False)
    manager.remove_orphaned_statuses(())
    assert manager.pod_status(pod.uid) is None
