"""State in files: when it is written, which input is rejected, which files are left alone."""

import copy
import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from podstatus.checkpoint.allocation_checkpoint import FileState, MemoryState
from podstatus.checkpoint.errors import (
    CheckpointError,
    CheckpointWriteError,
    DamagedCheckpointError,
    UnreadableCheckpointError,
    UnsupportedStateError,
)
from podstatus.checkpoint.formats import KUBELET_V1_28, KUBELET_V1_36, CheckpointFormat
from podstatus.kube.objects.allocation import Allocations, PodResourceInfo
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.quantity import Quantity

FORMATS = pytest.mark.parametrize("format", [KUBELET_V1_36, KUBELET_V1_28], ids=["v1.36", "v1.28"])
ALLOCATED = "allocated_pods_state"
ACTUATED = "actuated_pods_state"
RESIZE = "podstatus_resize_state"
U = PodUID("u")


def cpu(amount: str) -> ResourceRequirements:
    return ResourceRequirements(requests={"cpu": Quantity(amount)})


def identity(path: Path) -> tuple[int, int]:
    """Return a value that changes whenever the file is replaced."""
    stat = path.stat()
    return stat.st_ino, stat.st_mtime_ns


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Restarts


def test_everything_survives_a_restart(tmp_path: Path) -> None:
    state = FileState(tmp_path)
    state.allocated.set_container_resources("u", "app", cpu("1"))
    state.allocated.set_pod_level_resources("u", cpu("2"))
    state.actuated.set_pod_resource_info("v", PodResourceInfo(container_resources={"b": cpu("3")}))
    state.set_resize_status("u", "InProgress")
    again = FileState(tmp_path)
    again.restore()
    assert again.allocations() == state.allocations()
    assert again.allocated.container_resources("u", "app") == cpu("1")
    assert again.allocated.pod_level_resources("u") == cpu("2")
    assert again.actuated.pods() == {"v": PodResourceInfo(container_resources={"b": cpu("3")})}
    assert again.resize_status("u") == "InProgress"
    assert names(tmp_path) == [ACTUATED, ALLOCATED, RESIZE]


@FORMATS
def test_any_method_restores_first(tmp_path: Path, format: CheckpointFormat) -> None:
    FileState(tmp_path, format=format).allocated.set_container_resources("u", "app", cpu("1"))
    FileState(tmp_path, format=format).set_resize_status("u", "Deferred")
    FileState(tmp_path, format=format).remove_pod("other")
    FileState(tmp_path, format=format).remove_orphaned_pods(["u"])
    state = FileState(tmp_path, format=format)
    assert state.resize_status("u") == "Deferred"
    assert state.allocated.container_resources("u", "app") == cpu("1")


def test_the_state_of_an_old_kubelet_can_be_brought_over(tmp_path: Path) -> None:
    old = FileState(tmp_path, format=KUBELET_V1_28)
    old.allocated.set_container_resources("u", "app", cpu("1"))
    old.set_resize_status("u", "Deferred")
    FileState(tmp_path).update(lambda _: FileState(tmp_path, format=KUBELET_V1_28).allocations())
    assert FileState(tmp_path).allocations() == old.allocations()


def test_a_relative_folder_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    state = FileState("state")
    monkeypatch.chdir(tmp_path / "elsewhere")
    state.set_resize_status("u", "Deferred")
    assert names(tmp_path / "state") == [RESIZE]


# What is written when


def test_reading_writes_nothing(tmp_path: Path) -> None:
    state = FileState(tmp_path / "new")
    state.restore()
    assert state.allocations() == Allocations()
    assert names(tmp_path) == []


def test_v1_28_makes_its_file_when_it_is_opened(tmp_path: Path) -> None:
    FileState(tmp_path, format=KUBELET_V1_28).restore()
    assert (tmp_path / "pod_status_manager_state").read_text() == '{"checksum":670531192}'


def test_files_and_folder_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    FileState(folder).set_resize_status("u", "Deferred")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / RESIZE).stat().st_mode) == 0o600


