"""Summarize a pod in about 2 KB, small enough to retain for thousands of pods.

Text from outside is truncated and made valid UTF-8.
"""

import sys
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID, is_static_pod
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStatus,
    PodCondition,
    PodStatus,
)
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.observe.summary.container_state import (
    RUNNING,
    TERMINATED,
    ContainerStateSummary,
    brief_container_state,
)


def sanitize_text(text: str, max_length: int) -> str:
    """Truncate a text, and replace lone surrogates by question marks.

    A container message that was cut inside of a character ends in lone surrogates, which neither
    JSON nor a database accepts.
    """
    text = text[:max_length]
    # Python knows this without scanning the text.
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()


_MAX_MESSAGE_LENGTH = 512
"""Characters of a message that are retained."""


class ConditionSummary(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename="camel"
):
    """A condition of a pod."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: Time = UNSET_TIME


class ContainerSummary(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename="camel"
):
    """A container of a pod."""

    name: str
    kind: str = "container"
    """`container`, `init`, `sidecar` or `ephemeral`."""
    image: str = ""
    state: ContainerStateSummary | None = None
    """None if it is unknown."""
    last_state: ContainerStateSummary | None = None
    """How the previous attempt terminated; None: there was none."""
    ready: bool = False
    started: bool | None = None
    restarts: int = 0
    created: bool = False
    """Whether the runtime has created it at least once: it has an ID, or had an earlier attempt."""


class PodSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The observed state of a pod."""

    uid: PodUID
    namespace: str
    name: str
    node: str = ""
    labels: Mapping[str, str] = {}
    phase: str = ""
    reason: str = ""
    message: str = ""
    qos: str = ""
    static: bool = False
    created: Time = UNSET_TIME
    started: Time = UNSET_TIME
    deleting: Time = UNSET_TIME
    """The deletion timestamp: the time of the request plus the grace period."""
    terminating: str | None = None
    """Reason and message with which the node ends the pod, while its containers may run."""
    restart_policy: str = ""
    ips: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    """Condition types of its readiness gates."""
    conditions: tuple[ConditionSummary, ...] = ()
    containers: tuple[ContainerSummary, ...] = ()
    """Init containers first, then regular ones, then ephemeral ones."""

    def condition(self, type_: str) -> ConditionSummary | None:
        return next((c for c in self.conditions if c.type == type_), None)

    @property
    def ready(self) -> bool:
        ready = self.condition("Ready")
        return ready is not None and ready.status == "True"

    @property
    def restarts(self) -> int:
        """Number of restarts over all containers."""
        return sum(container.restarts for container in self.containers)


def summarize_pod(pod: Pod) -> PodSummary:
    """Return the summary of a pod with its status. Strings that many pods share are interned."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    init = [
        "sidecar" if is_restartable_init_container(c) else "init"
        for c in spec.init_containers or ()
    ]
    return PodSummary(
        uid=pod.uid,
        namespace=sys.intern(pod.namespace),
        name=pod.name,
        node=sys.intern(spec.node_name),
        labels={sys.intern(key): sys.intern(text) for key, text in (meta.labels or {}).items()},
        phase=sys.intern(status.phase),
        reason=status.reason,
        message=sanitize_text(status.message, _MAX_MESSAGE_LENGTH),
        qos=sys.intern(status.qos_class),
        static=is_static_pod(pod),
        created=meta.creation_timestamp,
        started=status.start_time or UNSET_TIME,
        deleting=meta.deletion_timestamp or UNSET_TIME,
        restart_policy=sys.intern(spec.restart_policy),
        ips=tuple(address.ip for address in status.pod_ips or ()),
        gates=tuple(gate.condition_type for gate in spec.readiness_gates or ()),
        conditions=tuple(map(_condition, status.conditions or ())),
        containers=(
            *_containers(spec.init_containers or (), init, status.init_container_statuses),
            *_containers(spec.containers or (), ["container"], status.container_statuses),
            *(
                _container(it.name, "ephemeral", it.image, it)
                for it in status.ephemeral_container_statuses or ()
            ),
        ),
    )


def summarize_terminating_pod(shown: Pod, final: PodStatus) -> PodSummary:
    """Return the summary of a pod whose phase is held back; `final` is the status with the phase.

    `shown` has the phase that the API server shows meanwhile.
    """
    reason = ": ".join(filter(None, (final.reason, final.message)))
    text = sanitize_text(reason, _MAX_MESSAGE_LENGTH)
    return structs.replace(summarize_pod(shown), terminating=text)


def _condition(condition: PodCondition) -> ConditionSummary:
    return ConditionSummary(
        type=sys.intern(condition.type),
        status=sys.intern(condition.status),
        reason=sys.intern(condition.reason),
        message=sanitize_text(condition.message, _MAX_MESSAGE_LENGTH),
        since=condition.last_transition_time,
    )


def _containers(
    specs: Sequence[Container], kinds: Sequence[str], statuses: Sequence[ContainerStatus] | None
) -> list[ContainerSummary]:
    """Return the containers in spec order; `kinds` has one kind for each, or one for all."""
    by_name = {status.name: status for status in statuses or ()}
    return [
        _container(
            container.name,
            kinds[number % len(kinds)],
            container.image,
            by_name.get(container.name),
        )
        for number, container in enumerate(specs)
    ]


def _container(
    name: str, kind: str, image: str, status: ContainerStatus | None
) -> ContainerSummary:
    if status is None:
        return ContainerSummary(name=sys.intern(name), kind=kind, image=sys.intern(image))
    return ContainerSummary(
        name=sys.intern(name),
        kind=kind,
        image=sys.intern(image),
        state=summarize_container_state(status.state),
        last_state=summarize_container_state(status.last_state),
        ready=status.ready,
        started=status.started,
        restarts=status.restart_count,
        created=bool(
            status.container_id or status.restart_count or status.last_state.terminated is not None
        ),
    )


def summarize_container_state(
    state: ContainerState, max_message: int = _MAX_MESSAGE_LENGTH
) -> ContainerStateSummary | None:
    """Return the state, with at most `max_message` characters; None if none is set."""
    if (running := state.running) is not None:
        return ContainerStateSummary(state=RUNNING, started_at=running.started_at)
    brief = brief_container_state(state)
    if brief is None:
        return None
    if (ended := state.terminated) is not None:
        return ContainerStateSummary(
            state=TERMINATED,
            reason=brief.reason,
            message=sanitize_text(ended.message, max_message),
            exit_code=ended.exit_code,
            signal=ended.signal,
            started_at=ended.started_at,
            finished_at=ended.finished_at,
        )
    if state.waiting is None or not state.waiting.message:
        return brief
    message = sanitize_text(state.waiting.message, max_message)
    return structs.replace(brief, message=message)
