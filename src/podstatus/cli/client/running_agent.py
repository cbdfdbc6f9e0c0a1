"""Find the agent that runs in a root-dir."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from podstatus.agent.daemon.endpoints_file import AgentEndpoints, RootDirError, read_endpoints
from podstatus.agent.settings.default_root_dir import ROOT_DIR_VARIABLE, default_root_dir
from podstatus.apiserver.state_dir import StateDirError, lock_holder
from podstatus.cli.client.request_errors import RequestError


def running_endpoints(
    root_dir: Path | None, environment: Mapping[str, str], *, alternative: str = ""
) -> AgentEndpoints:
    """Return the endpoints of the agent that runs in the root-dir. Raises RequestError."""
    if root_dir is None:
        root_dir = Path(environment.get(ROOT_DIR_VARIABLE) or default_root_dir(environment))
    root_dir = root_dir.expanduser().absolute()
    try:
        endpoints = read_endpoints(root_dir)
        if endpoints is not None and lock_holder(root_dir) is not None:
            return endpoints
    except (StateDirError, RootDirError) as error:
        raise RequestError(str(error)) from error
    raise RequestError(
        f"no agent runs in {root_dir}; start one with: podstatus run --root-dir "
        f"{shlex.quote(str(root_dir))}, or pass the --root-dir of a running agent{alternative}"
    )
