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


class ActionOption(msgspec.Struct, frozen=True):
    name: str
    kind: OptionKind
    meaning: str
    required: bool = False
    default: str = ""


class ActionKind(msgspec.Struct, frozen=True):
    """An action kind: its options and where it applies."""

    name: str
    meaning: str
    options: tuple[ActionOption, ...] = ()
    is_remediation: bool = False
    """Whether it changes the cluster and so must be listed in `allowActions`."""
    scopes: frozenset[Scope] = frozenset(("pod", "node"))


_POD: frozenset[Scope] = frozenset(("pod",))
_ACCESS = (
    ActionOption("tokenFile", "file", "File with a bearer token."),
    ActionOption("caFile", "file", "CA bundle to trust instead of the system's."),
)
_CRITICAL = ActionOption(
    "criticalPods",
    "pods",
    "System-critical pods that the action may affect: `kube-system/kube-proxy-*, …`; "
    "default: none.",
)

ACTIONS = {
    kind.name: kind
    for kind in (
        ActionKind("log", "Writes a line to the agent's log."),
        ActionKind("event", "Records an event about the pod or node."),
        ActionKind(
            "webhook",
            "Posts the alert as JSON.",
            options=(
                ActionOption("url", "url", "URL to post to.", required=True),
                ActionOption("secretFile", "file", "File with the secret that signs requests."),
                *_ACCESS,
                ActionOption(
                    "timeout",
                    "try",
                    f"Timeout of one attempt, at most {SEND_TIMEOUT_SECONDS:g}s.",
                    default="10s",
                ),
            ),
        ),
        ActionKind(
            "alertmanager",
            "Sends the alert to the API v2 of an Alertmanager.",
            options=(
                ActionOption(
                    "url", "url", "URL of the Alertmanager; default: the one in the settings."
                ),
                *_ACCESS,
            ),
        ),
        ActionKind(
            "nodeCondition",
            "Sets a node condition to True while the alert fires.",
            options=(
                ActionOption(
                    "type",
                    "own",
                    "Condition type, prefixed with `alerts.podstatus.dev/`.",
                    required=True,
                ),
                ActionOption(
                    "ttl",
                    "span",
                    "Maximum duration of the condition, from when the alert fired.",
                    default="1h",
                ),
            ),
        ),
        ActionKind(
            "restartContainer",
            "Kills a container of the pod, which is restarted by its restart policy.",
            options=(
                ActionOption(
                    "container", "name", "Name of the container; default: all running containers."
                ),
                _CRITICAL,
            ),
            is_remediation=True,
            scopes=_POD,
        ),
        ActionKind(
            "deletePod",
            "Deletes the pod.",
            options=(
                ActionOption(
                    "gracePeriodSeconds",
                    "count",
                    "Grace period of the deletion; default: that of the pod.",
                ),
                _CRITICAL,
            ),
            is_remediation=True,
            scopes=_POD,
        ),
        ActionKind(
            "taintNode",
            "Taints the node while the alert fires.",
            options=(
                ActionOption(
                    "key", "own", "Taint key, prefixed with `alerts.podstatus.dev/`.", required=True
                ),
                ActionOption("value", "value", "Taint value."),
                ActionOption(
                    "effect",
                    "effect",
                    "Taint effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.",
                    default="NoSchedule",
                ),
            ),
            is_remediation=True,
        ),
    )
}
"""All action kinds, by name."""

REMEDIATION_KINDS = frozenset(name for name, kind in ACTIONS.items() if kind.is_remediation)
"""The kinds that `allowActions` controls."""
