"""The values of alerting: rules as read from a file, alerts, and errors in a rule file.

A `Rule` is the content of its file; it is checked when it is compiled. An `Alert` is a rule that
holds for a pod or a node, with its times and its text. A `Diagnostic` is an error in a rule file
with its location.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal, NewType

import msgspec

from podstatus.kube.objects.pod import PodUID

Scope = Literal["pod", "node"]
"""What a rule is evaluated for: each pod, or each node."""
Severity = Literal["info", "warning", "critical"]


class Location(msgspec.Struct, frozen=True):
    """Line and column in a file."""

    line: int
    column: int
    """Both start at 1."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What to do when an alert fires or resolves: an action kind and its options."""

    kind: str
    """`log`, `event`, `webhook`, `alertmanager`, `nodeCondition`, `restartContainer`,
    `deletePod`, `taintNode`."""
    options: Mapping[str, str] = {}
    place: Location = Location(1, 1)


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a rule file."""

    name: str
    """Unique; letters, digits and underscores, as in alert names of Prometheus."""
    scope: Scope = "pod"
    expression: str
    """A CEL expression of type bool over the facts of its scope."""
    for_seconds: float = 0.0
    """How long the expression must hold before the alert fires."""
    keep_firing_for_seconds: float = 0.0
    """How long the alert keeps firing after the expression stops holding."""
    severity: Severity = "warning"
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    """Templates: `{{ pod.name }} is …`, CEL between the braces."""
    actions: tuple[Action, ...] = ()
    location: Location = Location(1, 1)


class RuleSet(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of one file, or of several."""

    rules: tuple[Rule, ...] = ()
    allow_actions: frozenset[str] = frozenset()
    """Action kinds that change the cluster and that rules may use."""
    dry_run: bool = True
    """Whether those actions are only reported, not executed."""
    disable: Mapping[str, Location] = {}
    """Default rules to disable, with the location of each entry."""


AlertState = Literal["pending", "firing", "resolved"]
"""pending: holds, but not long enough yet; firing; resolved: over, perhaps without having fired."""
AlertId = NewType("AlertId", str)
"""Identifies one activation of an alert: when it fires again, it has another ID."""


class Subject(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The pod or node that an alert is about."""

    scope: Scope
    name: str
    namespace: str = ""
    uid: PodUID = PodUID("")
    """Of a pod: a re-created pod of the same name is another subject."""
    node: str = ""
    """The node of the pod; for a node, its name."""

    @property
    def full_name(self) -> str:
        """`namespace/name` of a pod, or the name of a node."""
        return f"{self.namespace}/{self.name}" if self.scope == "pod" else self.name


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One activation of an alert, from pending to resolved.

    Times are nanoseconds: monotonic within the engine, since the Unix epoch for everything else.
    """

    id: AlertId
    rule: str
    subject: Subject
    state: AlertState
    severity: Severity = "warning"
    labels: Mapping[str, str] = {}
    """Those of the rule, plus `alertname`, `severity`, `node`, `namespace` and `pod` where they
    apply."""
    annotations: Mapping[str, str] = {}
    """Rendered each time the rule holds; empty while pending. A copy that was sent has the texts of
    that time."""
    since: int
    """When the rule started to hold."""
    fired: int = 0
    """When the alert started firing; 0: not yet."""
    ceased: int = 0
    """When the rule stopped holding; 0: it holds."""
    resolved: int = 0
    """When the alert was resolved; 0: not yet."""

    @property
    def dedup_key(self) -> str:
        """Return a key of rule and subject, which all processes with the same rule compute."""
        about = self.subject
        key = (self.rule, about.scope, about.namespace, about.name, about.uid)
        return hashlib.blake2b("\n".join(key).encode(), digest_size=10).hexdigest()


class RuleState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Status of a rule: its alerts and its errors."""

    name: str
    scope: Scope
    pending: int = 0
    firing: int = 0
    problem: str = ""
    """Why it cannot be evaluated, or its latest failure with the subject; empty: none."""
    failing: int = 0
    """Subjects for which it currently fails."""
    failures: int = 0
    """Number of failed evaluations."""
    switched_off: bool = False
    """Whether it was disabled because it exceeded its budget."""


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """An error or a warning in a rule file."""

    location: Location
    message: str
    rule: str = ""
    """The rule that cannot be evaluated because of it, if its name is known."""

    def format(self, file: str, kind: str = "") -> str:
        """Format as compilers do, so that editors can jump to it; `kind` may be `note: `."""
        return f"{file}:{self.location.line}:{self.location.column}: {kind}{self.message}"


def sort_diagnostics(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics in file order, without duplicates."""
    unique = {(m.location.line, m.location.column, m.message): m for m in diagnostics}
    return tuple(unique[key] for key in sorted(unique))
