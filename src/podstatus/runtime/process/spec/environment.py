"""The environment of a container: what its spec says, and three variables of ours.

Upstream: makeEnvironmentVariables, pkg/kubelet/kubelet_pods.go v1.36.4. Names from `envFrom` are
taken as they are, as v1.36 does. There are no services here, so there are no variables of theirs.
"""

import base64
import binascii
import contextlib
from collections.abc import Iterator, Mapping

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
from podstatus.runtime.process.spec.config_errors import config_error, unsupported_field
from podstatus.runtime.process.spec.downward_api import DownwardContext, env_field, resource_value

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What containers commonly have; nothing of the agent's own."""
_MAX_SHOWN_LENGTH = 100
"""Characters of a name that a message shows."""


class ReferencedObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that a spec names, as the API server has them; None for those it has not."""

    config_maps: Mapping[str, ConfigMap | None] = {}
    secrets: Mapping[str, Secret | None] = {}


def referenced_names(container: Container) -> tuple[set[str], set[str]]:
    """The names of the configMaps and of the secrets that an environment is made of."""
    config_maps, secrets = set(), set()
    for whole in container.env_from or ():
        if whole.config_map_ref is not None:
            config_maps.add(whole.config_map_ref.name)
        elif whole.secret_ref is not None:
            secrets.add(whole.secret_ref.name)
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
    budget: ExecBudget | None = None,
) -> dict[str, str]:
    """The variables of the spec: what commands, arguments and subPathExpr may refer to.

    They are taken from the budget as they are made. Raises CannotStartError.
    """
    known = _Objects(pod.namespace, objects)
    env = _Variables(budget or ExecBudget())
    _add_env_from(container, known, env)
    for variable in container.env or ():
        if variable.value:
            env.expand(variable.name, variable.value)
        elif variable.value_from is None:
            env.set(variable.name, "")
        else:
            value = _value_from(pod, container, variable.value_from, known, context)
            if value is not None:
                env.set(variable.name, value)
    return env.values


def full_environment(declared: Mapping[str, str], *, hostname: str, home: str) -> dict[str, str]:
    """All that a container sees: what was declared, over what every container has."""
    return {"PATH": DEFAULT_PATH, "HOME": home, "HOSTNAME": hostname, **declared}


def secret_bytes(namespace: str, name: str, key: str, text: str) -> bytes:
    """A value of a secret, which travels in base64. Raises CannotStartError."""
    return _decode_base64(f"key {key} in Secret {namespace}/{name}", text)


def binary_bytes(namespace: str, name: str, key: str, text: str) -> bytes:
    """A binary value of a configMap, which travels in base64. Raises CannotStartError."""
    return _decode_base64(f"key {key} in ConfigMap {namespace}/{name}", text)


class _Objects:
    """The objects of a namespace, by what may be asked of them."""

    def __init__(self, namespace: str, objects: ReferencedObjects) -> None:
        self._namespace = namespace
        self._objects = objects

    def config_map(self, name: str, *, optional: bool | None) -> dict[str, str] | None:
        found = self._objects.config_maps.get(name)
        if found is None:
            _check_optional("configmap", name, optional=optional)
            return None
        return found.data or {}

    def secret(self, name: str, *, optional: bool | None) -> dict[str, str] | None:
        found = self._objects.secrets.get(name)
        if found is None:
            _check_optional("secret", name, optional=optional)
            return None
        return found.data or {}

    def secret_text(self, name: str, key: str, value: str) -> str:
        data = secret_bytes(self._namespace, name, key, value)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise config_error(
                f"key {key} in Secret {self._namespace}/{name} is no UTF-8 text and cannot be a "
                "variable; mount the secret as a volume instead"
            ) from error

    def has_key(
        self, kind: str, ref: ConfigMapKeySelector | SecretKeySelector, data: Mapping[str, str]
    ) -> bool:
        if ref.key not in data and not ref.optional:
            where = f"{self._namespace}/{ref.name}"
            raise config_error(f"couldn't find key {ref.key} in {kind} {where}")
        return ref.key in data


class _Variables:
    """Variables that can be handed to a process, each checked as it is set."""

    def __init__(self, budget: ExecBudget) -> None:
        self.values: dict[str, str] = {}
        self._budget = budget

    def set(self, name: str, value: str) -> None:
        _check_variable(name, value)
        with _with_variable_name(name):
            self._budget.spend(value, name=name)
        self.values[name] = value

    def expand(self, name: str, text: str) -> None:
        with _with_variable_name(name):
            expanded = self._budget.expand(text, self.values, name=name)
        _check_variable(name, expanded)
        self.values[name] = expanded


@contextlib.contextmanager
def _with_variable_name(name: str) -> Iterator[None]:
    try:
        yield
    except ArgumentListTooLongError as error:
        raise config_error(
            f"environment variable {go_quoted(name[:_MAX_SHOWN_LENGTH])}: {error}; "
            "shorten it, or put it into a volume"
        ) from error


def _check_optional(kind: str, name: str, *, optional: bool | None) -> None:
    if not optional:
        raise config_error(f"{kind} {go_quoted(name)} not found")


def _add_env_from(container: Container, objects: _Objects, env: _Variables) -> None:
    for whole in container.env_from or ():
        if (config_map := whole.config_map_ref) is not None:
            data = objects.config_map(config_map.name, optional=config_map.optional) or {}
            for key, value in data.items():
                env.set(whole.prefix + key, value)
        elif (secret := whole.secret_ref) is not None:
            data = objects.secret(secret.name, optional=secret.optional) or {}
            for key, value in data.items():
                env.set(whole.prefix + key, objects.secret_text(secret.name, key, value))


def _value_from(
    pod: Pod,
    container: Container,
    source: EnvVarSource,
    objects: _Objects,
    context: DownwardContext,
) -> str | None:
    """The value of a variable that is taken from elsewhere; None if it is not to be set."""
    if source.field_ref is not None:
        return env_field(pod, source.field_ref, context)
    if source.resource_field_ref is not None:
        return resource_value(pod, container, source.resource_field_ref, context)
    if source.config_map_key_ref is not None or source.secret_key_ref is not None:
        return _key_value(source, objects)
    if source.file_key_ref is not None:
        why = "this runtime reads no variables from files of volumes; use a configMap"
        raise unsupported_field("env.valueFrom.fileKeyRef", source.file_key_ref.path, why)
    return ""


def _key_value(source: EnvVarSource, objects: _Objects) -> str | None:
    if (ref := source.config_map_key_ref) is not None:
        texts = objects.config_map(ref.name, optional=ref.optional)
        if texts is not None and objects.has_key("ConfigMap", ref, texts):
            return texts[ref.key]
    elif (wanted := source.secret_key_ref) is not None:
        data = objects.secret(wanted.name, optional=wanted.optional)
        if data is not None and objects.has_key("Secret", wanted, data):
            return objects.secret_text(wanted.name, wanted.key, data[wanted.key])
    return None


def _check_variable(name: str, value: str) -> None:
    """What no process can be given, whatever the API server let pass."""
    if not name or "=" in name or "\0" in name:
        raise config_error(f"invalid environment variable name {go_quoted(name)}")
    if "\0" in value:
        raise config_error(f"the value of environment variable {go_quoted(name)} has a NUL in it")


def _decode_base64(what: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise config_error(f"the value of {what} is not base64; write the object again") from error
