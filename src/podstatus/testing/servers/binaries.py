"""Locates the binaries of a real Kubernetes API server.

In this order: `$KUBEBUILDER_ASSETS` (a directory with both, as in controller-runtime's envtest),
the directory that `make real-parts` of this project fills, and PATH. See
docs/how-to/test-against-kube-apiserver.md.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from podstatus.base.programs import find_program

ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"
KUBE_APISERVER = "kube-apiserver"
ETCD = "etcd"
E2E_PREFIX = "e2e-"
"""Prefix of the subdirectories that `make e2e-parts` fills, for `make test-e2e`."""


class MissingBinariesError(Exception):
    """The binaries were not found; the message says where they were searched, and what to do."""


class ServerBinaries(msgspec.Struct, frozen=True, kw_only=True):
    kube_apiserver: Path
    etcd: Path


def cache_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory that `make real-parts` fills, one subdirectory per build."""
    base = environment.get("XDG_CACHE_HOME", "")
    # As the XDG specification demands, ignore a relative path.
    folder = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return folder / "podstatus" / "real"


def binaries_in(folder: Path) -> ServerBinaries | None:
    """Return the binaries in a directory; None unless it has both."""
    binaries = ServerBinaries(kube_apiserver=folder / KUBE_APISERVER, etcd=folder / ETCD)
    both = all(os.access(binary, os.X_OK) for binary in (binaries.kube_apiserver, binaries.etcd))
    return binaries if both else None


def find_binaries(environment: Mapping[str, str] = os.environ) -> ServerBinaries:
    """Return the binaries to use. Raises MissingBinariesError."""
    assets = environment.get(ASSETS_VARIABLE, "")
    if assets:
        return _from_assets(Path(assets))
    cache = cache_dir(environment)
    binaries = _newest_build(cache) or _on_path(environment.get("PATH", ""))
    if binaries is None:
        raise MissingBinariesError(
            f"no {KUBE_APISERVER} and {ETCD} in {cache} or on PATH; run `make real-parts`, or set "
            f"{ASSETS_VARIABLE} to a directory that holds both; see "
            "docs/how-to/test-against-kube-apiserver.md"
        )
    return binaries


def _from_assets(folder: Path) -> ServerBinaries:
    # An explicit directory is not combined with other locations.
    binaries = binaries_in(folder)
    if binaries is None:
        raise MissingBinariesError(
            f"{ASSETS_VARIABLE} is {folder}, which does not hold an executable {KUBE_APISERVER} "
            f"and {ETCD}; correct it, or unset it to use the build of `make real-parts`"
        )
    return binaries


def _newest_build(cache: Path) -> ServerBinaries | None:
    # The name of an unfinished build starts with a dot.
    builds = [folder for folder in cache.glob("v*") if binaries_in(folder)]
    newest = max(builds, key=lambda folder: folder.stat().st_mtime_ns, default=None)
    return None if newest is None else binaries_in(newest)


def _on_path(path: str) -> ServerBinaries | None:
    server, etcd = find_program(KUBE_APISERVER, path), find_program(ETCD, path)
    if server is None or etcd is None:
        return None
    return ServerBinaries(kube_apiserver=Path(server), etcd=Path(etcd))
