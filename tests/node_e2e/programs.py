"""The programs that a run needs, and how to get the ones that are missing."""

import os
import shutil
from pathlib import Path

import msgspec

from podstatus.testing.servers.binaries import (
    E2E_PREFIX,
    MissingBinariesError,
    ServerBinaries,
    cache_dir,
    find_binaries,
)


class MissingProgramsError(Exception):
    """Programs or permissions are missing; the message says how to get them."""


class Programs(msgspec.Struct, frozen=True, kw_only=True):
    """The programs of a run, as absolute paths."""

    servers: ServerBinaries
    controller_manager: Path
    scheduler: Path
    tests: Path
    agnhost: Path
    ginkgo: Path
    kubectl: Path
    bubblewrap: Path
    bash: Path
    ip: Path


def find_programs() -> Programs:
    """Return the programs. Raises MissingProgramsError."""
    try:
        servers = find_binaries()
    except MissingBinariesError as error:
        raise MissingProgramsError(str(error)) from error
    parts = _newest_parts()
    return Programs(
        servers=servers,
        controller_manager=_part(parts, "kube-controller-manager"),
        scheduler=_part(parts, "kube-scheduler"),
        tests=_part(parts, "e2e.test"),
        agnhost=_part(parts, "agnhost"),
        ginkgo=_part(parts, "ginkgo"),
        kubectl=_on_path("kubectl", "install 1.32 or newer"),
        bubblewrap=_on_path("bwrap", "Debian: apt install bubblewrap"),
        bash=_on_path("bash", "Debian: apt install bash"),
        ip=_on_path("ip", "Debian: apt install iproute2"),
    )


def _newest_parts() -> Path:
    cache = cache_dir()
    folders = sorted(cache.glob(f"{E2E_PREFIX}*"), key=lambda folder: folder.stat().st_mtime_ns)
    if not folders:
        raise MissingProgramsError(f"no e2e.test in {cache}; run `make e2e-parts`, which needs Go")
    return folders[-1]


def _part(parts: Path, name: str) -> Path:
    path = parts / name
    if not os.access(path, os.X_OK):
        raise MissingProgramsError(f"no {name} in {parts}; remove it and run `make e2e-parts`")
    return path


def _on_path(name: str, remedy: str) -> Path:
    # The system's folders, too: `ip` is often not on the PATH of a user.
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise MissingProgramsError(f"no {name} on PATH; {remedy}")
    return Path(found).resolve()
