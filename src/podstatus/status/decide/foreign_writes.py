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

_OF_OTHERS = (
    "conditions",  # looked at one by one
    "nominated_node_name",
    "resource_claim_statuses",
    "extended_resource_claim_status",
    "node_allocatable_resource_claim_statuses",
)
_FIELDS = {
    field.encode_name: attrgetter(field.name)
    for field in structs.fields(PodStatus)
    if field.name not in _OF_OTHERS
}
_SPOKEN = ("phase", "reason")
"""Fields that are short enough to be said."""
_LONGEST = 80
"""Characters of somebody else's word that are repeated."""
_LEAVES = ("status", "reason", "message")


class Part(msgspec.Struct, frozen=True):
    """A part of a status that the node owns."""

    name: str
    """The type of a condition, or the name of a field."""
    is_condition: bool = False

    def __str__(self) -> str:
        """As it is told."""
        return f"Condition {self.name}" if self.is_condition else f"Field {self.name}"


Said: TypeAlias = tuple[str, str, str]
"""Status, reason and message of a condition: what counts of it."""


class ForeignWrite(msgspec.Struct, frozen=True):
    """What somebody else made of a part; None where there is nothing."""

    part: Part
    before: Any
    after: Any


def foreign_writes(
    known: PodStatus, shown: PodStatus, gates: FeatureGates
) -> tuple[ForeignWrite, ...]:
    """How a copy of the server differs from one that was ours."""
    if known == shown:
        return ()
    before, after = owned_parts(known, gates), owned_parts(shown, gates)
    changed = (part for part in before | after if before.get(part) != after.get(part))
    return tuple(ForeignWrite(part, before.get(part), after.get(part)) for part in changed)


def owned_parts(status: PodStatus, gates: FeatureGates) -> dict[Part, Any]:
    """What a status says of that which the node owns; conditions first."""
    ours = conditions_by_kubelet(gates)
    parts: dict[Part, Any] = {
        Part(c.type, is_condition=True): _said(c) for c in status.conditions or () if c.type in ours
    }
    return parts | {Part(name): value(status) for name, value in _FIELDS.items()}


def with_own_parts(shown: PodStatus, own: PodStatus, gates: FeatureGates) -> PodStatus:
    """The node's own status, with what others own as it is shown."""
    ours = conditions_by_kubelet(gates)
    theirs = tuple(c for c in shown.conditions or () if c.type not in ours)
    return structs.replace(
        own,
        conditions=(*theirs, *(c for c in own.conditions or () if c.type in ours)),
        nominated_node_name=shown.nominated_node_name,
        resource_claim_statuses=shown.resource_claim_statuses,
        extended_resource_claim_status=shown.extended_resource_claim_status,
        node_allocatable_resource_claim_statuses=shown.node_allocatable_resource_claim_statuses,
    )


def find_writer(write: ForeignWrite, managed: Iterable[ManagedFieldsEntry]) -> str | None:
    """The last one who is said to manage what was written; None if nobody is.

    Who removes something manages nothing afterwards, and is not found.
    """
    paths = _managed_paths(write)
    found = [entry for entry in managed if any(_holds(entry.fields_v1, path) for path in paths)]
    newest = max(found, key=lambda entry: entry.time or Time(), default=None)
    return None if newest is None else newest.manager


def foreign_write_message(write: ForeignWrite, writer: str | None, now: Any) -> str:
    """What is told about it; `now` is what the server has of that part after the correction."""
    who = "another client" if writer is None else go_quoted(writer[:_LONGEST])
    told = f"{write.part} was {_deed(write)} by {who}; the node owns it and has"
    if not now:
        return f"{told} removed it"
    back = "back" if now == write.before else "anew"
    word = _word(write.part, now)
    return f"{told} set it {back} to {word}" if word else f"{told} set it {back}"


def _said(condition: PodCondition) -> Said:
    return condition.status, condition.reason, condition.message


def _deed(write: ForeignWrite) -> str:
    if not write.after:
        return "removed"
    word = _word(write.part, write.after)
    return f"set to {word}" if word else "changed"


def _word(part: Part, value: Any) -> str:
    """A value in a word, as in `False (reason Because)`; empty if it cannot be said in one."""
    if part.is_condition:
        status, reason, _ = value
        return f"{status} (reason {reason[:_LONGEST]})" if reason else f"{status}"
    return f"{value[:_LONGEST]}" if part.name in _SPOKEN else ""


def _managed_paths(write: ForeignWrite) -> Sequence[tuple[str, ...]]:
    name = write.part.name
    if not write.part.is_condition:
        return [("f:status", f"f:{name}")]
    key = f'k:{{"type":{msgspec.json.encode(name).decode()}}}'
    nothing = (None,) * len(_LEAVES)
    said = zip(_LEAVES, write.before or nothing, write.after or nothing, strict=True)
    return [("f:status", "f:conditions", key, f"f:{leaf}") for leaf, old, new in said if old != new]


def _holds(fields: Any, path: Sequence[str]) -> bool:
    for step in path:
        if not isinstance(fields, dict) or step not in fields:
            return False
        fields = fields[step]
    return True
