"""The name prefix of the conditions and taints that alerts own.

It identifies them across restarts, and no rule can change what the node or others have set.
"""

from podstatus.alerts.ports import ActionError
from podstatus.kube.validation.names import qualified_name
from podstatus.node.decide.conditions import ALERT_CONDITION_PREFIX

PREFIX = ALERT_CONDITION_PREFIX


def prefixed_name(name: str) -> str:
    """Return the name with the prefix. Raises ActionError if that is not a valid label key."""
    full_name = name if name.startswith(PREFIX) else f"{PREFIX}{name}"
    if errors := qualified_name(full_name):
        raise ActionError(f"{name!r} is not a valid condition or taint name: {errors[0]}")
    return full_name