def test_a_folder_that_is_removed_is_made_again(tmp_path: Path) -> None:
    state = FileState(tmp_path / "state")
    state.set_resize_status("u", "Deferred")
    (tmp_path / "state" / RESIZE).unlink()
    (tmp_path / "state").rmdir()
    state.set_resize_status("u", "Infeasible")
    assert FileState(tmp_path / "state").resize_status("u") == "Infeasible"


def test_what_did_not_change_is_not_written(tmp_path: Path) -> None:
    state = FileState(tmp_path)
    state.allocated.set_container_resources("u", "app", cpu("1"))
    before = identity(tmp_path / ALLOCATED)
    state.allocated.set_container_resources("u", "app", cpu("1"))
    state.allocated.set_container_resources("u", "app", cpu("1000m"))
    FileState(tmp_path).allocated.set_container_resources("u", "app", cpu("1"))
    assert identity(tmp_path / ALLOCATED) == before
    state.allocated.set_container_resources("u", "app", cpu("2"))
    assert identity(tmp_path / ALLOCATED) != before


def test_spacing_around_what_did_not_change_is_left_alone(tmp_path: Path) -> None:
    FileState(tmp_path).allocated.set_container_resources("u", "app", cpu("1"))
    path = tmp_path / ALLOCATED
    path.write_bytes(b"\n " + path.read_bytes().replace(b',"checksum"', b' , "checksum"'))
    before = path.read_bytes()
    FileState(tmp_path).allocated.set_container_resources("u", "app", cpu("1"))
    assert path.read_bytes() == before


def test_a_removal_waits_for_the_next_change_of_its_file(tmp_path: Path) -> None:
    state = FileState(tmp_path)
    for uid in ("gone", "kept"):
        state.allocated.set_container_resources(uid, "app", cpu("1"))
        state.actuated.set_container_resources(uid, "app", cpu("1"))
    before = {name: identity(tmp_path / name) for name in (ALLOCATED, ACTUATED)}
    state.remove_pod("gone")
    state.remove_orphaned_pods(["kept", "unknown"])
    assert [*state.allocated.pods()] == [*state.actuated.pods()] == ["kept"]
    assert {name: identity(tmp_path / name) for name in before} == before
    # After the removal, the same value is a change.
    state.allocated.set_container_resources("kept", "app", cpu("1"))
    assert [*FileState(tmp_path).allocated.pods()] == ["kept"]
    assert identity(tmp_path / ACTUATED) == before[ACTUATED]


def test_v1_28_stores_a_removal_at_once(tmp_path: Path) -> None:
    state = FileState(tmp_path, format=KUBELET_V1_28)
    state.allocated.set_container_resources("u", "app", cpu("1"))
    state.remove_pod("u")
    assert FileState(tmp_path, format=KUBELET_V1_28).allocations() == Allocations()


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.actuated.set_container_resources("u", "app", cpu("1")),
        lambda state: state.allocated.set_pod_level_resources("u", cpu("1")),
        lambda state: state.allocated.set_container_resources(
            "u", "app", ResourceRequirements(limits={"cpu": Quantity("1")})
        ),
        lambda state: state.update(
            lambda old: structs.replace(old, resize_statuses={}, actuated={"u": PodResourceInfo()})
        ),
    ],
)
def test_what_v1_28_cannot_carry_changes_nothing(
    tmp_path: Path, change: Callable[[FileState], None]
) -> None:
    state = FileState(tmp_path, format=KUBELET_V1_28)
    state.set_resize_status("u", "Deferred")
    before, path = state.allocations(), tmp_path / "pod_status_manager_state"
    text = path.read_bytes()
    with pytest.raises(UnsupportedStateError, match=rf"{path}: a checkpoint of v1.28 has .*v1.36"):
        change(state)
    assert state.allocations() is before
    assert path.read_bytes() == text


# What cannot be read


