"""The settings of `podstatus run`: the declaration of each, and the effective values.

`make docs` writes the tables of docs/reference/settings.md from it.
"""

# ruff: noqa: RUF009 - `setting` returns a dataclass field
from dataclasses import dataclass
from pathlib import Path

from podstatus.agent.settings.paths import PATH, PATHS
from podstatus.agent.settings.schema.maps import (
    AMOUNTS,
    GATES,
    HEADERS,
    LABELS,
    PERIODS,
    SIGNAL_AMOUNTS,
    SIGNAL_PERIODS,
    TAINTS,
    THRESHOLDS,
)
from podstatus.agent.settings.schema.scalars import (
    ADDRESS,
    BOOL,
    BYTES,
    NODE_NAME,
    PERIOD,
    PORT,
    RUNTIME,
    TEXT,
    URL,
    choice,
    duration,
    integer,
)
from podstatus.agent.settings.schema.setting import declared_settings, setting
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.node import Taint
from podstatus.kube.scalars.quantity import Quantity
from podstatus.workers.shutdown.plan import ShutdownPeriod, default_periods

AUTO, KEEP, DRAIN = "auto", "keep", "drain"
_RESTART_PERIOD = duration(1, 300, allowed="a duration from 1s to 300s")
_ANY_DURATION = duration(0, allowed="a duration of 0 or more, such as 30s or 4h")
_SHUTDOWN_PERIOD = duration(
    0, allowed="a duration in whole seconds, such as 30s; 0 means none", whole_seconds=True
)


