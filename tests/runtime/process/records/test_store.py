"""What is on the disk of an attempt that has ended."""

from pathlib import Path

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.records.models import ExitRecord, PodRecord
from podstatus.runtime.process.records.store import RecordStore

UID = PodUID("uid-1")
GUESS = ExitRecord(
    exit_code=137, reason="ContainerStatusUnknown", message="?", started_at=1, finished_at=2
)
KNOWN = ExitRecord(exit_code=7, reason="Error", started_at=1, finished_at=2)


def shelf_with_pod(folder: Path) -> RecordStore:
    shelf = RecordStore(folder)
    record = PodRecord(
        uid=UID, namespace="n", name="p", sandbox_id="s", sandbox_attempt=0, created_at=1
    )
    shelf.write_pod(record)
    return shelf


def test_what_a_keeper_knows_is_not_replaced_by_what_the_agent_thinks(tmp_path: Path) -> None:
    shelf = shelf_with_pod(tmp_path)
    first, second = (
        shelf.create_container_dir(UID, "first"),
        shelf.create_container_dir(UID, "second"),
    )
    assert shelf.write_exit(first, GUESS) == GUESS
    assert shelf.read_exit(first) == GUESS
    assert shelf.write_exit(second, KNOWN) == KNOWN
    assert shelf.write_exit(second, GUESS) == KNOWN
    assert shelf.read_exit(second) == KNOWN
    assert sorted(path.name for path in second.path.iterdir()) == ["exit.json"]


def test_an_end_counts_also_if_it_cannot_be_recorded(tmp_path: Path) -> None:
    shelf = shelf_with_pod(tmp_path)
    place = shelf.pod_folder(UID).container("gone")
    assert shelf.write_exit(place, GUESS) == GUESS
    assert shelf.read_exit(place) is None
