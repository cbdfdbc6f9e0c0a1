"""A server that is killed again and again keeps every acknowledged write."""

import json
import random
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.server_process import Client, Document, ServerProcess, running

KILLS = 100
WRITERS = 4
WATCHERS = 2
PODS = "/api/v1/namespaces/default/pods"
STATUS_PATCH = "application/strategic-merge-patch+json"


class Acknowledgements:
    """Lets the test wait for a number of acknowledged writes, of all writers together."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0

    def add(self) -> None:
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def wait_for_more(self, number: int) -> None:
        with self._condition:
            goal = self._count + number
            assert self._condition.wait_for(lambda: self._count >= goal, timeout=60)


class Versions:
    """What was seen at each resource version: never two different things."""

    def __init__(self) -> None:
        self._seen: dict[int, str] = {}
        self.newest = 0

    def saw(self, document: Document) -> int:
        version = int(document["metadata"]["resourceVersion"])
        text = json.dumps(document, sort_keys=True)
        assert self._seen.setdefault(version, text) == text, f"version {version} is two things"
        self.newest = max(self.newest, version)
        return version


class Writer:
    """Writes to its own pods, and knows what must be stored."""

    def __init__(
        self, number: int, seed: int, versions: Versions, acknowledgements: Acknowledgements
    ) -> None:
        self._random = random.Random(f"{seed}-{number}")
        self._names = [f"w{number}-{index}" for index in range(5)]
        self._versions = versions
        self._acknowledgements = acknowledgements
        self.expected: dict[str, Document | None] = dict.fromkeys(self._names)
        """The last acknowledged state of each pod."""
        self.in_doubt: tuple[str, Callable[[Document | None], bool]] | None = None
        """The unanswered write: the pod, and whether a state may be its result."""

    def storm(self, client: Client, most: int) -> None:
        """Write until the server is gone, or `most` times."""
        try:
            for _ in range(most):
                self._write_one(client)
                self._acknowledgements.add()
        except (OSError, HTTPException):
            return
        finally:
            client.close()

    def _write_one(self, client: Client) -> None:
        name = self._random.choice(self._names)
        old = self.expected[name]
        if old is None:
            self.in_doubt = name, lambda pod: pod is not None
            code, pod = client.ask("POST", PODS, _pod(name))
            assert code == 201, pod
            assert self._versions.saw(pod) > 0
            self.expected[name] = pod
        elif not _is_leaving(old) and self._random.random() < 0.75:
            message = f"m{self._random.getrandbits(64):x}"
            self.in_doubt = name, lambda pod: _message(pod) == message
            patch = {"status": {"message": message}}
            code, pod = client.ask("PATCH", f"{PODS}/{name}/status", patch, STATUS_PATCH)
            assert (code, _message(pod)) == (200, message), pod
            assert self._versions.saw(pod) > int(old["metadata"]["resourceVersion"])
            self.expected[name] = pod
        else:
            self.in_doubt = name, lambda pod: pod is None or _is_leaving(pod)
            code, pod = client.ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
            assert code == 200, pod
            assert self._versions.saw(pod) > int(old["metadata"]["resourceVersion"])
            self.expected[name] = None
        self.in_doubt = None

    def check(self, stored: dict[str, Document]) -> None:
        """Compare with the state after a restart, and resolve the write in doubt."""
        for name, expected in self.expected.items():
            now = stored.get(name)
            if now != expected:
                assert self.in_doubt is not None, f"lost: {name} is {now}, was {expected}"
                doubted, explains = self.in_doubt
                assert doubted == name, f"lost: {name} is {now}, was {expected}"
                assert explains(now), f"lost: {name} is {now}, was {expected}"
                assert expected is None or now is None or _version(now) > _version(expected)
            self.expected[name] = now
        self.in_doubt = None


class Follower:
    """Keeps a copy by watching, and lists only if the server demands it."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._is_lost = True
        self.copy: dict[str, Document] = {}
        self.version = 0
        self.relisted = 0

    def follow(self, port: int, *, until: int | None = None) -> None:
        """Follow until the server is gone, or a version is seen."""
        client = Client(port)
        try:
            while until is None or self.version < until:
                if self._is_lost:
                    self._list(client)
                else:
                    self._watch(client, until)
                    client.close()
        except (OSError, HTTPException):
            return
        finally:
            client.close()

    def _list(self, client: Client) -> None:
        self.copy, self.version = _listed(client)
        self._is_lost = False
        self.relisted += 1

    def _watch(self, client: Client, until: int | None) -> None:
        path = f"{PODS}?watch=true&resourceVersion={self.version}"
        for event in client.watch(path):
            if event["type"] == "ERROR":
                assert event["object"]["code"] == 410
                self._is_lost = True
                return
            self._apply(event["type"], event["object"])
            if until is not None and self.version >= until:
                return

    def _apply(self, type_: str, pod: Document) -> None:
        name, version = pod["metadata"]["name"], self._versions.saw(pod)
        assert version > self.version, "repeated"
        assert (name in self.copy) == (type_ != "ADDED"), f"a gap before {type_} of {name}"
        self.version = version
        if type_ == "DELETED":
            del self.copy[name]
        else:
            self.copy[name] = pod


