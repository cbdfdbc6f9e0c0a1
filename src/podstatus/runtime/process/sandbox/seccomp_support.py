"""Whether this machine can filter system calls, and for which architecture."""

import os
import sys
from functools import cache
from pathlib import Path

from podstatus.runtime.process.seccomp.syscall_numbers import ARCHITECTURES, Architecture

_ACTIONS = Path("/proc/sys/kernel/seccomp/actions_avail")
_NEEDED = {"allow", "errno", "kill_process"}
_32_BIT = 2**32


class NoSeccompError(Exception):
    """No filter can be had here; the message says why."""


@cache
def find_architecture() -> Architecture:
    """The architecture that filters are made for. Raises NoSeccompError."""
    machine = os.uname().machine
    found = ARCHITECTURES.get(machine)
    if found is None or sys.maxsize < _32_BIT:
        known = ", ".join(ARCHITECTURES)
        raise NoSeccompError(f"there is no seccomp profile for {machine}, only for {known}")
    try:
        actions = _ACTIONS.read_text().split()
    except OSError as error:
        raise NoSeccompError(f"the kernel has no seccomp: {_ACTIONS}: {error.strerror}") from error
    if missing := _NEEDED.difference(actions):
        raise NoSeccompError(f"the seccomp of this kernel is too old: no {min(missing)}")
    return found
