"""Watches over a real socket: bounded, gapless, and ended in time."""

import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPResponse
from typing import Any

import pytest

from tests.support.processes.server_process import TOKEN, Client, Document, ServerProcess, running

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    settings = {"watching.BOOKMARK_SECONDS": 0.2, "hub.MAX_QUEUED_BYTES": 2 * 2**20}
    with running(settings=settings) as server:
        yield server


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with closing(Client(server.port)) as client:
        yield client


@pytest.fixture
def other(server: ServerProcess) -> Iterator[Client]:
    with closing(Client(server.port)) as client:
        yield client


def _create(client: Client, name: str, **more: Any) -> int:
    metadata = {"name": name, "labels": {"color": more.pop("color", "none")}}
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata} | more
    code, created = client.ask("POST", MAPS, body)
    assert code == 201, created
    return _version(created)


def _paint(client: Client, name: str, color: str) -> int:
    patch = {"metadata": {"labels": {"color": color}}}
    code, patched = client.ask("PATCH", f"{MAPS}/{name}", patch, MERGE)
    assert code == 200, patched
    return _version(patched)


def _delete(client: Client, name: str) -> None:
    assert client.ask("DELETE", f"{MAPS}/{name}")[0] == 200


def _version(document: Document) -> int:
    return int(document["metadata"]["resourceVersion"])


def _newest(client: Client) -> int:
    return _version(client.ask("GET", MAPS)[1])


def _summary(event: Document) -> tuple[str, str, int]:
    return event["type"], event["object"]["metadata"]["name"], _version(event["object"])


def test_a_client_that_does_not_read_is_cut_off_without_affecting_others(
    server: ServerProcess, client: Client, other: Client
) -> None:
    _create(client, "big", data={"text": ""})
    start, before = _newest(client), server.peak_bytes()
    with _mute_watcher(server, f"resourceVersion={start}") as mute:
        events = other.watch(f"{MAPS}?watch=true&resourceVersion={start}")
        for number in range(60):
            text = f"{number:06}" * 2**15
            client.ask("PATCH", f"{MAPS}/big", {"data": {"text": text}}, MERGE)
            assert next(events)["object"]["data"]["text"] == text
        assert server.peak_bytes() - before < 64 * 2**20
        assert _is_broken(mute)
    assert client.ask("GET", MAPS)[0] == 200


