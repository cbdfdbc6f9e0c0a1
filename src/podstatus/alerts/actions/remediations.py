"""What an agent can change because of an alert: restart a container, delete a pod, taint its node.

Each is a `Change`: the guard of alerts decides whether it is done.
"""

from collections.abc import Callable

from podstatus.alerts.actions.api_errors import map_api_errors
from podstatus.alerts.actions.critical_pods import criticality, matches_name
from podstatus.alerts.actions.desired_taints import desired_taint, format_taint
from podstatus.alerts.actions.node_taints import AlertTaints
from podstatus.alerts.model import Action, Alert
from podstatus.alerts.ports import ActionError, RetryableError
from podstatus.client.typed.pods import HttpPodApi
from podstatus.kube.errors import ConflictError, GoneError
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import ApiUID, Pod, is_static_pod
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import Pleg
from podstatus.workers.probe_results import ProbeResultStore


class AlertPods:
    """The pods that alerts are about."""

    def __init__(self, pod_manager: PodManager, *, is_synced: Callable[[], bool]) -> None:
        """`is_synced`: whether a pod that is not in the directory is not here."""
        self._pod_manager = pod_manager
        self._is_synced = is_synced

    def pod_of(self, alert: Alert) -> Pod:
        """The pod of an alert. Raises DeedError."""
        if alert.subject.scope != "pod":
            raise ActionError("the alert is about no pod")
        pod = self._pod_manager.pod_by_uid(alert.subject.uid)
        if pod is not None:
            return pod
        if not self._is_synced():
            raise RetryableError("it is not known yet which pods are here")
        raise ActionError("the pod is not here any more")


class RestartContainer:
    """`restartContainer`, by the pod's own worker, as after a failed liveness probe."""

    def __init__(self, pods: AlertPods, pleg: Pleg, probe_results: ProbeResultStore) -> None:
        self._pods = pods
        self._pleg = pleg
        self._probe_results = probe_results

    def describe(self, action: Action, alert: Alert) -> str:
        """What it would do. Raises DeedError."""
        names = [attempt.name for attempt in self._attempts(action, alert)]
        return f"restart container{'s' if len(names) > 1 else ''} {', '.join(names)}"

    async def apply(self, action: Action, alert: Alert) -> None:
        """Have them ended; their pod's worker starts them again."""
        for attempt in self._attempts(action, alert):
            self._probe_results.request_restart(alert.subject.uid, attempt.id)

    async def revert(self, action: Action, alert: Alert) -> None:
        """It cannot be taken back."""

    def _attempts(self, action: Action, alert: Alert) -> list[ContainerFacts]:
        """Those that run now of the containers that are meant, and would start again."""
        pod = self._pods.pod_of(alert)
        _reject_critical(pod, action)
        if not self._pleg.has_listed:
            raise RetryableError("it is not known yet what runs here")
        known = self._pleg.find(pod.uid)
        meant = _containers(pod, action.options.get("container", ""))
        found = [known.facts.find_container(container.name) for container in meant] if known else []
        running = [it for it in found if it and it.state is ContainerRunState.RUNNING]
        if not running:
            raise ActionError("nothing that would start again runs now")
        return running


class DeletePod:
    """`deletePod`: as if somebody had deleted it, so whoever made it makes another."""

    def __init__(self, pods: AlertPods, api: HttpPodApi) -> None:
        self._pods = pods
        self._api = api

    def describe(self, action: Action, alert: Alert) -> str:
        """What it would do. Raises DeedError."""
        pod = self._pods.pod_of(alert)
        if is_static_pod(pod):
            raise ActionError("a static pod cannot be deleted: it is gone when its file is")
        _reject_critical(pod, action)
        grace = _grace_period(action)
        return "delete the pod" + ("" if grace is None else f" within {grace} s")

    async def apply(self, action: Action, alert: Alert) -> None:
        """Delete the pod with this UID and no other; one that is gone is gone."""
        pod = self._pods.pod_of(alert)
        _reject_critical(pod, action)
        with map_api_errors():
            try:
                await self._api.delete_pod(
                    pod.namespace,
                    pod.name,
                    uid=ApiUID(pod.uid),
                    grace_period_seconds=_grace_period(action),
                )
            except (GoneError, ConflictError):
                return

    async def revert(self, action: Action, alert: Alert) -> None:
        """It cannot be taken back."""


class TaintNode:
    """`taintNode`: a taint of our own at our own Node, for as long as an alert wants it."""

    def __init__(self, taints: AlertTaints) -> None:
        self._taints = taints

    def describe(self, action: Action, alert: Alert) -> str:
        """What it would do. Raises DeedError."""
        return f"taint the node with {format_taint(desired_taint(action, alert))}"

    async def apply(self, action: Action, alert: Alert) -> None:
        """See to it that the node has the taint, which the alert wants by now."""
        await self._taints.sync()
        if not self._taints.has_taint(desired_taint(action, alert)):
            raise RetryableError("it was done too often lately, and will be later")

    async def revert(self, action: Action, alert: Alert) -> None:  # noqa: ARG002
        """Have it taken away now, unless another alert wants it."""
        await self._taints.sync()


def _reject_critical(pod: Pod, action: Action) -> None:
    """Raises DeedError for a system-critical pod that the action does not name."""
    why = criticality(pod)
    if why and not matches_name(pod, action.options.get("criticalPods", "")):
        name = f"{pod.namespace}/{pod.name}"
        raise ActionError(f"the pod is {why}; name it in criticalPods of the action: {name}")


def _containers(pod: Pod, name: str) -> list[Container]:
    """Those of this name, or all; but not what would not start again. Raises DeedError."""
    sidecars = [c for c in pod.spec.init_containers or () if is_restartable_init_container(c)]
    there = [*(pod.spec.containers or ()), *sidecars]
    if name and name not in [container.name for container in there]:
        raise ActionError(f"the pod has no container {name} that could be restarted")
    return [it for it in there if name in ("", it.name) and _will_restart(pod, it)]


def _will_restart(pod: Pod, container: Container) -> bool:
    return (container.restart_policy or pod.spec.restart_policy) != "Never"


def _grace_period(action: Action) -> int | None:
    text = action.options.get("gracePeriodSeconds", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ActionError(f"gracePeriodSeconds is a whole number, not {text!r}")
    return int(text)
