"""What rules may have done when an alert fires or resolves: the kinds, and their options."""

from typing import Literal

import msgspec

from podstatus.alerts.model import Scope

OptionKind = Literal[
    "url", "file", "span", "try", "count", "name", "own", "value", "effect", "pods"
]
"""`try`: how long one attempt may take; `own`: a name below `alerts.podstatus.dev/`, which may be
left out; `value`: that of a label or a taint; `pods`: names with namespaces, `ns/name, ns/name-*`.
"""
SEND_TIMEOUT_SECONDS = 30.0
"""For one attempt, whatever it is."""


class ActionOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option of a kind of action."""

    name: str
    kind: OptionKind
    required: bool = False
    default: str = ""
    meaning: str


class ActionKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of action."""

    name: str
    meaning: str
    options: tuple[ActionOption, ...] = ()
    is_remediation: bool = False
    """It changes something in the cluster: only if `allowActions` has it."""
    scopes: frozenset[Scope] = frozenset(("pod", "node"))


_POD: frozenset[Scope] = frozenset(("pod",))
_ACCESS = (
    ActionOption(name="tokenFile", kind="file", meaning="A token to be sent."),
    ActionOption(
        name="caFile", kind="file", meaning="Certificates to trust instead of the machine's."
    ),
)
_CRITICAL = ActionOption(
    name="criticalPods",
    kind="pods",
    meaning="System-critical pods that it may be done to: `kube-system/kube-proxy-*, …`; "
    "left out: none.",
)

ACTIONS = {
    kind.name: kind
    for kind in (
        ActionKind(name="log", meaning="A line in the agent's log."),
        ActionKind(name="event", meaning="An event about the pod or node."),
        ActionKind(
            name="webhook",
            meaning="A POST of the alert as JSON.",
            options=(
                ActionOption(name="url", kind="url", required=True, meaning="Where to."),
                ActionOption(
                    name="secretFile", kind="file", meaning="What requests are signed with."
                ),
                *_ACCESS,
                ActionOption(
                    name="timeout",
                    kind="try",
                    default="10s",
                    meaning=f"For one attempt, {SEND_TIMEOUT_SECONDS:g}s at most.",
                ),
            ),
        ),
        ActionKind(
            name="alertmanager",
            meaning="The alert, to the API v2 of an Alertmanager.",
            options=(
                ActionOption(
                    name="url",
                    kind="url",
                    meaning="Where it is; left out: the one of the settings.",
                ),
                *_ACCESS,
            ),
        ),
        ActionKind(
            name="nodeCondition",
            meaning="A condition of the node, True while the alert fires.",
            options=(
                ActionOption(
                    name="type",
                    kind="own",
                    required=True,
                    meaning="Its type, below `alerts.podstatus.dev/`.",
                ),
                ActionOption(
                    name="ttl",
                    kind="span",
                    default="1h",
                    meaning="How long it is shown at most, from when the alert fired.",
                ),
            ),
        ),
        ActionKind(
            name="restartContainer",
            meaning="Ends a container of the pod, to be started again as its policy says.",
            options=(
                ActionOption(
                    name="container",
                    kind="name",
                    meaning="Which; left out: all that run.",
                ),
                _CRITICAL,
            ),
            is_remediation=True,
            scopes=_POD,
        ),
        ActionKind(
            name="deletePod",
            meaning="Deletes the pod.",
            options=(
                ActionOption(
                    name="gracePeriodSeconds",
                    kind="count",
                    meaning="How long it may take to end; left out: what the pod says.",
                ),
                _CRITICAL,
            ),
            is_remediation=True,
            scopes=_POD,
        ),
        ActionKind(
            name="taintNode",
            meaning="A taint on the node while the alert fires.",
            options=(
                ActionOption(
                    name="key",
                    kind="own",
                    required=True,
                    meaning="Its key, below `alerts.podstatus.dev/`.",
                ),
                ActionOption(name="value", kind="value", meaning="Its value."),
                ActionOption(
                    name="effect",
                    kind="effect",
                    default="NoSchedule",
                    meaning="`NoSchedule`, `PreferNoSchedule` or `NoExecute`.",
                ),
            ),
            is_remediation=True,
        ),
    )
}
"""By name."""

REMEDIATION_KINDS = frozenset(name for name, kind in ACTIONS.items() if kind.is_remediation)
"""The kinds that `allowActions` is about."""
