"""The bearer token, the files that give it to clients, and the key for service account tokens."""

import base64
import re
import secrets
from pathlib import Path

import msgspec
import yaml

from podstatus.apiserver.state_dir import StateDir, StateDirError

KUBECONFIG = "kubeconfig"
ENDPOINTS = "endpoints.json"
_TOKEN = "token"  # noqa: S105 - the name of the file
_SIGNING_KEY = "service-account.key"
_SIGNING_KEY_BYTES = 32
_NAME = "podstatus"


class ClientCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """What a client needs to connect."""

    url: str
    token: str
    authority: bytes
    """The CA certificate of the server, PEM."""


def ensure_token(state_dir: StateDir) -> str:
    """Return the token of the state directory; create it at the first start.

    Raises StateDirError.
    """
    stored = state_dir.read(_TOKEN)
    if stored is None:
        token = secrets.token_urlsafe(32)
        state_dir.write(_TOKEN, f"{token}\n".encode())
        return token
    token = stored.decode(errors="replace").strip()
    if not re.fullmatch(r"[\w.~+/=-]{16,}", token, re.ASCII):
        raise StateDirError(
            f"{state_dir.path / _TOKEN} holds no token of 16 characters or more; remove the file, "
            "a new token is created"
        )
    return token


def ensure_signing_key(state_dir: StateDir) -> bytes:
    """Return the key that signs the tokens of service accounts; create it at the first start.

    A damaged key is replaced: the tokens that it signed are requested again by the nodes.
    Raises StateDirError.
    """
    key = state_dir.read(_SIGNING_KEY)
    if key is None or len(key) != _SIGNING_KEY_BYTES:
        key = secrets.token_bytes(_SIGNING_KEY_BYTES)
        state_dir.write(_SIGNING_KEY, key)
    return key


def write_client_files(state_dir: StateDir, credentials: ClientCredentials) -> Path:
    """Write the files for clients; return the path of the kubeconfig. Raises StateDirError."""
    endpoints = {"apiserver": credentials.url, "token": credentials.token}
    state_dir.write(ENDPOINTS, msgspec.json.encode(endpoints))
    return state_dir.write(KUBECONFIG, kubeconfig(credentials))


def kubeconfig(credentials: ClientCredentials) -> bytes:
    """Return a self-contained kubeconfig file."""
    authority = base64.b64encode(credentials.authority).decode()
    cluster = {"server": credentials.url, "certificate-authority-data": authority}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": {"token": credentials.token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    text: str = yaml.safe_dump(document, sort_keys=False, width=4096)
    return text.encode()
