"""Which of root's powers a container keeps.

Those of common container runtimes would be too many: here root is the machine's, and so is the
network. What could undo the isolation, or reach beyond it, is never given.
"""

from typing import Final

from podstatus.kube.containers import Capabilities
from podstatus.runtime.process.refusals import not_honoured

ALL: Final = "ALL"
USUAL: Final = frozenset(
    ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID")
)
ON_REQUEST: Final = frozenset(("IPC_LOCK", "NET_RAW", "SETPCAP", "SYS_CHROOT", "SYS_NICE"))


def granted(
    asked: Capabilities | None, *, user: int, root: bool, isolated: bool
) -> tuple[str, ...]:
    """What a container of this user has in the end. Raises CannotStartError.

    `root` is whether the agent is. As in any container, only root has any of it at all.
    """
    add = _names(asked.add if asked else None)
    drop = _names(asked.drop if asked else None)
    if add and not root:
        why = "the agent is an ordinary user and has none to give; run it as root, or leave it out"
        raise _refused("add", add, why)
    if not isolated:
        _check_not_isolated(add, drop, user=user, root=root)
        return ()
    if beyond := add - USUAL - ON_REQUEST:
        why = (
            f"{', '.join(sorted(beyond))} could undo the isolation of a process; there are "
            f"{', '.join(sorted(USUAL | ON_REQUEST))}"
        )
        raise _refused("add", add, why)
    if not root or user:
        return ()
    return tuple(sorted((frozenset() if ALL in drop else USUAL - drop) | add))


def _check_not_isolated(
    add: frozenset[str], drop: frozenset[str], *, user: int, root: bool
) -> None:
    if not root:
        return
    if drop and not user:
        why = "without isolation root keeps them; use bubblewrap, or set runAsUser"
        raise _refused("drop", drop, why)
    if add and user:
        raise _refused("add", add, "only root has any; leave out runAsUser")


def _refused(field: str, names: frozenset[str], why: str) -> Exception:
    return not_honoured(f"securityContext.capabilities.{field}", tuple(sorted(names)), why)


def _names(names: tuple[str, ...] | None) -> frozenset[str]:
    return frozenset(name.upper().removeprefix("CAP_") for name in names or ())
