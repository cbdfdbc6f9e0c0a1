"""Detection of seccomp support and of the architecture for filters."""

import os
import sys
from functools import cache
from pathlib import Path

from podstatus.runtime.process.seccomp.syscall_numbers import ARCHITECTURES, Architecture

_ACTIONS_FILE = Path("/proc/sys/kernel/seccomp/actions_avail")
_REQUIRED_ACTIONS = {"allow", "errno", "kill_process"}
_32_BIT_LIMIT = 2**32


class SeccompUnavailableError(Exception):
    """Seccomp filters cannot be used; the message says why."""


@cache
def find_architecture() -> Architecture:
    """Return the architecture for filters. Raises SeccompUnavailableError."""
    machine = os.uname().machine
    architecture = ARCHITECTURES.get(machine)
    if architecture is None or sys.maxsize < _32_BIT_LIMIT:
        supported = ", ".join(ARCHITECTURES)
        raise SeccompUnavailableError(f"no seccomp profile for {machine}; supported: {supported}")
    try:
        actions = _ACTIONS_FILE.read_text().split()
    except OSError as error:
        raise SeccompUnavailableError(
            f"the kernel has no seccomp: {_ACTIONS_FILE}: {error.strerror}"
        ) from error
    if missing := _REQUIRED_ACTIONS.difference(actions):
        raise SeccompUnavailableError(f"this kernel's seccomp is too old: it lacks {min(missing)}")
    return architecture
