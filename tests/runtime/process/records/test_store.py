"""Exit records on disk."""

from pathlib import Path

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.records.models import ExitRecord, PodRecord
from podstatus.runtime.process.records.store import RecordStore

UID = PodUID("uid-1")
GUESS = ExitRecord(
    exit_code=137, reason="ContainerStatusUnknown", message="?", started_at=1, finished_at=2
)
RECORDED = ExitRecord(exit_code=7, reason="Error", started_at=1, finished_at=2)


def store_with_pod(folder: Path) -> RecordStore:
    store = RecordStore(folder)
    record = PodRecord(
        uid=UID, namespace="n", name="p", sandbox_id="s", sandbox_attempt=0, created_at=1
    )
    store.write_pod(record)
    return store


def test_the_monitors_record_is_not_replaced_by_an_estimate(tmp_path: Path) -> None:
    store = store_with_pod(tmp_path)
    first, second = (
        store.create_container_dir(UID, "first"),
        store.create_container_dir(UID, "second"),
    )
    assert store.write_exit(first, GUESS) == GUESS
    assert store.read_exit(first) == GUESS
    assert store.write_exit(second, RECORDED) == RECORDED
    assert store.write_exit(second, GUESS) == RECORDED
    assert store.read_exit(second) == RECORDED
    assert sorted(path.name for path in second.path.iterdir()) == ["exit.json"]


def test_an_end_counts_also_if_it_cannot_be_recorded(tmp_path: Path) -> None:
    store = store_with_pod(tmp_path)
    place = store.pod_folder(UID).container("gone")
    assert store.write_exit(place, GUESS) == GUESS
    assert store.read_exit(place) is None
