"""Messages about pod sandboxes and their network."""

from collections.abc import Mapping

from podstatus.runtime.cri.api.codec import CriMessage
from podstatus.runtime.cri.api.resources import CriLinuxContainerResources
from podstatus.runtime.cri.api.security import CriLinuxSandboxSecurityContext, CriNamespaceOption

SANDBOX_READY = 0


class CriPodSandboxMetadata(CriMessage, frozen=True, kw_only=True):
    name: str = ""
    uid: str = ""
    namespace: str = ""
    attempt: int = 0


class CriDNSConfig(CriMessage, frozen=True, kw_only=True):
    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class CriPortMapping(CriMessage, frozen=True, kw_only=True):
    protocol: int = 0
    container_port: int = 0
    host_port: int = 0
    host_ip: str = ""


class CriLinuxPodSandboxConfig(CriMessage, frozen=True, kw_only=True):
    cgroup_parent: str = ""
    security_context: CriLinuxSandboxSecurityContext | None = None
    sysctls: Mapping[str, str] = {}
    overhead: CriLinuxContainerResources | None = None
    resources: CriLinuxContainerResources | None = None


class CriPodSandboxConfig(CriMessage, frozen=True, kw_only=True):
    metadata: CriPodSandboxMetadata | None = None
    hostname: str = ""
    log_directory: str = ""
    dns_config: CriDNSConfig | None = None
    port_mappings: tuple[CriPortMapping, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    linux: CriLinuxPodSandboxConfig | None = None


class CriRunPodSandboxRequest(CriMessage, frozen=True, kw_only=True):
    config: CriPodSandboxConfig | None = None
    runtime_handler: str = ""


class CriRunPodSandboxResponse(CriMessage, frozen=True, kw_only=True):
    pod_sandbox_id: str = ""


class CriStopPodSandboxRequest(CriMessage, frozen=True, kw_only=True):
    pod_sandbox_id: str = ""


class CriStopPodSandboxResponse(CriMessage, frozen=True, kw_only=True):
    pass


class CriRemovePodSandboxRequest(CriMessage, frozen=True, kw_only=True):
    pod_sandbox_id: str = ""


class CriRemovePodSandboxResponse(CriMessage, frozen=True, kw_only=True):
    pass


class CriPodSandboxStatusRequest(CriMessage, frozen=True, kw_only=True):
    pod_sandbox_id: str = ""
    verbose: bool = False


class CriPodIP(CriMessage, frozen=True, kw_only=True):
    ip: str = ""


class CriPodSandboxNetworkStatus(CriMessage, frozen=True, kw_only=True):
    ip: str = ""
    additional_ips: tuple[CriPodIP, ...] = ()


class CriNamespace(CriMessage, frozen=True, kw_only=True):
    options: CriNamespaceOption | None = None


class CriLinuxPodSandboxStatus(CriMessage, frozen=True, kw_only=True):
    namespaces: CriNamespace | None = None


class CriPodSandboxStatus(CriMessage, frozen=True, kw_only=True):
    id: str = ""
    metadata: CriPodSandboxMetadata | None = None
    state: int = SANDBOX_READY
    created_at: int = 0
    network: CriPodSandboxNetworkStatus | None = None
    linux: CriLinuxPodSandboxStatus | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class CriPodSandboxStatusResponse(CriMessage, frozen=True, kw_only=True):
    status: CriPodSandboxStatus | None = None


class CriPodSandboxFilter(CriMessage, frozen=True, kw_only=True):
    id: str = ""
    label_selector: Mapping[str, str] = {}


class CriListPodSandboxRequest(CriMessage, frozen=True, kw_only=True):
    filter: CriPodSandboxFilter | None = None


class CriPodSandbox(CriMessage, frozen=True, kw_only=True):
    id: str = ""
    metadata: CriPodSandboxMetadata | None = None
    state: int = SANDBOX_READY
    created_at: int = 0
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class CriListPodSandboxResponse(CriMessage, frozen=True, kw_only=True):
    items: tuple[bytes, ...] = ()
    """Each a `CriPodSandbox`: most are the same as in the previous list."""
