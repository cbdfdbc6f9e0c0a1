"""Find the agent that runs in a root-dir."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from stat import S_ISDIR

from podstatus.agent.daemon.endpoints_file import AgentEndpoints, RootDirError, read_endpoints
from podstatus.agent.settings.default_root_dir import ROOT_DIR_VARIABLE, default_root_dir
from podstatus.apiserver.state_dir import StateDirError, lock_holder
from podstatus.cli.client.request_errors import RequestError

LOCAL_ROOT_DIR = ".podstatus"
"""The root directory of `make run`, in the current directory."""


def running_endpoints(
    root_dir: Path | None, environment: Mapping[str, str], *, alternative: str = ""
) -> AgentEndpoints:
    """Return the endpoints of the agent that runs in the root-dir. Raises RequestError.

    Without `root_dir` and variable, an agent in `LOCAL_ROOT_DIR` precedes the default.
    """
    if root_dir is None and not environment.get(ROOT_DIR_VARIABLE):
        if _is_own_dir(Path(LOCAL_ROOT_DIR)) and (endpoints := _endpoints(Path(LOCAL_ROOT_DIR))):
            return endpoints
        root_dir = default_root_dir(environment)
    root_dir = root_dir or Path(environment[ROOT_DIR_VARIABLE])
    root_dir = root_dir.expanduser().absolute()
    if endpoints := _endpoints(root_dir):
        return endpoints
    raise RequestError(
        f"no agent runs in {root_dir}; start one with: podstatus run --root-dir "
        f"{shlex.quote(str(root_dir))}, or pass the --root-dir of a running agent{alternative}"
    )


def _endpoints(root_dir: Path) -> AgentEndpoints | None:
    """Return the endpoints of the agent that runs there, or None. Raises RequestError."""
    try:
        endpoints = read_endpoints(root_dir)
        return endpoints if endpoints is not None and lock_holder(root_dir) is not None else None
    except (StateDirError, RootDirError) as error:
        raise RequestError(str(error)) from error


def _is_own_dir(path: Path) -> bool:
    """True for a directory that belongs to this user: another's may name a kubeconfig that runs
    programs."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
