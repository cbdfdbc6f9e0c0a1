"""The downward API: fields of a pod, and resources of its containers.

Upstream: podFieldSelectorRuntimeValue, pkg/kubelet/kubelet_pods.go; ExtractFieldPathAsString,
pkg/fieldpath/fieldpath.go; ExtractContainerResourceValue, pkg/api/v1/resource/helpers.go;
defaultPodLimitsForDownwardAPI, pkg/kubelet/kubelet_resources.go; all v1.36.4.
"""

import math
from collections.abc import Mapping, Sequence

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.meta import ObjectFieldSelector, ResourceFieldSelector
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.validation.names import qualified_name
from podstatus.runtime.process.spec.config_errors import config_error

_DEFAULTED_RESOURCES = ("cpu", "memory", "ephemeral-storage")
"""Resources whose limit defaults to the node's allocatable amount."""
_POD_LEVEL = ("cpu", "memory")
_SUBSCRIPTED_FIELDS = ("metadata.annotations", "metadata.labels")
_NOT_FOR_ENV = ("spec.restartPolicy", "spec.schedulerName", "status.phase")
"""Valid field labels that have no value for containers."""


class DownwardContext:
    """What the downward API needs to know about the node."""

    def __init__(
        self,
        host_ips: Sequence[str],
        allocatable: Mapping[str, Quantity],
        pod_ips: Sequence[str] | None = None,
    ) -> None:
        """Without `pod_ips`, the pod has the addresses of the host."""
        self.host_ips = tuple(host_ips)
        self.pod_ips = self.host_ips if pod_ips is None else tuple(pod_ips)
        self.allocatable = dict(allocatable)


def env_field(pod: Pod, selector: ObjectFieldSelector, context: DownwardContext) -> str:
    """Return the value of a variable's `fieldRef`. Raises CannotStartError."""
    path = "spec.nodeName" if selector.field_path == "spec.host" else selector.field_path
    if selector.api_version not in ("", "v1"):
        raise config_error(f"unsupported pod version: {selector.api_version}")
    match path:
        case "spec.nodeName":
            return pod.spec.node_name
        case "spec.serviceAccountName":
            return pod.spec.service_account_name
        case "status.hostIP":
            return next(iter(context.host_ips), "")
        case "status.podIP":
            return next(iter(context.pod_ips), "")
        case "status.hostIPs":
            return ",".join(context.host_ips)
        case "status.podIPs":
            return ",".join(context.pod_ips)
    base, subscript = _split(path)
    if subscript is not None and base not in _SUBSCRIPTED_FIELDS:
        raise config_error(f"field label does not support subscript: {path}")
    if not path.startswith("metadata.") and path not in _NOT_FOR_ENV:
        raise config_error(f"field label not supported: {path}")
    return metadata_field(pod, path)


def metadata_field(pod: Pod, path: str) -> str:
    """Return the value of a volume's `fieldRef`, which changes only with the pod's metadata."""
    base, subscript = _split(path)
    maps = {
        "metadata.annotations": pod.metadata.annotations or {},
        "metadata.labels": pod.metadata.labels or {},
    }
    if subscript is not None:
        return _entry(maps, path, base, subscript)
    if path in maps:
        return "\n".join(f"{k}={go_quoted(v)}" for k, v in sorted(maps[path].items()))
    match path:
        case "metadata.name":
            return pod.name
        case "metadata.namespace":
            return pod.namespace
        case "metadata.uid":
            return pod.uid
    raise config_error(f"unsupported fieldPath: {path}")


def _entry(maps: Mapping[str, Mapping[str, str]], path: str, base: str, subscript: str) -> str:
    if base not in maps:
        raise config_error(f"fieldPath {go_quoted(path)} does not support subscript")
    name = subscript.lower() if base == "metadata.annotations" else subscript
    if errors := qualified_name(name):
        raise config_error(f"invalid key subscript in {path}: {';'.join(errors)}")
    return maps[base].get(subscript, "")


def _split(path: str) -> tuple[str, str | None]:
    """Split `metadata.labels['x']`; None if there is no subscript."""
    base, opened, rest = path.partition("['")
    if not (opened and base and rest.endswith("']")):
        return path, None
    return base, rest.removesuffix("']")


def resource_value(
    pod: Pod, container: Container | None, selector: ResourceFieldSelector, context: DownwardContext
) -> str:
    """Return the value of a `resourceFieldRef`: a multiple of the divisor, rounded up."""
    if selector.container_name or container is None:
        container = _find_container(pod, selector.container_name)
    kind, _, name = selector.resource.partition(".")
    supported = name in _DEFAULTED_RESOURCES or name.startswith("hugepages-")
    if kind not in ("limits", "requests") or not supported:
        raise config_error(f"unsupported container resource : {selector.resource}")
    amount = _quantity(pod, container, kind, name, context)
    divisor = selector.divisor if selector.divisor.compare(Quantity("0")) else Quantity("1")
    if name == "cpu":
        return str(math.ceil(amount.milli_value / (divisor.milli_value or 1)))
    return str(math.ceil(amount.value / (divisor.value or 1)))


def _quantity(
    pod: Pod, container: Container, kind: str, name: str, context: DownwardContext
) -> Quantity:
    resources = container.resources
    zero = Quantity("0")
    amount = ((resources.limits if kind == "limits" else resources.requests) or {}).get(name, zero)
    if kind == "requests" or name not in _DEFAULTED_RESOURCES or amount.compare(zero):
        return amount
    of_pod = pod.spec.resources.limits if pod.spec.resources else None
    shared = (of_pod or {}).get(name, zero) if name in _POD_LEVEL else zero
    if name in context.allocatable and shared.compare(zero):
        return shared
    return context.allocatable.get(name, zero)


def _find_container(pod: Pod, name: str) -> Container:
    for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
        if container.name == name:
            return container
    raise config_error(f"container {name} not found")
