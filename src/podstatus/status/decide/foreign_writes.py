"""Detect writes by other clients to status parts that the node owns, and describe them.

Compares two server copies of a pod: the response to the node's last patch, and a newer one. A
difference in a condition or field that the node owns was written by another client.
"""

from collections.abc import Iterable, Sequence
from itertools import compress
from operator import attrgetter, ne
from typing import Any, TypeAlias

import msgspec
from msgspec import structs

from podstatus.kube.conditions import conditions_by_kubelet
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.meta import ManagedFieldsEntry
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.time import Time

FOREIGN_STATUS_WRITE = "ForeignStatusWrite"
"""Reason of the event about a corrected foreign write."""

_FIELDS_OWNED_BY_OTHERS = (
    "conditions",  # compared one by one
    "nominated_node_name",
    "resource_claim_statuses",
    "extended_resource_claim_status",
    "node_allocatable_resource_claim_statuses",
)
_OWNED_FIELDS = {
    field.encode_name: attrgetter(field.name)
    for field in structs.fields(PodStatus)
    if field.name not in _FIELDS_OWNED_BY_OTHERS
}
_PRINTABLE_FIELDS = ("phase", "reason")
"""Fields whose values are short enough for an event message."""
_MAX_VALUE_LENGTH = 80
"""Characters: foreign values are cut to this length in messages."""
_CONDITION_FIELDS = ("status", "reason", "message")


class StatusPart(msgspec.Struct, frozen=True):
    """A part of a status that the node owns."""

    name: str
    """The type of a condition, or the name of a field."""
    is_condition: bool = False

    def __str__(self) -> str:
        """Return the part as event messages name it."""
        return f"Condition {self.name}" if self.is_condition else f"Field {self.name}"


ConditionValue: TypeAlias = tuple[str, str, str]
"""Status, reason and message of a condition: the fields that are compared."""


class ForeignWrite(msgspec.Struct, frozen=True):
    """A change of one part by another client; `before` or `after` is None if the part is absent."""

    part: StatusPart
    before: Any
    after: Any


def foreign_writes(
    expected: PodStatus, observed: PodStatus, gates: FeatureGates
) -> tuple[ForeignWrite, ...]:
    """Return the changes in owned parts between two server copies."""
    if expected == observed:
        return ()
    before, after = owned_parts(expected, gates), owned_parts(observed, gates)
    changed = (part for part in before | after if before.get(part) != after.get(part))
    return tuple(ForeignWrite(part, before.get(part), after.get(part)) for part in changed)


def owned_parts(status: PodStatus, gates: FeatureGates) -> dict[StatusPart, Any]:
    """Return the parts of a status that the node owns, with their values; conditions first."""
    ours = conditions_by_kubelet(gates)
    parts: dict[StatusPart, Any] = {
        StatusPart(c.type, is_condition=True): _condition_value(c)
        for c in status.conditions or ()
        if c.type in ours
    }
    return parts | {StatusPart(name): value(status) for name, value in _OWNED_FIELDS.items()}


def with_own_parts(observed: PodStatus, own: PodStatus, gates: FeatureGates) -> PodStatus:
    """Return `own` with the parts of other owners taken from `observed`."""
    ours = conditions_by_kubelet(gates)
    theirs = tuple(c for c in observed.conditions or () if c.type not in ours)
    return structs.replace(
        own,
        conditions=(*theirs, *(c for c in own.conditions or () if c.type in ours)),
        nominated_node_name=observed.nominated_node_name,
        resource_claim_statuses=observed.resource_claim_statuses,
        extended_resource_claim_status=observed.extended_resource_claim_status,
        node_allocatable_resource_claim_statuses=observed.node_allocatable_resource_claim_statuses,
    )


def find_writer(write: ForeignWrite, managed: Iterable[ManagedFieldsEntry]) -> str | None:
    """Return the latest field manager of the written fields, or None.

    A client that removes a field no longer manages it, so it cannot be identified.
    """
    paths = _managed_paths(write)
    owners = [entry for entry in managed if any(_has_path(entry.fields_v1, path) for path in paths)]
    newest = max(owners, key=lambda entry: entry.time or Time(), default=None)
    return None if newest is None else newest.manager


def foreign_write_message(write: ForeignWrite, writer: str | None, now: Any) -> str:
    """Return the event message; `now` is the part's value on the server after the correction."""
    client = "another client" if writer is None else go_quoted(writer[:_MAX_VALUE_LENGTH])
    prefix = f"{write.part} was {_change_phrase(write)} by {client}; the node owns it and has"
    if not now:
        return f"{prefix} removed it"
    value = _format_value(write.part, now)
    if now == write.before:
        return f"{prefix} set it back to {value}" if value else f"{prefix} set it back"
    return f"{prefix} recomputed it as {value}" if value else f"{prefix} recomputed it"


def _condition_value(condition: PodCondition) -> ConditionValue:
    return condition.status, condition.reason, condition.message


def _change_phrase(write: ForeignWrite) -> str:
    if not write.after:
        return "removed"
    value = _format_value(write.part, write.after)
    return f"set to {value}" if value else "changed"


def _format_value(part: StatusPart, value: Any) -> str:
    """Return a short text such as `False (reason Because)`, or "" if the value has none."""
    if part.is_condition:
        status, reason, _ = value
        return f"{status} (reason {reason[:_MAX_VALUE_LENGTH]})" if reason else f"{status}"
    return f"{value[:_MAX_VALUE_LENGTH]}" if part.name in _PRINTABLE_FIELDS else ""


def _managed_paths(write: ForeignWrite) -> Sequence[tuple[str, ...]]:
    name = write.part.name
    if not write.part.is_condition:
        return [("f:status", f"f:{name}")]
    key = f'k:{{"type":{msgspec.json.encode(name).decode()}}}'
    absent = (None,) * len(_CONDITION_FIELDS)
    written = compress(_CONDITION_FIELDS, map(ne, write.before or absent, write.after or absent))
    return [("f:status", "f:conditions", key, f"f:{leaf}") for leaf in written]


def _has_path(fields: Any, path: Sequence[str]) -> bool:
    for step in path:
        if not isinstance(fields, dict) or step not in fields:
            return False
        fields = fields[step]
    return True
