"""Snapshots of a scenario's observable state, and the difference of two."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.status.decide.resize import NO_RESIZE, ResizeConditions
from podstatus.status.decide.versioned_status import VersionedStatus
from podstatus.status.manager import StatusManager
from podstatus.testing.fakes import (
    CountingObserver,
    NotifierCall,
    RecordingNotifier,
    RecordingStartupLatency,
)
from podstatus.testing.in_memory_pod_api import ApiCall, InMemoryPodApi
from podstatus.testing.replay.answers import relative_times

K = TypeVar("K")
V = TypeVar("V")


class StateSnapshot(msgspec.Struct, frozen=True):
    """The state at one moment; lists hold what was recorded since the previous snapshot."""

    cache: Mapping[PodUID, Mapping[str, Any]]
    resizes: Mapping[PodUID, ResizeConditions]
    api: Mapping[str, PodStatus]
    metrics: Mapping[str, int]
    calls: Sequence[ApiCall]
    notifications: Sequence[NotifierCall]
    startup_events: Sequence[tuple[str, str]]

    @classmethod
    def capture(
        cls,
        manager: StatusManager,
        api: InMemoryPodApi,
        notifier: RecordingNotifier,
        latency: RecordingStartupLatency,
        observer: CountingObserver,
    ) -> "StateSnapshot":
        """Take a snapshot, and reset the recorders."""
        calls, api.calls = api.calls, []
        notifications, notifier.calls = notifier.calls, []
        startup_events = [("statusUpdated", uid) for uid in latency.updated]
        startup_events += [("deleted", uid) for uid in latency.deleted]
        latency.updated, latency.deleted = [], []
        return cls(
            cache={uid: _cache_entry(entry) for uid, entry in manager.entries().items()},
            resizes=manager.resizes(),
            api={f"{pod.namespace}/{pod.name}": pod.status for pod in api.pods()},
            metrics=_metrics(observer),
            calls=calls,
            notifications=notifications,
            startup_events=startup_events,
        )


def diff(before: StateSnapshot, after: StateSnapshot) -> dict[str, Any]:
    """Return what a step changed, as a record without empty parts."""
    record = {
        "cache": dict(_changes(before.cache, after.cache)),
        "resizeConditions": {
            uid: _resize(conditions)
            for uid, conditions in _changes(before.resizes, after.resizes)
            if (conditions or NO_RESIZE) != before.resizes.get(uid, NO_RESIZE)
        },
        "apiStatus": {
            name: status
            for name, status in _changes(before.api, after.api)
            if not (name in before.api and status and _same_document(before.api[name], status))
        },
        "metrics": dict(_changes(before.metrics, after.metrics)),
        "calls": _sorted_calls(after.calls),
        "notifications": [_notification(call) for call in after.notifications],
        "startupLatency": [
            {"event": event, "uid": uid} for event, uid in sorted(after.startup_events)
        ],
    }
    return {key: value for key, value in record.items() if value}


def _changes(before: Mapping[K, V], after: Mapping[K, V]) -> list[tuple[K, V | None]]:
    changed: list[tuple[K, V | None]] = [
        (key, value) for key, value in after.items() if before.get(key) != value
    ]
    return changed + [(key, None) for key in before if key not in after]


def _same_document(left: PodStatus, right: PodStatus) -> bool:
    return to_document(left) == to_document(right)


def _cache_entry(entry: VersionedStatus) -> dict[str, Any]:
    return {
        "version": entry.version,
        "podIsFinished": entry.finished,
        "podName": entry.name,
        "podNamespace": entry.namespace,
        "status": entry.status,
    }


def _resize(conditions: ResizeConditions | None) -> dict[str, Any] | None:
    if not conditions or not conditions.as_tuple():
        return None
    named = {"pending": conditions.pending, "inProgress": conditions.in_progress}
    return {name: condition for name, condition in named.items() if condition is not None}


def _notification(call: NotifierCall) -> dict[str, Any]:
    if call.status is None:
        return {"event": "removed", "uid": call.uid}
    return {"event": "updated", "uid": call.uid, "isAdded": call.is_added}


def _metrics(observer: CountingObserver) -> dict[str, int]:
    metrics = {
        f"terminated_containers_total|{t.container_type.value}|{t.exit_code}|{t.reason}": count
        for t, count in observer.terminations.items()
    }
    metrics |= {f"pod_pending_resizes|{reason}": n for reason, n in observer.pending.items()}
    return metrics | {"pod_in_progress_resizes": observer.in_progress}


def _sorted_calls(calls: Sequence[ApiCall]) -> list[dict[str, Any]]:
    """Return the calls grouped by sync; syncs are sorted by pod name, size and text."""
    groups: list[list[dict[str, Any]]] = []
    for call in calls:
        if call.verb == "get":
            groups.append([])
        groups[-1].append(_call(call))
    groups.sort(
        key=lambda group: (
            f"{group[0]['namespace']}/{group[0]['name']}",
            len(group),
            msgspec.json.encode(group, order="sorted"),
        )
    )
    return [call for group in groups for call in group]


def _call(call: ApiCall) -> dict[str, Any]:
    record: dict[str, Any] = {
        "verb": call.verb,
        "namespace": call.namespace,
        "name": call.name,
    }
    if call.code is not None:
        record["code"] = call.code
    if call.patch is not None:
        record["body"] = msgspec.json.decode(relative_times(call.patch))
    if call.verb == "delete":
        record["uidPrecondition"] = call.uid
        record["gracePeriodSeconds"] = call.grace_period_seconds
    return record