@dataclass(frozen=True, kw_only=True, repr=False)
class AgentSettings:
    """All settings of the agent. Durations are in seconds, sizes in bytes.

    The name of a field gives the flag and the environment variable. A dataclass, because its
    fields carry their declaration.
    """

    root_dir: Path = setting(
        PATH,
        "Directory where the agent stores its state: API server data, checkpoints, certificates, "
        "logs and history.",
        default_help="$XDG_DATA_HOME/podstatus, or ~/.local/share/podstatus",
        group="Places",
    )
    config: Path | None = setting(PATH, "Path to a KubeletConfiguration file in YAML or JSON.")
    kubeconfig: Path | None = setting(
        PATH,
        "Path to the kubeconfig of the cluster to join. If it is not set and --in-cluster is "
        "false, the agent starts an embedded API server.",
    )
    in_cluster: bool = setting(
        BOOL,
        "Join the cluster in which the agent runs as a pod, using the service account of that pod.",
        default_help="true if the agent runs in a pod and --kubeconfig is not set",
    )

    hostname_override: str = setting(
        NODE_NAME,
        "Node name to use instead of the hostname.",
        default_help="the hostname",
        group="Node",
    )
    """The effective node name."""
    runtime: str = setting(
        RUNTIME,
        "Container runtime: process, cri, simulated, or a custom class given as module:Class.",
        default="process",
        default_help="process if the API server is embedded; otherwise the flag is required",
    )
    container_runtime_endpoint: str = setting(
        TEXT,
        "Socket of the container runtime, for --runtime cri.",
        default="unix:///run/containerd/containerd.sock",
        field="containerRuntimeEndpoint",
    )
    runtime_request_timeout: float = setting(
        PERIOD,
        "How long the container runtime may take to answer, for --runtime cri. Starting a sandbox "
        "may take twice as long, stopping a container its grace period longer.",
        default="2m",
        field="runtimeRequestTimeout",
    )
    isolation: str = setting(
        choice(("auto", "bubblewrap", "none")),
        "How the process runtime isolates pods: bubblewrap, none, or auto, which uses bubblewrap "
        "if it works on this machine and none otherwise.",
        default="auto",
    )
    allow_unconfined_seccomp: bool = setting(
        BOOL,
        "Run isolated containers with the seccompProfile Unconfined; if false, they are rejected. "
        "Without the filter, a container can reach the keyrings and cgroups of the agent's user.",
        default="false",
    )
    register_node: bool = setting(
        BOOL,
        "Register the node with the API server; if false, wait until the Node object exists.",
        default="true",
        field="registerNode",
    )
    register_with_taints: tuple[Taint, ...] = setting(
        TAINTS,
        "Taints to register the node with; an empty string means no taints.",
        default_help="podstatus.dev/process:NoExecute for the process runtime in an external "
        "cluster, otherwise none",
        field="registerWithTaints",
    )
    node_labels: dict[str, str] = setting(
        LABELS, "Labels to add when registering the node.", default=""
    )
    node_capacity: dict[str, Quantity] = setting(
        AMOUNTS,
        "Capacity to report instead of the detected one, such as cpu=2,memory=4Gi.",
        default="",
    )
    node_ip: str | None = setting(
        ADDRESS, "IP address of the Node.", default_help="the outbound IP address of this machine"
    )
    provider_id: str | None = setting(
        TEXT,
        "ID of this machine at its cloud provider, set as spec.providerID of the Node.",
        field="providerID",
    )
    kube_reserved: dict[str, Quantity] = setting(
        AMOUNTS,
        "Resources reserved for the agent, such as cpu=100m,memory=200Mi; they are subtracted "
        "from the capacity to compute the allocatable resources.",
        default="",
        field="kubeReserved",
    )
    system_reserved: dict[str, Quantity] = setting(
        AMOUNTS,
        "Resources reserved for other processes on the machine; they are subtracted from the "
        "capacity to compute the allocatable resources.",
        default="",
        field="systemReserved",
    )
    pods_per_core: int = setting(
        integer(0),
        "Maximum number of pods per CPU core; the total never exceeds --max-pods. 0 means no "
        "limit per core.",
        default="0",
        field="podsPerCore",
    )
    max_pods: int = setting(
        integer(0), "Maximum number of pods on the node.", default="110", field="maxPods"
    )
    eviction_hard: dict[str, str] = setting(
        THRESHOLDS,
        "Thresholds below which the node reports a pressure condition and evicts pods at once. "
        "Signals without a threshold are not monitored.",
        default_help="memory.available<100Mi,nodefs.available<1%,nodefs.inodesFree<1% with the "
        "embedded API server, otherwise memory.available<100Mi,nodefs.available<10%,"
        "nodefs.inodesFree<5%,imagefs.available<15%,imagefs.inodesFree<5%",
        field="evictionHard",
    )
    """Signal -> absolute (`100Mi`) or relative (`10%`) threshold."""
    merge_default_eviction_settings: bool = setting(
        BOOL,
        "Use the default thresholds for the signals that --eviction-hard does not contain.",
        default="false",
        field="mergeDefaultEvictionSettings",
    )
    eviction_soft: dict[str, str] = setting(
        THRESHOLDS,
        "Thresholds below which the node reports a pressure condition, and evicts pods after the "
        "signal's --eviction-soft-grace-period, such as memory.available<1Gi.",
        default="",
        field="evictionSoft",
    )
    eviction_soft_grace_period: dict[str, str] = setting(
        SIGNAL_PERIODS,
        "Grace period of each soft threshold: how long it must be met before pods are evicted, "
        "such as memory.available=1m30s; required for each signal of --eviction-soft.",
        default="",
        field="evictionSoftGracePeriod",
    )
    eviction_minimum_reclaim: dict[str, str] = setting(
        SIGNAL_AMOUNTS,
        "Minimum amount of a resource to reclaim beyond the threshold when the node is under "
        "pressure, such as nodefs.available=500Mi.",
        default="",
        field="evictionMinimumReclaim",
    )
    eviction_max_pod_grace_period: int = setting(
        integer(0),
        "Maximum grace period in seconds of pods that are evicted because of a soft threshold.",
        default="0",
        field="evictionMaxPodGracePeriod",
    )
    local_storage_capacity_isolation: bool = setting(
        BOOL,
        "Report the capacity of local ephemeral storage, and evict pods that exceed a local "
        "storage limit: limits of ephemeral-storage, and sizeLimit of emptyDir volumes.",
        default="true",
        field="localStorageCapacityIsolation",
    )
    eviction_pressure_transition_period: float = setting(
        PERIOD,
        "How long to keep reporting a pressure condition after it was last observed.",
        default="5m",
        field="evictionPressureTransitionPeriod",
    )
    node_status_update_frequency: float = setting(
        PERIOD,
        "How often to compute the node status.",
        default="10s",
        field="nodeStatusUpdateFrequency",
    )
    node_status_report_frequency: float = setting(
        PERIOD,
        "How often to send the node status if it has not changed.",
        default="5m",
        field="nodeStatusReportFrequency",
    )
    node_lease_duration_seconds: int = setting(
        integer(1),
        "Duration of the node lease in seconds; the agent renews the lease at intervals of a "
        "quarter of this duration.",
        default="40",
        field="nodeLeaseDurationSeconds",
    )

    pod_manifest_path: Path | None = setting(
        PATH,
        "Path to a directory with static pod manifests, or to a single manifest file.",
        field="staticPodPath",
        group="Pods",
    )
    manifest_url: str | None = setting(
        URL, "URL to fetch static pod manifests from.", field="staticPodURL", secret=True
    )
    manifest_url_header: tuple[tuple[str, str], ...] = setting(
        HEADERS,
        "HTTP headers to send in requests to --manifest-url, such as name1:value1,name2:value2.",
        default="",
        field="staticPodURLHeader",
        secret=True,
    )
    file_check_frequency: float = setting(
        PERIOD,
        "How often to check --pod-manifest-path for changes.",
        default="20s",
        field="fileCheckFrequency",
    )
    http_check_frequency: float = setting(
        PERIOD,
        "How often to check --manifest-url for changes.",
        default="20s",
        field="httpCheckFrequency",
    )
    sync_frequency: float = setting(
        PERIOD, "Maximum interval between two syncs of a pod.", default="1m", field="syncFrequency"
    )
    max_container_restart_period: float = setting(
        _RESTART_PERIOD,
        "Maximum back-off delay before a crashing container is restarted.",
        default="300s",
        field="crashLoopBackOff.maxContainerRestartPeriod",
    )
    container_log_max_size: int = setting(
        BYTES,
        "Maximum size of a container log file before it is rotated.",
        default="10Mi",
        field="containerLogMaxSize",
    )
    container_log_max_files: int = setting(
        integer(2),
        "Maximum number of log files per container.",
        default="5",
        field="containerLogMaxFiles",
    )
    ready_after_restart: str = setting(
        choice(("last", "kubelet")),
        "Readiness to report for a container after a restart of the agent, until the first "
        "readiness probe of the container completes. last: the last reported value; kubelet: "
        "ready only if the pod was Ready and the container started more than 10s before the "
        "agent.",
        default="last",
    )
    keep_terminated_pod_volumes: bool = setting(
        BOOL, "Keep the directories of terminated pods, including their volumes.", default="false"
    )
    feature_gates: FeatureGates = setting(
        GATES,
        "Kubernetes feature gates to enable or disable, such as ContainerRestartRules=false.",
        default="",
        field="featureGates",
    )

    kube_api_qps: int = setting(
        integer(0),
        "Maximum number of pod-related requests to the API server per second; 0 means no limit.",
        default="0",
        field="kubeAPIQPS",
        group="API server",
    )
    kube_api_burst: int = setting(
        integer(1),
        "Maximum burst of pod-related requests to the API server; has no effect if "
        "--kube-api-qps is 0.",
        default="100",
        field="kubeAPIBurst",
    )
    event_qps: int = setting(
        integer(0),
        "Maximum number of events to create per second; 0 means no limit.",
        default="50",
        field="eventRecordQPS",
    )
    event_burst: int = setting(
        integer(1),
        "Maximum burst of events to create; has no effect if --event-qps is 0.",
        default="100",
        field="eventBurst",
    )
    apiserver_port: int = setting(
        PORT,
        "Port of the embedded API server on 127.0.0.1; 0 picks a free port.",
        default="6443",
        default_help="6443, or a free port if --port is 0",
    )

    address: str = setting(
        ADDRESS,
        "IP address that the agent's HTTPS server listens on.",
        default="127.0.0.1",
        field="address",
        group="Agent",
    )
    port: int = setting(
        PORT,
        "Port of the agent's HTTPS server; 0 picks a free port, and the other servers then also "
        "use free ports unless their ports are set.",
        default="10250",
        field="port",
    )
    tls_cert_file: Path | None = setting(
        PATH,
        "Path to the PEM-encoded serving certificate of the HTTPS server, followed by any "
        "intermediate certificates.",
        default_help="a self-signed certificate in the root directory",
        field="tlsCertFile",
    )
    tls_private_key_file: Path | None = setting(
        PATH, "Path to the PEM-encoded private key for --tls-cert-file.", field="tlsPrivateKeyFile"
    )
    client_ca_file: Path | None = setting(
        PATH,
        "Path to a PEM-encoded CA bundle that client certificates are verified against; the "
        "common name of a certificate is the user name of the client.",
        default_help="the CA of the embedded API server, otherwise none",
        field="authentication.x509.clientCAFile",
    )
    authentication_token_webhook: bool = setting(
        BOOL,
        "Authenticate bearer tokens with the TokenReview API of the API server.",
        default_help="true unless the API server is embedded",
        field="authentication.webhook.enabled",
    )
    authentication_token_webhook_cache_ttl: float = setting(
        _ANY_DURATION,
        "How long to cache responses from the TokenReview API.",
        default="2m",
        field="authentication.webhook.cacheTTL",
    )
    authorization_mode: str = setting(
        choice(("AlwaysAllow", "Webhook")),
        "Authorization mode of the HTTPS server. AlwaysAllow: allow all requests from "
        "authenticated clients; Webhook: authorize requests with the SubjectAccessReview API.",
        default_help="Webhook, or AlwaysAllow if the API server is embedded",
        field="authorization.mode",
    )
    authorization_webhook_cache_authorized_ttl: float = setting(
        _ANY_DURATION,
        "How long to cache 'authorized' responses from the SubjectAccessReview API.",
        default="5m",
        field="authorization.webhook.cacheAuthorizedTTL",
    )
    authorization_webhook_cache_unauthorized_ttl: float = setting(
        _ANY_DURATION,
        "How long to cache 'unauthorized' responses from the SubjectAccessReview API.",
        default="30s",
        field="authorization.webhook.cacheUnauthorizedTTL",
    )
    streaming_connection_idle_timeout: float = setting(
        _ANY_DURATION,
        "Maximum time that a streaming connection can be idle before it is closed; 0 means no "
        "timeout.",
        default="4h",
        field="streamingConnectionIdleTimeout",
    )
    max_streams: int = setting(
        integer(1), "Maximum number of concurrent log and exec streams.", default="100"
    )
    healthz_bind_address: str = setting(
        ADDRESS,
        "IP address that the /healthz server listens on.",
        default="127.0.0.1",
        field="healthzBindAddress",
    )
    healthz_port: int | None = setting(
        PORT,
        "Port of the /healthz server; 0 disables it.",
        default="10248",
        default_help="10248, or a free port if --port is 0",
        field="healthzPort",
    )
    """0: any free port; None: no health server."""
    on_stop: str = setting(
        choice((AUTO, KEEP, DRAIN)),
        "What to do with the pods when the agent stops. keep: leave them running; drain: "
        "terminate them first; auto: drain if the machine is shutting down, otherwise keep.",
        default=AUTO,
    )
    shutdown_grace_period: float = setting(
        _SHUTDOWN_PERIOD,
        "Total time given to pods to terminate when the node is shut down or drained. With "
        "--on-stop=auto, 0 disables draining when the machine shuts down.",
        default="30s",
        field="shutdownGracePeriod",
    )
    shutdown_grace_period_critical_pods: float = setting(
        _SHUTDOWN_PERIOD,
        "Part of --shutdown-grace-period that is reserved for critical pods, which are "
        "terminated last.",
        default_help="a third of --shutdown-grace-period",
        field="shutdownGracePeriodCriticalPods",
    )
    shutdown_grace_period_by_pod_priority: tuple[ShutdownPeriod, ...] = setting(
        PERIODS,
        "Grace periods in seconds by pod priority, such as 0=20,2000000000=10; they override "
        "--shutdown-grace-period and --shutdown-grace-period-critical-pods.",
        default="",
        field="shutdownGracePeriodByPodPriority",
    )
    history: bool = setting(
        BOOL,
        "Record pod status transitions and events in the file history.db in the root directory.",
        default="true",
    )
    history_days: int = setting(
        integer(1, 3650), "Number of days for which the history is retained.", default="7"
    )
    history_size: int = setting(
        BYTES,
        "Maximum size of the history; when it is exceeded, the oldest entries are removed.",
        default="256Mi",
    )
    alerts: bool = setting(
        BOOL, "Evaluate the default alert rules and the rules from --alert-rules.", default="true"
    )
    alert_rules: tuple[Path, ...] = setting(
        PATHS, "Comma-separated list of alert rule files in YAML.", default=""
    )
    alertmanager_url: str | None = setting(
        URL,
        "URL of the Alertmanager to send alerts to, except alerts from rules that define their "
        "own actions.",
        secret=True,
    )
    samples: bool = setting(
        BOOL, "Create two sample pods if the embedded API server has no pods.", default="true"
    )
    supervise: bool = setting(
        BOOL,
        "Run the agent in a child process and restart it if it fails or hangs; each exit is "
        "recorded in restarts.jsonl in the root directory.",
        default="false",
    )
    v: int = setting(
        integer(0, 10),
        "Log verbosity: 0 for warnings and errors, 2 to add info messages, 4 to add debug "
        "messages, 6 to add debug messages of third-party libraries.",
        default="2",
        default_help="2, or 0 if standard error is a terminal",
        field="logging.verbosity",
    )
    log_format: str = setting(
        choice(("text", "json")),
        "Format of the log messages.",
        default="text",
        field="logging.format",
    )

    @property
    def shutdown_periods(self) -> tuple[ShutdownPeriod, ...]:
        """The grace period of each pod priority when the node shuts down or is drained."""
        return self.shutdown_grace_period_by_pod_priority or default_periods(
            self.shutdown_grace_period, self.shutdown_grace_period_critical_pods
        )

    @property
    def node_name(self) -> str:
        """The name of the Node object."""
        return self.hostname_override

    @property
    def embedded(self) -> bool:
        """True if the agent starts the embedded API server."""
        return self.kubeconfig is None and not self.in_cluster

    def __repr__(self) -> str:
        # Other fields may hold secrets, such as an HTTP header.
        return f"AgentSettings(node_name={self.node_name!r}, root_dir={str(self.root_dir)!r}, …)"


SETTINGS = tuple(declared_settings(AgentSettings))
BY_NAME = {setting.name: setting for setting in SETTINGS}
