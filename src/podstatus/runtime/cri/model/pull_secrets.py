"""Credentials of image registries, from secrets of the types dockerconfigjson and dockercfg.

Upstream: MakeDockerKeyring, pkg/credentialprovider/secrets/secrets.go, and Lookup, keyring.go,
v1.36.4. Wildcards in the names of registries are not supported: such an entry matches nothing.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.objects.cluster import Secret
from podstatus.runtime.cri.api.images import CriAuthConfig

_CONFIG_JSON, _CONFIG = ".dockerconfigjson", ".dockercfg"
_DEFAULT_DOMAIN = "docker.io"


class RegistryLogin(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a docker configuration."""

    username: str = ""
    password: str = ""
    auth: str = ""
    """Base64 of `username:password`."""
    identitytoken: str = ""


class DockerConfig(msgspec.Struct, frozen=True):
    """The content of a docker configuration file."""

    auths: dict[str, RegistryLogin] = {}


def credentials(repository: str, secrets: Iterable[Secret]) -> tuple[CriAuthConfig, ...]:
    """Return the credentials for a repository, of the most specific registries first.

    Secrets that cannot be decoded are skipped, as upstream.
    """
    entries = [
        (registry, login)
        for secret in secrets
        for name, login in _logins(secret)
        if _matches(registry := _registry(name), repository)
    ]
    entries.sort(key=lambda entry: -len(entry[0]))
    return tuple(_auth(registry, login) for registry, login in entries)


def _logins(secret: Secret) -> Iterator[tuple[str, RegistryLogin]]:
    data = secret.data or {}
    try:
        if _CONFIG_JSON in data:
            content = base64.b64decode(data[_CONFIG_JSON])
            yield from decode_json(content, DockerConfig).auths.items()
        elif _CONFIG in data:
            content = base64.b64decode(data[_CONFIG])
            yield from decode_json(content, dict[str, RegistryLogin]).items()
    except (msgspec.MsgspecError, binascii.Error, UnicodeDecodeError):
        return


def _registry(name: str) -> str:
    """Return host and path of an entry such as `https://index.docker.io/v1/`."""
    bare = name.removeprefix("https://").removeprefix("http://").rstrip("/")
    host, slash, path = bare.partition("/")
    if host == f"index.{_DEFAULT_DOMAIN}":
        host = _DEFAULT_DOMAIN
    return host if path in ("", "v1", "v2") else f"{host}{slash}{path}"


def _matches(registry: str, repository: str) -> bool:
    return repository == registry or repository.startswith(f"{registry}/")


def _auth(registry: str, login: RegistryLogin) -> CriAuthConfig:
    username, password = login.username, login.password
    if login.auth:
        try:
            text = base64.b64decode(login.auth).decode()
        except (binascii.Error, UnicodeDecodeError):
            text = ""
        username, _, password = text.partition(":")
    return CriAuthConfig(
        username=username,
        password=password,
        server_address=registry,
        identity_token=login.identitytoken,
    )
