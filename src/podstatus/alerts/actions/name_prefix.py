"""Names of conditions and taints that are ours: by their prefix, also after a restart.

So no rule can change what others, or the node itself, have put there.
"""

from podstatus.alerts.ports import ActionError
from podstatus.kube.validation.label_names import label_key_errors
from podstatus.node.decide.conditions import ALERT_CONDITION_PREFIX

PREFIX = ALERT_CONDITION_PREFIX


def prefixed_name(name: str) -> str:
    """The name with our prefix. Raises DeedError if it cannot be one."""
    whole = name if name.startswith(PREFIX) else f"{PREFIX}{name}"
    if faults := label_key_errors(whole):
        raise ActionError(f"{name!r} cannot be the name of a condition or a taint: {faults[0]}")
    return whole