def _pod(name: str) -> Document:
    container = {"name": "c", "image": "i"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


def _message(pod: Document | None) -> str | None:
    return None if pod is None else pod.get("status", {}).get("message")


def _is_leaving(pod: Document) -> bool:
    """As upstream, a pod is marked first, then removed: the kill may come in between."""
    return "deletionTimestamp" in pod["metadata"]


def _version(document: Document) -> int:
    return int(document["metadata"]["resourceVersion"])


def _listed(client: Client) -> tuple[dict[str, Document], int]:
    code, pods = client.ask("GET", PODS)
    assert code == 200
    kind = {"kind": "Pod", "apiVersion": "v1"}
    return {pod["metadata"]["name"]: kind | pod for pod in pods["items"]}, _version(pods)


@pytest.mark.slow
def test_a_hundred_kills_lose_no_acknowledged_write_and_open_no_gap(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")  # noqa: T201 - to reproduce a failure
    chance, versions, acknowledgements = random.Random(seed), Versions(), Acknowledgements()
    writers = [Writer(number, seed, versions, acknowledgements) for number in range(WRITERS)]
    followers = [Follower(versions) for _ in range(WATCHERS)]
    path = tmp_path / "objects.db"
    with ThreadPoolExecutor(WRITERS + WATCHERS) as threads:
        for _ in range(KILLS):
            server = ServerProcess(path)
            try:
                _check_restarted(server.port, writers, followers, versions)
                jobs: list[Any] = [
                    threads.submit(writer.storm, Client(server.port), 10**6) for writer in writers
                ]
                jobs += [threads.submit(follower.follow, server.port) for follower in followers]
                acknowledgements.wait_for_more(chance.randint(1, 40))
            finally:
                server.kill()  # else they would go on forever
            for job in jobs:
                job.result(timeout=60)
        with running(path) as server:
            _check_restarted(server.port, writers, followers, versions)
            _catch_up(server.port, followers)
            relisted = [follower.relisted for follower in followers]
            list(threads.map(lambda writer: writer.storm(Client(server.port), 20), writers))
            _catch_up(server.port, followers)
    assert [follower.relisted for follower in followers] == relisted
    assert all(follower.relisted > 1 for follower in followers)


def _check_restarted(
    port: int, writers: list[Writer], followers: list[Follower], versions: Versions
) -> None:
    client = Client(port)
    stored, version = _listed(client)
    client.close()
    assert version >= versions.newest, "the store's version went back"
    for writer in writers:
        writer.check(stored)
    for follower in followers:
        if follower.version == version:
            assert follower.copy == stored


def _catch_up(port: int, followers: list[Follower]) -> None:
    client = Client(port)
    stored, version = _listed(client)
    client.close()
    for follower in followers:
        follower.follow(port, until=version)
        assert follower.copy == stored
