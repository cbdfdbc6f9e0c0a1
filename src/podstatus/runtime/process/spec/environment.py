"""The environment of a container: the variables of its spec, and a few defaults.

Upstream: makeEnvironmentVariables, pkg/kubelet/kubelet_pods.go v1.36.4. Names from `envFrom` are
not changed, as in v1.36. TERM is set as by containerd: buildLinuxSpec,
internal/cri/server/container_create.go, and WithTTY, pkg/oci/spec_opts.go.
"""

import base64
import binascii
import contextlib
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from podstatus.kube.expansion import ArgumentListTooLongError, ExecBudget
from podstatus.kube.objects.cluster import ConfigMap, Secret
from podstatus.kube.objects.containers import (
    ConfigMapKeySelector,
    Container,
    EnvVarSource,
    SecretKeySelector,
)
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.process.spec.config_errors import (
    config_error,
    unavailable_reference,
    unsupported_field,
)
from podstatus.runtime.process.spec.downward_api import DownwardContext, env_field, resource_value

T = TypeVar("T")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The usual PATH in containers; independent of the agent's."""
_MAX_SHOWN_LENGTH = 100
"""Characters of a name that a message shows."""


class ReferencedObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that a spec refers to; None for those that do not exist."""

    config_maps: Mapping[str, ConfigMap | None] = {}
    secrets: Mapping[str, Secret | None] = {}

    def config_map(self, name: str, *, optional: bool | None) -> ConfigMap | None:
        """Return the configMap; None if it is optional and missing. Raises CannotStartError."""
        return _require(self.config_maps.get(name), "configmap", name, optional=optional)

    def secret(self, name: str, *, optional: bool | None) -> Secret | None:
        """Return the secret; None if it is optional and missing. Raises CannotStartError."""
        return _require(self.secrets.get(name), "secret", name, optional=optional)


def _require(obj: T | None, kind: str, name: str, *, optional: bool | None) -> T | None:
    if obj is None and not optional:
        raise unavailable_reference(f"{kind} {go_quoted(name)} not found")
    return obj


def referenced_names(container: Container) -> tuple[set[str], set[str]]:
    """Return the names of the configMaps and secrets that the environment refers to."""
    config_maps, secrets = set(), set()
    for env_from in container.env_from or ():
        if env_from.config_map_ref is not None:
            config_maps.add(env_from.config_map_ref.name)
        elif env_from.secret_ref is not None:
            secrets.add(env_from.secret_ref.name)
    for variable in container.env or ():
        source = variable.value_from
        if variable.value or source is None:
            continue
        if source.config_map_key_ref is not None:
            config_maps.add(source.config_map_key_ref.name)
        elif source.secret_key_ref is not None:
            secrets.add(source.secret_key_ref.name)
    return config_maps, secrets


def declared_environment(
    pod: Pod,
    container: Container,
    objects: ReferencedObjects,
    context: DownwardContext,
    budget: ExecBudget,
    services: Mapping[str, str],
) -> dict[str, str]:
    """Return the variables to which command, args and subPathExpr may refer.

    These are the spec's, then the service variables whose names the spec does not use. Each is
    charged to the budget. Raises CannotStartError.
    """
    referenced = _Objects(pod.namespace, objects)
    env = _Variables(budget, services)
    _add_env_from(container, referenced, env)
    for variable in container.env or ():
        if variable.value:
            env.expand(variable.name, variable.value)
        elif variable.value_from is None:
            env.set(variable.name, "")
        else:
            value = _value_from(pod, container, variable.value_from, referenced, context)
            if value is not None:
                env.set(variable.name, value)
    env.add_services()
    return env.values


def full_environment(
    declared: Mapping[str, str], *, hostname: str, home: str, tty: bool
) -> dict[str, str]:
    """Return the whole environment: declared variables override the defaults."""
    terminal = {"TERM": "xterm"} if tty else {}
    return {"PATH": DEFAULT_PATH, "HOME": home, "HOSTNAME": hostname, **terminal, **declared}


def decode_base64(where: str, text: str) -> bytes:
    """Decode a value of a secret or a binary one of a configMap. Raises CannotStartError.

    `where` names the value, as in `key k in Secret default/s`.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise config_error(f"the value of {where} is not base64; write the object again") from error


