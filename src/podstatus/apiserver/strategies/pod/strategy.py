"""The strategy of pods: defaults, updates by subresource, deletion, selectable fields.

Upstream: pkg/registry/core/pod/strategy.go v1.36.4.
"""

from typing import Any

from msgspec import structs

from podstatus.apiserver.strategies.base import (
    Document,
    Strategy,
    prepare_meta_update,
    roundtrip,
    with_meta,
)
from podstatus.apiserver.strategies.pod.admission import admit_create, admit_update
from podstatus.apiserver.strategies.pod.resize import prepare_resize, validate_pod_resize
from podstatus.apiserver.strategies.pod.status import validate_pod_status_update
from podstatus.apiserver.strategies.pod.update import validate_pod_update
from podstatus.kube.defaults import set_pod_defaults, sync_pod_ip
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.encoding.equality import semantic_equal
from podstatus.kube.objects.cluster import DeleteOptions
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.qos import compute_pod_qos
from podstatus.kube.validation.field_errors import FieldError
from podstatus.kube.validation.pod_spec import validate_new_pod

_CONTAINER_STATUS_FIELDS = (
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
)
_PRESERVED_ON_RESIZE = ("labels", "annotations", "finalizers", "ownerReferences")
_SCHEDULING_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class PodStrategy(Strategy):
    """The strategy of the pods resource and its subresources."""

    kind = Pod

    def decode(self, document: Document) -> Document:
        """Return the pod with types checked and defaults set. Raises MalformedObjectError."""
        pod = super().decode(document)
        set_pod_defaults(pod["spec"])
        sync_pod_ip(pod["status"])
        return pod

    def decode_patched(self, document: Document, old: Document) -> Document:
        """Decode a patched pod.

        Most patches touch only the status, so an unchanged spec is not decoded again.
        """
        if document.get("spec") is not old["spec"]:
            return self.decode(document)
        pod = roundtrip(document | {"spec": {}}, Pod)
        sync_pod_ip(pod["status"])
        return pod | {"spec": old["spec"]}

    def prepare_create(self, document: Document) -> Document:
        """Return a new pod: Pending, with its QoS class, priority and default tolerations."""
        pod = self.decode(document)
        spec = admit_create(pod["spec"])
        status: Document = {
            "phase": "Pending",
            "qosClass": compute_pod_qos(from_document(spec, PodSpec)),
        }
        if spec.get("schedulingGates"):
            created = pod["metadata"].get("creationTimestamp")
            status["conditions"] = [_SCHEDULING_GATED | {"lastTransitionTime": created}]
        return with_meta(pod | {"spec": spec, "status": status}, generation=1)

    def validate_create(self, document: Document) -> list[FieldError]:
        return validate_new_pod(from_document(document, Pod))

    def prepare_update(self, new: Document, old: Document, subresource: str) -> Document:
        """Return the pod after an update of its spec, status or resources."""
        pod = prepare_meta_update(new, old)
        if subresource == "status":
            return _with_status(pod, old)
        if subresource == "resize":
            spec = prepare_resize(pod["spec"], old["spec"])
            before = old.get("metadata") or {}
            pod = with_meta(pod, **{key: before.get(key) for key in _PRESERVED_ON_RESIZE})
        else:
            spec = admit_update(pod["spec"], old["spec"])
        return _with_spec(pod, spec, old)

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[FieldError]:
        """Return the field errors of a prepared update, without duplicates."""
        rules = {"status": validate_pod_status_update, "resize": validate_pod_resize}
        validate = rules.get(subresource, validate_pod_update)
        causes = validate(*_decode_both(new, old))
        return list(dict.fromkeys(causes))  # metadata is validated twice

    def grace_period(self, document: Document, options: DeleteOptions) -> int:
        """Return the seconds the node has to stop the pod; 0 if the pod runs nowhere."""
        spec, status = document.get("spec") or {}, document.get("status") or {}
        if not spec.get("nodeName") or is_terminal_phase(status.get("phase", "")):
            return 0
        period = options.grace_period_seconds
        if period is None:
            period = spec.get("terminationGracePeriodSeconds") or 0
        return 1 if period < 0 else period

    def fields(self, document: Document) -> dict[str, str]:
        spec, status = document.get("spec") or {}, document.get("status") or {}
        addresses = [address.get("ip", "") for address in status.get("podIPs") or []]
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": addresses[0] if addresses else "",
            # Selectable, but upstream never sets a value for it.
            "status.podIPs": "",
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }


def _decode_both(new: Document, old: Document) -> tuple[Pod, Pod]:
    """Decode both pods; a shared spec is decoded once."""
    before = from_document(old, Pod)
    if new["spec"] is not old["spec"]:
        return from_document(new, Pod), before
    after = from_document(new | {"spec": {}}, Pod)
    return structs.replace(after, spec=before.spec), before


def _with_spec(pod: Document, spec: Document, old: Document) -> Document:
    """Return the pod with this spec and the old status; bump the generation if the spec changed."""
    after, before = from_document(spec, PodSpec), from_document(old["spec"], PodSpec)
    if not semantic_equal(after, before):
        generation = (old.get("metadata") or {}).get("generation", 0)
        pod = with_meta(pod, generation=generation + 1)
    return pod | {"spec": spec, "status": old.get("status") or {}}


def _with_status(pod: Document, old: Document) -> Document:
    before = old.get("metadata") or {}
    preserved = {key: before.get(key) for key in ("deletionTimestamp", "ownerReferences")}
    status, then = dict(pod["status"]), old.get("status") or {}
    for key in ("qosClass", "observedGeneration"):
        if not status.get(key) and then.get(key):
            status[key] = then[key]
    if status.get("conditions"):
        status["conditions"] = _with_observed_generations(status["conditions"], then)
    return with_meta(pod, **preserved) | {
        "spec": old["spec"],
        "status": _drop_disabled_fields(status),
    }


def _with_observed_generations(conditions: list[Document], old: Document) -> list[Document]:
    """A condition without observedGeneration keeps the old one of its type."""
    generations: dict[str, list[Any]] = {}
    for condition in old.get("conditions") or []:
        generations.setdefault(condition["type"], []).append(condition.get("observedGeneration"))
    result = []
    for condition in conditions:
        before = generations.get(condition["type"])
        generation = before.pop(0) if before else None
        preserve = generation and not condition.get("observedGeneration")
        result.append(condition | {"observedGeneration": generation} if preserve else condition)
    return result


def _drop_disabled_fields(status: Document) -> Document:
    """Drop fields of features that v1.36 disables by default."""
    status = {k: v for k, v in status.items() if k != "nodeAllocatableResourceClaimStatuses"}
    for kind in _CONTAINER_STATUS_FIELDS:
        if status.get(kind):
            status[kind] = [_drop_volume_status(container) for container in status[kind]]
    return status


def _drop_volume_status(status: Document) -> Document:
    if not status.get("volumeMounts"):
        return status
    mounts = [
        {key: value for key, value in mount.items() if key != "volumeStatus"}
        for mount in status["volumeMounts"]
    ]
    return status | {"volumeMounts": mounts}
