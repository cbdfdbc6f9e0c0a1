"""The strategy of events: validation of old and new style, selectable fields.

Upstream: pkg/registry/core/event/strategy.go, pkg/apis/core/validation/events.go v1.36.4.
"""

from podstatus.apiserver.strategies.base import Document, Strategy
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.event import Event
from podstatus.kube.validation.field_errors import (
    FieldError,
    invalid_value,
    invalid_values,
    required,
)
from podstatus.kube.validation.names import dns_subdomain, path_segment, qualified_name

_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_MAX_FIELD_BYTES = 128
_MAX_NOTE_BYTES = 1024


class EventStrategy(Strategy):
    """The strategy of events. A PUT creates an event that does not exist."""

    kind = Event
    allow_create_on_update = True
    qualified_finalizers = False
    name_rule = staticmethod(path_segment)

    def validate_create(self, document: Document) -> list[FieldError]:
        """Return the field errors of a new event; metadata is validated only if there are none."""
        return self.validate_content(document, None) or super().validate_create(document)

    def validate_content(self, new: Document, old: Document | None) -> list[FieldError]:
        del old
        event = from_document(new, Event)
        errors = _validate_new_event(event) if event.event_time else _validate_legacy_event(event)
        namespace = event.metadata.namespace
        return errors + invalid_values("namespace", namespace, dns_subdomain(namespace))

    def fields(self, document: Document) -> dict[str, str]:
        involved = document.get("involvedObject") or {}
        reporter = document.get("reportingComponent", "")
        source = (document.get("source") or {}).get("component")
        return {f"involvedObject.{key}": involved.get(key, "") for key in _REFERENCE} | {
            "reason": document.get("reason", ""),
            "reportingComponent": reporter,
            "source": source or reporter,
            "type": document.get("type", ""),
        }


def _validate_legacy_event(event: Event) -> list[FieldError]:
    """Validate an event of the old style, which has no eventTime."""
    involved, namespace = event.involved_object.namespace, event.metadata.namespace
    if involved == namespace or (not involved and namespace in ("", "default")):
        return []
    return [_namespace_mismatch(involved)]


def _validate_new_event(event: Event) -> list[FieldError]:
    errors = []
    involved, namespace = event.involved_object.namespace, event.metadata.namespace
    if not involved and namespace not in ("default", "kube-system"):
        errors.append(_namespace_mismatch(involved))
    reporter = event.reporting_component
    if not reporter:
        errors.append(required("reportingComponent"))
    errors += invalid_values("reportingComponent", reporter, qualified_name(reporter))
    for field, text in (
        ("reportingInstance", event.reporting_instance),
        ("action", event.action),
        ("reason", event.reason),
    ):
        if not text:
            errors.append(required(field))
        errors += _validate_length(field, text, _MAX_FIELD_BYTES)
    return errors + _validate_length("message", event.message, _MAX_NOTE_BYTES)


def _validate_length(field: str, text: str, limit: int) -> list[FieldError]:
    if len(text.encode()) <= limit:
        return []
    return [invalid_value(field, "", f"can have at most {limit} characters")]


def _namespace_mismatch(namespace: str) -> FieldError:
    why = "does not match event.namespace"
    return invalid_value("involvedObject.namespace", namespace, why)
