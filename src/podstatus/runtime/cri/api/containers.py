"""Messages about containers, and about exec in them."""

from collections.abc import Mapping

from podstatus.runtime.cri.api.codec import CriMessage
from podstatus.runtime.cri.api.images import CriImageSpec
from podstatus.runtime.cri.api.resources import CriContainerResources, CriLinuxContainerResources
from podstatus.runtime.cri.api.sandboxes import CriPodSandboxConfig
from podstatus.runtime.cri.api.security import CriLinuxContainerSecurityContext

CONTAINER_CREATED, CONTAINER_RUNNING, CONTAINER_EXITED, CONTAINER_UNKNOWN = range(4)


class CriContainerMetadata(CriMessage, frozen=True, kw_only=True):
    name: str = ""
    attempt: int = 0


class CriKeyValue(CriMessage, frozen=True, kw_only=True):
    key: str = ""
    value: bytes = b""


class CriMount(CriMessage, frozen=True, kw_only=True):
    container_path: str = ""
    host_path: str = ""
    readonly: bool = False
    selinux_relabel: bool = False
    propagation: int = 0
    recursive_read_only: bool = False


class CriDevice(CriMessage, frozen=True, kw_only=True):
    container_path: str = ""
    host_path: str = ""
    permissions: str = ""


class CriLinuxContainerConfig(CriMessage, frozen=True, kw_only=True):
    resources: CriLinuxContainerResources | None = None
    security_context: CriLinuxContainerSecurityContext | None = None


class CriContainerConfig(CriMessage, frozen=True, kw_only=True):
    metadata: CriContainerMetadata | None = None
    image: CriImageSpec | None = None
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    envs: tuple[CriKeyValue, ...] = ()
    mounts: tuple[CriMount, ...] = ()
    devices: tuple[CriDevice, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    log_path: str = ""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    linux: CriLinuxContainerConfig | None = None
    stop_signal: int = 0


class CriCreateContainerRequest(CriMessage, frozen=True, kw_only=True):
    pod_sandbox_id: str = ""
    config: CriContainerConfig | None = None
    sandbox_config: CriPodSandboxConfig | None = None


class CriCreateContainerResponse(CriMessage, frozen=True, kw_only=True):
    container_id: str = ""


class CriStartContainerRequest(CriMessage, frozen=True, kw_only=True):
    container_id: str = ""


class CriStartContainerResponse(CriMessage, frozen=True, kw_only=True):
    pass


class CriStopContainerRequest(CriMessage, frozen=True, kw_only=True):
    container_id: str = ""
    timeout: int = 0
    """Seconds between the stop signal and SIGKILL; 0 sends SIGKILL at once."""


class CriStopContainerResponse(CriMessage, frozen=True, kw_only=True):
    pass


class CriRemoveContainerRequest(CriMessage, frozen=True, kw_only=True):
    container_id: str = ""


class CriRemoveContainerResponse(CriMessage, frozen=True, kw_only=True):
    pass


class CriContainerFilter(CriMessage, frozen=True, kw_only=True):
    id: str = ""
    pod_sandbox_id: str = ""
    label_selector: Mapping[str, str] = {}


class CriListContainersRequest(CriMessage, frozen=True, kw_only=True):
    filter: CriContainerFilter | None = None


class CriContainer(CriMessage, frozen=True, kw_only=True):
    id: str = ""
    pod_sandbox_id: str = ""
    metadata: CriContainerMetadata | None = None
    image: CriImageSpec | None = None
    image_ref: str = ""
    state: int = CONTAINER_CREATED
    created_at: int = 0
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class CriListContainersResponse(CriMessage, frozen=True, kw_only=True):
    containers: tuple[bytes, ...] = ()
    """Each a `CriContainer`: most are the same as in the previous list."""


class CriContainerStatusRequest(CriMessage, frozen=True, kw_only=True):
    container_id: str = ""
    verbose: bool = False


class CriLinuxContainerUser(CriMessage, frozen=True, kw_only=True):
    uid: int = 0
    gid: int = 0
    supplemental_groups: tuple[int, ...] = ()


class CriContainerUser(CriMessage, frozen=True, kw_only=True):
    linux: CriLinuxContainerUser | None = None


class CriContainerStatus(CriMessage, frozen=True, kw_only=True):
    id: str = ""
    metadata: CriContainerMetadata | None = None
    state: int = CONTAINER_CREATED
    created_at: int = 0
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    image: CriImageSpec | None = None
    image_ref: str = ""
    reason: str = ""
    message: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    mounts: tuple[CriMount, ...] = ()
    log_path: str = ""
    resources: CriContainerResources | None = None
    user: CriContainerUser | None = None


class CriContainerStatusResponse(CriMessage, frozen=True, kw_only=True):
    status: CriContainerStatus | None = None


class CriExecSyncRequest(CriMessage, frozen=True, kw_only=True):
    container_id: str = ""
    cmd: tuple[str, ...] = ()
    timeout: int = 0


class CriExecSyncResponse(CriMessage, frozen=True, kw_only=True):
    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int = 0


class CriExecRequest(CriMessage, frozen=True, kw_only=True):
    container_id: str = ""
    cmd: tuple[str, ...] = ()
    tty: bool = False
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False


class CriExecResponse(CriMessage, frozen=True, kw_only=True):
    url: str = ""


class CriAttachRequest(CriMessage, frozen=True, kw_only=True):
    container_id: str = ""
    stdin: bool = False
    tty: bool = False
    stdout: bool = False
    stderr: bool = False


class CriAttachResponse(CriMessage, frozen=True, kw_only=True):
    url: str = ""
