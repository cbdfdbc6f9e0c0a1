"""The taints that alerts want on the node: while they fire, and if their rules' files allow it.

They follow from the alerts that fire, as its conditions do: what no alert wants is not to be there.
"""

from collections.abc import Callable, Iterable

from podstatus.alerts.actions.name_prefix import prefixed_name
from podstatus.alerts.model import Action, Alert, RuleSet
from podstatus.alerts.ports import ActionError
from podstatus.kube.node_selection import NO_EXECUTE
from podstatus.kube.objects.node import Taint

KIND = "taintNode"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", NO_EXECUTE)


def desired_taints(
    firing: Iterable[tuple[Alert, Action]], allowed: Callable[[str], RuleSet]
) -> tuple[Taint, ...]:
    """What is wanted now; of several alerts with the same taint, the value of the oldest.

    `allowed`: what the file of the rule of this name says.
    """
    found: dict[tuple[str, str], Taint] = {}
    for alert, action in sorted(firing, key=lambda it: (it[0].fired, it[0].id)):
        if action.kind != KIND or not _is_allowed(allowed(alert.rule)):
            continue
        try:
            taint = desired_taint(action, alert)
        except ActionError:
            continue
        found.setdefault((taint.key, taint.effect), taint)
    return tuple(found.values())


def desired_taint(action: Action, alert: Alert) -> Taint:
    """The taint that an action asks for. Raises DeedError."""
    options = action.options
    effect = options.get("effect") or "NoSchedule"
    if effect not in _EFFECTS:
        raise ActionError(f"the effect of a taint is one of {', '.join(_EFFECTS)}, not {effect}")
    key = prefixed_name(options.get("key") or alert.rule)
    return Taint(key=key, value=options.get("value", ""), effect=effect)


def format_taint(taint: Taint) -> str:
    """As kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _is_allowed(rules: RuleSet) -> bool:
    return KIND in rules.allow_actions and not rules.dry_run
