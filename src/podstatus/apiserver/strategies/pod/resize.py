"""The pods/resize subresource: change the CPU and memory of a running pod's containers.

Upstream: ValidatePodResize, pkg/apis/core/validation/validation.go; dropNonResizeUpdates,
pkg/registry/core/pod/strategy.go v1.36.4.
"""

from collections.abc import Mapping

from msgspec import structs

from podstatus.apiserver.strategies.base import Document
from podstatus.kube.encoding.equality import semantic_equal
from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod, is_mirror_pod
from podstatus.kube.qos import compute_pod_qos, get_pod_qos
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.validation.field_errors import FieldError, forbidden, invalid_value
from podstatus.kube.validation.meta import validate_meta_update
from podstatus.kube.validation.pod_spec import validate_pod

_RESIZABLE = ("cpu", "memory")
_CONTAINERS = ("containers", "initContainers")

_CPU_AND_MEMORY = "only cpu and memory resources{} are mutable"
_ROOT = "[]"
"""Upstream's spelling of the path of the whole object."""

_Amounts = Mapping[str, Quantity] | None


def prepare_resize(new: Document, old: Document) -> Document:
    """Return the old spec with the new resources; the new spec if the containers differ."""
    if any(_names(new, kind) != _names(old, kind) for kind in _CONTAINERS):
        return new
    spec = dict(old)
    for kind in _CONTAINERS:
        if kind in old:
            pairs = zip(new[kind], old[kind], strict=True)
            spec[kind] = [_with_resources(before, after) for after, before in pairs]
    return _with_pod_resources(spec, new)


def validate_pod_resize(new: Pod, old: Pod) -> list[FieldError]:
    """Return the field errors of a resize: only CPU and memory may change."""
    if is_mirror_pod(old):
        return [forbidden(_ROOT, "static pods cannot be resized")]
    if old.spec.os is not None and old.spec.os.name == "windows":
        return [forbidden(_ROOT, "windows pods cannot be resized")]
    errors = validate_meta_update(new.metadata, old.metadata)
    errors += validate_pod(new)
    if get_pod_qos(old) != compute_pod_qos(new.spec):
        why = "Pod QOS Class may not change as a result of resizing"
        errors.append(invalid_value("spec", new.status.qos_class, why))
    if not _node_supports_resize(old):
        errors.append(forbidden("spec", "Pod running on node without support for resize"))
    errors += _validate_pod_level(new.spec.resources, old.spec.resources)
    order = _validate_order(new, old)
    return errors + (order or _validate_containers(new, old))


def _names(spec: Document, kind: str) -> list[str]:
    return [container.get("name", "") for container in spec.get(kind) or []]


def _with_resources(old: Document, new: Document) -> Document:
    others = {key: value for key, value in old.items() if key not in ("resources", "resizePolicy")}
    resources = {key: new[key] for key in ("resources", "resizePolicy") if key in new}
    return others | resources


def _with_pod_resources(spec: Document, new: Document) -> Document:
    others = {key: value for key, value in spec.items() if key != "resources"}
    return others | {"resources": new["resources"]} if "resources" in new else others


def _node_supports_resize(pod: Pod) -> bool:
    """True unless a running container has no status.resources: a node with resize reports them."""
    for status in pod.status.container_statuses or ():
        if status.state.running is not None:
            return status.resources is not None
    return True


def _validate_order(new: Pod, old: Pod) -> list[FieldError]:
    errors: list[FieldError] = []
    for kind, after, before in (
        ("containers", new.spec.containers or (), old.spec.containers or ()),
        ("initContainers", new.spec.init_containers or (), old.spec.init_containers or ()),
    ):
        if len(after) != len(before):
            why = f"{kind} may not be added or removed on resize"
            errors.append(forbidden(f"spec.{kind}", why))
            continue
        errors += [
            forbidden(
                f"spec.{kind}[{index}].name", f"{kind} may not be renamed or reordered on resize"
            )
            for index, (one, other) in enumerate(zip(after, before, strict=True))
            if one.name != other.name
        ]
    return errors


def _validate_containers(new: Pod, old: Pod) -> list[FieldError]:
    regular = list(zip(new.spec.containers or (), old.spec.containers or (), strict=True))
    init = list(zip(new.spec.init_containers or (), old.spec.init_containers or (), strict=True))
    errors: list[FieldError] = []
    for kind, pairs in (("initContainers", init), ("containers", regular)):
        for index, (after, before) in enumerate(pairs):
            errors += _validate_not_removed(f"spec.{kind}[{index}].resources", after, before)
    for after, before in regular:
        if not _equal_except_cpu_and_memory(after, before):
            errors.append(forbidden("spec", _CPU_AND_MEMORY.format("")))
    for index, (after, before) in enumerate(init):
        errors += _validate_init(f"spec.initContainers[{index}]", after, before)
    return errors


def _validate_init(field: str, new: Container, old: Container) -> list[FieldError]:
    errors = []
    if not _equal_except_cpu_and_memory(new, old):
        why = _CPU_AND_MEMORY.format(" for init or sidecar containers")
        errors.append(forbidden(field, why))
    if not is_restartable_init_container(new) and not semantic_equal(new, old):
        why = "non-sidecar init containers with a resize policy of RestartContainer"
        errors += [
            forbidden(field, f"{why} cannot be resized")
            for policy in new.resize_policy or ()
            if policy.restart_policy == "RestartContainer"
        ]
    return errors


def _validate_not_removed(field: str, new: Container, old: Container) -> list[FieldError]:
    errors = []
    if set(old.resources.requests or ()) - set(new.resources.requests or ()):
        errors.append(forbidden(f"{field}.requests", "resource requests cannot be removed"))
    if set(old.resources.limits or ()) - set(new.resources.limits or ()):
        errors.append(forbidden(f"{field}.limits", "resource limits cannot be removed"))
    return errors


def _equal_except_cpu_and_memory(new: Container, old: Container) -> bool:
    # Upstream drops the claims of the new container here, so any resize of a container with claims
    # is rejected.
    munged = ResourceRequirements(
        requests=_with_old_amounts(new.resources.requests, old.resources.requests),
        limits=_with_old_amounts(new.resources.limits, old.resources.limits),
    )
    return semantic_equal(structs.replace(new, resources=munged), old)


def _with_old_amounts(new: _Amounts, old: _Amounts) -> dict[str, Quantity]:
    others = {name: quantity for name, quantity in (new or {}).items() if name not in _RESIZABLE}
    return others | {name: q for name, q in (old or {}).items() if name in _RESIZABLE}


def _validate_pod_level(
    new: ResourceRequirements | None, old: ResourceRequirements | None
) -> list[FieldError]:
    if new is None:
        removed = old is not None and (old.requests or old.limits)
        why = "pod-level resources cannot be removed"
        return [forbidden("spec.resources", why)] if removed else []
    old = old or ResourceRequirements()
    errors = []
    for name, after, before in (
        ("requests", new.requests, old.requests),
        ("limits", new.limits, old.limits),
    ):
        if set(before or ()) - set(after or ()):
            why = f"pod-level resource {name} cannot be removed"
            errors.append(forbidden(f"spec.resources.{name}", why))
        if not semantic_equal(_with_old_amounts(after, before), before):
            why = "only cpu and memory resources are mutable at pod-level"
            errors.append(forbidden("spec", why))
    return errors
