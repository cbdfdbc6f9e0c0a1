"""Find the agent that runs in a root directory."""

import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from podstatus.agent.daemon.endpoints_file import AgentEndpoints, RootDirError, read_endpoints
from podstatus.agent.settings.default_root_dir import (
    LOCAL_ROOT_DIR,
    ROOT_DIR_VARIABLE,
    default_root_dir,
)
from podstatus.apiserver.state_dir import LOCK_FILE, StateDirError, lock_holder
from podstatus.cli.client.private_dir import is_private
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.client.root_dir_holder import find_holder
from podstatus.cli.program import short_path
from podstatus.cli.start_command import start_command


def running_endpoints(
    root_dir: Path | None, environment: Mapping[str, str], *, alternative: str = ""
) -> AgentEndpoints:
    """Return the endpoints of the agent that runs in the root directory. Raises RequestError."""
    folder = find_root_dir(root_dir, environment)
    if find_holder(folder) is None:
        raise no_agent_error(folder, environment, alternative=alternative)
    try:
        endpoints = read_endpoints(folder)
    except RootDirError as error:
        raise RequestError(str(error)) from error
    if endpoints is None:
        raise RequestError(f"the agent in {folder} is starting; try again in a few seconds")
    return endpoints


def find_root_dir(
    root_dir: Path | None, environment: Mapping[str, str], *, stopped: bool = False
) -> Path:
    """Return the root directory that a command uses, whether an agent runs there or not.

    If neither `root_dir` nor the variable is set, an agent in `LOCAL_ROOT_DIR` is preferred to that
    in the default directory; with `stopped`, which is for commands that only read, also one that
    has stopped. Raises RequestError.
    """
    if root_dir is None and not environment.get(ROOT_DIR_VARIABLE):
        local, default = Path(LOCAL_ROOT_DIR), _default_root_dir(environment)
        if is_private(local) and (_is_locked(local) or (stopped and not _is_locked(default))):
            return local.absolute()
        return default
    root_dir = root_dir or Path(environment[ROOT_DIR_VARIABLE])
    return root_dir.expanduser().absolute()


def kubectl_command(
    words: str,
    root_dir: Path | None,
    environment: Mapping[str, str],
    kubeconfig: Path | None = None,
) -> str:
    """Return a kubectl command, for the kubeconfig or else for the API server of the agent."""
    if kubeconfig is None:
        with suppress(RequestError):
            found = running_endpoints(root_dir, environment).kubeconfig
            kubeconfig = Path(found) if found else None
    option = "" if kubeconfig is None else f" --kubeconfig {shlex.quote(short_path(kubeconfig))}"
    return f"kubectl{option} {words}"


def no_agent_error(
    folder: Path,
    environment: Mapping[str, str],
    *,
    remedy: str = "",
    local_remedy: str = "",
    alternative: str = "",
) -> RequestError:
    """Return the error for a command that needs a running agent.

    `remedy` replaces the advice to start one. `local_remedy` replaces it if no root directory was
    named and `LOCAL_ROOT_DIR` exists. `alternative` is appended.
    """
    where, start, advice = str(folder), "start one", remedy
    # Of a stopped agent, or planted: it is mentioned, and used only if the user names it.
    if folder == _default_root_dir(environment) and Path(LOCAL_ROOT_DIR).is_dir():
        local, advice = Path(LOCAL_ROOT_DIR).absolute(), local_remedy
        if is_private(local) and not (folder / LOCK_FILE).exists():  # the only node
            where = str(local)
        else:
            where = f"{folder} nor in ./{LOCAL_ROOT_DIR}"
            start = f"start the node in ./{LOCAL_ROOT_DIR} again"
        folder = local
    elif environment.get(ROOT_DIR_VARIABLE) and folder == find_root_dir(None, environment):
        where = f"{folder} (from ${ROOT_DIR_VARIABLE})"
    advice = advice or (
        f"{start} with: {start_command(folder)}, or pass the --root-dir of a running agent"
    )
    return RequestError(f"no agent runs in {where}; {advice}{alternative}")


def _default_root_dir(environment: Mapping[str, str]) -> Path:
    return default_root_dir(environment).expanduser().absolute()


def _is_locked(root_dir: Path) -> bool:
    try:
        return lock_holder(root_dir) is not None
    except StateDirError as error:
        raise RequestError(str(error)) from error
