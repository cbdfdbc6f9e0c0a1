"""The effective settings of `podstatus run`: flags, environment, file and defaults merged."""

from pathlib import Path

import msgspec

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.node import Taint
from podstatus.kube.scalars.quantity import Quantity
from podstatus.workers.shutdown.plan import ShutdownPeriod, default_periods

AUTO, KEEP, DRAIN = "auto", "keep", "drain"


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of the agent, described in docs/settings.md.

    Durations are in seconds. Fields are named after the flags.
    """

    root_dir: Path
    node_name: str
    runtime: str
    isolation: str
    kubeconfig: Path | None
    in_cluster: bool
    """Use the API server of the cluster that this pod runs in."""
    config: Path | None

    pod_manifest_path: Path | None
    manifest_url: str | None
    manifest_url_header: tuple[tuple[str, str], ...]
    file_check_frequency: float
    http_check_frequency: float

    register_node: bool
    register_with_taints: tuple[Taint, ...]
    node_labels: dict[str, str]
    node_capacity: dict[str, Quantity]
    node_ip: str | None
    provider_id: str | None
    kube_reserved: dict[str, Quantity]
    system_reserved: dict[str, Quantity]
    pods_per_core: int
    max_pods: int
    eviction_hard: dict[str, str]
    """Signal -> absolute (`100Mi`) or relative (`10%`) threshold."""
    eviction_pressure_transition_period: float
    node_status_update_frequency: float
    node_status_report_frequency: float
    node_lease_duration_seconds: int

    sync_frequency: float
    max_container_restart_period: float
    container_log_max_size: int
    container_log_max_files: int
    ready_after_restart: str
    keep_terminated_pod_volumes: bool
    feature_gates: FeatureGates

    kube_api_qps: int
    """0: no limit; the number of status requests in flight is bounded anyway."""
    kube_api_burst: int
    event_qps: int
    """0: no limit."""
    event_burst: int

    address: str
    port: int
    """0: any free port."""
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    client_ca_file: Path | None
    authentication_token_webhook: bool
    authentication_token_webhook_cache_ttl: float
    authorization_mode: str
    authorization_webhook_cache_authorized_ttl: float
    authorization_webhook_cache_unauthorized_ttl: float
    streaming_connection_idle_timeout: float
    """0: no timeout."""
    max_streams: int
    healthz_bind_address: str
    healthz_port: int | None
    """0: any free port; None: no health server."""
    apiserver_port: int
    """Port of the embedded API server."""

    on_stop: str
    """keep, drain or auto."""
    shutdown_grace_period: float
    """0: `on_stop=auto` does not check whether the machine is shutting down."""
    shutdown_grace_period_critical_pods: float
    """The last part of shutdown_grace_period, reserved for critical pods."""
    shutdown_grace_period_by_pod_priority: tuple[ShutdownPeriod, ...]
    """If not empty, replaces the two periods above."""

    history: bool
    history_days: int
    history_size: int
    """Bytes."""

    alerts: bool
    alert_rules: tuple[Path, ...]
    alertmanager_url: str | None

    samples: bool
    supervise: bool
    v: int
    log_format: str

    @property
    def shutdown_periods(self) -> tuple[ShutdownPeriod, ...]:
        """The grace period of each pod priority when the node shuts down or is drained."""
        return self.shutdown_grace_period_by_pod_priority or default_periods(
            self.shutdown_grace_period, self.shutdown_grace_period_critical_pods
        )

    @property
    def embedded(self) -> bool:
        """True if the agent starts the embedded API server."""
        return self.kubeconfig is None and not self.in_cluster

    def __repr__(self) -> str:
        # Other fields may hold secrets, such as an HTTP header.
        return f"AgentSettings(node_name={self.node_name!r}, root_dir={str(self.root_dir)!r}, …)"
