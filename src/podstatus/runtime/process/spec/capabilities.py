"""Capabilities of a container.

Under bubblewrap, the default set of common container runtimes would be too large: root is the
machine's root, and the network is the host's. Capabilities that could undo the isolation, or reach
beyond it, are never granted. Without isolation there is nothing to undo: containers get
containerd's default set and what they request.
"""

from collections.abc import Collection
from typing import Final

from podstatus.kube.objects.containers import Capabilities
from podstatus.runtime.process.spec.config_errors import unsupported_field

ALL: Final = "ALL"
CAPABILITIES: Final = (
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
)
"""Indexed by number: see capability.h of the kernel."""

SANDBOX_DEFAULT: Final = frozenset(
    ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID")
)
DEFAULT: Final = SANDBOX_DEFAULT | frozenset(
    ("AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP", "SETPCAP", "SYS_CHROOT")
)
"""Upstream: defaultUnixCaps, pkg/oci/spec.go of containerd v2.2."""
ADDABLE: Final = frozenset(("IPC_LOCK", "NET_RAW", "SETPCAP", "SYS_CHROOT", "SYS_NICE"))


def effective_capabilities(
    requested: Capabilities | None, *, user: int, root: bool, isolated: bool
) -> tuple[str, ...]:
    """Return the capabilities of a container that runs as this user. Raises CannotStartError.

    `root`: the agent runs as root. As in any container, only the root user has capabilities.
    """
    add = _normalize(requested.add if requested else None)
    drop = _normalize(requested.drop if requested else None)
    if add and not root:
        reason = "the agent is an ordinary user and cannot grant any; run it as root, or remove it"
        raise _unsupported_error("add", add, reason)
    if unknown := add - {ALL, *CAPABILITIES}:
        raise _unsupported_error("add", unknown, "unknown capability; remove it")
    if not isolated:
        return _unsandboxed(add, drop, user=user, root=root)
    if forbidden := add - SANDBOX_DEFAULT - ADDABLE:
        reason = (
            f"{', '.join(sorted(forbidden))} would break the isolation; allowed: "
            f"{', '.join(sorted(SANDBOX_DEFAULT | ADDABLE))}"
        )
        raise _unsupported_error("add", add, reason)
    if not root or user:
        return ()
    return tuple(sorted((frozenset() if ALL in drop else SANDBOX_DEFAULT - drop) | add))


def capability_numbers(names: Collection[str]) -> tuple[int, ...]:
    """Return the kernel's numbers; names as in a spec, with or without CAP_."""
    short = _normalize(tuple(names))
    return tuple(number for number, name in enumerate(CAPABILITIES) if name in short)


def _unsandboxed(
    add: frozenset[str], drop: frozenset[str], *, user: int, root: bool
) -> tuple[str, ...]:
    if add and user:
        raise _unsupported_error("add", add, "only root has capabilities; remove runAsUser")
    if not root or user:
        return ()
    retained = frozenset() if ALL in drop else DEFAULT - drop
    return tuple(sorted(retained | (frozenset(CAPABILITIES) if ALL in add else add)))


def _unsupported_error(field: str, names: frozenset[str], reason: str) -> Exception:
    return unsupported_field(f"securityContext.capabilities.{field}", tuple(sorted(names)), reason)


def _normalize(names: tuple[str, ...] | None) -> frozenset[str]:
    return frozenset(name.upper().removeprefix("CAP_") for name in names or ())
