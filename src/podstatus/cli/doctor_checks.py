"""The checks of `podstatus doctor`, pure: measurement -> ok, hint or problem with a remedy."""

from collections.abc import Iterable, Mapping

import msgspec

from podstatus.cli.render.tables import Table
from podstatus.kube.scalars.time import Time

OK, HINT, PROBLEM = "ok", "hint", "problem"

_MIB = 2**20
_MIN_DISK, _LOW_DISK = 100 * _MIB, 1024 * _MIB
_MIN_FILES, _LOW_FILES = 256, 1024
"""110 pods and the embedded API server need fewer than 1,000 descriptors."""
_MIN_PIDS, _LOW_PIDS = 100, 1000
_MIN_TIME, _MAX_TIME = Time.parse("2026-01-01T00:00:00Z"), Time.parse("2100-01-01T00:00:00Z")


class Finding(msgspec.Struct, frozen=True):
    """The result of one check."""

    name: str
    result: str
    message: str
    remedy: str = ""


def findings_table(findings: Iterable[Finding]) -> Table:
    """Return the findings as a table, a row for each."""
    return Table(
        ("CHECK", "RESULT", "MESSAGE"),
        tuple(
            (f.name, f.result, f"{f.message}; {f.remedy}" if f.remedy else f.message)
            for f in findings
        ),
    )


def has_problems(findings: Iterable[Finding]) -> bool:
    """True if a finding prevents the node from running."""
    return any(finding.result == PROBLEM for finding in findings)


def check_python(version: tuple[int, int]) -> Finding:
    """Check the version of Python."""
    message = f"Python {version[0]}.{version[1]}"
    if version >= (3, 11):
        return Finding("python", OK, message)
    return Finding("python", PROBLEM, message, "install Python 3.11 or newer")


def check_packages(versions: Mapping[str, str | None]) -> Finding:
    """Check the packages of the extra `agent`; a version of None means not installed."""
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        remedy = "install them with: pip install 'podstatus[agent]'"
        return Finding("packages", PROBLEM, f"missing: {', '.join(missing)}", remedy)
    return Finding("packages", OK, ", ".join(f"{name} {v}" for name, v in versions.items()))


def check_clock(now: Time) -> Finding:
    """Check that the wall clock is plausible."""
    if _MIN_TIME <= now <= _MAX_TIME:
        return Finding("clock", OK, f"the time is {now.truncated()}")
    remedy = "set the clock (timedatectl set-ntp true): leases and certificates depend on it"
    return Finding("clock", PROBLEM, f"the clock is wrong: {now.truncated()}", remedy)


def check_disk(free: int, where: str) -> Finding:
    """Check the free bytes of the root directory's filesystem."""
    message = f"{free // _MIB} MiB free in {where}"
    if free < _MIN_DISK:
        return Finding("disk", PROBLEM, message, "free disk space, or pass another --root-dir")
    if free < _LOW_DISK:
        return Finding("disk", HINT, message, "the node will soon be under disk pressure")
    return Finding("disk", OK, message)


def check_files(limit: int | None) -> Finding:
    """Check the limit of open files per process; None means no limit."""
    message = (
        "no limit on open files" if limit is None else f"at most {limit} open files per process"
    )
    if limit is not None and limit < _LOW_FILES:
        result = PROBLEM if limit < _MIN_FILES else HINT
        return Finding("files", result, message, f"raise it: ulimit -n {4 * _LOW_FILES}")
    return Finding("files", OK, message)


def check_pids(used: int, limit: int) -> Finding:
    """Check the number of processes against its limit."""
    message = f"{used} processes are running, the limit is {limit}"
    if limit - used < _LOW_PIDS:
        result = PROBLEM if limit - used < _MIN_PIDS else HINT
        remedy = "stop some of them, or raise kernel.pid_max or pids.max"
        return Finding("pids", result, message, remedy)
    return Finding("pids", OK, message)


def check_rights(denied: Iterable[str], user: str) -> Finding:
    """Check the requests that the API server denies to `user`."""
    missing = list(denied)
    if missing:
        remedy = "grant the permissions; the cluster role system:node has them (RBAC)"
        return Finding(
            "permissions", PROBLEM, f"{user} is not allowed to {', '.join(missing)}", remedy
        )
    return Finding("permissions", OK, f"{user} has all permissions that a node needs")
