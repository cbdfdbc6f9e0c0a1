"""The strategy of Services.

No address is allocated, since nothing would answer at it: a Service has the `clusterIP` that its
manifest sets, or none. Likewise for node ports and load balancers.

Upstream: pkg/registry/core/service/strategy.go and storage/storage.go (defaultOnRead,
patchAllocatedValues), SetDefaults_Service, pkg/apis/core/v1/defaults.go v1.36.4.
"""

from podstatus.apiserver.strategies.base import Document, Strategy, prepare_meta_update
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.service import NO_CLUSTER_IP, Service
from podstatus.kube.validation.field_errors import FieldError
from podstatus.kube.validation.names import dns_label
from podstatus.kube.validation.service import (
    EXTERNAL_NAME,
    validate_service_spec,
    validate_service_spec_update,
)

_AFFINITY_SECONDS = 10800
_EXTERNAL_TYPES = ("NodePort", "LoadBalancer")
_ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_NO_STATUS: Document = {"loadBalancer": {}}


class ServiceStrategy(Strategy):
    """The strategy of services and their status."""

    kind = Service
    allow_create_on_update = True
    name_rule = staticmethod(dns_label)

    def decode(self, document: Document) -> Document:
        """Return the Service with types checked and defaults set. Raises MalformedObjectError."""
        service = super().decode(document)
        return service | {"spec": _with_defaults(service["spec"])}

    def prepare_create(self, document: Document) -> Document:
        service = self.decode(document)
        return service | {"spec": _with_families(service["spec"]), "status": _NO_STATUS}

    def prepare_update(self, new: Document, old: Document, subresource: str) -> Document:
        """Return the Service after an update: a status update keeps the spec, others the status."""
        service = prepare_meta_update(new, old)
        if subresource == "status":
            return service | {"spec": old["spec"]}
        spec = _with_address_of(old["spec"], service["spec"])
        return service | {"spec": _with_families(spec), "status": old.get("status") or _NO_STATUS}

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[FieldError]:
        errors = super().validate_update(new, old, subresource)
        return errors + validate_service_spec_update(_decode(new).spec, _decode(old).spec)

    def validate_content(self, new: Document, old: Document | None) -> list[FieldError]:
        del old
        return validate_service_spec(_decode(new).spec)

    def fields(self, document: Document) -> dict[str, str]:
        spec = document.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}


def _decode(document: Document) -> Service:
    return from_document(document, Service)


def _with_defaults(spec: Document) -> Document:
    defaults: Document = {"sessionAffinity": "None", "type": "ClusterIP"}
    spec = defaults | spec
    if spec["sessionAffinity"] == "ClientIP":
        default = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
        spec.setdefault("sessionAffinityConfig", default)
    else:
        spec.pop("sessionAffinityConfig", None)
    if spec.get("ports"):
        spec["ports"] = [_with_port_defaults(port) for port in spec["ports"]]
    if spec["type"] in _EXTERNAL_TYPES:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["type"] != EXTERNAL_NAME:
        spec.setdefault("internalTrafficPolicy", "Cluster")
    return _with_synced_addresses(spec)


def _with_port_defaults(port: Document) -> Document:
    port = {"protocol": "TCP"} | port
    return port | {"targetPort": port.get("targetPort") or port["port"]}


def _with_synced_addresses(spec: Document) -> Document:
    """Set the one of `clusterIP` and `clusterIPs` that is missing."""
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        return spec | {"clusterIPs": [spec["clusterIP"]]}
    if spec.get("clusterIPs") and not spec.get("clusterIP"):
        return spec | {"clusterIP": spec["clusterIPs"][0]}
    return spec


def _with_address_of(old: Document, spec: Document) -> Document:
    """Keep the cluster IP if an update omits it; remove it if the type becomes ExternalName."""
    before = {key: old[key] for key in _ALLOCATED if key in old}
    if spec["type"] == EXTERNAL_NAME != old.get("type"):
        return {key: value for key, value in spec.items() if before.get(key) != value}
    if spec.get("clusterIP") or EXTERNAL_NAME in (spec["type"], old.get("type")):
        return spec
    return before | spec


def _with_families(spec: Document) -> Document:
    """Set the IP families of the addresses."""
    addresses = spec.get("clusterIPs") or []
    if not addresses:
        return spec
    families = ["IPv6" if ":" in address else "IPv4" for address in addresses]
    if addresses == [NO_CLUSTER_IP]:
        # Without a selector, clients may add endpoints of both families.
        families = ["IPv4"] if spec.get("selector") else ["IPv4", "IPv6"]
        spec = {"ipFamilies": families} | spec
    else:
        spec = spec | {"ipFamilies": families}
    return {"ipFamilyPolicy": "SingleStack" if len(families) == 1 else "RequireDualStack"} | spec
