"""Whether this machine can filter system calls, and for which architecture."""

import os
import sys
from functools import cache
from pathlib import Path

from podstatus.runtime.process.seccomp.syscall_numbers import ARCHITECTURES, Architecture

_ACTIONS_FILE = Path("/proc/sys/kernel/seccomp/actions_avail")
_REQUIRED_ACTIONS = {"allow", "errno", "kill_process"}
_32_BIT_LIMIT = 2**32


class SeccompUnavailableError(Exception):
    """No filter can be had here; the message says why."""


@cache
def find_architecture() -> Architecture:
    """The architecture that filters are made for. Raises NoSeccompError."""
    machine = os.uname().machine
    found = ARCHITECTURES.get(machine)
    if found is None or sys.maxsize < _32_BIT_LIMIT:
        known = ", ".join(ARCHITECTURES)
        raise SeccompUnavailableError(
            f"there is no seccomp profile for {machine}, only for {known}"
        )
    try:
        actions = _ACTIONS_FILE.read_text().split()
    except OSError as error:
        raise SeccompUnavailableError(
            f"the kernel has no seccomp: {_ACTIONS_FILE}: {error.strerror}"
        ) from error
    if missing := _REQUIRED_ACTIONS.difference(actions):
        raise SeccompUnavailableError(f"the seccomp of this kernel is too old: no {min(missing)}")
    return found
