"""Build Pod objects from summaries, sufficient for tables and `describe`.

An observer stores summaries only, not the objects.
"""

from collections.abc import Iterable

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodReadinessGate, PodSpec
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodCondition,
    PodIP,
    PodStatus,
)
from podstatus.observe.summary.container_state import ContainerStateSummary
from podstatus.observe.summary.pod import ContainerSummary, PodSummary

_FIRST = ("init", "sidecar")


def pod_from_summary(pod: PodSummary) -> Pod:
    """Return the Pod with all fields that the summary has."""
    first = [c for c in pod.containers if c.kind in _FIRST]
    regular = [c for c in pod.containers if c.kind == "container"]
    ephemeral = [c for c in pod.containers if c.kind == "ephemeral"]
    return Pod(
        metadata=ObjectMeta(
            name=pod.name,
            namespace=pod.namespace,
            uid=pod.uid,
            labels=dict(pod.labels) or None,
            creation_timestamp=pod.created,
            deletion_timestamp=pod.deleting or None,
        ),
        spec=PodSpec(
            node_name=pod.node,
            restart_policy=pod.restart_policy,
            containers=_specs(regular),
            init_containers=_specs(first) or None,
            readiness_gates=tuple(PodReadinessGate(condition_type=it) for it in pod.gates) or None,
        ),
        status=PodStatus(
            phase=pod.phase,
            reason=pod.reason,
            message=pod.message,
            qos_class=pod.qos,
            start_time=pod.started or None,
            pod_ip=pod.ips[0] if pod.ips else "",
            pod_ips=tuple(PodIP(ip=ip) for ip in pod.ips) or None,
            conditions=tuple(
                PodCondition(
                    type=it.type,
                    status=it.status,
                    reason=it.reason,
                    message=it.message,
                    last_transition_time=it.since,
                )
                for it in pod.conditions
            )
            or None,
            init_container_statuses=_statuses(first),
            container_statuses=_statuses(regular),
            # The summary has them from the status only, so each has one.
            ephemeral_container_statuses=tuple(map(_status, ephemeral)) or None,
        ),
    )


def _specs(containers: Iterable[ContainerSummary]) -> tuple[Container, ...]:
    return tuple(
        Container(
            name=it.name,
            image=it.image,
            restart_policy="Always" if it.kind == "sidecar" else None,
        )
        for it in containers
    )


def _statuses(containers: Iterable[ContainerSummary]) -> tuple[ContainerStatus, ...] | None:
    """The statuses of the containers that have one; None if none has."""
    return tuple(map(_status, filter(_has_status, containers))) or None


def _has_status(container: ContainerSummary) -> bool:
    """True if the summary has more than fields of the spec."""
    state = container.state or container.last_state or container.restarts
    return bool(state or container.ready or container.started is not None)


def _status(container: ContainerSummary) -> ContainerStatus:
    return ContainerStatus(
        name=container.name,
        image=container.image,
        ready=container.ready,
        started=container.started,
        restart_count=container.restarts,
        state=_state(container.state),
        last_state=_state(container.last_state),
    )


def _state(summary: ContainerStateSummary | None) -> ContainerState:
    if summary is None:
        return ContainerState()
    if summary.is_running:
        return ContainerState(running=ContainerStateRunning(started_at=summary.started_at))
    if summary.is_terminated:
        return ContainerState(
            terminated=ContainerStateTerminated(
                exit_code=summary.exit_code or 0,
                signal=summary.signal,
                reason=summary.reason,
                message=summary.message,
                started_at=summary.started_at,
                finished_at=summary.finished_at,
            )
        )
    return ContainerState(
        waiting=ContainerStateWaiting(reason=summary.reason, message=summary.message)
    )