def _mute_watcher(server: ServerProcess, parameters: str) -> socket.socket:
    """Start a watch and read nothing of it; the socket buffers are small."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", server.port))
    request = f"GET {MAPS}?watch=true&{parameters} HTTP/1.1\r\nHost: localhost\r\n"
    connection.sendall(f"{request}Authorization: Bearer {TOKEN}\r\n\r\n".encode())
    assert connection.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"
    return connection


def _is_broken(connection: socket.socket) -> bool:
    """Return whether the stream breaks off, without the final empty chunk."""
    tail = b""
    try:
        while piece := connection.recv(2**16):
            tail = (tail + piece)[-5:]
    except ConnectionError:
        return True
    return tail != b"0\r\n\r\n"


def test_after_compaction_an_old_version_is_gone(server: ServerProcess, client: Client) -> None:
    old = _create(client, "a")
    new = _create(client, "b")
    server.compact()
    (error,) = client.watch(f"{MAPS}?watch=true&resourceVersion={old}")
    assert (error["object"]["code"], error["object"]["reason"]) == (410, "Expired")
    assert list(client.watch(f"{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={new}")) == []


def test_a_paginated_list_from_before_a_compaction_has_to_be_restarted(
    server: ServerProcess, client: Client
) -> None:
    for name in "abc":
        _create(client, name)
    _, page = client.ask("GET", f"{MAPS}?limit=1")
    _create(client, "d")
    server.compact()
    code, status = client.ask("GET", f"{MAPS}?limit=1&continue={page['metadata']['continue']}")
    assert (code, status["reason"]) == (410, "Expired")


def test_bookmarks_tell_an_idle_watcher_how_far_the_server_is(
    client: Client, other: Client
) -> None:
    start = _newest(client)
    events = other.watch(f"{MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion={start}")
    assert _bookmark(next(events)) == start
    code, node = client.ask("POST", "/api/v1/nodes", _node("n"))
    assert code == 201, node
    later = next(v for v in map(_bookmark, events) if v > start)
    assert later == _version(node)
    assert (
        client.ask("GET", f"{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={later}")[0] == 200
    )


def _node(name: str) -> Document:
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}}


def _bookmark(event: Document) -> int:
    assert event["type"] == "BOOKMARK"
    assert event["object"]["kind"] == "ConfigMap"
    return _version(event["object"])


def test_bookmarks_are_sent_on_request_only(client: Client) -> None:
    start = _newest(client)
    assert list(client.watch(f"{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={start}")) == []


def test_a_streamed_list_says_where_it_ends(client: Client, other: Client) -> None:
    versions = [_create(client, name) for name in "ab"]
    path = f"{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    events = other.watch(f"{path}&allowWatchBookmarks=true")
    first, second, end = itertools.islice(events, 3)
    assert [_summary(first), _summary(second)] == [
        ("ADDED", "a", versions[0]),
        ("ADDED", "b", versions[1]),
    ]
    assert _bookmark(end) == versions[1]
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_watch_ends_when_its_time_is_over(client: Client) -> None:
    _create(client, "a")
    began = time.monotonic()
    events = list(client.watch(f"{MAPS}?watch=true&timeoutSeconds=1"))
    assert [event["type"] for event in events] == ["ADDED"]
    assert 0.9 < time.monotonic() - began < 60
    assert client.ask("GET", MAPS)[0] == 200, "the connection can be used again"


def test_what_enters_and_leaves_a_selection_is_added_and_deleted(
    client: Client, other: Client
) -> None:
    start = _create(client, "a", color="green")
    selector = "labelSelector=color%3Dred"
    events = other.watch(f"{MAPS}?watch=true&resourceVersion={start}&{selector}")
    entered = _paint(client, "a", "red")
    assert _summary(next(events)) == ("ADDED", "a", entered)
    left = _paint(client, "a", "blue")
    event = next(events)
    assert _summary(event) == ("DELETED", "a", left)
    assert event["object"]["metadata"]["labels"] == {"color": "red"}
    _create(client, "b", color="blue")
    born = _create(client, "c", color="red")
    assert _summary(next(events)) == ("ADDED", "c", born)
    _delete(client, "c")
    assert _summary(next(events))[:2] == ("DELETED", "c")


def test_what_cannot_be_watched_is_refused_before_the_watch_begins(client: Client) -> None:
    times = ("timeoutSeconds=soon", f"timeoutSeconds={10**400}")
    for parameter in (*times, "labelSelector=(", "resourceVersion=x"):
        (error,) = client.watch(f"{MAPS}?watch=true&{parameter}")
        assert error["object"]["code"] == 400, parameter


def test_a_resumed_watch_sees_every_change_once_during_writes(
    server: ServerProcess, client: Client
) -> None:
    start = _newest(client)
    writers = [threading.Thread(target=_write, args=(server.port, n)) for n in range(3)]
    for writer in writers:
        writer.start()
    seen: list[int] = []
    version = start
    while len(seen) < 3 * 100:
        version = _follow_for_a_while(server.port, version, seen)
    for writer in writers:
        writer.join()
    assert seen == list(range(start + 1, start + 301))


def _write(port: int, number: int) -> None:
    with closing(Client(port)) as client:
        _create(client, f"w{number}")
        for index in range(98):
            _paint(client, f"w{number}", f"c{index}")
        _delete(client, f"w{number}")


def _follow_for_a_while(port: int, version: int, seen: list[int]) -> int:
    """Read a few events, then close the connection."""
    path = f"{MAPS}?watch=true&timeoutSeconds=2&allowWatchBookmarks=true"
    with closing(Client(port)) as client:
        for event in itertools.islice(client.watch(f"{path}&resourceVersion={version}"), 7):
            version = _version(event["object"])
            if event["type"] != "BOOKMARK":
                seen.append(version)
    return version


def test_the_end_of_a_streamed_list_hides_no_change_that_is_still_to_come(
    server: ServerProcess, client: Client
) -> None:
    for index in range(30):
        _create(client, f"m{index:02}", data={"text": "x" * 400_000})
    start = _newest(client)
    streamed = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    with _mute_watcher(server, streamed) as connection:
        # The server waits for this client, with most of the list still to be sent.
        changed = _paint(client, "m00", "red")
        response = HTTPResponse(connection)
        response.begin()
        with response:
            events = [json.loads(response.readline()) for _ in range(32)]
    assert {event["type"] for event in events[:30]} == {"ADDED"}
    assert _bookmark(events[30]) == start
    assert _summary(events[31]) == ("MODIFIED", "m00", changed)
