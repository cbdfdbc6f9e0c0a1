"""An alert: a rule that holds of a pod or a node, since when, and what it says."""

from collections.abc import Mapping
from typing import Literal, NewType

import msgspec

from podstatus.alerts.rule import Scope, Severity
from podstatus.kube.objects.pod import PodUID

State = Literal["pending", "firing", "resolved"]
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
    state: State
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
