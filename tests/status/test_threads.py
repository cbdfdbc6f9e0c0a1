"""Sixteen threads at once, against the running loop."""

import asyncio
import itertools
import random
import threading
from collections import defaultdict
from collections.abc import Callable

import pytest
from msgspec import structs

from podstatus import FeatureGates, Pod, PodManager, PodStatus, StatusManager, SyncPolicy
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.merge import merge_pod_status
from podstatus.status.decide.normalize_and_compare import (
    is_pod_status_by_kubelet_equal,
    normalize_status,
)
from podstatus.status.decide.versioned_status import VersionedStatus, next_version
from podstatus.testing.builders import (
    ended,
    make_pod,
    make_static_pod,
    make_status,
    running,
    waiting,
)
from podstatus.testing.fakes import FakeDeletionSafety, RecordingNotifier
from podstatus.testing.in_memory_pod_api import InMemoryPodApi

THREADS = 16
ROUNDS = 150
LONG_AGO = Time.parse("2024-01-01T00:00:00Z")


class VersionOrder:
    """A notifier that records the statuses in the order of the calls."""

    def __init__(self) -> None:
        self.statuses: defaultdict[PodUID, list[int]] = defaultdict(list)

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
        assert pod.status is status
        self.statuses[pod.uid].append(id(status))

    def on_pod_removed(self, pod: Pod) -> None:
        self.statuses[pod.uid].append(id(pod.status))


class RecordedVersions:
    """Records every entry in the order in which it was stored. Called with the lock held."""

    def __init__(self) -> None:
        self.entries: defaultdict[PodUID, list[VersionedStatus]] = defaultdict(list)

    def next_version(
        self,
        old: VersionedStatus | None,
        pod: Pod,
        status: PodStatus,
        *,
        finished: bool,
        monotonic: int,
    ) -> VersionedStatus:
        entry = next_version(old, pod, status, finished=finished, monotonic=monotonic)
        self.entries[pod.uid].append(entry)
        return entry


class Caller:
    """Calls every method of the manager, in an order determined by the seed."""

    def __init__(self, manager: StatusManager, pods: list[Pod], seed: int) -> None:
        self.manager = manager
        self.pods = pods
        self.random = random.Random(seed)

    def call(self) -> None:
        manager, pod = self.manager, self.random.choice(self.pods)
        uid, flag = pod.uid, self.random.random() < 0.5
        operations: list[Callable[[], object]] = [
            lambda: manager.set_container_readiness(uid, "fake://app", ready=flag),
            lambda: manager.set_container_startup(uid, "fake://app", started=flag),
            lambda: manager.terminate_pod(pod),
            lambda: manager.remove_orphaned_statuses(self.all_but_some_pods()),
            lambda: manager.pod_status(uid),
            lambda: manager.set_pod_resize_pending_condition(uid, "Deferred", "later", 1),
            lambda: manager.set_pod_resize_in_progress_condition(uid, "", "", 1),
            lambda: manager.clear_pod_resize_pending_condition(uid),
            lambda: manager.clear_pod_resize_in_progress_condition(uid),
            lambda: manager.backfill_pod_resize_conditions([pod]),
            lambda: manager.pod_resize_conditions(uid),
            lambda: manager.is_pod_resize_deferred(uid),
            lambda: manager.is_pod_resize_infeasible(uid),
            lambda: manager.add_notifier(RecordingNotifier()) if self.random.random() < 0.1 else 0,
            manager.entries,
            manager.resizes,
            manager.sent_versions,
        ]
        # Statuses matter most: they are as frequent as all other calls together.
        operations += [lambda: manager.set_pod_status(pod, self.status())] * len(operations)
        self.random.choice(operations)()

    def status(self) -> PodStatus:
        ready = self.random.choice(["True", "False"])
        return self.random.choice(
            [
                make_status("Pending", waiting("app"), Ready="False"),
                make_status("Running", running("app", ready=ready == "True"), Ready=ready),
                make_status("Running", ended("app", self.random.randrange(3)), Ready="False"),
            ]
        )

    def all_but_some_pods(self) -> set[str]:
        return {pod.uid for pod in self.pods if self.random.random() < 0.9}


def run_threads(manager: StatusManager, pods: list[Pod]) -> list[BaseException]:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            caller = Caller(manager, pods, seed)
            for _ in range(ROUNDS):
                caller.call()
        except BaseException as failure:  # noqa: BLE001 - reported by the test
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_sixteen_threads_leave_the_api_equal_to_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = PodManager()
    ordinary = [make_pod(f"pod-{n}") for n in range(12)]
    deleting = [
        structs.replace(pod, metadata=structs.replace(pod.metadata, deletion_timestamp=LONG_AGO))
        for pod in (make_pod(f"gone-{n}") for n in range(4))
    ]
    static = make_static_pod()
    api = InMemoryPodApi(*ordinary, *deleting, make_static_pod(mirror=True), watcher=directory)
    directory.update_pod(static)
    pods = [*ordinary, *deleting, static]
    policy = SyncPolicy(full_sync_period=0.05)
    versions = RecordedVersions()
    monkeypatch.setattr("podstatus.status.store.next_version", versions.next_version)
    manager = StatusManager(api, directory, FakeDeletionSafety(), policy=policy)
    order = VersionOrder()
    manager.add_notifier(order)

    manager.start()
    failures = run_threads(manager, pods)
    manager.stop()
    asyncio.run(manager.sync_batch(full=False))
    asyncio.run(manager.sync_batch(full=True))

    assert failures == []
    compared = 0
    for entry in manager.entries().values():
        stored = api.pod(entry.namespace, entry.name)
        if stored is None:
            continue
        shown = normalize_status(stored, stored.status)
        # A pod that was terminated while it was ready is never shown as ready.
        merged = merge_pod_status(
            stored,
            stored.status,
            entry.status,
            could_have_running_containers=False,
            now=LONG_AGO,
            gates=FeatureGates(),
        )
        assert is_pod_status_by_kubelet_equal(shown, merged.status, FeatureGates())
        compared += 1
    assert compared > 5
    for uid, entries in versions.entries.items():
        assert order.statuses[uid] == [id(entry.status) for entry in entries]
        for before, after in itertools.pairwise(entries):
            assert after.version in (before.version + 1, 1)
