"""What is particular about secrets.

Upstream: pkg/registry/core/secret/strategy.go, ValidateSecret, pkg/apis/core/validation/
validation.go v1.36.4.
"""

import base64

import msgspec

from podstatus.apiserver.plain_rules import Plain, check_base64, validate_immutable
from podstatus.apiserver.shapes import shaped
from podstatus.apiserver.strategy import Document
from podstatus.kube.objects.cluster import Secret
from podstatus.kube.validation.field_errors import (
    Cause,
    invalid_value,
    invalid_values,
    required,
    too_long,
    unchanged,
)
from podstatus.kube.validation.names import config_key

_DATA_LIMIT = 1024 * 1024
_ACCOUNT = "kubernetes.io/service-account.name"
_DOCKER = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


class SecretStrategy(Plain):
    """The rules of secrets."""

    kind = Secret

    def decode(self, document: Document) -> Document:
        """The secret as it is read: text becomes data, the type is Opaque unless it says else."""
        secret = shaped(document, Secret)
        secret.setdefault("type", "Opaque")
        check_base64("data", secret.get("data") or {})
        texts = secret.pop("stringData", None) or {}
        if texts:
            encoded = {k: base64.b64encode(v.encode()).decode() for k, v in texts.items()}
            secret["data"] = (secret.get("data") or {}) | encoded
        return secret

    def validate_create(self, document: Document) -> list[Cause]:
        """What is wrong with a new secret."""
        return super().validate_create(document) + _validate(document)

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[Cause]:
        """What is wrong with a changed secret."""
        found = super().validate_update(new, old, subresource)
        found += unchanged("type", new.get("type"), old.get("type"))
        return found + validate_immutable(new, old, ("data",)) + _validate(new)

    def fields(self, document: Document) -> dict[str, str]:
        """What secrets can be selected by."""
        return {"type": document.get("type", "")}


def _validate(document: Document) -> list[Cause]:
    data = document.get("data") or {}
    found: list[Cause] = []
    for key in data:
        found += invalid_values(f"data[{key}]", key, config_key(key))
    if sum(len(base64.b64decode(text)) for text in data.values()) > _DATA_LIMIT:
        found.append(too_long("data", _DATA_LIMIT))
    kind = document.get("type", "")
    if kind in _DOCKER:
        return found + _validate_docker(_DOCKER[kind], data)
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        found.append(required(f"metadata.annotations[{_ACCOUNT}]"))
    return found + [required(f"data[{key}]") for key in _missing(kind, data)]


def _missing(kind: str, data: Document) -> list[str]:
    """The keys that a secret of this type needs and does not have."""
    match kind:
        case "kubernetes.io/basic-auth":
            either = ["username", "password"]
            return [] if set(either) & set(data) else either
        case "kubernetes.io/ssh-auth":
            return [] if data.get("ssh-privatekey") else ["ssh-privatekey"]
        case "kubernetes.io/tls":
            return [key for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _validate_docker(key: str, data: Document) -> list[Cause]:
    if key not in data:
        return [required(f"data[{key}]")]
    try:
        read = msgspec.json.decode(base64.b64decode(data[key]))
    except (msgspec.DecodeError, UnicodeError) as error:
        return [invalid_value(f"data[{key}]", "<secret contents redacted>", str(error))]
    if read is None or isinstance(read, dict):
        return []
    return [invalid_value(f"data[{key}]", "<secret contents redacted>", "must be an object")]
