"""The taints that firing alerts request for the node, if their rule files allow it.

Level-based, like node conditions: a taint that no firing alert requests is removed.
"""

from collections.abc import Callable, Iterable

from podstatus.alerts.actions.name_prefix import prefixed_name
from podstatus.alerts.model import Action, Alert, RuleSet
from podstatus.alerts.ports import ActionError
from podstatus.kube.objects.node import Taint
from podstatus.kube.taints import NO_EXECUTE

KIND = "taintNode"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", NO_EXECUTE)


def desired_taints(
    firing: Iterable[tuple[Alert, Action]], allowed: Callable[[str], RuleSet]
) -> tuple[Taint, ...]:
    """Return the taints of all firing alerts; for the same taint, the oldest sets the value.

    `allowed` returns the rule set that the rule of this name belongs to.
    """
    taints: dict[tuple[str, str], Taint] = {}
    for alert, action in sorted(firing, key=lambda it: (it[0].fired, it[0].id)):
        rules = allowed(alert.rule)
        if action.kind != KIND or KIND not in rules.allow_actions or rules.dry_run:
            continue
        try:
            taint = desired_taint(action, alert)
        except ActionError:
            continue
        taints.setdefault((taint.key, taint.effect), taint)
    return tuple(taints.values())


def desired_taint(action: Action, alert: Alert) -> Taint:
    """Return the taint that an action requests. Raises ActionError."""
    options = action.options
    effect = options.get("effect") or "NoSchedule"
    if effect not in _EFFECTS:
        raise ActionError(f"the taint effect must be one of {', '.join(_EFFECTS)}, not {effect}")
    key = prefixed_name(options.get("key") or alert.rule)
    return Taint(key=key, value=options.get("value", ""), effect=effect)


def format_taint(taint: Taint) -> str:
    """Format a taint as kubectl does: `key=value:effect`."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
