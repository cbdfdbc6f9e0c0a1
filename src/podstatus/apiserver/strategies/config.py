"""Strategies of ConfigMaps, Secrets and ServiceAccounts, and the base of the other simple ones.

Upstream: pkg/registry/core/{configmap,secret,serviceaccount}/strategy.go; ValidateSecret and others
in pkg/apis/core/validation/validation.go v1.36.4.
"""

import base64

import msgspec

from podstatus.apiserver.strategies.base import (
    DeleteOptions,
    Document,
    MalformedObjectError,
    prepare_meta_update,
    roundtrip,
    unknown_fields,
)
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.encoding.wire import Wire
from podstatus.kube.objects.cluster import ConfigMap, KubeObject, Secret, ServiceAccount
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.validation.field_errors import (
    FieldError,
    forbidden,
    immutable,
    invalid_value,
    invalid_values,
    required,
    too_long,
)
from podstatus.kube.validation.meta import validate_meta, validate_meta_update
from podstatus.kube.validation.names import NameRule, config_key, dns_subdomain

_DATA_LIMIT = 1024 * 1024
_NAME_LABEL = "kubernetes.io/metadata.name"
_IMMUTABLE = "field is immutable when `immutable` is set"


class BaseStrategy:
    """Rules that only metadata has; the others build on it."""

    allow_create_on_update = False
    allow_unconditional_update = True
    kind: type[Wire] = KubeObject
    name_rule: NameRule = staticmethod(dns_subdomain)
    namespaced = True
    qualified_finalizers = True

    def decode(self, document: Document) -> Document:
        """The object as it is read: types checked, defaults filled in. Raises ShapeError."""
        return roundtrip(document, self.kind)

    def decode_patched(self, document: Document, old: Document) -> Document:
        """The object as it is read after a patch. Raises ShapeError."""
        del old
        return self.decode(document)

    def unknown_fields(self, document: Document) -> list[str]:
        """The paths of fields that such objects do not have."""
        return list(unknown_fields(document, self.kind))

    def prepare_create(self, document: Document) -> Document:
        """The object as it is stored at first."""
        return self.decode(document)

    def validate_create(self, document: Document) -> list[FieldError]:
        """What is wrong with a new object."""
        return validate_meta(
            _meta(document),
            self.name_rule,
            namespaced=self.namespaced,
            qualified=self.qualified_finalizers,
        )

    def prepare_update(self, new: Document, old: Document, subresource: str) -> Document:
        """The object as an update leaves it."""
        del subresource
        return prepare_meta_update(self.decode(new), old)

    def update_decoded(self, new: Document, old: Document, subresource: str) -> Document:
        """The same for an object that was decoded: doing it again changes nothing."""
        return self.prepare_update(new, old, subresource)

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[FieldError]:
        """What is wrong with a changed object."""
        del subresource
        qualified = self.qualified_finalizers
        return validate_meta_update(_meta(new), _meta(old), qualified=qualified)

    def grace_period(self, document: Document, options: DeleteOptions) -> int:
        """It goes at once."""
        del document, options
        return 0

    def validate_delete(self, document: Document, options: DeleteOptions) -> list[FieldError]:
        """It has no rules of its own about DELETE."""
        del document, options
        return []

    def fields(self, document: Document) -> dict[str, str]:
        """Nothing but its name and namespace."""
        del document
        return {}


class ServiceAccountStrategy(BaseStrategy):
    """The rules of service accounts."""

    kind = ServiceAccount


class ConfigMapStrategy(BaseStrategy):
    """The rules of configmaps."""

    kind = ConfigMap

    def decode(self, document: Document) -> Document:
        """The configmap as it is read. Raises ShapeError."""
        read = super().decode(document)
        check_base64("binaryData", read.get("binaryData") or {})
        return read

    def validate_create(self, document: Document) -> list[FieldError]:
        """What is wrong with a new configmap."""
        return super().validate_create(document) + _validate_config_map(document)

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[FieldError]:
        """What is wrong with a changed configmap; one that is immutable stays as it is."""
        found = super().validate_update(new, old, subresource)
        found += validate_immutable(new, old, ("data", "binaryData"))
        return found + _validate_config_map(new)


