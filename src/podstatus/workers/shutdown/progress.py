"""The progress of a shutdown or drain, as the agent serves it at `/drain`."""

import msgspec

OFF, DRAINING, DRAINED = "off", "draining", "drained"


class ShutdownProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a shutdown or drain."""

    state: str
    """off, draining or drained."""
    ending: int = 0
    """Pods in the group that is terminating now; when off, all terminating pods."""
    priority: int = 0
    """Lowest priority of that group."""
    seconds: int = 0
    """Time limit of that group."""
    left: tuple[str, ...] = ()
    """Pods of all groups that have not terminated, as namespace/name; when off, the pods that keep
    running."""
