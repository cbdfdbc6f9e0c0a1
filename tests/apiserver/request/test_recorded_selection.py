"""Selectors in lists and watches of pods, compared with recordings of kube-apiserver."""

from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from podstatus.apiserver.request.selectors import (
    object_fields,
    parse_field_selector,
    parse_label_selector,
)
from podstatus.apiserver.resources import PODS
from podstatus.apiserver.storage import store
from podstatus.apiserver.storage.store import StorageKey, StoredObject
from podstatus.apiserver.storage.watch_cache import filter_change
from podstatus.apiserver.strategies.base import Document
from tests.apiserver.recorded import family


class Change(NamedTuple):
    type: str
    old: Document | None
    new: Document

    def stored(self) -> store.StoreChange:
        """Return the change as the store publishes it."""
        new = _stored(self.new)
        old = None if self.old is None else _stored(self.old)
        return store.StoreChange(self.type, new.version, new, old)


def _stored(pod: Document) -> StoredObject:
    metadata = pod["metadata"]
    key = StorageKey(metadata["namespace"], metadata["name"])
    return StoredObject(key, int(metadata["resourceVersion"]), msgspec.json.encode(pod), {}, {})


class History:
    """The changes of a scenario's pods; the n-th change makes resource version n + 1."""

    def __init__(self) -> None:
        self.pods: dict[str, Document] = {}
        self.changes: list[Change] = []

    def note(self, step: dict[str, Any], body: Document) -> None:
        name, grace = body["metadata"]["name"], body["metadata"].get("deletionGracePeriodSeconds")
        if step["method"] == "POST":
            self._change("ADDED", name, body)
        elif body != _projected(self.pods[name]):
            self._change("MODIFIED", name, body)
        if step["method"] == "DELETE" and not grace:
            self._change("DELETED", name, body)
            del self.pods[name]

    def _change(self, type_: str, name: str, body: Document) -> None:
        version = {"resourceVersion": str(len(self.changes) + 1)}
        new = body | {"metadata": body["metadata"] | version}
        self.changes.append(Change(type_, self.pods.get(name), new))
        self.pods[name] = new


class Selection:
    """The selectors of a request."""

    def __init__(self, path: str) -> None:
        self.query = {key: values[0] for key, values in parse_qs(urlsplit(path).query).items()}
        self._labels = parse_label_selector(self.query.get("labelSelector", ""))
        fields = self.query.get("fieldSelector", "").replace("{ns}", "<ns>")
        self._fields = parse_field_selector(fields, PODS)

    def matches(self, pod: Document) -> bool:
        spec, status = pod["spec"], pod["status"]
        particular = {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec["restartPolicy"],
            "status.phase": status["phase"],
        }
        labels = pod["metadata"].get("labels", {})
        return self._labels.matches(labels) and self._fields.matches(object_fields(pod, particular))

    def events(self, history: History, since: int) -> list[Any]:
        events = [
            filter_change(change.stored(), self.chooses) for change in history.changes[since:]
        ]
        return [
            {"type": event.type, "object": _projected(event.object.document())}
            for event in events
            if event is not None
        ]

    def chooses(self, stored: StoredObject) -> bool:
        return self.matches(stored.document())


def _projected(pod: Document) -> Document:
    """Return the pod as responses are recorded: without its resource version."""
    metadata = {key: value for key, value in pod["metadata"].items() if key != "resourceVersion"}
    return pod | {"metadata": metadata}


def last_version(history: History, name: str) -> int:
    versions = range(1, len(history.changes) + 1)
    return max(v for v in versions if history.changes[v - 1].new["metadata"]["name"] == name)


@pytest.mark.parametrize("scenario", family("watch"), ids=lambda record: record["name"])
def test_watch_shows_what_the_real_one_showed(scenario: dict[str, Any]) -> None:
    history = History()
    for step, answer in zip(scenario["steps"], scenario["expected"], strict=True):
        if "watch" not in step:
            history.note(step, answer["body"])
            continue
        selection = Selection(step["watch"])
        initial, since = list(history.pods.values()), len(history.changes)
        if "resourceVersion" in selection.query:
            initial, since = [], last_version(history, "b")
        for inner, inner_answer in zip(step["during"], answer["during"], strict=True):
            history.note(inner, inner_answer["body"])
        added = [
            {"type": "ADDED", "object": _projected(pod)}
            for pod in filter(selection.matches, initial)
        ]
        assert added + selection.events(history, since) == answer["events"]


@pytest.mark.parametrize("scenario", family("selectors"), ids=lambda record: record["name"])
def test_list_shows_what_the_real_one_showed(scenario: dict[str, Any]) -> None:
    history, compared = History(), 0
    for step, answer in zip(scenario["steps"], scenario["expected"], strict=True):
        if step["method"] != "GET":
            history.note(step, answer["body"])
        elif "Selector" in step["path"] and "limit" not in step["path"] and answer["code"] == 200:
            selection = Selection(step["path"])
            ours = [
                pod["metadata"]["name"] for pod in history.pods.values() if selection.matches(pod)
            ]
            assert ours == sorted(item["metadata"]["name"] for item in answer["body"]["items"])
            compared += 1
    assert compared