class _Objects:
    """Lookups in the objects of a namespace."""

    def __init__(self, namespace: str, objects: ReferencedObjects) -> None:
        self._namespace = namespace
        self._objects = objects

    def config_map(self, name: str, *, optional: bool | None) -> dict[str, str] | None:
        obj = self._objects.config_map(name, optional=optional)
        return None if obj is None else obj.data or {}

    def secret(self, name: str, *, optional: bool | None) -> dict[str, str] | None:
        obj = self._objects.secret(name, optional=optional)
        return None if obj is None else obj.data or {}

    def secret_text(self, name: str, key: str, value: str) -> str:
        where = f"key {key} in Secret {self._namespace}/{name}"
        try:
            return decode_base64(where, value).decode()
        except UnicodeDecodeError as error:
            raise config_error(
                f"{where} is not UTF-8 and cannot be a variable; "
                "mount the secret as a volume instead"
            ) from error

    def has_key(
        self, kind: str, ref: ConfigMapKeySelector | SecretKeySelector, data: Mapping[str, str]
    ) -> bool:
        if ref.key not in data and not ref.optional:
            where = f"{self._namespace}/{ref.name}"
            raise config_error(f"couldn't find key {ref.key} in {kind} {where}")
        return ref.key in data


class _Variables:
    """Environment variables, each checked as it is set."""

    def __init__(self, budget: ExecBudget, services: Mapping[str, str]) -> None:
        self.values: dict[str, str] = {}
        self._budget = budget
        self._services = services
        self._references = ChainMap(self.values, dict(services))

    def set(self, name: str, value: str) -> None:
        _check_variable(name, value)
        with _with_variable_name(name):
            self._budget.spend(value, name=name)
        self.values[name] = value

    def expand(self, name: str, text: str) -> None:
        with _with_variable_name(name):
            expanded = self._budget.expand(text, self._references, name=name)
        _check_variable(name, expanded)
        self.values[name] = expanded

    def add_services(self) -> None:
        """Add the service variables that are not set yet."""
        for name, value in self._services.items():
            if name in self.values:
                continue
            try:
                self._budget.spend(value, name=name)
            except ArgumentListTooLongError as error:
                raise config_error(
                    f"service variables: {error}; set enableServiceLinks: false"
                ) from error
            self.values[name] = value


@contextlib.contextmanager
def _with_variable_name(name: str) -> Iterator[None]:
    try:
        yield
    except ArgumentListTooLongError as error:
        raise config_error(
            f"environment variable {go_quoted(name[:_MAX_SHOWN_LENGTH])}: {error}; "
            "shorten it, or put it into a volume"
        ) from error


def _add_env_from(container: Container, objects: _Objects, env: _Variables) -> None:
    for env_from in container.env_from or ():
        if (config_map := env_from.config_map_ref) is not None:
            data = objects.config_map(config_map.name, optional=config_map.optional) or {}
            for key, value in data.items():
                env.set(env_from.prefix + key, value)
        elif (secret := env_from.secret_ref) is not None:
            data = objects.secret(secret.name, optional=secret.optional) or {}
            for key, value in data.items():
                env.set(env_from.prefix + key, objects.secret_text(secret.name, key, value))


def _value_from(
    pod: Pod,
    container: Container,
    source: EnvVarSource,
    objects: _Objects,
    context: DownwardContext,
) -> str | None:
    """Return the value from the source; None if the variable is not to be set."""
    if source.field_ref is not None:
        return env_field(pod, source.field_ref, context)
    if source.resource_field_ref is not None:
        return resource_value(pod, container, source.resource_field_ref, context)
    if source.config_map_key_ref is not None or source.secret_key_ref is not None:
        return _key_value(source, objects)
    if source.file_key_ref is not None:
        reason = "this runtime does not read variables from volumes; use a configMap"
        raise unsupported_field("env.valueFrom.fileKeyRef", source.file_key_ref.path, reason)
    return ""


def _key_value(source: EnvVarSource, objects: _Objects) -> str | None:
    if (ref := source.config_map_key_ref) is not None:
        texts = objects.config_map(ref.name, optional=ref.optional)
        if texts is not None and objects.has_key("ConfigMap", ref, texts):
            return texts[ref.key]
    elif (secret_ref := source.secret_key_ref) is not None:
        data = objects.secret(secret_ref.name, optional=secret_ref.optional)
        if data is not None and objects.has_key("Secret", secret_ref, data):
            return objects.secret_text(secret_ref.name, secret_ref.key, data[secret_ref.key])
    return None


def _check_variable(name: str, value: str) -> None:
    """Reject what cannot be passed to a process, even if the API server accepted it."""
    if not name or "=" in name or "\0" in name:
        raise config_error(f"invalid environment variable name {go_quoted(name)}")
    if "\0" in value:
        raise config_error(
            f"the value of environment variable {go_quoted(name)} contains a NUL character"
        )
