"""Validation of updates to a pod's metadata and spec.

Upstream: ValidatePodUpdate, pkg/apis/core/validation/validation.go v1.36.4. While a pod has
scheduling gates, upstream allows narrowing of its node selector and node affinity; this
implementation of the node selector only.
"""

from msgspec import structs

from podstatus.kube.encoding.equality import semantic_equal
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import CONFIG_MIRROR, Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.validation.field_errors import (
    FieldError,
    forbidden,
    invalid_value,
    range_message,
    required,
)
from podstatus.kube.validation.meta import validate_meta_update
from podstatus.kube.validation.pod_spec import validate_pod
from podstatus.kube.validation.tolerations import validate_added_tolerations

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_DEADLINE_LIMIT = 2**31 - 1
_MUTABLE_FIELDS = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)

_Containers = tuple[Container, ...]


def validate_pod_update(new: Pod, old: Pod) -> list[FieldError]:
    """Return the field errors of an update of a pod's metadata and spec."""
    errors = validate_meta_update(new.metadata, old.metadata)
    errors += validate_pod(new)
    errors += validate_annotation_update(new, old)
    for kind, after, before in (
        ("containers", new.spec.containers or (), old.spec.containers or ()),
        ("initContainers", new.spec.init_containers or (), old.spec.init_containers or ()),
    ):
        if len(after) != len(before):
            why = "pod updates may not add or remove containers"
            return [*errors, forbidden(f"spec.{kind}", why)]
        errors += [
            required(f"spec.{kind}[{index}].image")
            for index, container in enumerate(after)
            if not container.image
        ]
    deadline = _validate_deadline(new.spec, old.spec)
    if deadline and new.spec.active_deadline_seconds is not None:
        return errors + deadline
    return errors + deadline + _validate_spec(new.spec, old.spec)


def validate_annotation_update(new: Pod, old: Pod) -> list[FieldError]:
    """Return an error per AppArmor or mirror annotation that changed: these are immutable."""
    after, before = new.metadata.annotations or {}, old.metadata.annotations or {}
    errors = []
    for key in sorted(after.keys() | before.keys()):
        if after.get(key) == before.get(key):
            continue
        action = "remove or update" if key in before else "add"
        field = f"metadata.annotations[{key}]"
        if key.startswith(_APP_ARMOR):
            errors.append(forbidden(field, f"may not {action} AppArmor annotations"))
        if key == CONFIG_MIRROR:
            errors.append(forbidden(field, f"may not {action} mirror pod annotation"))
    return errors


def _validate_deadline(new: PodSpec, old: PodSpec) -> list[FieldError]:
    field = "spec.activeDeadlineSeconds"
    after, before = new.active_deadline_seconds, old.active_deadline_seconds
    if after is None:
        why = "must not update from a positive integer to nil value"
        return [] if before is None else [invalid_value(field, None, why)]
    if not 0 <= after <= _DEADLINE_LIMIT:
        return [invalid_value(field, after, range_message(0, _DEADLINE_LIMIT))]
    if before is not None and before < after:
        return [invalid_value(field, after, "must be less than or equal to previous value")]
    return []


def _validate_spec(new: PodSpec, old: PodSpec) -> list[FieldError]:
    errors = validate_added_tolerations(
        "spec.tolerations", new.tolerations or (), old.tolerations or ()
    )
    gates = {gate.name for gate in old.scheduling_gates or ()}
    for index, gate in enumerate(new.scheduling_gates or ()):
        if gate.name not in gates:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.name}'"
            errors.append(forbidden(f"spec.schedulingGates[{index}].name", why))
    munged = _munge_mutable_fields(new, old)
    if gates:
        errors += _validate_selector(new, old)
        munged = structs.replace(munged, node_selector=old.node_selector)
    if not semantic_equal(munged, old):
        listed = ",".join(_MUTABLE_FIELDS)
        why = f"pod updates may not change fields other than {listed}"
        errors.append(forbidden("spec", f"{why}\n{_changed_fields(munged, old)}"))
    return errors


def _munge_mutable_fields(new: PodSpec, old: PodSpec) -> PodSpec:
    """Return the new spec with every mutable field reset to its old value."""
    return structs.replace(
        new,
        containers=_with_old_images(new.containers or (), old.containers or ()),
        init_containers=_with_old_images(new.init_containers or (), old.init_containers or ()),
        active_deadline_seconds=old.active_deadline_seconds,
        scheduling_gates=old.scheduling_gates,
        tolerations=old.tolerations,
    )


def _with_old_images(new: _Containers, old: _Containers) -> _Containers:
    pairs = zip(new, old, strict=True)
    return tuple(structs.replace(after, image=before.image) for after, before in pairs)


def _validate_selector(new: PodSpec, old: PodSpec) -> list[FieldError]:
    after, before = new.node_selector or {}, old.node_selector or {}
    if all(after.get(key) == value for key, value in before.items()):
        return []
    why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [invalid_value("spec.nodeSelector", after, why)]


def _changed_fields(new: PodSpec, old: PodSpec) -> str:
    """Name the changed fields; upstream prints a diff of both specs here."""
    names = zip(old.__struct_encode_fields__, old.__struct_fields__, strict=True)
    changed = [
        wire for wire, name in names if not semantic_equal(getattr(new, name), getattr(old, name))
    ]
    return f"changed: {', '.join(f'spec.{name}' for name in changed)}"
