"""Validation of metadata, which is the same for every resource.

Upstream: apimachinery v0.36.4, pkg/api/validation/objectmeta.go.
"""

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.meta import ObjectMeta, OwnerReference
from podstatus.kube.validation.field_errors import (
    FieldError,
    forbidden,
    immutable,
    invalid_value,
    invalid_values,
    non_negative,
    required,
    required_name,
    too_long,
)
from podstatus.kube.validation.names import NameRule, dns_label, label_value, qualified_name

_ANNOTATIONS_LIMIT = 256 * 1024
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def validate_meta(
    meta: ObjectMeta, name_rule: NameRule, *, namespaced: bool, qualified: bool = True
) -> list[FieldError]:
    """Return the errors of an object's metadata; `qualified`: finalizers need a qualified name."""
    errors = _validate_name(meta, name_rule)
    if not namespaced and meta.namespace:
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    if namespaced:
        errors += required_name("metadata.namespace", meta.namespace, dns_label)
    errors += non_negative("metadata.generation", meta.generation)
    return errors + _validate_parts(meta, qualified=qualified)


def validate_meta_update(
    new: ObjectMeta, old: ObjectMeta, *, qualified: bool = True
) -> list[FieldError]:
    errors = []
    if old.deletion_timestamp is not None:
        errors += _validate_no_new_finalizers(new, old)
    for field, after, before in (
        ("name", new.name, old.name),
        ("namespace", new.namespace, old.namespace),
        ("uid", new.uid, old.uid),
        ("deletionTimestamp", new.deletion_timestamp, old.deletion_timestamp),
        (
            "deletionGracePeriodSeconds",
            new.deletion_grace_period_seconds,
            old.deletion_grace_period_seconds,
        ),
    ):
        errors += immutable(f"metadata.{field}", after, before)
    return errors + _validate_parts(new, qualified=qualified)


def validate_labels(field: str, labels: dict[str, str] | None) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        errors += invalid_values(field, key, qualified_name(key))
        errors += invalid_values(field, value, label_value(value))
    return errors


def validate_finalizers(field: str, finalizers: tuple[str, ...]) -> list[FieldError]:
    """Return the errors of finalizers outside of the metadata."""
    errors: list[FieldError] = []
    for name in finalizers:
        errors += invalid_values(field, name, qualified_name(name))
        errors += _validate_standard(field, name)
    return errors


def _validate_name(meta: ObjectMeta, rule: NameRule) -> list[FieldError]:
    errors: list[FieldError] = []
    if meta.generate_name:
        prefix = meta.generate_name
        # The generated suffix follows, so a trailing hyphen is replaced by a letter for the check.
        candidate = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        errors += invalid_values("metadata.generateName", prefix, rule(candidate))
    if not meta.name:
        return [*errors, required("metadata.name", "name or generateName is required")]
    return errors + invalid_values("metadata.name", meta.name, rule(meta.name))


def _validate_parts(meta: ObjectMeta, *, qualified: bool) -> list[FieldError]:
    errors = validate_labels("metadata.labels", meta.labels)
    annotations = meta.annotations or {}
    for key in annotations:
        errors += invalid_values("metadata.annotations", key, qualified_name(key.lower()))
    size = sum(len((key + value).encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        errors.append(too_long("metadata.annotations", _ANNOTATIONS_LIMIT))
    errors += _validate_owners(meta.owner_references or ())
    return errors + _validate_finalizers(meta.finalizers or (), qualified=qualified)


def _validate_finalizers(finalizers: tuple[str, ...], *, qualified: bool) -> list[FieldError]:
    field = "metadata.finalizers"
    errors: list[FieldError] = []
    for index, name in enumerate(finalizers):
        errors += invalid_values(field, name, qualified_name(name))
        if qualified:
            errors += _validate_standard(f"{field}[{index}]", name)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid_value("metadata.finalizers", finalizers, detail))
    return errors


def _validate_standard(field: str, finalizer: str) -> list[FieldError]:
    if "/" in finalizer or finalizer in _STANDARD_FINALIZERS:
        return []
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [invalid_value(field, finalizer, detail)]


def _validate_owners(owners: tuple[OwnerReference, ...]) -> list[FieldError]:
    errors: list[FieldError] = []
    field = "metadata.ownerReferences"
    for owner in owners:
        if not owner.api_version.rpartition("/")[2]:
            detail = "version must not be empty"
            errors.append(invalid_value(f"{field}.apiVersion", owner.api_version, detail))
        errors += [
            invalid_value(f"{field}.{name}", "", "must not be empty")
            for name in ("kind", "name", "uid")
            if not getattr(owner, name)
        ]
    controllers = [f"{owner.kind}/{owner.name}" for owner in owners if owner.controller]
    for other in controllers[1:]:
        detail = (
            "Only one reference can have Controller set to true. "
            f'Found "true" in references for {controllers[0]} and {other}'
        )
        errors.append(invalid_value(field, list(map(to_document, owners)), detail))
    return errors


def _validate_no_new_finalizers(new: ObjectMeta, old: ObjectMeta) -> list[FieldError]:
    extra = sorted(set(new.finalizers or ()) - set(old.finalizers or ()))
    if not extra:
        return []
    listed = ", ".join(f'"{name}"' for name in extra)
    detail = (
        "no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{listed}}}"
    )
    return [forbidden("metadata.finalizers", detail)]
