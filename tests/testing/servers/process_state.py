"""Whether a process has ended."""

import os
import select

import pytest

SECONDS = 90


linux_only = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="processes are waited for by pidfd"
)


def ended(pid: int) -> bool:
    """Return whether a process that is not our child ends in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], SECONDS)[0])
    finally:
        os.close(descriptor)
