"""Wire types of `v1.PodSpec`, the desired state of a pod."""

from msgspec import field

from podstatus.kube.encoding.wire_struct import Int64, Wire, nil
from podstatus.kube.objects.containers import (
    AppArmorProfile,
    Container,
    EphemeralContainer,
    ResourceRequirements,
    SeccompProfile,
    SELinuxOptions,
    WindowsSecurityContextOptions,
)
from podstatus.kube.objects.meta import LabelSelector, LocalObjectReference
from podstatus.kube.objects.volumes import Volume
from podstatus.kube.scalars.quantity import Quantity


class Sysctl(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    value: str = field(default_factory=str)


class PodSecurityContext(Wire, frozen=True, kw_only=True):
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: tuple[Int64, ...] | None = None
    supplemental_groups_policy: str | None = None
    fs_group: Int64 | None = None
    sysctls: tuple[Sysctl, ...] | None = None
    fs_group_change_policy: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    se_linux_change_policy: str | None = None


class NodeSelectorRequirement(Wire, frozen=True, kw_only=True):
    key: str = field(default_factory=str)
    operator: str = field(default_factory=str)
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Wire, frozen=True, kw_only=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(Wire, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = field(default_factory=nil)


class PreferredSchedulingTerm(Wire, frozen=True, kw_only=True):
    weight: int = field(default_factory=int)
    preference: NodeSelectorTerm = field(default_factory=NodeSelectorTerm)


class NodeAffinity(Wire, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[PreferredSchedulingTerm, ...] | None
    ) = None


class PodAffinityTerm(Wire, frozen=True, kw_only=True):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    topology_key: str = field(default_factory=str)
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Wire, frozen=True, kw_only=True):
    weight: int = field(default_factory=int)
    pod_affinity_term: PodAffinityTerm = field(default_factory=PodAffinityTerm)


class PodAffinity(Wire, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[WeightedPodAffinityTerm, ...] | None
    ) = None


class PodAntiAffinity(Wire, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[WeightedPodAffinityTerm, ...] | None
    ) = None


class Affinity(Wire, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(Wire, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class HostAlias(Wire, frozen=True, kw_only=True):
    ip: str = field(default_factory=str)
    hostnames: tuple[str, ...] | None = None


class PodDNSConfigOption(Wire, frozen=True, kw_only=True):
    name: str = ""
    value: str | None = None


class PodDNSConfig(Wire, frozen=True, kw_only=True):
    nameservers: tuple[str, ...] | None = None
    searches: tuple[str, ...] | None = None
    options: tuple[PodDNSConfigOption, ...] | None = None


class PodReadinessGate(Wire, frozen=True, kw_only=True):
    condition_type: str = field(default_factory=str)


class TopologySpreadConstraint(Wire, frozen=True, kw_only=True):
    max_skew: int = field(default_factory=int)
    topology_key: str = field(default_factory=str)
    when_unsatisfiable: str = field(default_factory=str)
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class PodOS(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)


class PodSchedulingGate(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)


class PodResourceClaim(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Wire, frozen=True, kw_only=True):
    pod_group_name: str | None = None


class PodSpec(Wire, frozen=True, kw_only=True):
    volumes: tuple[Volume, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    containers: tuple[Container, ...] | None = field(default_factory=nil)
    ephemeral_containers: tuple[EphemeralContainer, ...] | None = None
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    dns_policy: str = ""
    node_selector: dict[str, str] | None = None
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    share_process_namespace: bool | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] | None = None
    hostname: str = ""
    subdomain: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] | None = None
    host_aliases: tuple[HostAlias, ...] | None = None
    priority_class_name: str = ""
    priority: int | None = None
    dns_config: PodDNSConfig | None = None
    readiness_gates: tuple[PodReadinessGate, ...] | None = None
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    preemption_policy: str | None = None
    overhead: dict[str, Quantity] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    set_hostname_as_fqdn: bool | None = field(default=None, name="setHostnameAsFQDN")
    os: PodOS | None = None
    host_users: bool | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None
    scheduling_group: PodSchedulingGroup | None = None
