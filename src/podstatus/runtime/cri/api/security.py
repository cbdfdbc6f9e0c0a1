"""Messages about namespaces, users, capabilities and profiles."""

from podstatus.runtime.cri.api.codec import CriMessage

NAMESPACE_POD, NAMESPACE_CONTAINER, NAMESPACE_NODE, NAMESPACE_TARGET = range(4)
PROFILE_RUNTIME_DEFAULT, PROFILE_UNCONFINED, PROFILE_LOCALHOST = range(3)


class CriInt64Value(CriMessage, frozen=True, kw_only=True):
    value: int = 0


class CriNamespaceOption(CriMessage, frozen=True, kw_only=True):
    network: int = NAMESPACE_POD
    pid: int = NAMESPACE_POD
    ipc: int = NAMESPACE_POD
    target_id: str = ""


class CriSELinuxOption(CriMessage, frozen=True, kw_only=True):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class CriSecurityProfile(CriMessage, frozen=True, kw_only=True):
    profile_type: int = PROFILE_RUNTIME_DEFAULT
    localhost_ref: str = ""


class CriCapability(CriMessage, frozen=True, kw_only=True):
    add_capabilities: tuple[str, ...] = ()
    drop_capabilities: tuple[str, ...] = ()


class CriLinuxSandboxSecurityContext(CriMessage, frozen=True, kw_only=True):
    namespace_options: CriNamespaceOption | None = None
    selinux_options: CriSELinuxOption | None = None
    run_as_user: CriInt64Value | None = None
    run_as_group: CriInt64Value | None = None
    readonly_rootfs: bool = False
    supplemental_groups: tuple[int, ...] = ()
    supplemental_groups_policy: int = 0
    privileged: bool = False
    seccomp: CriSecurityProfile | None = None


class CriLinuxContainerSecurityContext(CriMessage, frozen=True, kw_only=True):
    capabilities: CriCapability | None = None
    privileged: bool = False
    namespace_options: CriNamespaceOption | None = None
    selinux_options: CriSELinuxOption | None = None
    run_as_user: CriInt64Value | None = None
    run_as_group: CriInt64Value | None = None
    run_as_username: str = ""
    readonly_rootfs: bool = False
    supplemental_groups: tuple[int, ...] = ()
    supplemental_groups_policy: int = 0
    no_new_privs: bool = False
    masked_paths: tuple[str, ...] = ()
    readonly_paths: tuple[str, ...] = ()
    seccomp: CriSecurityProfile | None = None
    apparmor: CriSecurityProfile | None = None
