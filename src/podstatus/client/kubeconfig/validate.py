"""Validate a context: contradictory, missing and unsupported fields.

Upstream: ConfirmUsable, clientcmd/validation.go, client-go v0.36.4.
"""

import re
from collections.abc import Iterator
from typing import Final

from podstatus.client.config_errors import KubeconfigError
from podstatus.client.kubeconfig.model import (
    Cluster,
    ExecPlugin,
    PluginVariable,
    ResolvedContext,
    User,
)
from podstatus.client.kubeconfig.server_url import validate_server_url
from podstatus.kube.scalars.go_text import go_quoted

PLUGIN_VERSIONS: Final = (
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
)
NEVER: Final = "Never"
IF_AVAILABLE: Final = "IfAvailable"
ALWAYS: Final = "Always"
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def validate_context(context: ResolvedContext) -> None:
    """Raise KubeconfigError for the first problem of a context."""
    for problem in _problems(context):
        raise KubeconfigError(f"{context.source} cannot be used: {problem}")


def _problems(context: ResolvedContext) -> Iterator[str]:
    for problem in _cluster_problems(context.cluster):
        yield f"cluster {go_quoted(context.cluster_name)}: {problem}"
    for problem in _user_problems(context.user):
        yield f"user {go_quoted(context.user_name)}: {problem}"
    if not _NAMESPACE.fullmatch(context.namespace):
        yield f"{go_quoted(context.namespace)} is not a valid namespace; correct `namespace`"


def _cluster_problems(cluster: Cluster) -> Iterator[str]:
    if not cluster.server:
        yield "it has no server; set `server` to a URL such as https://host:6443"
    elif problem := validate_server_url(cluster.server):
        yield f"server: {problem}"
    if len(cluster.authority) > 1:
        yield _both_set("certificate-authority")
    if cluster.insecure and cluster.authority:
        yield (
            "insecure-skip-tls-verify is set although there is a certificate-authority; "
            "remove insecure-skip-tls-verify"
        )


def _user_problems(user: User) -> Iterator[str]:
    if user.auth_provider:
        yield (
            f"auth-provider {go_quoted(user.auth_provider)} is no longer supported; use its exec "
            "plugin (`exec`) instead"
        )
    if user.impersonates:
        yield "impersonation (`as`) is not supported; use the credentials of that user"
    if user.token and (user.username or user.password):
        yield "both a token and username/password are set; remove one of them"
    if not is_header_text(user.token):
        yield "the token has invalid characters; copy it again"
    yield from _certificate_problems(user)
    if user.plugin is not None:
        for problem in _plugin_problems(user.plugin):
            yield f"exec: {problem}"


def _certificate_problems(user: User) -> Iterator[str]:
    if len(user.certificate) > 1:
        yield _both_set("client-certificate")
    if user.certificate and len(user.key) > 1:
        yield _both_set("client-key")
    if user.certificate and not user.key:
        yield "client-certificate is set without a key; set client-key or client-key-data"


def _both_set(field: str) -> str:
    return f"both {field} and {field}-data are set; remove one of them"


def _plugin_problems(plugin: ExecPlugin) -> Iterator[str]:
    if not plugin.command:
        yield "it has no command; set `command`"
    if plugin.api_version not in PLUGIN_VERSIONS:
        yield (
            f"apiVersion {go_quoted(plugin.api_version)} is not supported; set it to "
            f"{PLUGIN_VERSIONS[0]}, and use a version of the plugin that supports it"
        )
    if not all(map(_is_valid, plugin.env)):
        yield "a variable in `env` has an empty or invalid name or value; correct it"
    if any("\0" in arg for arg in (plugin.command, *plugin.args)):
        yield "the command contains a null character; remove it"
    if plugin.interactive_mode not in (NEVER, IF_AVAILABLE, ALWAYS) and not _is_beta(plugin):
        yield f"set interactiveMode to {NEVER}, {IF_AVAILABLE} or {ALWAYS}"


def _is_valid(variable: PluginVariable) -> bool:
    name = variable.name
    return bool(name) and not {"=", "\0"} & set(name) and "\0" not in variable.value


def _is_beta(plugin: ExecPlugin) -> bool:
    """Whether the plugin is v1beta1 without interactiveMode, which means IfAvailable."""
    return plugin.api_version == PLUGIN_VERSIONS[1] and not plugin.interactive_mode


def is_header_text(text: str) -> bool:
    """Whether a text is valid as the value of a single header."""
    return text.isascii() and text.isprintable()
