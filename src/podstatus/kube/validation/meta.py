"""Rules for metadata, which are the same for every resource.

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
    too_long,
)
from podstatus.kube.validation.names import NameRule, dns_label, label_value, qualified_name

_ANNOTATIONS_LIMIT = 256 * 1024
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def validate_meta(
    meta: ObjectMeta, name_rule: NameRule, *, namespaced: bool, qualified: bool = True
) -> list[FieldError]:
    """What is wrong with the metadata of an object; finalizers are `qualified` in the core."""
    found = _validate_name(meta, name_rule)
    if not namespaced and meta.namespace:
        found.append(forbidden("metadata.namespace", "not allowed on this type"))
    if namespaced and not meta.namespace:
        found.append(required("metadata.namespace"))
    elif namespaced:
        found += invalid_values("metadata.namespace", meta.namespace, dns_label(meta.namespace))
    found += non_negative("metadata.generation", meta.generation)
    return found + _validate_parts(meta, qualified=qualified)


def validate_meta_update(
    new: ObjectMeta, old: ObjectMeta, *, qualified: bool = True
) -> list[FieldError]:
    """What is wrong with a change of metadata."""
    found = []
    if old.deletion_timestamp is not None:
        found += _validate_no_new_finalizers(new, old)
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
        found += immutable(f"metadata.{field}", after, before)
    return found + _validate_parts(new, qualified=qualified)


def validate_labels(field: str, labels: dict[str, str] | None) -> list[FieldError]:
    """What is wrong with labels."""
    found: list[FieldError] = []
    for key, value in (labels or {}).items():
        found += invalid_values(field, key, qualified_name(key))
        found += invalid_values(field, value, label_value(value))
    return found


def validate_finalizers(field: str, finalizers: tuple[str, ...]) -> list[FieldError]:
    """What is wrong with finalizers that are not those of the metadata."""
    found: list[FieldError] = []
    for name in finalizers:
        found += invalid_values(field, name, qualified_name(name))
        found += _validate_standard(field, name)
    return found


def _validate_name(meta: ObjectMeta, rule: NameRule) -> list[FieldError]:
    found: list[FieldError] = []
    if meta.generate_name:
        prefix = meta.generate_name
        # A letter will come where the prefix has its last hyphen.
        tried = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        found += invalid_values("metadata.generateName", prefix, rule(tried))
    if not meta.name:
        return [*found, required("metadata.name", "name or generateName is required")]
    return found + invalid_values("metadata.name", meta.name, rule(meta.name))


def _validate_parts(meta: ObjectMeta, *, qualified: bool) -> list[FieldError]:
    found = validate_labels("metadata.labels", meta.labels)
    annotations = meta.annotations or {}
    for key in annotations:
        found += invalid_values("metadata.annotations", key, qualified_name(key.lower()))
    size = sum(len((key + value).encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        found.append(too_long("metadata.annotations", _ANNOTATIONS_LIMIT))
    found += _validate_owners(meta.owner_references or ())
    return found + _validate_finalizers(meta.finalizers or (), qualified=qualified)


def _validate_finalizers(finalizers: tuple[str, ...], *, qualified: bool) -> list[FieldError]:
    field = "metadata.finalizers"
    found: list[FieldError] = []
    for index, name in enumerate(finalizers):
        found += invalid_values(field, name, qualified_name(name))
        if qualified:
            found += _validate_standard(f"{field}[{index}]", name)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(invalid_value("metadata.finalizers", finalizers, why))
    return found


def _validate_standard(field: str, finalizer: str) -> list[FieldError]:
    if "/" in finalizer or finalizer in _STANDARD_FINALIZERS:
        return []
    why = "name is neither a standard finalizer name nor is it fully qualified"
    return [invalid_value(field, finalizer, why)]


def _validate_owners(owners: tuple[OwnerReference, ...]) -> list[FieldError]:
    found: list[FieldError] = []
    field = "metadata.ownerReferences"
    for owner in owners:
        if not owner.api_version.rpartition("/")[2]:
            why = "version must not be empty"
            found.append(invalid_value(f"{field}.apiVersion", owner.api_version, why))
        found += [
            invalid_value(f"{field}.{name}", "", "must not be empty")
            for name in ("kind", "name", "uid")
            if not getattr(owner, name)
        ]
    controllers = [f"{owner.kind}/{owner.name}" for owner in owners if owner.controller]
    for other in controllers[1:]:
        why = (
            "Only one reference can have Controller set to true. "
            f'Found "true" in references for {controllers[0]} and {other}'
        )
        found.append(invalid_value(field, list(map(to_document, owners)), why))
    return found


def _validate_no_new_finalizers(new: ObjectMeta, old: ObjectMeta) -> list[FieldError]:
    extra = sorted(set(new.finalizers or ()) - set(old.finalizers or ()))
    if not extra:
        return []
    listed = ", ".join(f'"{name}"' for name in extra)
    why = (
        "no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{listed}}}"
    )
    return [forbidden("metadata.finalizers", why)]
