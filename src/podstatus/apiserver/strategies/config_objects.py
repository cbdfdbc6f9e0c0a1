"""Strategies of ConfigMaps, Secrets and ServiceAccounts.

Upstream: pkg/registry/core/{configmap,secret,serviceaccount}/strategy.go; ValidateSecret and others
in pkg/apis/core/validation/validation.go v1.36.4.
"""

import base64

import msgspec

from podstatus.apiserver.strategies.base import Document, MalformedObjectError, Strategy
from podstatus.kube.objects.cluster import ConfigMap, Secret, ServiceAccount
from podstatus.kube.validation.field_errors import (
    FieldError,
    forbidden,
    immutable,
    invalid_value,
    invalid_values,
    required,
    too_long,
)
from podstatus.kube.validation.names import config_key

_DATA_LIMIT = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"


class ServiceAccountStrategy(Strategy):
    kind = ServiceAccount


class ConfigMapStrategy(Strategy):
    kind = ConfigMap

    def decode(self, document: Document) -> Document:
        """Also check binaryData to be base64. Raises MalformedObjectError."""
        config_map = super().decode(document)
        check_base64("binaryData", config_map.get("binaryData") or {})
        return config_map

    def validate_content(self, new: Document, old: Document | None) -> list[FieldError]:
        """Return the field errors of the data; that of an immutable ConfigMap must not change."""
        errors = validate_immutable(new, old or {}, ("data", "binaryData"))
        data, binary = new.get("data") or {}, new.get("binaryData") or {}
        for key in data:
            errors += invalid_values(f"data[{key}]", key, config_key(key))
            if key in binary:
                why = "duplicate of key present in binaryData"
                errors.append(invalid_value(f"data[{key}]", key, why))
        for key in binary:
            errors += invalid_values(f"binaryData[{key}]", key, config_key(key))
        size = sum(len(text.encode()) for text in data.values())
        size += sum(len(text) * 3 // 4 for text in binary.values())
        return [*errors, too_long("", _DATA_LIMIT)] if size > _DATA_LIMIT else errors


def validate_immutable(new: Document, old: Document, keys: tuple[str, ...]) -> list[FieldError]:
    """Return an error per changed field if `old` is immutable.

    Covers the fields in `keys`, and `immutable` itself, which cannot be cleared.
    """
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [forbidden("immutable", _IMMUTABLE)]
    return errors + [
        forbidden(key, _IMMUTABLE) for key in keys if (new.get(key) or {}) != (old.get(key) or {})
    ]


def check_base64(field: str, data: Document) -> None:
    """Raise MalformedObjectError unless all values of `data` are base64."""
    for key, text in data.items():
        try:
            base64.b64decode(text, validate=True)
        except ValueError as error:
            raise MalformedObjectError(
                f"cannot decode {field}[{key}] as base64: {error}"
            ) from error


_SERVICE_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
_DOCKER_KEYS = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


class SecretStrategy(Strategy):
    """The strategy of secrets of all built-in types."""

    kind = Secret

    def decode(self, document: Document) -> Document:
        """Merge stringData into data; the default type is Opaque. Raises MalformedObjectError."""
        secret = super().decode(document)
        secret.setdefault("type", "Opaque")
        check_base64("data", secret.get("data") or {})
        texts = secret.pop("stringData", None) or {}
        if texts:
            encoded = {k: base64.b64encode(v.encode()).decode() for k, v in texts.items()}
            secret["data"] = (secret.get("data") or {}) | encoded
        return secret

    def validate_content(self, new: Document, old: Document | None) -> list[FieldError]:
        """Return the field errors of type and data; the type must not change."""
        if old is None:
            return _validate_secret(new)
        errors = immutable("type", new.get("type"), old.get("type"))
        return errors + validate_immutable(new, old, ("data",)) + _validate_secret(new)

    def fields(self, document: Document) -> dict[str, str]:
        return {"type": document.get("type", "")}


def _validate_secret(document: Document) -> list[FieldError]:
    data = document.get("data") or {}
    errors: list[FieldError] = []
    for key in data:
        errors += invalid_values(f"data[{key}]", key, config_key(key))
    if sum(len(base64.b64decode(text)) for text in data.values()) > _DATA_LIMIT:
        errors.append(too_long("data", _DATA_LIMIT))
    kind = document.get("type", "")
    if kind in _DOCKER_KEYS:
        return errors + _validate_docker(_DOCKER_KEYS[kind], data)
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not annotations.get(
        _SERVICE_ACCOUNT_ANNOTATION
    ):
        errors.append(required(f"metadata.annotations[{_SERVICE_ACCOUNT_ANNOTATION}]"))
    return errors + [required(f"data[{key}]") for key in _missing_keys(kind, data)]


def _missing_keys(kind: str, data: Document) -> list[str]:
    """Return the keys that a secret of this type requires and lacks."""
    match kind:
        case "kubernetes.io/basic-auth":
            either = ["username", "password"]
            return [] if set(either) & set(data) else either
        case "kubernetes.io/ssh-auth":
            return [] if data.get("ssh-privatekey") else ["ssh-privatekey"]
        case "kubernetes.io/tls":
            return [key for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _validate_docker(key: str, data: Document) -> list[FieldError]:
    if key not in data:
        return [required(f"data[{key}]")]
    try:
        document = msgspec.json.decode(base64.b64decode(data[key]))
    except (msgspec.DecodeError, UnicodeError) as error:
        return [invalid_value(f"data[{key}]", "<secret contents redacted>", str(error))]
    if document is None or isinstance(document, dict):
        return []
    return [invalid_value(f"data[{key}]", "<secret contents redacted>", "must be an object")]
