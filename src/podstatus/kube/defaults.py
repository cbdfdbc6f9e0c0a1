"""Set the defaults of a pod and its volumes as kube-apiserver does, in place on a copy.

Upstream: SetDefaults_*, pkg/apis/core/v1/defaults.go and conversion.go v1.36.4.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import structs

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import is_pod_level_resource, pod_limits, pod_requests
from podstatus.kube.validation.images import is_latest

_FILE_MODE = {"defaultMode": 0o644}
_SOURCES: dict[str, dict[str, Any]] = {
    "secret": _FILE_MODE,
    "configMap": _FILE_MODE,
    "downwardAPI": _FILE_MODE,
    "projected": _FILE_MODE,
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
}
_TOKEN_SECONDS = 3600


def set_volume_defaults(volume: dict[str, Any]) -> None:
    """Set the defaults of a volume; one without a source is an emptyDir."""
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for kind, defaults in _SOURCES.items():
        if volume.get(kind) is not None:
            _set_defaults(volume[kind], defaults)
    _set_items_defaults(volume.get("downwardAPI"))
    for source in (volume.get("projected") or {}).get("sources") or []:
        _set_items_defaults(source.get("downwardAPI"))
        if source.get("serviceAccountToken") is not None:
            _set_defaults(source["serviceAccountToken"], {"expirationSeconds": _TOKEN_SECONDS})
    if volume.get("image") is not None:
        latest = is_latest(volume["image"].get("reference", ""))
        _set_defaults(volume["image"], {"pullPolicy": "Always" if latest else "IfNotPresent"})
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        _set_defaults(template.setdefault("spec", {}), {"volumeMode": "Filesystem"})


def _set_items_defaults(source: dict[str, Any] | None) -> None:
    for item in (source or {}).get("items") or []:
        _set_field_ref_defaults(item)


def _set_defaults(holder: dict[str, Any], defaults: dict[str, Any]) -> None:
    for key, value in defaults.items():
        if holder.get(key) is None:
            holder[key] = value


GRACE_PERIOD_SECONDS = 30

_SPEC = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": GRACE_PERIOD_SECONDS,
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
_CONTAINER = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")


def set_pod_defaults(spec: dict[str, Any]) -> None:
    """Set the defaults of a pod spec, in place."""
    _set_defaults(spec, _SPEC)
    spec.setdefault("securityContext", {})
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _sync_service_account(spec)
    for container in all_containers(spec):
        _set_container_defaults(container)
    for container in _with_resources(spec):
        _default_requests_to_limits(container["resources"])
        if spec.get("hostNetwork"):
            _default_host_ports(container)
    for volume in spec.get("volumes") or []:
        set_volume_defaults(volume)
    if spec.get("resources"):
        _set_pod_resource_defaults(spec)


def sync_pod_ip(status: dict[str, Any]) -> None:
    """Make `podIP` and the first of `podIPs` equal; `podIP` wins: old kubelets set only it."""
    address, listed = status.get("podIP"), status.get("podIPs") or []
    if address and (not listed or listed[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif listed and listed[0].get("ip"):
        status["podIP"] = listed[0]["ip"]


def all_containers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the containers of every kind."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(kind) or []


def _with_resources(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from spec.get("initContainers") or []
    yield from spec.get("containers") or []


def _sync_service_account(spec: dict[str, Any]) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _set_container_defaults(container: dict[str, Any]) -> None:
    if not container.get("imagePullPolicy"):
        latest = is_latest(container.get("image", ""))
        container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"
    _set_defaults(container, _CONTAINER)
    for port in container.get("ports") or []:
        _set_defaults(port, {"protocol": "TCP"})
    for variable in container.get("env") or []:
        _set_field_ref_defaults(variable.get("valueFrom") or {})
    for name in _PROBES:
        if name in container:
            _set_defaults(container[name], _PROBE)
            _set_handler_defaults(container[name])
    lifecycle = container.get("lifecycle") or {}
    for hook in _HOOKS:
        _set_handler_defaults(lifecycle.get(hook) or {})


def _set_field_ref_defaults(source: dict[str, Any]) -> None:
    if source.get("fieldRef") is not None:
        _set_defaults(source["fieldRef"], {"apiVersion": "v1"})


def _set_handler_defaults(handler: dict[str, Any]) -> None:
    if handler.get("httpGet") is not None:
        _set_defaults(handler["httpGet"], {"path": "/", "scheme": "HTTP"})
    if handler.get("grpc") is not None:
        _set_defaults(handler["grpc"], {"service": ""})


def _default_requests_to_limits(resources: dict[str, Any]) -> None:
    limits = resources.get("limits") or {}
    if limits:
        resources["requests"] = limits | (resources.get("requests") or {})


def _default_host_ports(container: dict[str, Any]) -> None:
    for port in container.get("ports") or []:
        if not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]


def _set_pod_resource_defaults(spec: dict[str, Any]) -> None:
    """Set pod-level requests and limits that are not specified."""
    resources = spec["resources"]
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    parts = structs.replace(from_document(spec, PodSpec), resources=None, overhead=None)
    if limits or requests:
        pages = {
            name: quantity.canonical
            for name, quantity in pod_limits(parts).items()
            if name.startswith("hugepages-") and name not in requests
        }
        limits = pages | limits
    if limits:
        resources["limits"] = limits
        aggregated = {
            name: quantity.canonical
            for name, quantity in pod_requests(parts).items()
            if name in ("cpu", "memory")
        }
        bounded = {name: limits[name] for name in limits if is_pod_level_resource(name)}
        requests = bounded | aggregated | requests
    if requests:
        resources["requests"] = requests
