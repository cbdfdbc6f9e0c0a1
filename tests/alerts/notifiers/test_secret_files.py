"""Files on a disk that hangs block no caller for long."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from podstatus.alerts.model import Action
from podstatus.alerts.notifiers import secret_files
from podstatus.alerts.notifiers.http_post import HttpPostClient
from podstatus.alerts.notifiers.secret_files import read_with_timeout
from podstatus.alerts.notifiers.webhook import WebhookNotifier
from podstatus.alerts.ports import NotSentError
from podstatus.base.system_clock import SystemClock
from podstatus.client.auth.files import UnreadableError
from podstatus.testing.clock import FakeClock
from tests.alerts.sample_alerts import firing


class Disk:
    """A disk that answers when the test releases it."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.reads = 0

    def read(self, path: str) -> str:
        self.reads += 1
        self.answers.wait(30)
        if path == "bad":
            raise NotSentError("it is empty")
        return f"what is in {path}"


@pytest.fixture
def disk() -> Iterator[Disk]:
    made = Disk()
    yield made
    made.answers.set()


def read(disk: Disk, path: str) -> "asyncio.Task[str]":
    return asyncio.create_task(read_with_timeout(disk.read, path))


async def test_a_file_is_read_while_the_loop_goes_on(disk: Disk) -> None:
    good, bad = read(disk, "good"), read(disk, "bad")
    await asyncio.sleep(0.01)
    assert not good.done()
    disk.answers.set()
    assert await good == "what is in good"
    with pytest.raises(NotSentError, match="it is empty"):
        await bad
    assert await read(disk, "good") == "what is in good"
    assert disk.reads == 3  # read each time


async def test_a_disk_that_hangs_takes_one_thread_and_is_reported(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_files, "READ_TIMEOUT_SECONDS", 0.02)

    for _ in range(3):
        with pytest.raises(NotSentError, match=r"cannot read /mnt/t: no answer in 0\.02 s"):
            await read(disk, "/mnt/t")
    assert disk.reads == 1
    monkeypatch.setattr(secret_files, "READ_TIMEOUT_SECONDS", 30.0)
    first, second = read(disk, "/mnt/t"), read(disk, "/mnt/t")
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    disk.answers.set()
    assert await second == "what is in /mnt/t"
    assert disk.reads == 1


@pytest.mark.parametrize("option", ["secretFile", "tokenFile", "caFile"])
def test_a_webhook_reads_its_files_aside(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = []

    def note(_: str) -> NoReturn:
        readers.append(threading.current_thread())
        raise UnreadableError("away")

    async def scene() -> None:
        http = HttpPostClient(clock=SystemClock())
        options = {"url": "https://localhost:1/", option: str(tmp_path / "file")}
        try:
            with pytest.raises(NotSentError, match="away"):
                await WebhookNotifier(http, clock=FakeClock(), link=lambda _: "").send(
                    Action(kind="", options=options), firing()
                )
        finally:
            await http.close()

    monkeypatch.setattr(secret_files, "read_file", note)
    asyncio.run(scene())
    assert [reader.daemon for reader in readers] == [True]


async def test_of_no_file_nothing_is_waited_for(disk: Disk) -> None:
    disk.answers.set()
    assert await read_with_timeout(disk.read, "") == "what is in "
