"""Find, read and merge the kubeconfig files.

Upstream: ClientConfigLoadingRules, clientcmd/loader.go, client-go v0.36.4.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from podstatus.client.auth.files import UnreadableError, read_file
from podstatus.client.config_errors import KubeconfigError
from podstatus.client.kubeconfig.model import Kubeconfig, merge_kubeconfigs
from podstatus.client.kubeconfig.parse import parse_kubeconfig

logger = logging.getLogger(__name__)

VARIABLE = "KUBECONFIG"


def load_kubeconfig(path: Path | None, environment: Mapping[str, str]) -> Kubeconfig:
    """Load the given file, or those of KUBECONFIG, or ~/.kube/config.

    Raises KubeconfigError if none exists, or one is invalid.
    """
    if path is not None:
        return _load_required(path)
    config = discover_kubeconfig(environment)
    if not config.origins:
        raise KubeconfigError(missing_message(environment))
    return config


def discover_kubeconfig(environment: Mapping[str, str]) -> Kubeconfig:
    """Load the default files that exist; the result may be empty.

    Raises KubeconfigError if one is invalid.
    """
    configs = [(path, _load_if_exists(path)) for path in default_paths(environment)]
    for path, config in configs:
        if config is None and environment.get(VARIABLE):
            logger.warning("kubeconfig does not exist, skipped it: file=%s", path)
    return merge_kubeconfigs(config for _, config in configs if config is not None)


def default_paths(environment: Mapping[str, str]) -> Sequence[Path]:
    """Return the paths of KUBECONFIG without duplicates, or ~/.kube/config."""
    variable = environment.get(VARIABLE, "")
    if not variable:
        home = environment.get("HOME") or str(Path("~").expanduser())
        return [Path(home) / ".kube" / "config"]
    return [Path(name) for name in dict.fromkeys(variable.split(os.pathsep)) if name]


def missing_message(environment: Mapping[str, str]) -> str:
    """Return the error message for a missing kubeconfig."""
    paths = " or ".join(str(path) for path in default_paths(environment)) or "any path"
    variable = f" ({VARIABLE})" if environment.get(VARIABLE) else ""
    return f"no kubeconfig at {paths}{variable}; pass the path of one, or set {VARIABLE}"


def _load_required(path: Path) -> Kubeconfig:
    config = _load_if_exists(path)
    if config is None:
        raise KubeconfigError(f"no kubeconfig at {path}; pass the path of an existing file")
    return config


def _load_if_exists(path: Path) -> Kubeconfig | None:
    try:
        return _read(path)
    except UnreadableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise KubeconfigError(
            f"cannot read the kubeconfig {path}: {error}; pass the path of a readable file"
        ) from error


def _read(path: Path) -> Kubeconfig:
    # Not resolved: relative paths are relative to the symbolic link, not to its target.
    return parse_kubeconfig(read_file(path, pipes=True), str(path.absolute()))
