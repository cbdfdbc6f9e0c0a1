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
TRY_SECONDS = 30.0
"""For one attempt, whatever it is."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
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
    options: tuple[Option, ...] = ()
    changes: bool = False
    """It changes something in the cluster: only if `allowActions` has it."""
    scopes: frozenset[Scope] = frozenset(("pod", "node"))


_POD: frozenset[Scope] = frozenset(("pod",))
_ACCESS = (
    Option(name="tokenFile", kind="file", meaning="A token to be sent."),
    Option(name="caFile", kind="file", meaning="Certificates to trust instead of the machine's."),
)
_CRITICAL = Option(
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
                Option(name="url", kind="url", required=True, meaning="Where to."),
                Option(name="secretFile", kind="file", meaning="What requests are signed with."),
                *_ACCESS,
                Option(
                    name="timeout",
                    kind="try",
                    default="10s",
                    meaning=f"For one attempt, {TRY_SECONDS:g}s at most.",
                ),
            ),
        ),
        ActionKind(
            name="alertmanager",
            meaning="The alert, to the API v2 of an Alertmanager.",
            options=(
                Option(
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
                Option(
                    name="type",
                    kind="own",
                    required=True,
                    meaning="Its type, below `alerts.podstatus.dev/`.",
                ),
                Option(
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
                Option(
                    name="container",
                    kind="name",
                    meaning="Which; left out: all that run.",
                ),
                _CRITICAL,
            ),
            changes=True,
            scopes=_POD,
        ),
        ActionKind(
            name="deletePod",
            meaning="Deletes the pod.",
            options=(
                Option(
                    name="gracePeriodSeconds",
                    kind="count",
                    meaning="How long it may take to end; left out: what the pod says.",
                ),
                _CRITICAL,
            ),
            changes=True,
            scopes=_POD,
        ),
        ActionKind(
            name="taintNode",
            meaning="A taint on the node while the alert fires.",
            options=(
                Option(
                    name="key",
                    kind="own",
                    required=True,
                    meaning="Its key, below `alerts.podstatus.dev/`.",
                ),
                Option(name="value", kind="value", meaning="Its value."),
                Option(
                    name="effect",
                    kind="effect",
                    default="NoSchedule",
                    meaning="`NoSchedule`, `PreferNoSchedule` or `NoExecute`.",
                ),
            ),
            changes=True,
        ),
    )
}
"""By name."""

CHANGING = frozenset(name for name, kind in ACTIONS.items() if kind.changes)
"""The kinds that `allowActions` is about."""
