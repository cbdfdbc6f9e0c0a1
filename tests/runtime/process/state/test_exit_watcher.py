"""No exit of a process is missed, even while records are unreadable."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.records.models import PodRecord
from podstatus.runtime.process.records.store import RecordStore
from podstatus.runtime.process.state.exit_watcher import ExitWatcher
from podstatus.runtime.process.state.process_identity import read_identity
from tests.support.processes.process_runtime import build_process_runtime

UID = PodUID("uid-1")
RECORD = PodRecord(
    uid=UID, namespace="default", name="web", sandbox_id="1", sandbox_attempt=0, created_at=1
)


@pytest.mark.parametrize("failure", [OSError(24, "Too many open files"), RuntimeDownError("EIO")])
def test_a_failed_exit_callback_is_retried(failure: Exception) -> None:
    calls: list[str] = []

    def on_end() -> None:
        calls.append("failed" if not calls else "noted")
        if calls == ["failed"]:
            raise failure

    async def scenario(process: "subprocess.Popen[bytes]") -> None:
        ends = ExitWatcher()
        identity = read_identity(process.pid)
        assert identity is not None
        assert ends.watch(identity, on_end)
        process.kill()
        while not calls:  # noqa: ASYNC110 - polling is what is tested
            await asyncio.sleep(0)
        for _ in range(3):
            ends.poll()

    with subprocess.Popen(["/bin/sleep", "600"]) as process:
        asyncio.run(scenario(process))
    assert calls == ["failed", "noted"]


def test_a_record_that_cannot_be_read_is_not_one_that_is_missing(tmp_path: Path) -> None:
    """Otherwise a running container would count as lost, and be started twice."""
    store = RecordStore(tmp_path)
    store.write_pod(RECORD)
    folder = store.create_container_dir(UID, "1")
    assert store.read_shim(RECORD) is None
    assert store.read_started(folder) is None
    assert store.read_exit(folder) is None
    for path in (store.pod_folder(UID).shim, folder.started, folder.exit, folder.launch):
        path.mkdir()
    for read in (
        lambda: store.read_shim(RECORD),
        lambda: store.read_started(folder),
        lambda: store.read_exit(folder),
        lambda: store.read_launches(UID),
    ):
        with pytest.raises(RuntimeDownError, match="cannot read"):
            read()
    store.pod_folder(UID).record.unlink()
    store.pod_folder(UID).record.mkdir()
    with pytest.raises(RuntimeDownError, match=r"cannot read .*pod\.json"):
        store.read_pods()


async def test_a_runtime_that_cannot_read_its_records_is_not_opened(tmp_path: Path) -> None:
    """An empty list would have the containers of the previous agent started twice."""
    RecordStore(tmp_path).write_pod(RECORD)
    runtime = build_process_runtime(tmp_path, isolated=False)
    with pytest.raises(RuntimeDownError, match="not been opened"):
        await runtime.list_pods()
    record = RecordStore(tmp_path).pod_folder(UID).record
    record.unlink()
    record.mkdir()
    with pytest.raises(RuntimeDownError, match=r"cannot read .*pod\.json"):
        await runtime.open()
    with pytest.raises(RuntimeDownError, match="not been opened"):
        await runtime.list_pods()
