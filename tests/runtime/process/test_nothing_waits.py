"""A disk that hangs, or is busy with a container's files, does not block the agent."""

import asyncio
import threading
from pathlib import Path

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.launch_preparer import ContainerPreparer
from podstatus.runtime.process.logs.cri_format import LogEntry
from podstatus.runtime.process.logs.files import LogFile
from podstatus.runtime.process.logs.reader import LogReader
from podstatus.runtime.process.service_links import NoServices
from podstatus.runtime.process.volumes.unsandboxed_files import UnsandboxedFiles
from podstatus.testing.clock import FakeClock
from tests.runtime.process.a_log import ALog
from tests.support.processes.process_runtime import NoObjects


def is_open(path: Path) -> bool:
    return any(link.resolve() == path for link in Path("/proc/self/fd").iterdir())


def test_who_hangs_up_does_not_wait_for_a_disk_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ALog(tmp_path)
    log.write("line")
    reading, works_again = threading.Event(), threading.Event()

    def hang(_: LogFile) -> list[LogEntry] | None:
        reading.set()
        works_again.wait(10)
        return None

    async def scenario() -> None:
        reader = LogReader(log.place.log, follow=False)
        await reader.open()
        task = asyncio.create_task(reader.read())
        while not reading.is_set():  # noqa: ASYNC110 - set by a thread
            await asyncio.sleep(0)
        task.cancel()
        await reader.close()
        assert is_open(log.place.log)
        works_again.set()

    monkeypatch.setattr(LogFile, "read", hang)
    # asyncio.run returns when its threads have ended.
    asyncio.run(scenario())
    assert not is_open(log.place.log)


def test_what_lies_outside_is_removed_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    monkeypatch.setattr(
        UnsandboxedFiles, "remove", lambda *_: threads.append(threading.current_thread())
    )
    preparer = ContainerPreparer(
        tmp_path,
        bubblewrap=None,
        objects=NoObjects(),
        services=NoServices(),
        host_ips=lambda: (),
        allocatable=dict,
        hidden=(),
        clock=FakeClock(),
    )
    asyncio.run(preparer.remove_pod(PodUID("uid-1")))
    assert threads
    assert threads[0] is not threading.main_thread()