@pytest.mark.parametrize("name", [ALLOCATED, ACTUATED, RESIZE])
@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"null", b"[]", b"{}", b"x", b"\x00" * 4096, b"\xff"),
        b'{"data":"{}","checksum":694314938}',
        b'{"data":"{}"}',
        b'{"data":"{}","checksum":694314937}x',
        b'{"data":"{}","checksum":69431493',
    ],
)
def test_a_damaged_file_is_named_and_never_touched(tmp_path: Path, name: str, text: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    before = identity(path)
    state = FileState(tmp_path)
    attempts: list[Callable[[], object]] = [
        state.restore,
        state.allocations,
        lambda: state.resize_status("u"),
        lambda: state.set_resize_status("u", "Deferred"),
        lambda: state.allocated.set_container_resources("u", "app", cpu("1")),
        lambda: state.remove_pod("u"),
        lambda: state.remove_orphaned_pods([]),
    ]
    for attempt in attempts:
        with pytest.raises(
            DamagedCheckpointError, match=r"is damaged: .*; drain the node"
        ) as raised:
            attempt()
        assert raised.value.path == path
        assert str(path) in str(raised.value)
    assert identity(path) == before
    assert path.read_bytes() == text
    assert names(tmp_path) == [name]


def test_a_file_of_another_version_is_damaged(tmp_path: Path) -> None:
    FileState(tmp_path, format=KUBELET_V1_28).set_resize_status("u", "Deferred")
    (tmp_path / "pod_status_manager_state").rename(tmp_path / ALLOCATED)
    with pytest.raises(DamagedCheckpointError):
        FileState(tmp_path).restore()


def test_a_file_that_is_put_right_is_restored(tmp_path: Path) -> None:
    FileState(tmp_path).set_resize_status("u", "Deferred")
    good = (tmp_path / RESIZE).read_bytes()
    (tmp_path / RESIZE).write_bytes(good[:-1])
    state = FileState(tmp_path)
    with pytest.raises(DamagedCheckpointError):
        state.restore()
    (tmp_path / RESIZE).write_bytes(good)
    assert state.resize_status("u") == "Deferred"


@pytest.mark.parametrize(
    ("put", "why"),
    [
        (Path.mkdir, "it is a directory, a pipe or a device"),
        (os.mkfifo, "it is a directory, a pipe or a device"),
        (lambda path: path.symlink_to(path), "symbolic link"),
    ],
)
def test_what_is_no_file_in_its_place_is_reported_and_does_not_hang(
    tmp_path: Path, put: Callable[[Path], None], why: str
) -> None:
    put(tmp_path / ALLOCATED)
    with pytest.raises(UnreadableCheckpointError, match=why):
        FileState(tmp_path).restore()


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(UnreadableCheckpointError, match="its directory is a file; make it"):
        FileState(tmp_path / "state").restore()


# Temporary files of killed writers


def test_leftovers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    FileState(tmp_path).set_resize_status("u", "Deferred")
    (tmp_path / f".{ALLOCATED}.abc.podstatus").write_text('{"data":"half')
    others = [f".{ALLOCATED}123", ".1234567", f"{ALLOCATED}.bak", ".x.podstatus"]
    for name in others:
        (tmp_path / name).write_text("foreign")
    state = FileState(tmp_path)
    assert state.resize_status("u") == "Deferred"
    assert names(tmp_path) == sorted([RESIZE, *others])


def test_what_another_writer_is_writing_is_no_leftover(tmp_path: Path) -> None:
    path = tmp_path / f".{ALLOCATED}.abc.podstatus"
    with path.open("w") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        FileState(tmp_path).restore()
        assert path.exists()
    FileState(tmp_path).restore()
    assert not path.exists()


# Both kinds of state


@pytest.fixture(params=["memory", "files"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryState:
    return MemoryState() if request.param == "memory" else FileState(tmp_path)


def test_nothing_is_known_at_first(state: MemoryState) -> None:
    assert state.allocated.container_resources("u", "app") is None
    assert state.allocated.pod_level_resources("u") is None
    assert state.actuated.pod_resource_info("u") is None
    assert state.actuated.pods() == {}
    assert state.resize_status("u") is None
    state.remove_pod("u")
    state.remove_orphaned_pods(["u"])
    assert state.allocations() == Allocations()


def test_parts_of_a_pod_are_set_one_by_one(state: MemoryState) -> None:
    record = state.allocated
    record.set_pod_level_resources("u", cpu("9"))
    record.set_container_resources("u", "a", cpu("1"))
    record.set_container_resources("u", "b", cpu("2"))
    record.set_container_resources("u", "a", cpu("3"))
    assert record.pod_resource_info("u") == PodResourceInfo(
        container_resources={"a": cpu("3"), "b": cpu("2")}, pod_level_resources=cpu("9")
    )
    record.set_pod_level_resources("u", None)
    assert record.pod_level_resources("u") is None
    assert state.actuated.pods() == {}


def test_an_empty_pod_is_known(state: MemoryState) -> None:
    state.actuated.set_pod_level_resources("u", None)
    assert state.actuated.pods() == {"u": PodResourceInfo()}


def test_what_is_handed_out_cannot_be_changed(state: MemoryState) -> None:
    amounts = {"cpu": Quantity("1")}
    resources = ResourceRequirements(requests=amounts)
    state.allocated.set_container_resources("u", "app", resources)
    amounts["cpu"] = Quantity("2")
    info = state.allocated.pod_resource_info("u")
    assert info is not None
    assert info.container_resources == {"app": cpu("1")}
    with pytest.raises(TypeError, match="frozen"):
        info.container_resources["other"] = cpu("1")
    with pytest.raises(TypeError, match="frozen"):
        (info.container_resources["app"].requests or {})["cpu"] = Quantity("2")
    cast(dict[str, Any], state.allocated.pods()).clear()
    assert state.allocated.pods()


def test_what_was_restored_cannot_be_changed_either(tmp_path: Path) -> None:
    FileState(tmp_path).allocated.set_container_resources("u", "app", cpu("1"))
    resources = FileState(tmp_path).allocated.container_resources("u", "app")
    assert resources is not None
    with pytest.raises(TypeError, match="frozen"):
        (resources.requests or {})["cpu"] = Quantity("2")


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.allocated.set_container_resources("u", "app", {"requests": {}}),
        lambda state: state.allocated.set_pod_level_resources("u", {}),
        lambda state: state.allocated.set_pod_resource_info("u", cpu("1")),
        lambda state: state.allocated.set_pod_resource_infos({"u": cpu("1")}),
        lambda state: state.set_resize_status("u", None),
        lambda state: state.update(lambda _: None),
        lambda state: state.remove_orphaned_pods("text"),
    ],
)
def test_what_does_not_belong_into_a_state_is_refused(
    state: MemoryState, change: Callable[[MemoryState], None]
) -> None:
    with pytest.raises(TypeError, match="expected"):
        change(state)
    assert state.allocations() == Allocations()


UIDS = ["u", "v", "w"]
steps = st.tuples(
    st.sampled_from(["allocated", "actuated", "resize", "remove", "keep", "restart"]),
    st.sampled_from(UIDS),
    st.integers(1, 3),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=25))
