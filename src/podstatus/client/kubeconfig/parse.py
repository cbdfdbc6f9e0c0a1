"""Parse a kubeconfig: YAML or JSON to values, with errors of one line.

Errors have the line or the field, but never quote the file, which may contain secrets.

Upstream: clientcmd/api/v1, client-go v0.36.4. YAML aliases are rejected: kubeconfigs do not need
them, and a few lines of them can expand to gigabytes.
"""

import base64
import binascii
import posixpath
import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec
import yaml
from msgspec import structs

from podstatus.base.msgspec_json import convert_json
from podstatus.client.config_errors import KubeconfigError
from podstatus.client.kubeconfig.model import Cluster, Context, ExecPlugin, Kubeconfig, Pem, User
from podstatus.client.kubeconfig.raw import (
    RawCluster,
    RawContext,
    RawEntry,
    RawKubeconfig,
    RawUser,
)
from podstatus.kube.scalars.go_text import go_quoted

_MAX_DEPTH: Final = 50
"""Kubeconfigs are not nested deeper, and YAML parsers are very slow on deep nesting."""
_MAX_NODES: Final = 100_000
"""Enough for thousands of clusters; parsing takes at most a second."""
_PLUGIN_CONFIG: Final = "client.authentication.k8s.io/exec"
"""The cluster extension with the configuration of exec plugins."""
_API_VERSIONS: Final = ("", "v1")
_KINDS: Final = ("", "Config")


def parse_kubeconfig(content: bytes, origin: str) -> Kubeconfig:
    """Parse a file; relative paths in it are relative to its directory.

    Raises KubeconfigError.
    """
    document = _without_nulls(_document(content, origin))
    if document is None:
        return Kubeconfig(origins=(origin,))
    if not isinstance(document, dict):
        raise KubeconfigError(f"{origin} is not a kubeconfig: its top level must be a mapping")
    raw = _convert(document, RawKubeconfig, origin)
    if raw.api_version not in _API_VERSIONS or raw.kind not in _KINDS:
        raise KubeconfigError(
            f"{origin} is not a kubeconfig: it must have apiVersion v1 and kind Config"
        )
    return _Reader(origin).config(raw)


def _document(content: bytes, origin: str) -> Any:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise KubeconfigError(f"{origin} is not a kubeconfig: it is not UTF-8 text") from None
    try:
        _check_shape(text, origin)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of a safe loader
    except yaml.MarkedYAMLError as error:
        # The error itself quotes the file.
        raise KubeconfigError(_yaml_error(error, text, origin)) from None
    except (yaml.YAMLError, ValueError):
        raise KubeconfigError(f"{origin} is not valid YAML: correct or replace it") from None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Loads dates as text, as Go does."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def _check_shape(text: str, origin: str) -> None:
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if isinstance(event, yaml.AliasEvent):
            at = f" in line {event.start_mark.line + 1}" if event.start_mark else ""
            raise KubeconfigError(f"{origin} has a YAML alias{at}; replace it by its content")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_DEPTH or number > _MAX_NODES:
            raise KubeconfigError(
                f"{origin} is not a kubeconfig: it is nested too deeply or too large"
            )


def _yaml_error(error: yaml.MarkedYAMLError, text: str, origin: str) -> str:
    mark = error.problem_mark
    if mark is None:
        return f"{origin} is not valid YAML: correct or replace it"
    lines = text.splitlines()[mark.line : mark.line + 1]
    if lines and "\t" in lines[0]:
        return f"{origin} is not valid YAML: line {mark.line + 1} has a tab; use spaces"
    return (
        f"{origin} is not valid YAML: correct it near line {mark.line + 1}, "
        f"column {mark.column + 1}"
    )


