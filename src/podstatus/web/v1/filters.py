"""Which pods are asked for: `?namespace=default&labelSelector=app=web&condition=Ready:False`.

All that is given must be true of a pod. What may be one of several is given with commas, or more
than once: `phase=Pending,Failed`. A condition without a status is one that is True.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from podstatus.kube.label_selector import (
    LabelSelectorError,
    ParsedLabelSelector,
    parse_label_selector,
)
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.health import HealthState, pod_health
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.errors import bad_request
from podstatus.web.query_parameters import Query

FILTERS: Mapping[str, str] = {
    "namespace": "pods of this namespace",
    "labelSelector": "pods with labels like these, as kubectl's -l: app=web,tier in (1,2),!old",
    "phase": "pods in one of these phases, separated by commas",
    "condition": "pods whose condition is so: Ready:False; several are separated by commas, "
    "and all of them must be",
    "health": "pods that are so, in one word: crashing; one of several with commas",
    "node": "pods of this node",
}
"""What pods can be asked for by, and what it means."""
_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_STATUSES = ("True", "False", "Unknown")


class PodFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods; without anything, all."""

    namespace: str = ""
    node: str = ""
    labels: ParsedLabelSelector = ParsedLabelSelector()
    phases: tuple[str, ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    """Types, and the status that each must have."""
    health_states: tuple[HealthState, ...] = ()
    """How it may be."""

    def matches(self, pod: PodSummary, now: Time) -> bool:
        """Whether the pod is one of them at this moment; only its health asks for the time."""
        return (
            (not self.namespace or pod.namespace == self.namespace)
            and (not self.node or pod.node == self.node)
            and (not self.phases or pod.phase in self.phases)
            and self.labels.matches(pod.labels)
            and all(_has_condition(pod, type_, status) for type_, status in self.conditions)
            and (not self.health_states or pod_health(pod, now).state in self.health_states)
        )


def pod_filter(query: Query) -> PodFilter:
    """The filter of a query; other parameters are left alone. Raises Refusal."""
    return PodFilter(
        namespace=_single_value(query, "namespace"),
        node=_single_value(query, "node"),
        labels=_selector(_single_value(query, "labelSelector")),
        phases=tuple(
            parse_choice("phase", phase, _PHASES) for phase in list_values(query, "phase")
        ),
        conditions=tuple(map(_condition, list_values(query, "condition"))),
        health_states=tuple(
            HealthState(parse_choice("health", word, list(HealthState)))
            for word in list_values(query, "health")
        ),
    )


def check_parameters(query: Query, known: Iterable[str]) -> None:
    """Raise Refusal for what nobody understands: a filter with a typing error would show all."""
    known = list(known)
    unknown = [name for name in query if name not in known]
    if unknown:
        there = f"there is {', '.join(known)}" if known else "it takes none"
        raise bad_request(f"unknown parameter {unknown[0]}; {there}")


def _has_condition(pod: PodSummary, type_: str, status: str) -> bool:
    found = pod.condition(type_)
    return found is not None and found.status == status


def _single_value(query: Query, name: str) -> str:
    """The value of what can be given once; empty stands for not given, as in Kubernetes."""
    values = query.get(name, ())
    if len(values) > 1:
        raise bad_request(f"{name} is given {len(values)} times; give it once")
    return values[0] if values else ""


def list_values(query: Query, name: str) -> list[str]:
    """The values of what may be one of several: with commas, or given more than once."""
    values = (part.strip() for value in query.get(name, ()) for part in value.split(","))
    return [value for value in values if value]


def _selector(text: str) -> ParsedLabelSelector:
    try:
        return parse_label_selector(text)
    except LabelSelectorError as error:
        raise bad_request(f"labelSelector={text}: {error}") from error


def _condition(text: str) -> tuple[str, str]:
    type_, colon, status = text.partition(":")
    if not type_:
        raise bad_request(f"condition={text} names no condition; write it like Ready:False")
    return type_, parse_choice(f"condition={type_}", status, _STATUSES) if colon else "True"


def parse_choice(name: str, value: str, known: Sequence[str]) -> str:
    """As it is written in Kubernetes; however it was written here."""
    for word in known:
        if word.lower() == value.lower():
            return word
    raise bad_request(f"{name}: there is no {value!r}; there is {', '.join(known)}")