def test_memory_has_all_changes_and_a_restart_restores_the_stored_ones(
    changes: list[tuple[str, str, int]],
) -> None:
    """Compare with plain dicts: each file has its part as of the last time it was set."""
    expected: dict[str, dict[str, object]] = {"allocated": {}, "actuated": {}, "resize": {}}
    stored = copy.deepcopy(expected)
    with tempfile.TemporaryDirectory() as folder:
        state = FileState(folder)
        for step, uid, number in changes:
            if step in ("allocated", "actuated"):
                info = PodResourceInfo(container_resources={"app": cpu(str(number))})
                getattr(state, step).set_pod_resource_info(uid, info)
                expected[step][uid] = info
                stored[step] = dict(expected[step])
            elif step == "resize":
                state.set_resize_status(uid, str(number))
                expected[step][uid] = str(number)
                stored[step] = dict(expected[step])
            elif step == "restart":
                state = FileState(folder)
                expected = copy.deepcopy(stored)
            else:
                keep = {uid} if step == "keep" else {*UIDS} - {uid}
                state.remove_pod(uid) if step == "remove" else state.remove_orphaned_pods(keep)
                expected = {
                    part: {u: entry for u, entry in entries.items() if u in keep}
                    for part, entries in expected.items()
                }
            now = state.allocations()
            assert (now.allocated, now.actuated, now.resize_statuses) == tuple(expected.values())