def _without_nulls(value: Any) -> Any:
    """Remove null fields, which count as missing, as in Go."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


Raw = TypeVar("Raw")


def _convert(document: Any, kind: type[Raw], origin: str) -> Raw:
    try:
        return convert_json(document, kind)
    except msgspec.ValidationError as error:
        # The message has types and paths, never values.
        reason = str(error).replace("`", "")
        raise KubeconfigError(
            f"{origin} is not a kubeconfig: {reason[0].lower()}{reason[1:]}"
        ) from None


class _Reader:
    """Converts the raw fields of one file into values."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._folder = posixpath.dirname(origin)

    def config(self, raw: RawKubeconfig) -> Kubeconfig:
        self._check_names(raw.clusters, "cluster")
        self._check_names(raw.users, "user")
        self._check_names(raw.contexts, "context")
        return Kubeconfig(
            origins=(self._origin,),
            current_context=raw.current_context,
            clusters={each.name: self._cluster(each.name, each.cluster) for each in raw.clusters},
            users={each.name: self._user(each.name, each.user) for each in raw.users},
            contexts={each.name: self._context(each.context) for each in raw.contexts},
        )

    def _check_names(self, entries: Iterable[RawEntry], kind: str) -> None:
        names = set()
        for entry in entries:
            if entry.name in names:
                raise KubeconfigError(
                    f"{self._origin} has more than one {kind} {go_quoted(entry.name)}; "
                    "remove or rename one"
                )
            names.add(entry.name)

    def _context(self, raw: RawContext) -> Context:
        return Context(
            cluster=raw.cluster,
            user=raw.user,
            namespace=raw.namespace,
            origin=self._origin,
        )

    def _cluster(self, name: str, raw: RawCluster) -> Cluster:
        of = f"of cluster {go_quoted(name)}"
        extensions = {each.name: each.extension for each in raw.extensions}
        config = extensions.get(_PLUGIN_CONFIG)
        return Cluster(
            server=raw.server,
            tls_server_name=raw.tls_server_name,
            insecure=raw.insecure_skip_tls_verify,
            authority=self._pems(
                "certificate-authority",
                of,
                raw.certificate_authority,
                raw.certificate_authority_data,
            ),
            proxy_url=raw.proxy_url,
            plugin_config=None if config is None else msgspec.Raw(msgspec.json.encode(config)),
        )

    def _user(self, name: str, raw: RawUser) -> User:
        of = f"of user {go_quoted(name)}"
        impersonates = (raw.as_user, raw.as_uid, raw.as_groups, raw.as_user_extra)
        return User(
            token=raw.token.strip(),
            token_file=self._path(raw.token_file),
            username=raw.username,
            password=raw.password,
            certificate=self._pems(
                "client-certificate",
                of,
                raw.client_certificate,
                raw.client_certificate_data,
            ),
            key=self._pems("client-key", of, raw.client_key, raw.client_key_data),
            plugin=None if raw.exec is None else self._plugin(raw.exec),
            auth_provider=raw.auth_provider.name or "?" if raw.auth_provider else "",
            impersonates=any(impersonates),
        )

    def _plugin(self, raw: ExecPlugin) -> ExecPlugin:
        command = self._path(raw.command) if "/" in raw.command else raw.command
        return structs.replace(raw, command=command, install_hint=_one_line(raw.install_hint))

    def _pems(self, field: str, of: str, path: str, data: str) -> tuple[Pem, ...]:
        pems = []
        if data:
            data_field = f"{field}-data {of}"
            pems.append(Pem(field=data_field, data=self._decode_base64(data, data_field)))
        if path:
            pems.append(Pem(field=f"{field} {of}", path=self._path(path)))
        return tuple(pems)

    def _decode_base64(self, data: str, field: str) -> bytes:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except (binascii.Error, ValueError):
            raise KubeconfigError(
                f"{field} in {self._origin} is not base64; it must be base64-encoded PEM"
            ) from None

    def _path(self, name: str) -> str:
        return posixpath.normpath(posixpath.join(self._folder, name)) if name else ""


def _one_line(text: str) -> str:
    """Collapse whitespace and replace control characters, for output on a terminal."""
    return re.sub(r"\s+", " ", "".join(c if c.isprintable() else " " for c in text)).strip()[:300]
