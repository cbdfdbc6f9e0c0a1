"""The alert store: its content, and what happens if it cannot be used."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from podstatus.alerts.delivery.decide.queue import Delivery, ReceiverKey, StoredAlert
from podstatus.alerts.delivery.store import AlertStore, AlertStoreError
from podstatus.alerts.model import Action, AlertId
from tests.alerts.sample_alerts import firing, pending, resolved

HOOK = Action(kind="webhook", options={"url": "https://host/secret"})


def kept(*alerts: StoredAlert) -> dict[str, StoredAlert]:
    return {one.alert.id: one for one in alerts}


def test_what_is_written_is_read_by_the_next(tmp_path: Path) -> None:
    store = AlertStore.open(tmp_path / "alerts.db")
    deliveries = {ReceiverKey("k"): Delivery(action=HOOK, progress="sent")}
    first = StoredAlert(alert=firing("a"), deliveries=deliveries)
    second = StoredAlert(alert=pending(firing("b")))
    over = StoredAlert(alert=resolved(firing("c")), deliveries=deliveries)
    store.write(kept(first, second, over), [])  # type: ignore[arg-type]
    changed = StoredAlert(alert=firing("b"))
    store.write(kept(changed), [over.alert.id])  # type: ignore[arg-type]
    store.close()
    store = AlertStore.open(tmp_path / "alerts.db")
    assert store.read() == kept(first, changed)
    store.replace(kept(over))  # type: ignore[arg-type]
    assert store.read() == kept(over)


def test_a_row_that_cannot_be_decoded_is_skipped_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = AlertStore.open(tmp_path / "alerts.db")
    store.write(kept(StoredAlert(alert=firing("a")), StoredAlert(alert=firing("b"))), [])  # type: ignore[arg-type]
    broken = b'{"alert": 7}'
    with closing(sqlite3.connect(tmp_path / "alerts.db", isolation_level=None)) as database:
        database.execute("UPDATE alerts SET kept = ? WHERE id = ?", (broken, firing("a").id))
    assert list(store.read()) == [firing("b").id]
    assert "cannot decode stored alert, skipped it: id=CrashLoop-a-1" in caplog.text


def test_a_file_that_a_thread_writes_is_not_closed_under_it(tmp_path: Path) -> None:
    store = AlertStore.open(tmp_path / "alerts.db")
    one = kept(StoredAlert(alert=firing()))
    began, may_go_on = threading.Event(), threading.Event()

    def removed() -> Iterator[AlertId]:
        began.set()
        assert may_go_on.wait(60)
        yield from ()

    thread = threading.Thread(target=store.write, args=(one, removed()))
    thread.start()
    assert began.wait(60)
    with pytest.raises(AlertStoreError, match=r"cannot close .*alerts\.db: it is being written"):
        store.close()
    may_go_on.set()
    thread.join()
    assert store.read() == one
    store.close()


def test_another_format_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "alerts.db"
    AlertStore.open(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(AlertStoreError, match="format 99, supported is 1; move it away"):
        AlertStore.open(path)


@pytest.mark.parametrize("content", [b"no database" * 100, None])
def test_a_file_that_is_not_a_store_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "alerts.db"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(
        AlertStoreError, match=r"cannot use the alerts in .*move it away to start empty"
    ):
        AlertStore.open(path)


def truncate(path: Path) -> None:
    os.truncate(path, 0)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(path.stat().st_size))


@pytest.mark.parametrize("attack", [Path.unlink, truncate, overwrite])
@pytest.mark.parametrize("name", ["alerts.db", "alerts.db-wal"])
def test_a_file_that_is_changed_while_in_use_is_noticed_and_begun_again(
    tmp_path: Path, attack: Callable[[Path], None], name: str
) -> None:
    path = tmp_path / "alerts.db"
    store = AlertStore.open(path)
    alert = firing()
    alerts = {alert.id: StoredAlert(alert=alert)}
    store.write(alerts, [])
    store.check()
    attack(tmp_path / name)
    with pytest.raises(AlertStoreError, match=r"alerts\.db .*; all alerts are written again"):
        store.check()
    store.check()
    store.replace(alerts)
    store.close()
    again = AlertStore.open(path)
    assert again.read() == alerts
    again.close()
