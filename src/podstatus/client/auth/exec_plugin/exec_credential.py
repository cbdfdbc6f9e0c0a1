"""The input and output of exec plugins: ExecCredential, v1 and v1beta1.

Errors never quote a plugin's output, as it may contain a token.

Upstream: pkg/apis/clientauthentication and plugin/pkg/client/auth/exec, client-go v0.36.4.
"""

import base64
from typing import Any

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.client.kubeconfig.model import Cluster, ExecPlugin, RedactedStruct
from podstatus.client.kubeconfig.validate import is_header_text
from podstatus.kube.scalars.time import Time, TimeError


class InvalidExecCredentialError(Exception):
    """A plugin's output is invalid; the message has the reason, such as `it printed no JSON`."""


class PluginCredential(RedactedStruct, frozen=True, kw_only=True):
    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires: int | None = None
    """Nanoseconds since the Unix epoch; None if the credential is valid until it is refused."""


class _Status(RedactedStruct, frozen=True, kw_only=True, rename="camel"):
    expiration_timestamp: str | None = None
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None


class _ExecCredential(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


def exec_info(plugin: ExecPlugin, cluster: Cluster, authority: bytes, *, interactive: bool) -> str:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster_info(cluster, authority)
    document = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return msgspec.json.encode(document).decode()


def _cluster_info(cluster: Cluster, authority: bytes) -> dict[str, Any]:
    info = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.proxy_url,
        "config": cluster.plugin_config,
    }
    return {name: value for name, value in info.items() if value}


def parse_credential(output: bytes, api_version: str) -> PluginCredential:
    """Parse the output of a plugin. Raises InvalidExecCredentialError."""
    if not output.strip():
        raise InvalidExecCredentialError("it printed nothing")
    credential = _decode(output)
    if credential.kind != "ExecCredential":
        raise InvalidExecCredentialError("it printed an object that is not an ExecCredential")
    if credential.api_version != api_version:
        raise InvalidExecCredentialError(
            f"its ExecCredential is not of {api_version}; set the plugin's apiVersion in `exec`"
        )
    if credential.status is None:
        raise InvalidExecCredentialError("its ExecCredential has no status")
    return _credential(credential.status)


def _decode(output: bytes) -> _ExecCredential:
    try:
        return decode_json(output, _ExecCredential)
    except msgspec.ValidationError:
        raise InvalidExecCredentialError(
            "it printed an object that is not an ExecCredential"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidExecCredentialError("it printed no JSON") from None


def _credential(status: _Status) -> PluginCredential:
    token, certificate, key = (
        status.token or "",
        status.client_certificate_data or "",
        status.client_key_data or "",
    )
    if not (token or certificate or key):
        raise InvalidExecCredentialError("its ExecCredential has neither a token nor a certificate")
    if bool(certificate) != bool(key):
        raise InvalidExecCredentialError(
            "its ExecCredential has a certificate or a key, but not both"
        )
    if not is_header_text(token):
        raise InvalidExecCredentialError("its token has invalid characters")
    return PluginCredential(
        token=token,
        certificate=certificate.encode(),
        key=key.encode(),
        expires=_expires(status.expiration_timestamp),
    )


def _expires(timestamp: str | None) -> int | None:
    if timestamp is None:
        return None
    try:
        return Time.parse(timestamp).unix_nanos()
    except TimeError:
        raise InvalidExecCredentialError("its expirationTimestamp is not a valid time") from None
