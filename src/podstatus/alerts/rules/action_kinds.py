"""The action kinds that rules can use, and their options."""

from typing import Literal

import msgspec

from podstatus.alerts.model import Scope

OptionKind = Literal[
    "url", "file", "span", "try", "count", "name", "own", "value", "effect", "pods"
]
"""`try`: timeout of one attempt; `own`: a name with the prefix `alerts.podstatus.dev/`, which may
be omitted; `value`: a label or taint value; `pods`: names with namespaces, `ns/name, ns/name-*`.
"""
SEND_TIMEOUT_SECONDS = 30.0
"""Timeout of one attempt of any kind."""


class ActionOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option of an action kind."""

    name: str
    kind: OptionKind
    required: bool = False
    default: str = ""
    meaning: str


class ActionKind(msgspec.Struct, frozen=True, kw_only=True):
    """An action kind: its options and where it applies."""

    name: str
    meaning: str
    options: tuple[ActionOption, ...] = ()
    is_remediation: bool = False
    """Whether it changes the cluster and so must be listed in `allowActions`."""
    scopes: frozenset[Scope] = frozenset(("pod", "node"))


_POD: frozenset[Scope] = frozenset(("pod",))
_ACCESS = (
    ActionOption(name="tokenFile", kind="file", meaning="File with a bearer token."),
    ActionOption(name="caFile", kind="file", meaning="CA bundle to trust instead of the system's."),
)
_CRITICAL = ActionOption(
    name="criticalPods",
    kind="pods",
    meaning="System-critical pods that the action may affect: `kube-system/kube-proxy-*, …`; "
    "default: none.",
)

ACTIONS = {
    kind.name: kind
    for kind in (
        ActionKind(name="log", meaning="Writes a line to the agent's log."),
        ActionKind(name="event", meaning="Records an event about the pod or node."),
        ActionKind(
            name="webhook",
            meaning="Posts the alert as JSON.",
            options=(
                ActionOption(name="url", kind="url", required=True, meaning="URL to post to."),
                ActionOption(
                    name="secretFile",
                    kind="file",
                    meaning="File with the secret that signs requests.",
                ),
                *_ACCESS,
                ActionOption(
                    name="timeout",
                    kind="try",
                    default="10s",
                    meaning=f"Timeout of one attempt, at most {SEND_TIMEOUT_SECONDS:g}s.",
                ),
            ),
        ),
        ActionKind(
            name="alertmanager",
            meaning="Sends the alert to the API v2 of an Alertmanager.",
            options=(
                ActionOption(
                    name="url",
                    kind="url",
                    meaning="URL of the Alertmanager; default: the one in the settings.",
                ),
                *_ACCESS,
            ),
        ),
        ActionKind(
            name="nodeCondition",
            meaning="Sets a node condition to True while the alert fires.",
            options=(
                ActionOption(
                    name="type",
                    kind="own",
                    required=True,
                    meaning="Condition type, prefixed with `alerts.podstatus.dev/`.",
                ),
                ActionOption(
                    name="ttl",
                    kind="span",
                    default="1h",
                    meaning="Maximum duration of the condition, from when the alert fired.",
                ),
            ),
        ),
        ActionKind(
            name="restartContainer",
            meaning="Kills a container of the pod, which is restarted by its restart policy.",
            options=(
                ActionOption(
                    name="container",
                    kind="name",
                    meaning="Name of the container; default: all running containers.",
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
                    meaning="Grace period of the deletion; default: that of the pod.",
                ),
                _CRITICAL,
            ),
            is_remediation=True,
            scopes=_POD,
        ),
        ActionKind(
            name="taintNode",
            meaning="Taints the node while the alert fires.",
            options=(
                ActionOption(
                    name="key",
                    kind="own",
                    required=True,
                    meaning="Taint key, prefixed with `alerts.podstatus.dev/`.",
                ),
                ActionOption(name="value", kind="value", meaning="Taint value."),
                ActionOption(
                    name="effect",
                    kind="effect",
                    default="NoSchedule",
                    meaning="Taint effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.",
                ),
            ),
            is_remediation=True,
        ),
    )
}
"""All action kinds, by name."""

REMEDIATION_KINDS = frozenset(name for name, kind in ACTIONS.items() if kind.is_remediation)
"""The kinds that `allowActions` controls."""