def test_errors_are_one_family() -> None:
    for error in (DamagedCheckpointError, UnreadableCheckpointError, UnsupportedStateError):
        assert issubclass(error, CheckpointError)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"data":"{\\"entr', "not JSON: the string at 8 is not terminated or is invalid"),
        (b"\xff\xfe", r"not JSON: '\xff' at 0, where a value is expected"),
        (b'{"data":', "not JSON: it ends where a value is expected"),
        (b"{}", "it has neither data nor a checksum"),
        (b'{"data":"{}","checksum":1}', "its checksum is 1, its data has"),
    ],
)
def test_the_error_says_why_a_file_is_damaged(tmp_path: Path, text: bytes, why: str) -> None:
    (tmp_path / "allocated_pods_state").write_bytes(text)
    with pytest.raises(DamagedCheckpointError) as raised:
        FileState(tmp_path).restore()
    assert f"allocated_pods_state is damaged: {why}" in str(raised.value)


def failing_folder_sync(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make directory syncs fail until the returned function is called."""
    fsync = os.fsync

    def refuse_folders(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        fsync(file)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    return lambda: monkeypatch.setattr(os, "fsync", fsync)


def test_what_a_doubtful_write_left_is_put_right_by_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = FileState(tmp_path)
    state.set_resize_status("v", "Deferred")
    mend = failing_folder_sync(monkeypatch)
    with pytest.raises(CheckpointWriteError, match="may be lost") as raised:
        state.set_resize_status("u", "Proposed")
    assert raised.value.replaced
    assert state.resize_status("u") is None
    mend()
    assert FileState(tmp_path).resize_status("u") == "Proposed"
    state.set_resize_status("u", "")
    assert FileState(tmp_path).resize_status("u") is None


def test_another_files_change_puts_a_doubtful_one_right_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = FileState(tmp_path)
    mend = failing_folder_sync(monkeypatch)
    with pytest.raises(CheckpointWriteError):
        state.allocated.set_container_resources("u", "app", ResourceRequirements())
    mend()
    state.set_resize_status("v", "Deferred")
    assert FileState(tmp_path).allocations() == state.allocations()


def test_a_change_of_several_files_says_which_were_written(tmp_path: Path) -> None:
    state = FileState(tmp_path)
    state.restore()
    (tmp_path / "actuated_pods_state").mkdir()
    info = PodResourceInfo()
    with pytest.raises(CheckpointWriteError) as raised:
        state.update(lambda _: Allocations(allocated={U: info}, actuated={U: info}))
    assert raised.value.stored == ("allocated_pods_state",)
    assert state.allocations() == Allocations(allocated={U: info})


@pytest.mark.parametrize(
    "wrong",
    [
        Allocations(allocated=cast(Any, {"u": 5})),
        Allocations(actuated=cast(Any, {5: PodResourceInfo()})),
        Allocations(resize_statuses=cast(Any, {"u": 5})),
        Allocations(allocated=cast(Any, {"u": PodResourceInfo(container_resources=cast(Any, 5))})),
        cast(Any, {"allocated": {}}),
    ],
)
def test_what_is_no_state_never_reaches_the_disk(tmp_path: Path, wrong: Allocations) -> None:
    state = FileState(tmp_path)
    with pytest.raises(TypeError, match="expected"):
        state.update(lambda _: wrong)
    assert state.allocations() == Allocations()
    assert list(tmp_path.iterdir()) == []


def test_a_change_shares_no_map_with_its_maker(tmp_path: Path) -> None:
    state, pods = FileState(tmp_path), {U: PodResourceInfo()}
    state.update(lambda _: Allocations(allocated=pods))
    pods.clear()
    assert state.allocated.pod_resource_info("u") == PodResourceInfo()


@pytest.mark.parametrize("uid", [5, None, b"u"])
def test_a_uid_is_a_text(tmp_path: Path, uid: Any) -> None:
    state = FileState(tmp_path)
    attempts: list[Callable[[], None]] = [
        lambda: state.set_resize_status(uid, "Deferred"),
        lambda: state.allocated.set_pod_resource_info(uid, PodResourceInfo()),
        lambda: state.allocated.set_container_resources(uid, "app", ResourceRequirements()),
        lambda: state.allocated.set_pod_level_resources(uid, None),
        lambda: state.remove_orphaned_pods({uid}),
    ]
    for attempt in attempts:
        with pytest.raises(TypeError, match="expected the UID of a pod, got"):
            attempt()
    assert list(tmp_path.iterdir()) == []


def test_a_state_must_have_a_folder_and_a_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the directory name is empty"):
        FileState("")
    with pytest.raises(TypeError, match="expected a CheckpointFormat, got str"):
        FileState(tmp_path, format=cast(Any, "v1.28"))


def test_a_file_system_without_locks_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    (tmp_path / ".allocated_pods_state.left.podstatus").write_text("half")
    FileState(tmp_path).set_resize_status("u", "Deferred")
    assert FileState(tmp_path).resize_status("u") == "Deferred"
    assert [path.name for path in tmp_path.iterdir()] == ["podstatus_resize_state"]


# Removal of one container, and of everything


@FORMATS
def test_a_removed_container_is_gone_after_a_restart(
    tmp_path: Path, format: CheckpointFormat
) -> None:
    state = FileState(tmp_path, format=format)
    containers = {"a": cpu("1"), "b": cpu("2")}
    state.allocated.set_pod_resource_info("u", PodResourceInfo(container_resources=containers))
    state.allocated.set_container_resources("v", "a", cpu("3"))
    state.set_resize_status("u", "InProgress")
    state.remove_container("u", "a")
    state.set_resize_status("v", "Proposed")  # v1.36 stores a removal with the next change
    state.allocated.set_container_resources("v", "a", cpu("4"))
    again = FileState(tmp_path, format=format)
    assert set(again.allocations().allocated[U].container_resources) == {"b"}
    assert again.resize_status("u") == "InProgress"
    assert again.allocated.container_resources("v", "a") == cpu("4")


def test_with_the_last_container_the_pod_is_removed() -> None:
    state = MemoryState()
    state.allocated.set_container_resources("u", "a", cpu("1"))
    state.actuated.set_container_resources("u", "a", cpu("1"))
    state.set_resize_status("u", "Deferred")
    state.remove_container("u", "a")
    assert state.allocations() == Allocations()


def test_pod_level_resources_keep_the_entry_of_a_pod() -> None:
    state = MemoryState()
    state.allocated.set_container_resources("u", "a", cpu("1"))
    state.allocated.set_pod_level_resources("u", cpu("2"))
    state.set_resize_status("u", "Deferred")
    state.remove_container("u", "a")
    assert state.allocated.pod_resource_info("u") == PodResourceInfo(pod_level_resources=cpu("2"))
    assert state.resize_status("u") == "Deferred"


def test_removing_an_unknown_container_changes_nothing() -> None:
    state = MemoryState()
    state.allocated.set_container_resources("u", "a", cpu("1"))
    state.set_resize_status("v", "Deferred")
    before = state.allocations()
    for uid, container in (("u", "none"), ("v", "a"), ("none", "a")):
        state.remove_container(uid, container)
    assert state.allocations() == before


@FORMATS
def test_clear_removes_everything(tmp_path: Path, format: CheckpointFormat) -> None:
    state = FileState(tmp_path, format=format)
    state.allocated.set_container_resources("u", "a", cpu("1"))
    state.set_resize_status("v", "Deferred")
    state.clear()
    assert state.allocations() == Allocations()
    state.set_resize_status("w", "Proposed")
    state.allocated.set_container_resources("w", "a", cpu("1"))
    again = FileState(tmp_path, format=format)
    assert set(again.allocations().allocated) == {"w"}
    assert again.allocations().resize_statuses == {"w": "Proposed"}


def test_v1_28_stores_the_removal_of_a_container_at_once(tmp_path: Path) -> None:
    state = FileState(tmp_path, format=KUBELET_V1_28)
    state.allocated.set_container_resources("u", "a", cpu("1"))
    state.remove_container("u", "a")
    assert FileState(tmp_path, format=KUBELET_V1_28).allocations() == Allocations()
    state.allocated.set_container_resources("u", "a", cpu("1"))
    state.clear()
    assert FileState(tmp_path, format=KUBELET_V1_28).allocations() == Allocations()
