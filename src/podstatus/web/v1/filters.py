"""Filter pods: `?namespace=default&labelSelector=app=web&condition=Ready:False`.

All parameters must match. Alternatives are separated by commas, or the parameter is repeated:
`phase=Pending,Failed`. A condition without a status means `True`.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from podstatus.kube.label_selector import (
    LabelSelectorError,
    ParsedLabelSelector,
    parse_label_selector,
)
from podstatus.kube.objects.pod import POD_PHASES
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.health import HealthState, pod_health
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.errors import bad_request, too_long
from podstatus.web.query_parameters import Query, read_query

FILTERS: Mapping[str, str] = {
    "namespace": "pods in this namespace",
    "labelSelector": "pods that match this selector, as for kubectl -l: app=web,tier in (1,2),!old",
    "phase": "pods in one of these phases, separated by commas",
    "condition": "pods with this condition, such as Ready:False; several, separated by commas, "
    "must all match",
    "health": "pods in one of these health states, separated by commas",
    "node": "pods on this node",
}
"""The filter parameters with their descriptions."""
MAX_QUERY_BYTES = 8 * 2**10
"""Of a query; label selectors of kubectl are far shorter."""
_PHASES = (*POD_PHASES, "Unknown")
_STATUSES = ("True", "False", "Unknown")


class PodFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects pods; an empty field selects all."""

    namespace: str = ""
    node: str = ""
    labels: ParsedLabelSelector = ParsedLabelSelector()
    phases: tuple[str, ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    """Pairs of type and status."""
    health_states: tuple[HealthState, ...] = ()

    def matches(self, pod: PodSummary, now: Time) -> bool:
        """Whether all non-empty fields match the pod; only its health depends on `now`."""
        return (
            (not self.namespace or pod.namespace == self.namespace)
            and (not self.node or pod.node == self.node)
            and (not self.phases or pod.phase in self.phases)
            and self.labels.matches(pod.labels)
            and all(_has_condition(pod, type_, status) for type_, status in self.conditions)
            and (not self.health_states or pod_health(pod, now).state in self.health_states)
        )


def pod_filter(query: Query) -> PodFilter:
    """The filter of a query; other parameters are ignored. Raises HttpError."""
    return PodFilter(
        namespace=single_value(query, "namespace"),
        node=single_value(query, "node"),
        labels=_selector(single_value(query, "labelSelector")),
        phases=tuple(
            parse_choice("phase", phase, _PHASES) for phase in list_values(query, "phase")
        ),
        conditions=tuple(map(_condition, list_values(query, "condition"))),
        health_states=tuple(
            HealthState(parse_choice("health", state, list(HealthState)))
            for state in list_values(query, "health")
        ),
    )


def read_bounded_query(raw: str) -> Query:
    """The parameters of a raw query. Raises HttpError if it is longer than any valid one."""
    if len(raw) > MAX_QUERY_BYTES:
        raise too_long(f"the query is longer than {MAX_QUERY_BYTES} bytes; use fewer parameters")
    return read_query(raw)


def check_parameters(query: Query, allowed: Iterable[str]) -> None:
    """Raise HttpError for an unknown parameter: a filter with a typo would return everything."""
    allowed = list(allowed)
    unknown = [name for name in query if name not in allowed]
    if unknown:
        hint = f"known parameters: {', '.join(allowed)}" if allowed else "this path has none"
        raise bad_request(f"unknown parameter {unknown[0]}; {hint}")


def _has_condition(pod: PodSummary, type_: str, status: str) -> bool:
    condition = pod.condition(type_)
    return condition is not None and condition.status == status


def single_value(query: Query, name: str) -> str:
    """The value of a parameter that may occur once; empty means absent, as in Kubernetes.

    Raises HttpError.
    """
    values = query.get(name, ())
    if len(values) > 1:
        raise bad_request(f"{name} is given {len(values)} times; specify it once")
    return values[0] if values else ""


def list_values(query: Query, name: str) -> list[str]:
    """The values of a parameter that may have several: with commas, or repeated."""
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
        raise bad_request(f"condition={text} has no type; write it as Ready:False")
    return type_, parse_choice(f"condition={type_}", status, _STATUSES) if colon else "True"


def parse_choice(name: str, value: str, choices: Sequence[str]) -> str:
    """The choice that equals the value, ignoring case. Raises HttpError if there is none."""
    for choice in choices:
        if choice.lower() == value.lower():
            return choice
    raise bad_request(f"{name}: unknown value {value!r}; one of {', '.join(choices)} is expected")
