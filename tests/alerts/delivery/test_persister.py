"""The persister stops in time, whatever the disk does meanwhile."""

import asyncio
import gc
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from podstatus.alerts.delivery.decide.queue import StoredAlert
from podstatus.alerts.delivery.persister import AlertPersister
from podstatus.alerts.delivery.store import AlertStore, AlertStoreError
from podstatus.alerts.model import AlertId
from podstatus.testing.clock import FakeClock
from tests.alerts.sample_alerts import firing


class FullStore(AlertStore):
    """A full disk, whose failure the test triggers."""

    is_asked: threading.Event
    may_answer: threading.Event

    def replace(self, alerts: Mapping[AlertId, StoredAlert]) -> None:
        self.is_asked.set()
        self.may_answer.wait(30)
        raise AlertStoreError("database or disk is full")


@pytest.fixture
def store(tmp_path: Path) -> FullStore:
    made = FullStore.open(tmp_path / "alerts.db")
    assert isinstance(made, FullStore)
    made.is_asked, made.may_answer = threading.Event(), threading.Event()
    return made


async def test_a_write_that_fails_after_the_end_was_asked_for_is_no_loose_end(
    store: FullStore,
) -> None:
    loose: list[dict[str, Any]] = []

    asyncio.get_running_loop().set_exception_handler(lambda _, about: loose.append(about))
    alert_persister = AlertPersister(store, clock=FakeClock())
    running = asyncio.create_task(alert_persister.run())
    alert_persister.save(firing())
    await asyncio.to_thread(store.is_asked.wait, 30)
    running.cancel()
    await asyncio.sleep(0)
    store.may_answer.set()
    await asyncio.wait({running})
    gc.collect()
    assert alert_persister.problem == "database or disk is full"
    assert loose == []


async def test_a_file_that_is_deleted_while_nothing_changes_is_written_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "alerts.db"

    alert_persister = AlertPersister(AlertStore.open(path), clock=FakeClock())
    alert_persister.save(firing())
    with ThreadPoolExecutor(1) as thread:
        await alert_persister.write_once(thread)
        await asyncio.to_thread(path.unlink)
        await alert_persister.write_once(thread)
        assert "was deleted; all alerts are written again" in alert_persister.problem
        await alert_persister.write_once(thread)
        assert alert_persister.problem == ""
    assert AlertStore.open(path).read() == {firing().id: StoredAlert(alert=firing())}
