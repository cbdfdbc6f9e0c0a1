"""Watches: every change once, from the version that one knows, with bookmarks, until forgotten."""

from urllib.parse import quote

import pytest

from tests.servers.pods import config_map, created, maps, pod, pods
from tests.support.processes.api_servers import Document, Server


def told(event: Document) -> tuple[str, str]:
    """What happened to which object."""
    return event["type"], event["object"]["metadata"]["name"]


def version(document: Document) -> int:
    """Versions are numbers, and grow."""
    return int(document["metadata"]["resourceVersion"])


def newest(server: Server, namespace: str) -> int:
    return version(server.client.get(maps(namespace))[1])


def test_a_watch_from_nowhere_begins_with_what_there_is(server: Server, namespace: str) -> None:
    for name in "ab":
        created(server.client, maps(namespace), config_map(name))
    with server.watch(f"{maps(namespace)}?watch=1") as watch:
        assert [told(watch.next()), told(watch.next())] == [("ADDED", "a"), ("ADDED", "b")]
        server.client.patch(maps(namespace, "a"), {"data": {"k": "v"}})
        assert told(watch.next()) == ("MODIFIED", "a")


def test_a_watch_resumes_after_the_version_it_is_given(server: Server, namespace: str) -> None:
    stored = [created(server.client, maps(namespace), config_map(name)) for name in "abc"]
    server.client.patch(maps(namespace, "a"), {"data": {"k": "v"}})
    server.client.delete(maps(namespace, "b"))
    path = f"{maps(namespace)}?watch=1&resourceVersion={version(stored[0])}"
    with server.watch(path) as watch:
        events = [watch.next() for _ in range(4)]
        assert [told(event) for event in events] == [
            ("ADDED", "b"),
            ("ADDED", "c"),
            ("MODIFIED", "a"),
            ("DELETED", "b"),
        ]
        versions = [version(event["object"]) for event in events]
        assert versions == sorted(set(versions)), "a deletion has a version of its own"
        created(server.client, maps(namespace), config_map("d"))
        assert told(watch.next()) == ("ADDED", "d")
    with server.watch(f"{maps(namespace)}?watch=1&resourceVersion={versions[-1]}") as watch:
        assert told(watch.next()) == ("ADDED", "d")


def test_a_watch_ends_in_peace_when_its_time_is_over(server: Server, namespace: str) -> None:
    start = newest(server, namespace)
    path = f"{maps(namespace)}?watch=1&resourceVersion={start}&timeoutSeconds=1"
    with server.watch(path) as watch:
        assert (watch.code, watch.rest()) == (200, [])


def test_what_enters_and_leaves_a_selection_is_added_and_deleted(
    server: Server, namespace: str
) -> None:
    start = version(created(server.client, maps(namespace), config_map("a", color="green")))
    query = f"watch=1&resourceVersion={start}&labelSelector=color%3Dred"
    with server.watch(f"{maps(namespace)}?{query}") as watch:
        for color in ("red", "blue"):
            patch = {"metadata": {"labels": {"color": color}}}
            _, stored = server.client.patch(maps(namespace, "a"), patch)
        created(server.client, maps(namespace), config_map("b", color="red"))
        events = [watch.next() for _ in range(3)]
    assert [told(e) for e in events] == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    assert events[1]["object"]["metadata"]["labels"] == {"color": "red"}, "as it was seen last"
    assert version(events[1]["object"]) == version(stored)


def test_an_agent_sees_the_pods_of_its_node(server: Server, namespace: str) -> None:
    start = newest(server, namespace)
    selector = quote("spec.nodeName=node-1")
    query = f"watch=1&resourceVersion={start}&fieldSelector={selector}"
    with server.watch(f"{pods(namespace)}?{query}") as watch:
        for name, node in (("a", "node-2"), ("b", "node-1"), ("c", "")):
            created(server.client, pods(namespace), pod(name, node=node))
        binding = {"metadata": {"name": "c"}, "target": {"kind": "Node", "name": "node-1"}}
        server.client.create(pods(namespace, "c", "binding"), binding)
        assert [told(watch.next()), told(watch.next())] == [("ADDED", "b"), ("ADDED", "c")]
        server.client.delete(pods(namespace, "b"))
        marked = watch.next()
        assert (told(marked), "deletionTimestamp" in marked["object"]["metadata"]) == (
            ("MODIFIED", "b"),
            True,
        )
        server.client.delete(pods(namespace, "b"), {"gracePeriodSeconds": 0})
        events = [watch.next()]
        while events[-1]["type"] != "DELETED":
            events.append(watch.next())
        assert {event["object"]["metadata"]["name"] for event in events} == {"b"}
        assert version(events[-1]["object"]) > version(marked["object"])


def test_bookmarks_tell_how_far_a_quiet_watch_is(server: Server, namespace: str) -> None:
    start = newest(server, namespace)
    query = f"watch=1&resourceVersion={start}&allowWatchBookmarks=true&timeoutSeconds=6"
    with server.watch(f"{maps(namespace)}?{query}") as watch:
        others = created(server.client, maps("default"), {"metadata": {"generateName": "x-"}})
        events = watch.rest()
    assert {event["type"] for event in events} == {"BOOKMARK"}
    last = events[-1]["object"]
    assert (last["kind"], last["apiVersion"]) == ("ConfigMap", "v1")
    assert version(last) >= version(others)
    again = f"watch=1&resourceVersion={version(last)}&timeoutSeconds=1"
    with server.watch(f"{maps(namespace)}?{again}") as watch:
        assert watch.rest() == []


def test_nobody_gets_bookmarks_unasked(server: Server, namespace: str) -> None:
    query = f"watch=1&resourceVersion={newest(server, namespace)}&timeoutSeconds=3"
    with server.watch(f"{maps(namespace)}?{query}") as watch:
        created(server.client, maps(namespace), config_map("a"))
        assert [told(event) for event in watch.rest()] == [("ADDED", "a")]


@pytest.mark.own_server
def test_a_watch_from_a_forgotten_version_says_so_and_ends(server: Server, namespace: str) -> None:
    stored = [created(server.client, maps(namespace), config_map(name)) for name in "ab"]
    server.forget()
    path = f"{maps(namespace)}?watch=1&resourceVersion={version(stored[0])}"
    with server.watch(path) as watch:
        (event,) = watch.rest()
    assert (watch.code, event["type"]) == (200, "ERROR")
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    start = newest(server, namespace)
    with server.watch(f"{maps(namespace)}?watch=1&resourceVersion={start}") as watch:
        created(server.client, maps(namespace), config_map("c"))
        assert told(watch.next()) == ("ADDED", "c"), "a new list helps"


@pytest.mark.parametrize("value", ["1", "true", "True", "yes"])
def test_anything_but_no_means_watch(server: Server, namespace: str, value: str) -> None:
    created(server.client, maps(namespace), config_map("a"))
    with server.watch(f"{maps(namespace)}?watch={value}") as watch:
        assert told(watch.next()) == ("ADDED", "a")
