"""The strategy of leases.

Upstream: pkg/registry/coordination/lease/strategy.go, pkg/apis/coordination/validation/
validation.go v1.36.4.
"""

from podstatus.apiserver.strategies.base import Document, Strategy
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.cluster import Lease
from podstatus.kube.validation.field_errors import FieldError, invalid_value

_COORDINATED = ("strategy", "preferredHolder")


class LeaseStrategy(Strategy):
    """The strategy of leases.

    A PUT creates a lease that does not exist, and requires a resource version otherwise.
    """

    kind = Lease
    allow_create_on_update = True
    qualified_finalizers = False
    allow_unconditional_update = False

    def decode(self, document: Document) -> Document:
        """Return the lease without fields of disabled features. Raises MalformedObjectError."""
        lease = super().decode(document)
        for name in _COORDINATED:  # coordinated leader election, off by default in v1.36
            lease["spec"].pop(name, None)
        return lease

    def validate_create(self, document: Document) -> list[FieldError]:
        return super().validate_create(document) + _validate_spec(document)

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[FieldError]:
        return super().validate_update(new, old, subresource) + _validate_spec(new)


def _validate_spec(document: Document) -> list[FieldError]:
    spec = from_document(document, Lease).spec
    errors = []
    seconds, transitions = spec.lease_duration_seconds, spec.lease_transitions
    if seconds is not None and seconds <= 0:
        why = "must be greater than 0"
        errors.append(invalid_value("spec.leaseDurationSeconds", seconds, why))
    if transitions is not None and transitions < 0:
        why = "must be greater than or equal to 0"
        errors.append(invalid_value("spec.leaseTransitions", transitions, why))
    return errors
