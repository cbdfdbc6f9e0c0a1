"""Where the programs of a real Kubernetes API server are on this machine.

Looked for in `$KUBEBUILDER_ASSETS` (a folder with both, as controller-runtime's envtest has it),
in the folder that `make real-parts` of this project fills, and on PATH. See docs/real-servers.md.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from podstatus.base.programs import find_program

ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"
KUBE_APISERVER = "kube-apiserver"
ETCD = "etcd"


class MissingBinariesError(Exception):
    """The programs are not there; the message says where they were looked for, and what to do."""


class ServerBinaries(msgspec.Struct, frozen=True, kw_only=True):
    """The programs."""

    kube_apiserver: Path
    etcd: Path


def cache_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """What `make real-parts` fills: one folder in it for each build."""
    base = environment.get("XDG_CACHE_HOME", "")
    # As the specification of these folders has it: a relative one counts as none.
    folder = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return folder / "podstatus" / "real"


def binaries_in(folder: Path) -> ServerBinaries | None:
    """The programs of a folder, None unless it has both."""
    parts = ServerBinaries(kube_apiserver=folder / KUBE_APISERVER, etcd=folder / ETCD)
    both = all(os.access(part, os.X_OK) for part in (parts.kube_apiserver, parts.etcd))
    return parts if both else None


def find_binaries(environment: Mapping[str, str] = os.environ) -> ServerBinaries:
    """The programs to use. Raises MissingPartsError."""
    assets = environment.get(ASSETS_VARIABLE, "")
    if assets:
        return _from_assets(Path(assets))
    cache = cache_dir(environment)
    found = _newest_build(cache) or _on_path(environment.get("PATH", ""))
    if found is None:
        raise MissingBinariesError(
            f"no {KUBE_APISERVER} and {ETCD} in {cache} or on PATH; run `make real-parts`, or set "
            f"{ASSETS_VARIABLE} to a folder that holds both (docs/real-servers.md)"
        )
    return found


def _from_assets(folder: Path) -> ServerBinaries:
    # Whoever names a folder means that one: no others are looked at.
    found = binaries_in(folder)
    if found is None:
        raise MissingBinariesError(
            f"{ASSETS_VARIABLE} is {folder}, which does not hold {KUBE_APISERVER} and {ETCD}, both "
            "executable; correct it, or unset it to use what `make real-parts` builds"
        )
    return found


def _newest_build(cache: Path) -> ServerBinaries | None:
    # What is still being built has a name with a dot.
    builds = [folder for folder in cache.glob("v*") if binaries_in(folder)]
    newest = max(builds, key=lambda folder: folder.stat().st_mtime_ns, default=None)
    return None if newest is None else binaries_in(newest)


def _on_path(path: str) -> ServerBinaries | None:
    server, etcd = find_program(KUBE_APISERVER, path), find_program(ETCD, path)
    if server is None or etcd is None:
        return None
    return ServerBinaries(kube_apiserver=Path(server), etcd=Path(etcd))
