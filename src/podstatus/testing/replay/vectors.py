"""Replay of single function calls, by upstream's names (FORMAT.md, section 4).

Every function is the product's own; this table only parses arguments and encodes results. The one
exception is `_is_container_restartable`: whether a container could ever be restarted, which
upstream needs only in its container runtime and the product nowhere.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from podstatus.kube import conditions
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, is_mirror_pod, is_static_pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import ContainerStatus, PodCondition, PodStatus
from podstatus.kube.objects.runtime_facts import ContainerFacts, PodFacts, SandboxFacts
from podstatus.kube.patch import PatchError, apply_patch
from podstatus.kube.patch.schema import POD
from podstatus.kube.restart_policy import (
    RESTART,
    all_containers_could_restart,
    container_should_restart,
    find_matching_container_restart_rule,
)
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.kube.scalars.time import Time, TimeError
from podstatus.pods.container_status import StartFailure
from podstatus.pods.generate_api_status import generate_api_pod_status
from podstatus.pods.phase import get_phase
from podstatus.status.decide import generate_conditions as generate
from podstatus.status.decide import legal_transitions, normalize_and_compare, terminate
from podstatus.status.decide.merge import merge_pod_status, prepare_status_patch
from podstatus.status.decide.normalize_and_compare import is_pod_status_by_kubelet_equal
from podstatus.status.decide.readiness import find_container_status
from podstatus.testing.replay.answers import START, relative_times
from podstatus.testing.replay.eviction import EVICTION_VECTORS
from podstatus.testing.replay.service_environment import from_services, make_environment_variables

W = TypeVar("W", bound=Wire)
Vector = Callable[["VectorArguments"], object]


def replay_vector(record: Mapping[str, Any]) -> object:
    """Return the result of the recorded call. Raises LookupError for an unknown function."""
    gates = FeatureGates.from_names(record.get("featureGates") or {})
    name = record["fn"]
    if name in EVICTION_VECTORS:
        return EVICTION_VECTORS[name](record["args"])
    if name not in _VECTORS:
        raise LookupError(f"no function of the product corresponds to {name}")
    return _VECTORS[name](VectorArguments(record["args"], gates))


class VectorArguments:
    """The arguments of a vector, decoded to their types."""

    def __init__(self, args: Mapping[str, Any], gates: FeatureGates) -> None:
        self.args = args
        """As plain JSON."""
        self.gates = gates

    def __getitem__(self, name: str) -> Any:
        """Return an argument that is plain JSON."""
        return self.args[name]

    def _object(self, name: str, kind: type[W]) -> W:
        return from_document(self.args.get(name) or {}, kind)

    def _list(self, name: str, kind: type[W]) -> tuple[W, ...] | None:
        documents = self.args.get(name)
        return None if documents is None else tuple(from_document(d, kind) for d in documents)

    @property
    def pod(self) -> Pod:
        return self._object("pod", Pod)

    @property
    def spec(self) -> PodSpec:
        return self._object("podSpec", PodSpec)

    @property
    def container(self) -> Container:
        return self._object("container", Container)

    @property
    def condition(self) -> PodCondition:
        return self._object("condition", PodCondition)

    @property
    def conditions(self) -> tuple[PodCondition, ...] | None:
        return self._list("conditions", PodCondition)

    @property
    def containers(self) -> tuple[ContainerStatus, ...] | None:
        return self._list("containers", ContainerStatus)

    @property
    def container_statuses(self) -> tuple[ContainerStatus, ...] | None:
        return self._list("containerStatuses", ContainerStatus)

    def status(self, name: str = "status") -> PodStatus:
        return self._object(name, PodStatus)

    @property
    def old_status(self) -> PodStatus | None:
        return None if self.args.get("oldStatus") is None else self.status("oldStatus")

    @property
    def facts(self) -> PodFacts:
        return _facts(self.args["runtimeStatus"])

    @property
    def start_failures(self) -> dict[str, StartFailure]:
        failures = self.args.get("startFailures") or {}
        return {name: StartFailure(**failure) for name, failure in failures.items()}


def _facts(runtime: Mapping[str, Any]) -> PodFacts:
    return PodFacts(
        sandboxes=tuple(
            from_document(it | {"network": it.get("networkNamespace") or "POD"}, SandboxFacts)
            for it in runtime.get("sandboxStatuses") or ()
        ),
        containers=tuple(
            from_document(
                {"restartCount": 0, "active": False} | it | {"state": it["state"] or "unknown"},
                ContainerFacts,
            )
            for it in runtime.get("containerStatuses") or ()
        ),
        ips=tuple(runtime.get("ips") or ()),
    )


def _merge(a: VectorArguments) -> object:
    new = a.status("newStatus")
    merged = merge_pod_status(
        a.pod,
        a.status("oldStatus"),
        new,
        could_have_running_containers=a["couldHaveRunningContainers"],
        now=START,
        gates=a.gates,
    )
    result: dict[str, object] = {"status": merged.status}
    if merged.restamped is not None and merged.restamped != new:
        result["newStatusAfter"] = merged.restamped
    return result


class _AllReadyProber:
    """The prober of the recorded cases: every regular container is ready."""

    def apply_to(self, pod: Pod, status: PodStatus, old: PodStatus) -> PodStatus:  # noqa: ARG002
        ready = [structs.replace(s, ready=True) for s in status.container_statuses or ()]
        return structs.replace(status, container_statuses=tuple(ready))


def _api_pod_status(a: VectorArguments) -> object:
    return generate_api_pod_status(
        a.pod,
        a.facts,
        now=START,
        pod_is_terminal=a["podIsTerminal"],
        start_failures=a.start_failures,
        prober=_AllReadyProber(),
        host_ips=("127.0.0.1", "::1"),
        gates=a.gates,
    )


def _patch(a: VectorArguments) -> object:
    patch = prepare_status_patch(a["uid"], a.status("oldStatus"), a.status("newStatus"))
    text = relative_times(patch.body)
    return {
        "patch": msgspec.json.decode(text),
        "patchText": text.decode(),
        "unchanged": patch.unchanged,
    }


def _strategic_merge_patch(a: VectorArguments) -> object:
    try:
        return {"result": apply_patch(a["original"], a["patch"], POD)}
    except PatchError as error:
        return {"error": str(error)}


def _update_condition(a: VectorArguments) -> object:
    status, changed = conditions.update_pod_condition(a.status(), a.condition, START)
    return {"changed": changed, "status": status}


def _find_container(a: VectorArguments) -> object:
    container = find_container_status(a.status(), a["containerID"])
    if container is None:
        return {"found": False, "init": False}
    return {
        "found": True,
        "init": container.init,
        "name": container.status.name,
        "restartCount": container.status.restart_count,
    }


def _container_by_index(a: VectorArguments) -> object:
    container = legal_transitions.get_container_by_index(
        a.spec.init_containers or (), a.containers or (), a["index"]
    )
    return {"found": container is not None, "name": "" if container is None else container.name}


def _restart_rule(a: VectorArguments) -> object:
    rule = find_matching_container_restart_rule(a.container, a["exitCode"])
    return {"found": rule is not None, "action": "" if rule is None else rule.action}


def _is_container_restartable(a: VectorArguments) -> object:
    container = a.container
    if container.restart_policy is None:
        return a.spec.restart_policy != "Never"
    if any(rule.action == RESTART for rule in container.restart_policy_rules or ()):
        return True
    return container.restart_policy != "Never"


def _quantity_canonical(a: VectorArguments) -> object:
    try:
        return {"canonical": Quantity.parse(a["quantity"]).canonical}
    except QuantityError as error:
        return {"error": str(error)}


def _quantity_equal(a: VectorArguments) -> object:
    try:
        order = Quantity.parse(a["a"]).compare(Quantity.parse(a["b"]))
    except QuantityError as error:
        return {"error": str(error)}
    return {"equal": order == 0, "cmp": order}


def _time_round_trip(a: VectorArguments) -> object:
    try:
        time = Time.parse(a["time"])
    except TimeError:
        return {"error": True}
    return {"json": time.wire, "nanos": time % 1_000_000_000}


_VECTORS: dict[str, Vector] = {
    "mergePodStatus": _merge,
    "normalizeStatus": lambda a: normalize_and_compare.normalize_status(a.pod, a.status()),
    "isPodStatusByKubeletEqual": lambda a: is_pod_status_by_kubelet_equal(
        a.status("oldStatus"), a.status(), a.gates
    ),
    "checkContainerStateTransition": lambda a: legal_transitions.check_container_state_transition(
        a.status("oldStatus"), a.status("newStatus"), a.spec, a.gates
    ),
    "hasPodInitialized": lambda a: terminate.has_pod_initialized(a.pod),
    "initializedContainers": lambda a: [
        status.name for status in terminate.initialized_containers(a.containers)
    ],
    "findContainerStatus": _find_container,
    "needToReconcilePodReadiness": lambda a: generate.need_to_reconcile_pod_readiness(a.pod),
    "GenerateContainersReadyCondition": lambda a: generate.generate_containers_ready_condition(
        a.pod, a.old_status, a.container_statuses, a["phase"]
    ),
    "GeneratePodInitializedCondition": lambda a: generate.generate_pod_initialized_condition(
        a.pod, a.status("oldStatus"), a.container_statuses, a["phase"], a.gates
    ),
    "GeneratePodReadyCondition": lambda a: generate.generate_pod_ready_condition(
        a.pod, a.old_status, a.conditions, a.container_statuses, a["phase"]
    ),
    "GeneratePodReadyToStartContainersCondition": lambda a: (
        generate.generate_pod_ready_to_start_containers_condition(a.pod, a.old_status, a.facts)
    ),
    "GenerateAllContainersRestartingCondition": lambda a: (
        generate.generate_all_containers_restarting_condition(
            a.pod, a.facts, a.old_status, a["phase"]
        )
    ),
    "generateContainersReadyConditionForTerminalPhase": lambda a: (
        generate.generate_containers_ready_condition_for_terminal_phase(
            a.pod, a.old_status, a["phase"]
        )
    ),
    "generatePodReadyConditionForTerminalPhase": lambda a: (
        generate.generate_pod_ready_condition_for_terminal_phase(a.pod, a.old_status, a["phase"])
    ),
    "updateLastTransitionTime": lambda a: conditions.restamp_conditions(
        a.status(), a.status("oldStatus"), (a["conditionType"],), START
    ),
    "preparePatchBytesForPodStatus": _patch,
    "StrategicMergePatch": _strategic_merge_patch,
    "ReplaceOrAppendPodCondition": lambda a: conditions.replace_or_append_pod_condition(
        a.conditions, a.condition
    ),
    "UpdatePodCondition": _update_condition,
    "SortInitContainerStatuses": lambda a: normalize_and_compare.sort_init_container_statuses(
        a.pod.spec, a.containers
    ),
    "SortContainerStatuses": lambda a: normalize_and_compare.sort_container_statuses(a.containers),
    "PodConditionByKubelet": lambda a: conditions.pod_condition_by_kubelet(
        a["conditionType"], a.gates
    ),
    "PodConditionSharedByKubelet": lambda a: conditions.pod_condition_shared_by_kubelet(
        a["conditionType"]
    ),
    "getPhase": lambda a: get_phase(
        a.pod,
        a.container_statuses,
        pod_is_terminal=a["podIsTerminal"],
        pod_has_initialized=a["podHasInitialized"],
        gates=a.gates,
    ),
    "generateAPIPodStatus": _api_pod_status,
    "FromServices": lambda a: from_services(a.args),
    "makeEnvironmentVariables": lambda a: make_environment_variables(a.args),
    "quantityEqual": _quantity_equal,
    "quantityCanonical": _quantity_canonical,
    "timeRoundTrip": _time_round_trip,
    "podRoundTrip": lambda a: a.pod,
    "podStatusRoundTrip": lambda a: a.status(),
    "ContainerShouldRestart": lambda a: container_should_restart(
        a.container, a.spec, a["exitCode"], a.gates
    ),
    "FindMatchingContainerRestartRule": _restart_rule,
    "IsContainerRestartable": _is_container_restartable,
    "AllContainersCouldRestart": lambda a: all_containers_could_restart(a.spec),
    "HasAnyRegularContainerStarted": lambda a: generate.has_any_regular_container_started(
        a.spec, a.container_statuses
    ),
    "GetContainerByIndex": _container_by_index,
    "IsStaticPod": lambda a: is_static_pod(a.pod),
    "IsMirrorPod": lambda a: is_mirror_pod(a.pod),
    "CalculatePodStatusObservedGeneration": lambda a: a.pod.metadata.generation,
    "CalculatePodConditionObservedGeneration": lambda a: generate.condition_observed_generation(
        a["generation"], None if a["status"] is None else a.status()
    ),
}
