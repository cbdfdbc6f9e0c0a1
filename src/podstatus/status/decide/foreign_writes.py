"""What others have written of that which the node owns, who it was, and how that is told.

Given are two copies of the server: what it answered to our last patch, and a newer one. What
differs between them in our conditions and fields is not ours.
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter
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
"""The reason of the event about what was corrected."""

_FIELDS_OWNED_BY_OTHERS = (
    "conditions",  # looked at one by one
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
"""Fields that are short enough to be said."""
_MAX_VALUE_LENGTH = 80
"""Characters of somebody else's word that are repeated."""
_CONDITION_FIELDS = ("status", "reason", "message")


class StatusPart(msgspec.Struct, frozen=True):
    """A part of a status that the node owns."""

    name: str
    """The type of a condition, or the name of a field."""
    is_condition: bool = False

    def __str__(self) -> str:
        """As it is told."""
        return f"Condition {self.name}" if self.is_condition else f"Field {self.name}"


ConditionValue: TypeAlias = tuple[str, str, str]
"""Status, reason and message of a condition: what counts of it."""


class ForeignWrite(msgspec.Struct, frozen=True):
    """What somebody else made of a part; None where there is nothing."""

    part: StatusPart
    before: Any
    after: Any


def foreign_writes(
    expected: PodStatus, observed: PodStatus, gates: FeatureGates
) -> tuple[ForeignWrite, ...]:
    """How a copy of the server differs from one that was ours."""
    if expected == observed:
        return ()
    before, after = owned_parts(expected, gates), owned_parts(observed, gates)
    changed = (part for part in before | after if before.get(part) != after.get(part))
    return tuple(ForeignWrite(part, before.get(part), after.get(part)) for part in changed)


def owned_parts(status: PodStatus, gates: FeatureGates) -> dict[StatusPart, Any]:
    """What a status says of that which the node owns; conditions first."""
    ours = conditions_by_kubelet(gates)
    parts: dict[StatusPart, Any] = {
        StatusPart(c.type, is_condition=True): _condition_value(c)
        for c in status.conditions or ()
        if c.type in ours
    }
    return parts | {StatusPart(name): value(status) for name, value in _OWNED_FIELDS.items()}


def with_own_parts(observed: PodStatus, own: PodStatus, gates: FeatureGates) -> PodStatus:
    """The node's own status, with what others own as it is shown."""
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
    """The last one who is said to manage what was written; None if nobody is.

    Who removes something manages nothing afterwards, and is not found.
    """
    paths = _managed_paths(write)
    found = [entry for entry in managed if any(_has_path(entry.fields_v1, path) for path in paths)]
    newest = max(found, key=lambda entry: entry.time or Time(), default=None)
    return None if newest is None else newest.manager


def foreign_write_message(write: ForeignWrite, writer: str | None, now: Any) -> str:
    """What is told about it; `now` is what the server has of that part after the correction."""
    who = "another client" if writer is None else go_quoted(writer[:_MAX_VALUE_LENGTH])
    told = f"{write.part} was {_change_phrase(write)} by {who}; the node owns it and has"
    if not now:
        return f"{told} removed it"
    back = "back" if now == write.before else "anew"
    word = _format_value(write.part, now)
    return f"{told} set it {back} to {word}" if word else f"{told} set it {back}"


def _condition_value(condition: PodCondition) -> ConditionValue:
    return condition.status, condition.reason, condition.message


def _change_phrase(write: ForeignWrite) -> str:
    if not write.after:
        return "removed"
    word = _format_value(write.part, write.after)
    return f"set to {word}" if word else "changed"


def _format_value(part: StatusPart, value: Any) -> str:
    """A value in a word, as in `False (reason Because)`; empty if it cannot be said in one."""
    if part.is_condition:
        status, reason, _ = value
        return f"{status} (reason {reason[:_MAX_VALUE_LENGTH]})" if reason else f"{status}"
    return f"{value[:_MAX_VALUE_LENGTH]}" if part.name in _PRINTABLE_FIELDS else ""


def _managed_paths(write: ForeignWrite) -> Sequence[tuple[str, ...]]:
    name = write.part.name
    if not write.part.is_condition:
        return [("f:status", f"f:{name}")]
    key = f'k:{{"type":{msgspec.json.encode(name).decode()}}}'
    nothing = (None,) * len(_CONDITION_FIELDS)
    said = zip(_CONDITION_FIELDS, write.before or nothing, write.after or nothing, strict=True)
    return [("f:status", "f:conditions", key, f"f:{leaf}") for leaf, old, new in said if old != new]


def _has_path(fields: Any, path: Sequence[str]) -> bool:
    for step in path:
        if not isinstance(fields, dict) or step not in fields:
            return False
        fields = fields[step]
    return True
