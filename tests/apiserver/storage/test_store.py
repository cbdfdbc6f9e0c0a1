"""Objects in memory and on disk, and their resource versions."""

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podstatus.apiserver.storage.store import (
    ADDED,
    DELETED,
    MODIFIED,
    StorageError,
    StorageKey,
    Store,
    StoreChange,
)
from podstatus.apiserver.strategies.base import Document
from tests.support.full_disk import no_file_can_grow

A, B = StorageKey("default", "a"), StorageKey("default", "b")


def fields(resource: str, document: Document) -> dict[str, str]:
    return {"resource": resource, "word": document.get("word", "")}


def named(key: StorageKey, **more: Any) -> Document:
    return {"metadata": {"name": key.name, "namespace": key.namespace}} | more


def opened(path: Path | None) -> Store:
    return Store.open(path, fields)


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return opened(tmp_path / "objects.db" if request.param == "folder" else None)


def test_every_change_has_a_version_of_its_own(store: Store) -> None:
    assert store.version == 0
    assert store.put("pods", A, named(A)).version == 1
    assert store.put("nodes", B, named(B)).version == 2
    assert store.put("pods", A, named(A, word="x")).version == 3
    assert store.delete("pods", A, named(A)).version == 4
    assert store.version == 4


def test_the_version_is_in_the_object(store: Store) -> None:
    store.put("pods", A, named(A))
    stored = store.put("pods", A, named(A, word="x"))
    assert stored.document()["metadata"]["resourceVersion"] == "2"
    assert stored.fields == {"resource": "pods", "word": "x"}


def test_objects_are_listed_in_the_order_of_their_keys(store: Store) -> None:
    for key in (B, StorageKey("other", "a"), A):
        store.put("pods", key, named(key))
    assert [s.key for s in store.objects("pods")] == [A, B, StorageKey("other", "a")]
    assert [s.key for s in store.objects("pods", "default")] == [A, B]
    store.delete("pods", A, named(A))
    assert [s.key for s in store.objects("pods")] == [B, StorageKey("other", "a")]
    assert list(store.objects("nodes")) == []


def test_the_listener_hears_what_changed(store: Store) -> None:
    heard: list[tuple[str, StoreChange]] = []
    store.listener = lambda resource, change: heard.append((resource, change))
    store.put("pods", A, named(A))
    store.put("pods", A, named(A, word="x"))
    store.delete("pods", A, named(A, word="y"))
    assert [(r, c.type, c.version) for r, c in heard] == [
        ("pods", ADDED, 1),
        ("pods", MODIFIED, 2),
        ("pods", DELETED, 3),
    ]
    assert heard[1][1].old == heard[0][1].new
    assert heard[2][1].new.document()["word"] == "y"


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "objects.db"
    store = opened(path)
    store.put("pods", A, named(A))
    stored = store.put("pods", B, named(B, word="x", unknown={"field": [1, None]}))
    store.delete("pods", A, named(A))
    store.close()
    again = opened(path)
    assert again.version == 3
    assert list(again.objects("pods")) == [stored]
    assert again.put("pods", A, named(A)).version == 4


def test_only_its_owner_can_read_the_files(tmp_path: Path) -> None:
    path = tmp_path / "objects.db"
    store = opened(path)
    store.put("pods", A, named(A))
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == {
        "objects.db": 0o600,
        "objects.db-wal": 0o600,
        "objects.db-marker": 0o600,
    }


def test_two_servers_cannot_use_one_file(tmp_path: Path) -> None:
    path = tmp_path / "objects.db"
    store = opened(path)
    store.put("pods", A, named(A))
    connect = sqlite3.connect(path, timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        connect.execute("SELECT * FROM objects")


def test_a_file_of_another_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "objects.db"
    with sqlite3.connect(path) as connect:
        connect.execute("PRAGMA user_version = 7")
    before = path.read_bytes()
    with pytest.raises(StorageError, match="has format 7, only 1 is supported"):
        opened(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "objects.db"
    path.write_bytes(b"something else" * 1000)
    with pytest.raises(StorageError, match="cannot use the database"):
        opened(path)


def test_a_write_that_fails_changes_nothing(tmp_path: Path) -> None:
    store = opened(tmp_path / "objects.db")
    stored = store.put("pods", A, named(A))
    with no_file_can_grow():
        with pytest.raises(StorageError, match="nothing was changed"):
            store.put("pods", A, named(A, word="x"))
        with pytest.raises(StorageError, match="nothing was changed"):
            store.delete("pods", A, named(A))
    assert (store.version, store.get("pods", A)) == (1, stored)
    assert store.put("pods", A, named(A)).version == 2


def test_texts_are_kept_as_json(store: Store) -> None:
    stored = store.put("pods", A, named(A, word="grüße \u2028 <&>"))
    assert msgspec.json.decode(stored.data)["word"] == "grüße \u2028 <&>"


def test_integers_stored_before_they_were_bounded_are_read_as_the_nearest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "objects.db"
    store = opened(path)
    container = {"livenessProbe": {"periodSeconds": 2**40, "httpGet": {"port": 2**33}}}
    spec = {"containers": [container], "priority": -(2**31) - 1}
    security = {"runAsUser": 2**70, "supplementalGroups": [1, 2**64], "fsGroup": 2**40}
    labels = {"a": "x:99999999999"}
    pod = named(A, spec=spec | {"securityContext": security})
    pod["metadata"]["labels"] = labels
    store.put("pods", A, pod)
    store.put("pods", B, named(B, spec={"securityContext": {"fsGroup": 2**40}}))
    store.close()

    again = opened(path)
    read = again.get("pods", A)
    assert read is not None
    document = read.document()
    probe = {"periodSeconds": 2**31 - 1, "httpGet": {"port": 2**31 - 1}}
    assert document["spec"] == {
        "containers": [{"livenessProbe": probe}],
        "priority": -(2**31),
        "securityContext": {
            "runAsUser": 2**63 - 1,
            "supplementalGroups": [1, 2**63 - 1],
            "fsGroup": 2**40,
        },
    }
    assert (read.version, document["metadata"]["labels"]) == (1, labels)
    assert [record.getMessage() for record in caplog.records] == [
        "integers out of the range of their types were clamped: count=1 first=pods/default/a"
    ]
