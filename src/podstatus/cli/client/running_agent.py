"""Find the agent that runs in a root-dir."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from stat import S_ISDIR, S_ISREG, S_IWGRP, S_IWOTH

from podstatus.agent.daemon.endpoints_file import (
    ENDPOINTS_FILE,
    AgentEndpoints,
    RootDirError,
    read_endpoints,
)
from podstatus.agent.settings.default_root_dir import ROOT_DIR_VARIABLE, default_root_dir
from podstatus.apiserver.state_dir import LOCK_FILE, StateDirError, lock_holder
from podstatus.cli.client.request_errors import RequestError

LOCAL_ROOT_DIR = ".podstatus"
"""The root directory of `make run`, in the current directory."""


def running_endpoints(
    root_dir: Path | None, environment: Mapping[str, str], *, alternative: str = ""
) -> AgentEndpoints:
    """Return the endpoints of the agent that runs in the root-dir. Raises RequestError.

    If neither `root_dir` nor the variable is set, an agent in `LOCAL_ROOT_DIR` is preferred to that
    in the default directory.
    """
    if root_dir is None and not environment.get(ROOT_DIR_VARIABLE):
        local = Path(LOCAL_ROOT_DIR)
        if _is_private(local) and (endpoints := _endpoints(local)):
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
        return None if lock_holder(root_dir) is None else read_endpoints(root_dir)
    except (StateDirError, RootDirError) as error:
        raise RequestError(str(error)) from error


def _is_private(folder: Path) -> bool:
    """True if only this user can have written what a root-dir has, and nothing in it is a link.

    The current directory may be a clone of a foreign repository or a shared directory: its files
    could name a server, or a kubeconfig with an exec plugin, and its lock could be a link to a file
    that another process has locked.
    """
    try:
        folder_status = folder.lstat()
        files = [(folder / name).lstat() for name in (LOCK_FILE, ENDPOINTS_FILE)]
    except OSError:
        return False
    return (
        S_ISDIR(folder_status.st_mode)
        and all(S_ISREG(file.st_mode) and file.st_nlink == 1 for file in files)
        and all(_is_only_ours(status) for status in (folder_status, *files))
    )


def _is_only_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (S_IWGRP | S_IWOTH)
