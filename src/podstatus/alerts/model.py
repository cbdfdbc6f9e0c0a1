"""The values of alerting: rules as read from a file, alerts, and errors in a rule file.

A `Rule` is what its file says; whether it makes sense is found when it is compiled. An `Alert` is a
rule that holds for a pod or a node, since when, and its text. A `Diagnostic` is an error in a rule
file with its location.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, NewType

import msgspec

from podstatus.kube.objects.pod import PodUID

Scope = Literal["pod", "node"]
"""What a rule is asked about, one after the other: each pod, or each node."""
Severity = Literal["info", "warning", "critical"]


class Location(msgspec.Struct, frozen=True):
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
    place: Location = Location(1, 1)


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
    location: Location = Location(1, 1)
    expression_location: Location = Location(1, 1)
    """Where its first character stands; of a block the first line."""


class RuleSet(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of a file, or of several."""

    rules: tuple[Rule, ...] = ()
    allow_actions: frozenset[str] = frozenset()
    """Kinds of actions that change something in the cluster and that rules may take."""
    dry_run: bool = True
    """Whether those are only said, not done."""
    disable: Mapping[str, Location] = {}
    """Default rules that are not asked, and where that is said."""


AlertState = Literal["pending", "firing", "resolved"]
"""It holds, but not for long enough yet; it fires; it is over, perhaps before it ever fired."""
AlertId = NewType("AlertId", str)
"""Of one life of an alert: it fires again under another."""


class Subject(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an alert is about."""

    scope: Scope
    name: str
    namespace: str = ""
    uid: PodUID = PodUID("")
    """Of a pod: another one of the same name is another subject."""
    node: str = ""
    """Where the pod is; of a node its name."""


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One life of an alert."""

    id: AlertId
    rule: str
    subject: Subject
    state: AlertState
    severity: Severity = "warning"
    labels: Mapping[str, str] = {}
    """Those of the rule, and `alertname`, `severity`, `node`, `namespace` and `pod` where there
    are such."""
    annotations: Mapping[str, str] = {}
    """Filled in when it began to fire."""
    since: int
    """When it began to hold, in nanoseconds since the Unix epoch."""
    fired: int = 0
    """When it began to fire; 0: not yet."""
    ceased: int = 0
    """When it ceased to hold, while it is kept firing or resolved; 0: it holds."""
    resolved: int = 0
    """When it ended; 0: not yet."""


class RuleState(msgspec.Struct, frozen=True, kw_only=True):
    """How a rule fares."""

    name: str
    scope: Scope
    pending: int = 0
    firing: int = 0
    problem: str = ""
    """Why it cannot be asked, or what it failed with last, and of whom; empty: nothing."""
    failing: int = 0
    """Subjects that it fails of now."""
    failures: int = 0
    """How often it has failed."""
    switched_off: bool = False
    """Whether it was over budget, and is not asked any more."""


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """Something that has to be mended."""

    location: Location
    message: str
    rule: str = ""
    """The rule that cannot be asked because of it, if it has a name that can be told."""

    def format(self, file: str, kind: str = "") -> str:
        """As compilers tell it, so that editors find the place; `kind` may be `note: `."""
        return f"{file}:{self.location.line}:{self.location.column}: {kind}{self.message}"


def sort_diagnostics(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """As they stand in the file, none twice."""
    found = {(m.location.line, m.location.column, m.message): m for m in diagnostics}
    return tuple(found[key] for key in sorted(found))
