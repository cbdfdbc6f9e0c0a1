"""Containers of a pod: resources, environment, probes, hooks and security contexts."""

from msgspec import field

from podstatus.kube.encoding.wire_struct import Int64, Wire, nil
from podstatus.kube.objects.meta import ObjectFieldSelector, ResourceFieldSelector
from podstatus.kube.scalars.quantity import Quantity


class ResourceClaim(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    request: str = ""


class ResourceRequirements(Wire, frozen=True, kw_only=True):
    limits: dict[str, Quantity] | None = None
    requests: dict[str, Quantity] | None = None
    claims: tuple[ResourceClaim, ...] | None = None


class VolumeResourceRequirements(Wire, frozen=True, kw_only=True):
    limits: dict[str, Quantity] | None = None
    requests: dict[str, Quantity] | None = None


class ContainerPort(Wire, frozen=True, kw_only=True):
    name: str = ""
    host_port: int = 0
    container_port: int = field(default_factory=int)
    protocol: str = ""
    host_ip: str = field(default="", name="hostIP")


class ConfigMapEnvSource(Wire, frozen=True, kw_only=True):
    name: str = ""
    optional: bool | None = None


class SecretEnvSource(Wire, frozen=True, kw_only=True):
    name: str = ""
    optional: bool | None = None


class EnvFromSource(Wire, frozen=True, kw_only=True):
    prefix: str = ""
    config_map_ref: ConfigMapEnvSource | None = None
    secret_ref: SecretEnvSource | None = None


class ConfigMapKeySelector(Wire, frozen=True, kw_only=True):
    name: str = ""
    key: str = field(default_factory=str)
    optional: bool | None = None


class SecretKeySelector(Wire, frozen=True, kw_only=True):
    name: str = ""
    key: str = field(default_factory=str)
    optional: bool | None = None


class FileKeySelector(Wire, frozen=True, kw_only=True):
    volume_name: str = field(default_factory=str)
    path: str = field(default_factory=str)
    key: str = field(default_factory=str)
    optional: bool | None = None


class EnvVarSource(Wire, frozen=True, kw_only=True):
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class EnvVar(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    value: str = ""
    value_from: EnvVarSource | None = None


class ContainerResizePolicy(Wire, frozen=True, kw_only=True):
    resource_name: str = field(default_factory=str)
    restart_policy: str = field(default_factory=str)


class ContainerRestartRuleOnExitCodes(Wire, frozen=True, kw_only=True):
    operator: str = ""
    values: tuple[int, ...] | None = None


class ContainerRestartRule(Wire, frozen=True, kw_only=True):
    action: str = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class VolumeMount(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    read_only: bool = False
    recursive_read_only: str | None = None
    mount_path: str = field(default_factory=str)
    sub_path: str = ""
    mount_propagation: str | None = None
    sub_path_expr: str = ""


class VolumeDevice(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    device_path: str = field(default_factory=str)


class ExecAction(Wire, frozen=True, kw_only=True):
    command: tuple[str, ...] | None = None


class HTTPHeader(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    value: str = field(default_factory=str)


class HTTPGetAction(Wire, frozen=True, kw_only=True):
    path: str = ""
    port: int | str = field(default_factory=int)
    host: str = ""
    scheme: str = ""
    http_headers: tuple[HTTPHeader, ...] | None = None


class TCPSocketAction(Wire, frozen=True, kw_only=True):
    port: int | str = field(default_factory=int)
    host: str = ""


class GRPCAction(Wire, frozen=True, kw_only=True):
    port: int = field(default_factory=int)
    service: str | None = field(default_factory=nil)


class Probe(Wire, frozen=True, kw_only=True):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 0
    period_seconds: int = 0
    success_threshold: int = 0
    failure_threshold: int = 0
    termination_grace_period_seconds: Int64 | None = None


class SleepAction(Wire, frozen=True, kw_only=True):
    seconds: Int64 = field(default_factory=int)


class LifecycleHandler(Wire, frozen=True, kw_only=True):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Wire, frozen=True, kw_only=True):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class Capabilities(Wire, frozen=True, kw_only=True):
    add: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None


class SELinuxOptions(Wire, frozen=True, kw_only=True):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class WindowsSecurityContextOptions(Wire, frozen=True, kw_only=True):
    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: bool | None = None


class SeccompProfile(Wire, frozen=True, kw_only=True):
    type: str = field(default_factory=str)
    localhost_profile: str | None = None


class AppArmorProfile(Wire, frozen=True, kw_only=True):
    type: str = field(default_factory=str)
    localhost_profile: str | None = None


class SecurityContext(Wire, frozen=True, kw_only=True):
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None


class Container(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    image: str = ""
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] | None = None
    env_from: tuple[EnvFromSource, ...] | None = None
    env: tuple[EnvVar, ...] | None = None
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    resize_policy: tuple[ContainerResizePolicy, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] | None = None
    volume_mounts: tuple[VolumeMount, ...] | None = None
    volume_devices: tuple[VolumeDevice, ...] | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    image_pull_policy: str = ""
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class EphemeralContainer(Container, frozen=True, kw_only=True):
    """`v1.EphemeralContainer`: a container, and the one whose processes it can see."""

    target_container_name: str = ""
