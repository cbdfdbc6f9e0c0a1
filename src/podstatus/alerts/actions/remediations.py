"""The remediations of an agent: restart a container, delete a pod, taint its own node.

Each is a `Remediation`; `GuardedRemediation` decides whether it runs.
"""

from collections.abc import Callable

from podstatus.alerts.actions.critical_pods import criticality, matches_name
from podstatus.alerts.actions.desired_taints import desired_taint, format_taint
from podstatus.alerts.actions.guarded_remediation import map_api_errors
from podstatus.alerts.actions.node_taints import AlertTaints
from podstatus.alerts.model import Action, Alert
from podstatus.alerts.ports import ActionError, RetryableError
from podstatus.client.typed.pods import HttpPodApi
from podstatus.kube.api_errors import ConflictError, GoneError
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import ApiUID, Pod, is_static_pod
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import Pleg
from podstatus.workers.probe_result_store import ProbeResultStore


class AlertPods:
    """Looks up the pods that alerts are about."""

    def __init__(self, pod_manager: PodManager, *, is_synced: Callable[[], bool]) -> None:
        """`is_synced`: True once a pod that the pod manager does not have is not on this node."""
        self._pod_manager = pod_manager
        self._is_synced = is_synced

    def pod_of(self, alert: Alert) -> Pod:
        """Return the pod of an alert. Raises ActionError."""
        if alert.subject.scope != "pod":
            raise ActionError("the alert is not about a pod")
        pod = self._pod_manager.pod_by_uid(alert.subject.uid)
        if pod is not None:
            return pod
        if not self._is_synced():
            raise RetryableError("the pods of this node are not known yet")
        raise ActionError("the pod is no longer on this node")


class RestartContainer:
    """`restartContainer`: done by the pod worker, as after a failed liveness probe."""

    def __init__(self, pods: AlertPods, pleg: Pleg, probe_results: ProbeResultStore) -> None:
        self._pods = pods
        self._pleg = pleg
        self._probe_results = probe_results

    def describe(self, action: Action, alert: Alert) -> str:
        names = [attempt.name for attempt in self._attempts(action, alert)]
        return f"restart container{'s' if len(names) > 1 else ''} {', '.join(names)}"

    async def apply(self, action: Action, alert: Alert) -> None:
        """Have the containers killed; the pod worker restarts them."""
        for attempt in self._attempts(action, alert):
            self._probe_results.request_restart(alert.subject.uid, attempt.id)

    async def revert(self, action: Action, alert: Alert) -> None:
        """Do nothing: a restart cannot be reverted."""

    def _attempts(self, action: Action, alert: Alert) -> list[ContainerFacts]:
        """Return the running containers that the action selects and that would be restarted."""
        pod = self._pods.pod_of(alert)
        _reject_critical(pod, action)
        if not self._pleg.has_listed:
            raise RetryableError("the running containers are not known yet")
        running_pod = self._pleg.find(pod.uid)
        selected = _containers(pod, action.options.get("container", ""))
        facts = [running_pod.facts.find_container(c.name) for c in selected] if running_pod else []
        running = [it for it in facts if it and it.state is ContainerRunState.RUNNING]
        if not running:
            raise ActionError("no container that would be restarted is running")
        return running


class DeletePod:
    """`deletePod`: deletes the pod as a user would, so its controller creates a new one."""

    def __init__(self, pods: AlertPods, api: HttpPodApi) -> None:
        self._pods = pods
        self._api = api

    def describe(self, action: Action, alert: Alert) -> str:
        pod = self._pods.pod_of(alert)
        if is_static_pod(pod):
            raise ActionError("a static pod cannot be deleted; remove its manifest instead")
        _reject_critical(pod, action)
        grace = _grace_period(action)
        return "delete the pod" + ("" if grace is None else f" with a grace period of {grace} s")

    async def apply(self, action: Action, alert: Alert) -> None:
        """Delete the pod with exactly this UID; a pod that is gone already is a success."""
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
        """Do nothing: a deletion cannot be reverted."""


class TaintNode:
    """`taintNode`: an alert taint on the agent's own Node, while an alert requests it."""

    def __init__(self, taints: AlertTaints) -> None:
        self._taints = taints

    def describe(self, action: Action, alert: Alert) -> str:
        return f"taint the node with {format_taint(desired_taint(action, alert))}"

    async def apply(self, action: Action, alert: Alert) -> None:
        """Sync the taints; by now the firing alert requests this one."""
        await self._taints.sync()
        if not self._taints.has_taint(desired_taint(action, alert)):
            raise RetryableError("the rate limit is exceeded; the taint is added later")

    async def revert(self, action: Action, alert: Alert) -> None:  # noqa: ARG002
        """Remove the taint, unless another alert requests it."""
        await self._taints.sync()


def _reject_critical(pod: Pod, action: Action) -> None:
    """Raises ActionError for a system-critical pod that the action does not name."""
    why = criticality(pod)
    if why and not matches_name(pod, action.options.get("criticalPods", "")):
        name = f"{pod.namespace}/{pod.name}"
        raise ActionError(
            f"the pod is {why}; to allow it, add {name} to criticalPods of the action"
        )


def _containers(pod: Pod, name: str) -> list[Container]:
    """Return the restartable containers of this name, or all if it is empty. Raises ActionError."""
    sidecars = [c for c in pod.spec.init_containers or () if is_restartable_init_container(c)]
    restartable = [*(pod.spec.containers or ()), *sidecars]
    if name and name not in [container.name for container in restartable]:
        raise ActionError(f"the pod has no container {name} that can be restarted")
    return [it for it in restartable if name in ("", it.name) and _will_restart(pod, it)]


def _will_restart(pod: Pod, container: Container) -> bool:
    return (container.restart_policy or pod.spec.restart_policy) != "Never"


def _grace_period(action: Action) -> int | None:
    text = action.options.get("gracePeriodSeconds", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ActionError(f"gracePeriodSeconds must be a whole number, not {text!r}")
    return int(text)
