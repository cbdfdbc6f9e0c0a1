"""Find the agent that runs in a root-dir, and the API server to ask.

RequestError                no server, or the request failed; the message has the remedy
└── ServerUnavailableError  the API server cannot be reached
"""

import shlex
from collections.abc import Mapping
from pathlib import Path

from podstatus.agent.daemon.root_dir import AgentEndpoints, RootDirError, read_endpoints
from podstatus.agent.settings.load import ROOT_DIR_VARIABLE, default_root_dir
from podstatus.apiserver.state_dir import StateDirError, lock_holder
from podstatus.client.auth.config import ClientConfig
from podstatus.client.auth.in_cluster_config import in_cluster_config
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.client.config_errors import KubeconfigError


class RequestError(Exception):
    """The request failed, or there is no server; the message has the remedy."""


class ServerUnavailableError(RequestError):
    """The API server cannot be reached."""


def find_client_config(
    root_dir: Path | None, kubeconfig: Path | None, environment: Mapping[str, str]
) -> ClientConfig:
    """Return access to the kubeconfig's server, or to that of the agent in the root-dir.

    Raises RequestError.
    """
    try:
        if kubeconfig is not None:
            return kubeconfig_config(kubeconfig.expanduser())
        endpoints = running_endpoints(root_dir, environment, alternative=", or a --kubeconfig")
        if endpoints.kubeconfig:
            return kubeconfig_config(endpoints.kubeconfig)
        return in_cluster_config()
    except KubeconfigError as error:
        raise RequestError(str(error)) from error


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
