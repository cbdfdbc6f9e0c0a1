"""A rehearsal of rules: what happens to pods and nodes, when, and which alerts are expected.

Times are nanoseconds after the beginning.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from podstatus.alerts.alert import Alert, State, Subject
from podstatus.alerts.facts import NodeReadings, node_facts, pod_facts, sync_facts
from podstatus.alerts.rule import Place, Scope
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.status_view import Knowledge, NodeSummary, SyncState
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary

NODE = "node"
"""Where pods are that do not say it."""
_POD_CONDITIONS = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """An alert that is to be there."""

    rule: str
    scope: Scope
    subject: str
    """`namespace/name` of a pod, or the name of a node."""
    state: State
    labels: Mapping[str, str] = {}
    """Those that are compared; others may be there. So with annotations."""
    annotations: Mapping[str, str] = {}
    place: Place = Place(1, 1)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What is so from a time on, and what is expected then."""

    at: int
    changes: tuple[tuple[Subject, Mapping[str, Any] | None], ...] = ()
    """Whom it is about, and the facts that become others, with whole names; None: it is gone."""
    expect: tuple[Expected, ...] | None = None
    """All alerts, and those that resolved since this was last said; None: nothing is said."""
    place: Place = Place(1, 1)


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    name: str
    only: frozenset[str] = frozenset()
    """The rules that it is about; empty: all."""
    history: str = ""
    """The file of a history that is played, instead of what the steps say."""
    history_place: Place = Place(1, 1)
    steps: tuple[Step, ...] = ()
    place: Place = Place(1, 1)


class RehearsalFile(msgspec.Struct, frozen=True, kw_only=True):
    """All of a file."""

    rules: tuple[str, ...] = ()
    """Files of rules."""
    rehearsals: tuple[Rehearsal, ...] = ()


def subject_text(scope: Scope, name: str) -> str:
    """As tables have it: `pod/default/web`, `node/node`."""
    return f"{scope}/{name}"


def name_of(alert: Alert) -> str:
    """What it is about, as `Expected` names it."""
    subject = alert.subject
    return f"{subject.namespace}/{subject.name}" if subject.scope == "pod" else subject.name


def usual_facts(subject: Subject) -> dict[str, Any]:
    """Those of one that is as it should be."""
    return _usual_pod(subject) if subject.scope == "pod" else _usual_node(subject.name)


def usual_container(name: str, state: str) -> dict[str, Any]:
    """The facts of a container in a state, of which nothing else is said."""
    runs = state == "running"
    text = f"{state} Completed 0" if state == "terminated" else state
    pod = PodSummary(
        uid=PodUID(""),
        namespace="",
        name="",
        containers=(ContainerSummary(name=name, state=text, ready=runs, started=runs),),
    )
    [container] = pod_facts(pod, 0)["pod.containers"]
    return dict(container)


def _usual_pod(subject: Subject) -> dict[str, Any]:
    conditions = (ConditionSummary(type=it, status="True") for it in _POD_CONDITIONS)
    pod = PodSummary(
        uid=subject.uid,
        namespace=subject.namespace,
        name=subject.name,
        node=subject.node,
        phase="Running",
        qos="BestEffort",
        conditions=tuple(conditions),
        containers=(ContainerSummary(name="app", state="running", ready=True, started=True),),
    )
    return pod_facts(pod, 0)


def _usual_node(name: str) -> dict[str, Any]:
    node = NodeSummary(
        name=name,
        ready=True,
        reason="KubeletReady",
        conditions={"Ready": "True", **dict.fromkeys(_PRESSURES, "False")},
        capacity={"cpu": "4", "memory": "8Gi"},
        used={"cpu": 0.4, "memory": 0.1 * 8 * 2**30},
        pods=1,
        lease_age_seconds=1.0,
    )
    return {
        **node_facts(node, NodeReadings(disk_used_fraction=0.1)),
        **sync_facts(SyncState(), Knowledge()),
    }
