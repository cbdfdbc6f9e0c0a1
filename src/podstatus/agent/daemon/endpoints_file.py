"""The endpoints file, by which commands find a running agent."""

from pathlib import Path
from typing import Any

import msgspec

from podstatus.base.msgspec_json import decode_json

ENDPOINTS_FILE = "endpoints.json"


class RootDirError(Exception):
    """The root directory cannot be used; the message has the reason and the remedy."""


class AgentEndpoints(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of `endpoints.json`, which exists while an agent runs."""

    apiserver: str
    """URL of the API server."""
    agent: str
    """URL of the agent's HTTPS server."""
    health: str = ""
    """URL of the plain HTTP `/healthz` server; empty if disabled."""
    token: str = ""
    """Bearer token for the agent, and for the API server if it is embedded."""
    kubeconfig: str = ""
    """Path of a kubeconfig."""
    certificate_authority: str = ""
    """Path of the CA certificate of the API server, if it is embedded."""
    agent_certificate: str = ""
    """Path of the certificate that clients of the agent must trust."""
    node: str
    """Node name; empty for an observer."""
    observes: bool = False
    """The process is a cluster observer, which serves pods through `/v1` only."""
    pid: int

    @property
    def embeds_api_server(self) -> bool:
        """True if the API server is embedded: only that one accepts the agent's token."""
        return bool(self.token and self.certificate_authority)

    def __repr__(self) -> str:
        return f"AgentEndpoints(apiserver={self.apiserver!r}, agent={self.agent!r}, …)"


def read_endpoints(root_dir: Path) -> AgentEndpoints | None:
    """Return the endpoints of the agent that runs in `root_dir`, None if none does.

    Raises RootDirError.
    """
    path = root_dir / ENDPOINTS_FILE
    try:
        content = path.read_bytes()
        if "agent" not in decode_json(content, dict[str, Any]):
            raise RootDirError(
                f"an API server without a node runs in {root_dir}; use get or kubectl with: "
                f"--kubeconfig {root_dir / 'kubeconfig'}"
            )
        return decode_json(content, AgentEndpoints)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise RootDirError(f"cannot read {path}: {error_reason(error)}") from error


def error_reason(error: Exception) -> str:
    """Return the reason of a failure in lower case, with the file of an OSError."""
    if not isinstance(error, OSError):
        return str(error)
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason
