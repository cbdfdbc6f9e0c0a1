"""The strategy of leases.

Upstream: pkg/registry/coordination/lease/strategy.go, pkg/apis/coordination/validation/
validation.go v1.36.4.
"""

from podstatus.apiserver.strategies.base import Document, Strategy
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.cluster import Lease
from podstatus.kube.validation.field_errors import FieldError, invalid_value, non_negative

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

    def validate_content(self, new: Document, old: Document | None) -> list[FieldError]:
        del old
        spec = from_document(new, Lease).spec
        errors = []
        if spec.lease_duration_seconds is not None and spec.lease_duration_seconds <= 0:
            field, why = "spec.leaseDurationSeconds", "must be greater than 0"
            errors.append(invalid_value(field, spec.lease_duration_seconds, why))
        return errors + non_negative("spec.leaseTransitions", spec.lease_transitions or 0)
