"""What a rule says, as it was read; whether it makes sense is found out when it is compiled."""

from collections.abc import Mapping
from typing import Literal

import msgspec

Scope = Literal["pod", "node"]
"""What a rule is asked about, one after the other: each pod, or each node."""
Severity = Literal["info", "warning", "critical"]


class Place(msgspec.Struct, frozen=True):
    """Where something stands in a file, for who has to mend it."""

    line: int
    column: int
    """Both from 1."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """Something to do when an alert fires or resolves: the name of a kind, and its options."""

    kind: str
    """`log`, `event`, `webhook`, `alertmanager`, `nodeCondition`, `restartContainer`,
    `deletePod`, `taintNode`."""
    options: Mapping[str, str] = {}
    place: Place = Place(1, 1)


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule."""

    name: str
    """Unique; letters, digits and underscores, as names of alerts are in Prometheus."""
    scope: Scope = "pod"
    expression: str
    """CEL over the facts of its scope; it is a bool."""
    for_seconds: float = 0.0
    """How long it has to hold before the alert fires."""
    keep_firing_for_seconds: float = 0.0
    """How long an alert goes on after it has ceased to hold."""
    severity: Severity = "warning"
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    """Templates: `{{ pod.name }} is …`, CEL between the braces."""
    actions: tuple[Action, ...] = ()
    place: Place = Place(1, 1)
    expression_place: Place = Place(1, 1)
    """Where its first character stands; of a block the first line."""


class RuleSet(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of a file, or of several."""

    rules: tuple[Rule, ...] = ()
    allow_actions: frozenset[str] = frozenset()
    """Kinds of actions that change something in the cluster and that rules may take."""
    dry_run: bool = True
    """Whether those are only said, not done."""
    disable: Mapping[str, Place] = {}
    """Default rules that are not asked, and where that is said."""