def _meta(document: Document) -> ObjectMeta:
    return from_document(document.get("metadata") or {}, ObjectMeta)


def _validate_config_map(document: Document) -> list[FieldError]:
    data, binary = document.get("data") or {}, document.get("binaryData") or {}
    found: list[FieldError] = []
    for key in data:
        found += invalid_values(f"data[{key}]", key, config_key(key))
        if key in binary:
            why = "duplicate of key present in binaryData"
            found.append(invalid_value(f"data[{key}]", key, why))
    for key in binary:
        found += invalid_values(f"binaryData[{key}]", key, config_key(key))
    size = sum(len(text.encode()) for text in data.values())
    size += sum(len(text) * 3 // 4 for text in binary.values())
    return [*found, too_long("", _DATA_LIMIT)] if size > _DATA_LIMIT else found


def validate_immutable(new: Document, old: Document, keys: tuple[str, ...]) -> list[FieldError]:
    """What is immutable stays so, and so do the fields of these names."""
    if not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [forbidden("immutable", _IMMUTABLE)]
    return found + [
        forbidden(key, _IMMUTABLE) for key in keys if (new.get(key) or {}) != (old.get(key) or {})
    ]


def check_base64(field: str, data: Document) -> None:
    """Raise ShapeError unless all values are base64."""
    for key, text in data.items():
        try:
            base64.b64decode(text, validate=True)
        except ValueError as error:
            raise MalformedObjectError(
                f"cannot read {field}[{key}]: not base64: {error}"
            ) from error


_SERVICE_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
_DOCKER_KEYS = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


class SecretStrategy(BaseStrategy):
    """The rules of secrets."""

    kind = Secret

    def decode(self, document: Document) -> Document:
        """The secret as it is read: text becomes data, the type is Opaque unless it says else."""
        secret = roundtrip(document, Secret)
        secret.setdefault("type", "Opaque")
        check_base64("data", secret.get("data") or {})
        texts = secret.pop("stringData", None) or {}
        if texts:
            encoded = {k: base64.b64encode(v.encode()).decode() for k, v in texts.items()}
            secret["data"] = (secret.get("data") or {}) | encoded
        return secret

    def validate_create(self, document: Document) -> list[FieldError]:
        """What is wrong with a new secret."""
        return super().validate_create(document) + _validate_secret(document)

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[FieldError]:
        """What is wrong with a changed secret."""
        found = super().validate_update(new, old, subresource)
        found += immutable("type", new.get("type"), old.get("type"))
        return found + validate_immutable(new, old, ("data",)) + _validate_secret(new)

    def fields(self, document: Document) -> dict[str, str]:
        """What secrets can be selected by."""
        return {"type": document.get("type", "")}


def _validate_secret(document: Document) -> list[FieldError]:
    data = document.get("data") or {}
    found: list[FieldError] = []
    for key in data:
        found += invalid_values(f"data[{key}]", key, config_key(key))
    if sum(len(base64.b64decode(text)) for text in data.values()) > _DATA_LIMIT:
        found.append(too_long("data", _DATA_LIMIT))
    kind = document.get("type", "")
    if kind in _DOCKER_KEYS:
        return found + _validate_docker(_DOCKER_KEYS[kind], data)
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not annotations.get(
        _SERVICE_ACCOUNT_ANNOTATION
    ):
        found.append(required(f"metadata.annotations[{_SERVICE_ACCOUNT_ANNOTATION}]"))
    return found + [required(f"data[{key}]") for key in _missing_keys(kind, data)]


def _missing_keys(kind: str, data: Document) -> list[str]:
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


def _validate_docker(key: str, data: Document) -> list[FieldError]:
    if key not in data:
        return [required(f"data[{key}]")]
    try:
        read = msgspec.json.decode(base64.b64decode(data[key]))
    except (msgspec.DecodeError, UnicodeError) as error:
        return [invalid_value(f"data[{key}]", "<secret contents redacted>", str(error))]
    if read is None or isinstance(read, dict):
        return []
    return [invalid_value(f"data[{key}]", "<secret contents redacted>", "must be an object")]
