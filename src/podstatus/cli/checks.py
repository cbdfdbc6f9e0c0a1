"""What a doctor makes of what was measured: fine, worth a hint, or a problem with a cure."""

from collections.abc import Iterable, Mapping

import msgspec

from podstatus.cli.render.tables import Table
from podstatus.kube.scalars.time import Time

OK, HINT, PROBLEM = "ok", "hint", "problem"

_MIB = 2**20
_MIN_DISK, _LOW_DISK = 100 * _MIB, 1024 * _MIB
_MIN_FILES, _LOW_FILES = 256, 1024
"""Sockets, watches and pipes of 110 pods and the embedded API server fit into a thousand."""
_MIN_PIDS, _LOW_PIDS = 100, 1000
_MIN_TIME, _MAX_TIME = Time.parse("2026-01-01T00:00:00Z"), Time.parse("2100-01-01T00:00:00Z")


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    result: str
    message: str
    remedy: str = ""


def findings_table(findings: Iterable[Finding]) -> Table:
    """For people."""
    return Table(
        ("CHECK", "RESULT", "MESSAGE"),
        tuple(
            (f.name, f.result, f"{f.message}; {f.remedy}" if f.remedy else f.message)
            for f in findings
        ),
    )


def has_problems(findings: Iterable[Finding]) -> bool:
    """Whether a node cannot run like this."""
    return any(finding.result == PROBLEM for finding in findings)


def check_python(version: tuple[int, int]) -> Finding:
    """The version of Python."""
    found = f"Python {version[0]}.{version[1]}"
    if version >= (3, 11):
        return Finding("python", OK, found)
    return Finding("python", PROBLEM, found, "install Python 3.11 or newer")


def check_packages(versions: Mapping[str, str | None]) -> Finding:
    """The packages of the extra; None is one that is not there."""
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        cure = "install them with: pip install 'podstatus[agent]'"
        return Finding("packages", PROBLEM, f"missing: {', '.join(missing)}", cure)
    return Finding("packages", OK, ", ".join(f"{name} {v}" for name, v in versions.items()))


def check_clock(now: Time) -> Finding:
    """What time it is here."""
    if _MIN_TIME <= now <= _MAX_TIME:
        return Finding("clock", OK, f"it is {now.truncated()}")
    cure = "set the clock (timedatectl set-ntp true): leases and certificates depend on it"
    return Finding("clock", PROBLEM, f"it is {now.truncated()}, which cannot be", cure)


def check_disk(free: int, where: str) -> Finding:
    """Bytes that are free where everything is kept."""
    found = f"{free // _MIB} MiB free in {where}"
    if free < _MIN_DISK:
        return Finding("disk", PROBLEM, found, "free some, or choose another --root-dir")
    if free < _LOW_DISK:
        return Finding("disk", HINT, found, "the node will soon be under disk pressure")
    return Finding("disk", OK, found)


def check_files(limit: int | None) -> Finding:
    """How many files a process may have open; None is no limit."""
    found = "no limit" if limit is None else f"{limit} open files for a process"
    if limit is not None and limit < _LOW_FILES:
        result = PROBLEM if limit < _MIN_FILES else HINT
        return Finding("files", result, found, f"raise it: ulimit -n {4 * _LOW_FILES}")
    return Finding("files", OK, found)


def check_pids(used: int, limit: int) -> Finding:
    """How many processes there are, and may be."""
    found = f"{used} of {limit} processes"
    if limit - used < _LOW_PIDS:
        result = PROBLEM if limit - used < _MIN_PIDS else HINT
        return Finding("pids", result, found, "end some, or raise kernel.pid_max or pids.max")
    return Finding("pids", OK, found)


def check_rights(denied: Iterable[str], user: str) -> Finding:
    """What the API server does not let us do."""
    missing = list(denied)
    if missing:
        cure = "have the right given: the role system:node fits (RBAC)"
        return Finding("rights", PROBLEM, f"{user} may not {', '.join(missing)}", cure)
    return Finding("rights", OK, f"{user} may do what a node does")
