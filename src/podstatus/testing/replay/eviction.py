"""Replay of eviction decisions, by upstream's names (FORMAT.md, section 4, eviction).

Statistics are documents as of `/stats/summary`. Where upstream chooses at random among several
thresholds, the result holds the outcomes of all of them, each decided by the product.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podstatus.eviction.decide import model
from podstatus.eviction.decide.admit import reject_under_pressure
from podstatus.eviction.decide.messages import REASON, eviction_message
from podstatus.eviction.decide.observations import make_signal_observations
from podstatus.eviction.decide.pressure import available_quantity, is_reclaimed, thresholds_met
from podstatus.eviction.decide.ranking import rank_pods
from podstatus.eviction.decide.settings import parse_threshold_config, with_containerfs_thresholds
from podstatus.eviction.decide.storage_limits import storage_limit_evictions
from podstatus.eviction.decide.synchronize import plan_reclaim, synchronize
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.workers.lifecycle.state_machine import Eviction
from podstatus.workers.lifecycle.termination_status import with_eviction

Document = Mapping[str, Any]


def _settings(document: Document) -> model.Thresholds:
    return parse_threshold_config(
        hard=document.get("evictionHard") or {},
        soft=document.get("evictionSoft") or {},
        soft_grace_period=document.get("evictionSoftGracePeriod") or {},
        minimum_reclaim=document.get("evictionMinimumReclaim") or {},
        enforce_node_allocatable=document.get("enforceNodeAllocatable") or (),
    )


def _layout(args: Document) -> model.FilesystemLayout:
    return model.FilesystemLayout(
        dedicated_imagefs=args["layout"]["dedicatedImageFs"],
        split_containerfs=args["layout"]["splitContainerImageFs"],
    )


def _value(value: model.ThresholdValue) -> dict[str, Any]:
    if value.quantity is not None:
        return {"quantity": value.quantity.canonical}
    return {"percentage": value.share} if value.share else {}


def _thresholds(thresholds: model.Thresholds) -> list[dict[str, Any]]:
    records = []
    for threshold in thresholds:
        record: dict[str, Any] = {"signal": threshold.signal, "value": _value(threshold.value)}
        if threshold.grace_period:
            record["gracePeriod"] = threshold.grace_period
        if threshold.min_reclaim is not None:
            record["minReclaim"] = _value(threshold.min_reclaim)
        records.append(record)
    return sorted(records, key=msgspec.json.encode)


def _parse(args: Document) -> object:
    try:
        return {"thresholds": _thresholds(_settings(args))}
    except ValueError:
        return {"error": True}


def _containerfs(args: Document) -> object:
    return _thresholds(with_containerfs_thresholds(_settings(args["settings"]), _layout(args)))


# Usage


def _at(document: Document) -> int | None:
    return Time.parse(document["time"]) if "time" in document else None


def _memory(document: Document | None) -> model.NodeMemoryUsage | None:
    if document is None:
        return None
    return model.NodeMemoryUsage(
        available_bytes=document.get("availableBytes"),
        working_set_bytes=document.get("workingSetBytes"),
        at=_at(document),
    )


def _filesystem(document: Document | None) -> model.FilesystemUsage | None:
    if document is None:
        return None
    return model.FilesystemUsage(
        available_bytes=document.get("availableBytes"),
        capacity_bytes=document.get("capacityBytes"),
        used_bytes=document.get("usedBytes"),
        inodes=document.get("inodes"),
        inodes_free=document.get("inodesFree"),
        inodes_used=document.get("inodesUsed"),
        at=_at(document),
    )


def _pids(document: Document | None) -> model.PidUsage | None:
    if document is None:
        return None
    return model.PidUsage(
        max_pid=document.get("maxpid"), running=document.get("curproc"), at=_at(document)
    )


def _node(document: Document) -> model.NodeResourceUsage:
    system = {item["name"]: item.get("memory") for item in document.get("systemContainers") or ()}
    runtime = document.get("runtime") or {}
    return model.NodeResourceUsage(
        memory=_memory(document.get("memory")),
        pods_memory=_memory(system.get("pods")),
        nodefs=_filesystem(document.get("fs")),
        imagefs=_filesystem(runtime.get("imageFs")),
        containerfs=_filesystem(runtime.get("containerFs")),
        pids=_pids(document.get("rlimit")),
    )


def _container(document: Document) -> model.ContainerResourceUsage:
    return model.ContainerResourceUsage(
        name=document["name"],
        memory_working_set_bytes=(document.get("memory") or {}).get("workingSetBytes"),
        rootfs=_filesystem(document.get("rootfs")),
        logs=_filesystem(document.get("logs")),
    )


def _pod_usage(document: Document) -> model.PodResourceUsage:
    volumes = {item["name"]: _filesystem(item) for item in document.get("volume") or ()}
    return model.PodResourceUsage(
        memory_working_set_bytes=(document.get("memory") or {}).get("workingSetBytes"),
        process_count=(document.get("process_stats") or {}).get("process_count"),
        ephemeral_storage_bytes=(document.get("ephemeral-storage") or {}).get("usedBytes"),
        containers=tuple(_container(item) for item in document.get("containers") or ()),
        volumes={name: usage for name, usage in volumes.items() if usage is not None},
    )


def _pods_usage(documents: Any) -> dict[PodUID, model.PodResourceUsage]:
    return {PodUID(item["podRef"]["uid"]): _pod_usage(item) for item in documents or ()}


def _summary(document: Document) -> model.UsageSummary:
    return model.UsageSummary(
        node=_node(document.get("node") or {}), pods=_pods_usage(document.get("pods"))
    )


def _observed(args: Document) -> object:
    observations = make_signal_observations(_summary(args["summary"]).node)
    return {signal: _observation(signal, seen) for signal, seen in observations.items()}


def _observation(signal: model.Signal, seen: model.Observation) -> dict[str, Any]:
    record: dict[str, Any] = {
        "available": seen.available,
        "capacity": seen.capacity,
        "printed": available_quantity(signal, seen).canonical,
    }
    return record if seen.at is None else record | {"time": Time(seen.at).wire}


def _met(args: Document) -> object:
    observations = make_signal_observations(_summary(args["summary"]).node)
    thresholds = _settings(args["settings"])
    enforced = args["enforceMinReclaim"]
    return _thresholds(thresholds_met(thresholds, observations, enforce_min_reclaim=enforced))


# Pods


def _pods(documents: list[Any]) -> list[Pod]:
    return [from_document(document, Pod) for document in documents]


def _rank(args: Document) -> object:
    usage = _pods_usage(args["podStats"])
    ranked = rank_pods(args["signal"], _pods(args["pods"]), usage, _layout(args))
    return [pod.name for pod in ranked]


def _message(args: Document) -> object:
    pod = from_document(args["pod"], Pod)
    (threshold,) = parse_threshold_config(
        hard={args["signal"]: args["threshold"]}, enforce_node_allocatable=()
    )
    observed = model.Observation(available=args["available"], capacity=args["capacity"])
    usage = _pods_usage(args["podStats"]).get(pod.uid)
    message, annotations = eviction_message(pod, usage, threshold, observed)
    return {"message": message, "annotations": annotations}


def _limits(args: Document) -> object:
    usage = _pods_usage(args["podStats"])
    evictions = storage_limit_evictions(_pods(args["pods"]), usage, _layout(args))
    return [_eviction(eviction) for eviction in evictions]


def _eviction(eviction: model.PodEviction) -> dict[str, Any]:
    cause = Eviction(reason=REASON, message=eviction.message, is_disruption=eviction.is_disruption)
    record = {
        "pod": eviction.pod.name,
        "gracePeriod": eviction.grace_period_seconds,
        "status": with_eviction(PodStatus(), cause, eviction.pod),
    }
    return record | ({"annotations": eviction.annotations} if eviction.annotations else {})


def _admit(args: Document) -> object:
    rejection = reject_under_pressure(from_document(args["pod"], Pod), args["nodeConditions"])
    if rejection is None:
        return {"admit": True, "reason": "", "message": ""}
    return {"admit": False, "reason": rejection.reason, "message": rejection.message}


# Scenarios


def _synchronize(args: Document) -> object:
    layout, pods = _layout(args), _pods(args["pods"])
    config = model.EvictionConfig(
        thresholds=with_containerfs_thresholds(_settings(args["settings"]), layout),
        pressure_transition_period=args["pressureTransitionPeriod"],
        max_pod_grace_period_seconds=args["maxPodGracePeriodSeconds"],
        local_storage_isolation=args["localStorageCapacityIsolation"],
        layout=layout,
    )
    state, now, records = model.EvictionState(), 0, []
    for step in args["steps"]:
        now += step["advance"]
        active = [pods[index] for index in step["active"]]
        decision = synchronize(state, config, _summary(step["summary"]), active, now)
        state = decision.state
        records.append(
            {
                "conditions": sorted(state.node_conditions),
                "met": _thresholds(state.thresholds_met),
                "outcomes": _outcomes(decision, config, step, active),
            }
        )
    return records


def _outcomes(
    decision: model.EvictionDecision, config: model.EvictionConfig, step: Document, pods: list[Pod]
) -> list[Any]:
    if decision.reclaim is None:
        evictions = [_eviction(eviction) for eviction in decision.limit_evictions]
        return [{"evictions": evictions} if evictions else {}]
    first = [
        threshold
        for threshold in decision.reclaim.thresholds
        if (model.RESOURCE_BY_SIGNAL[threshold.signal] == model.MEMORY)
        == (decision.reclaim.resource == model.MEMORY)
    ]
    summary = _summary(step["summary"])
    attempts = [plan_reclaim((it,), config, summary, pods) for it in first]
    return _distinct([_attempt(attempt, config, step) for attempt in attempts])


def _attempt(
    attempt: model.ReclaimAttempt, config: model.EvictionConfig, step: Document
) -> dict[str, Any]:
    record: dict[str, Any] = {"attempt": attempt.event_message}
    if attempt.node_reclaim:
        record["reclaimed"] = list(attempt.node_reclaim)
        after = _summary(step.get("after") or step["summary"])
        if is_reclaimed(config.thresholds, make_signal_observations(after.node)):
            return record
    return record | ({"evictions": [_eviction(attempt.eviction)]} if attempt.eviction else {})


def _distinct(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outcomes without repetitions, in the order of the recording."""
    distinct = [it for index, it in enumerate(outcomes) if it not in outcomes[:index]]
    return sorted(distinct, key=_outcome_key)


def _outcome_key(outcome: dict[str, Any]) -> list[Any]:
    return [outcome["attempt"], outcome.get("reclaimed", [])] + [
        [it["pod"], it["gracePeriod"], it["status"].message] for it in outcome.get("evictions", ())
    ]


EVICTION_VECTORS: dict[str, Callable[[Document], object]] = {
    "ParseThresholdConfig": _parse,
    "UpdateContainerFsThresholds": _containerfs,
    "makeSignalObservations": _observed,
    "thresholdsMet": _met,
    "rankPods": _rank,
    "evictionMessage": _message,
    "localStorageEviction": _limits,
    "Admit": _admit,
    "synchronize": _synchronize,
}
