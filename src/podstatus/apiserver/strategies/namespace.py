"""The strategy of namespaces.

Upstream: pkg/registry/core/namespace/strategy.go, ValidateNamespace, ValidateNamespaceStatusUpdate,
pkg/apis/core/validation/validation.go v1.36.4.
"""

from podstatus.apiserver.strategies.base import Document, Strategy, prepare_meta_update, with_meta
from podstatus.kube.objects.cluster import Namespace
from podstatus.kube.validation.field_errors import FieldError, invalid_value
from podstatus.kube.validation.meta import validate_finalizers
from podstatus.kube.validation.names import dns_label

_NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    """The strategy of namespaces: phase, finalizers and the name label."""

    kind = Namespace
    name_rule = staticmethod(dns_label)
    namespaced = False

    def decode(self, document: Document) -> Document:
        """Return the namespace with its name label and a phase. Raises MalformedObjectError."""
        namespace = super().decode(document)
        namespace["status"].setdefault("phase", "Active")
        return _with_name_label(namespace)

    def prepare_create(self, document: Document) -> Document:
        """Return a new namespace: Active, with the `kubernetes` finalizer."""
        namespace = self.decode(document)
        finalizers = namespace["spec"].get("finalizers") or []
        if "kubernetes" not in finalizers:
            finalizers = [*finalizers, "kubernetes"]
        return namespace | {
            "spec": namespace["spec"] | {"finalizers": finalizers},
            "status": {"phase": "Active"},
        }

    def prepare_update(self, new: Document, old: Document, subresource: str) -> Document:
        """Return the namespace with its old finalizers.

        A status update keeps the old spec, any other update the old status.
        """
        namespace = _with_name_label(prepare_meta_update(new, old))
        if subresource == "status":
            return namespace | {"spec": old.get("spec") or {}}
        others = {key: value for key, value in namespace["spec"].items() if key != "finalizers"}
        finalizers = (old.get("spec") or {}).get("finalizers")
        spec = others | ({"finalizers": finalizers} if finalizers else {})
        return namespace | {"spec": spec, "status": old.get("status") or {}}

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[FieldError]:
        errors = super().validate_update(new, old, subresource)
        return errors + (_validate_phase(new) if subresource == "status" else [])

    def validate_content(self, new: Document, old: Document | None) -> list[FieldError]:
        del old
        finalizers = (new.get("spec") or {}).get("finalizers") or []
        return validate_finalizers("spec.finalizers", tuple(finalizers))

    def fields(self, document: Document) -> dict[str, str]:
        return {"status.phase": (document.get("status") or {}).get("phase", "")}


def _with_name_label(namespace: Document) -> Document:
    meta = namespace.get("metadata") or {}
    if not meta.get("name"):
        return namespace
    return with_meta(namespace, labels=(meta.get("labels") or {}) | {_NAME_LABEL: meta["name"]})


def _validate_phase(namespace: Document) -> list[FieldError]:
    phase = (namespace.get("status") or {}).get("phase", "")
    deleted = bool((namespace.get("metadata") or {}).get("deletionTimestamp"))
    expected = "Terminating" if deleted else "Active"
    if phase == expected:
        return []
    why = f"may only be '{expected}' if `deletionTimestamp` is {'not ' if deleted else ''}empty"
    return [invalid_value("status.Phase", phase, why)]
