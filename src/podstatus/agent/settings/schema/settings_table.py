"""The table of all settings of `podstatus run`. A test compares docs/settings.md with it."""

from podstatus.agent.settings.model import AUTO, DRAIN, KEEP
from podstatus.agent.settings.schema.maps import AMOUNTS, GATES, HEADERS, LABELS, TAINTS, THRESHOLDS
from podstatus.agent.settings.schema.scalars import (
    ADDRESS,
    BOOL,
    BYTES,
    NODE_NAME,
    PATH,
    PATHS,
    PERIOD,
    PORT,
    RUNTIME,
    TEXT,
    URL,
    choice,
    duration,
    integer,
)
from podstatus.agent.settings.schema.setting import Setting
from podstatus.agent.settings.schema.shutdown_periods import PERIODS

_RESTART_PERIOD = duration(1, 300, allowed="a duration from 1s to 300s")
_ANY_DURATION = duration(0, allowed="a duration of 0 or more, such as 30s or 4h")
_SHUTDOWN_PERIOD = duration(
    0, allowed="a duration in whole seconds, such as 30s; 0 means none", whole_seconds=True
)
_PLACES, _NODE, _PODS, _SERVER, _AGENT = "Places", "Node", "Pods", "API server", "Agent"

SETTINGS = (
    Setting(
        name="root_dir",
        value_type=PATH,
        help="Directory where the agent stores its state: API server data, checkpoints, "
        "certificates, logs and history.",
        default_help="$XDG_DATA_HOME/podstatus, or ~/.local/share/podstatus",
        group=_PLACES,
    ),
    Setting(
        name="config",
        value_type=PATH,
        help="Path to a KubeletConfiguration file in YAML or JSON.",
        default_help="none",
        group=_PLACES,
    ),
    Setting(
        name="kubeconfig",
        value_type=PATH,
        help="Path to the kubeconfig of the cluster to join. If it is not set and --in-cluster is "
        "false, the agent starts an embedded API server.",
        default_help="none",
        group=_PLACES,
    ),
    Setting(
        name="in_cluster",
        value_type=BOOL,
        help="Join the cluster in which the agent runs as a pod, using the service account of "
        "that pod.",
        default_help="true if the agent runs in a pod and --kubeconfig is not set",
        group=_PLACES,
    ),
    Setting(
        name="hostname_override",
        value_type=NODE_NAME,
        help="Node name to use instead of the hostname.",
        default_help="the hostname",
    ),
    Setting(
        name="runtime",
        value_type=RUNTIME,
        help="Container runtime: process, simulated, or a custom class given as module:Class.",
        default_help="process if the API server is embedded; otherwise the flag is required",
    ),
    Setting(
        name="isolation",
        value_type=choice(("auto", "bubblewrap", "none")),
        help="How the process runtime isolates pods: bubblewrap, none, or auto, which uses "
        "bubblewrap if it works on this machine and none otherwise.",
        default="auto",
    ),
    Setting(
        name="register_node",
        field="registerNode",
        value_type=BOOL,
        help="Register the node with the API server; if false, wait until the Node object exists.",
        default="true",
    ),
    Setting(
        name="register_with_taints",
        field="registerWithTaints",
        value_type=TAINTS,
        help="Taints to register the node with; an empty string means no taints.",
        default_help="podstatus.dev/process:NoExecute for the process runtime in an external "
        "cluster, otherwise none",
    ),
    Setting(
        name="node_labels",
        value_type=LABELS,
        help="Labels to add when registering the node.",
        default="",
    ),
    Setting(
        name="node_capacity",
        value_type=AMOUNTS,
        help="Capacity to report instead of the detected one, such as cpu=2,memory=4Gi.",
        default="",
    ),
    Setting(
        name="node_ip",
        value_type=ADDRESS,
        help="IP address of the Node.",
        default_help="the outbound IP address of this machine",
    ),
    Setting(
        name="provider_id",
        field="providerID",
        value_type=TEXT,
        help="ID of this machine at its cloud provider, set as spec.providerID of the Node.",
        default_help="none",
    ),
    Setting(
        name="kube_reserved",
        field="kubeReserved",
        value_type=AMOUNTS,
        help="Resources reserved for the agent, such as cpu=100m,memory=200Mi; they are "
        "subtracted from the capacity to compute the allocatable resources.",
        default="",
    ),
    Setting(
        name="system_reserved",
        field="systemReserved",
        value_type=AMOUNTS,
        help="Resources reserved for other processes on the machine; they are subtracted from "
        "the capacity to compute the allocatable resources.",
        default="",
    ),
    Setting(
        name="pods_per_core",
        field="podsPerCore",
        value_type=integer(0),
        help="Maximum number of pods per CPU core; the total never exceeds --max-pods. 0 means no "
        "limit per core.",
        default="0",
    ),
    Setting(
        name="max_pods",
        field="maxPods",
        value_type=integer(0),
        help="Maximum number of pods on the node.",
        default="110",
    ),
    Setting(
        name="eviction_hard",
        field="evictionHard",
        value_type=THRESHOLDS,
        help="Thresholds below which the node reports a pressure condition. The agent never "
        "evicts pods. Signals without a threshold are not monitored.",
        default=(
            "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,"
            "imagefs.available<15%,imagefs.inodesFree<5%"
        ),
    ),
    Setting(
        name="eviction_pressure_transition_period",
        field="evictionPressureTransitionPeriod",
        value_type=PERIOD,
        help="How long to keep reporting a pressure condition after it was last observed.",
        default="5m",
    ),
    Setting(
        name="node_status_update_frequency",
        field="nodeStatusUpdateFrequency",
        value_type=PERIOD,
        help="How often to compute the node status.",
        default="10s",
    ),
    Setting(
        name="node_status_report_frequency",
        field="nodeStatusReportFrequency",
        value_type=PERIOD,
        help="How often to send the node status if it has not changed.",
        default="5m",
    ),
    Setting(
        name="node_lease_duration_seconds",
        field="nodeLeaseDurationSeconds",
        value_type=integer(1),
        help="Duration of the node lease in seconds; the agent renews the lease at intervals of "
        "a quarter of this duration.",
        default="40",
    ),
    Setting(
        name="pod_manifest_path",
        field="staticPodPath",
        value_type=PATH,
        help="Path to a directory with static pod manifests, or to a single manifest file.",
        default_help="none",
        group=_PODS,
    ),
    Setting(
        name="manifest_url",
        field="staticPodURL",
        value_type=URL,
        help="URL to fetch static pod manifests from.",
        default_help="none",
        secret=True,
        group=_PODS,
    ),
    Setting(
        name="manifest_url_header",
        field="staticPodURLHeader",
        value_type=HEADERS,
        help="HTTP headers to send in requests to --manifest-url, such as "
        "name1:value1,name2:value2.",
        default="",
        secret=True,
        group=_PODS,
    ),
    Setting(
        name="file_check_frequency",
        field="fileCheckFrequency",
        value_type=PERIOD,
        help="How often to check --pod-manifest-path for changes.",
        default="20s",
        group=_PODS,
    ),
    Setting(
        name="http_check_frequency",
        field="httpCheckFrequency",
        value_type=PERIOD,
        help="How often to check --manifest-url for changes.",
        default="20s",
        group=_PODS,
    ),
    Setting(
        name="sync_frequency",
        field="syncFrequency",
        value_type=PERIOD,
        help="Maximum interval between two syncs of a pod.",
        default="1m",
        group=_PODS,
    ),
    Setting(
        name="max_container_restart_period",
        field="crashLoopBackOff.maxContainerRestartPeriod",
        value_type=_RESTART_PERIOD,
        help="Maximum back-off delay before a crashing container is restarted.",
        default="300s",
        group=_PODS,
    ),
    Setting(
        name="container_log_max_size",
        field="containerLogMaxSize",
        value_type=BYTES,
        help="Maximum size of a container log file before it is rotated.",
        default="10Mi",
        group=_PODS,
    ),
    Setting(
        name="container_log_max_files",
        field="containerLogMaxFiles",
        value_type=integer(2),
        help="Maximum number of log files per container.",
        default="5",
        group=_PODS,
    ),
    Setting(
        name="ready_after_restart",
        value_type=choice(("last", "kubelet")),
        help="Readiness to report for a container after a restart of the agent, until the first "
        "readiness probe of the container completes. last: the last reported value; "
        "kubelet: ready only if the pod was Ready and the container started more than 10s "
        "before the agent.",
        default="last",
        group=_PODS,
    ),
    Setting(
        name="keep_terminated_pod_volumes",
        value_type=BOOL,
        help="Keep the directories of terminated pods, including their volumes.",
        default="false",
        group=_PODS,
    ),
    Setting(
        name="feature_gates",
        field="featureGates",
        value_type=GATES,
        help="Kubernetes feature gates to enable or disable, such as ContainerRestartRules=false.",
        default="",
        group=_PODS,
    ),
    Setting(
        name="kube_api_qps",
        field="kubeAPIQPS",
        value_type=integer(0),
        help="Maximum number of pod-related requests to the API server per second; 0 means no "
        "limit.",
        default="0",
        group=_SERVER,
    ),
    Setting(
        name="kube_api_burst",
        field="kubeAPIBurst",
        value_type=integer(1),
        help="Maximum burst of pod-related requests to the API server; has no effect if "
        "--kube-api-qps is 0.",
        default="100",
        group=_SERVER,
    ),
    Setting(
        name="event_qps",
        field="eventRecordQPS",
        value_type=integer(0),
        help="Maximum number of events to create per second; 0 means no limit.",
        default="50",
        group=_SERVER,
    ),
    Setting(
        name="event_burst",
        field="eventBurst",
        value_type=integer(1),
        help="Maximum burst of events to create; has no effect if --event-qps is 0.",
        default="100",
        group=_SERVER,
    ),
    Setting(
        name="apiserver_port",
        value_type=PORT,
        help="Port of the embedded API server on 127.0.0.1; 0 picks a free port.",
        default_help="6443, or a free port if --port is 0",
        group=_SERVER,
    ),
    Setting(
        name="address",
        field="address",
        value_type=ADDRESS,
        help="IP address that the agent's HTTPS server listens on.",
        default="127.0.0.1",
        group=_AGENT,
    ),
    Setting(
        name="port",
        field="port",
        value_type=PORT,
        help="Port of the agent's HTTPS server; 0 picks a free port, and the other servers then "
        "also use free ports unless their ports are set.",
        default="10250",
        group=_AGENT,
    ),
    Setting(
        name="tls_cert_file",
        field="tlsCertFile",
        value_type=PATH,
        help="Path to the PEM-encoded serving certificate of the HTTPS server, followed by any "
        "intermediate certificates.",
        default_help="a self-signed certificate in the root directory",
        group=_AGENT,
    ),
    Setting(
        name="tls_private_key_file",
        field="tlsPrivateKeyFile",
        value_type=PATH,
        help="Path to the PEM-encoded private key for --tls-cert-file.",
        default_help="none",
        group=_AGENT,
    ),
    Setting(
        name="client_ca_file",
        field="authentication.x509.clientCAFile",
        value_type=PATH,
        help="Path to a PEM-encoded CA bundle that client certificates are verified against; "
        "the common name of a certificate is the user name of the client.",
        default_help="the CA of the embedded API server, otherwise none",
        group=_AGENT,
    ),
    Setting(
        name="authentication_token_webhook",
        field="authentication.webhook.enabled",
        value_type=BOOL,
        help="Authenticate bearer tokens with the TokenReview API of the API server.",
        default_help="true unless the API server is embedded",
        group=_AGENT,
    ),
    Setting(
        name="authentication_token_webhook_cache_ttl",
        field="authentication.webhook.cacheTTL",
        value_type=_ANY_DURATION,
        help="How long to cache responses from the TokenReview API.",
        default="2m",
        group=_AGENT,
    ),
    Setting(
        name="authorization_mode",
        field="authorization.mode",
        value_type=choice(("AlwaysAllow", "Webhook")),
        help="Authorization mode of the HTTPS server. AlwaysAllow: allow all requests from "
        "authenticated clients; Webhook: authorize requests with the SubjectAccessReview "
        "API.",
        default_help="Webhook, or AlwaysAllow if the API server is embedded",
        group=_AGENT,
    ),
    Setting(
        name="authorization_webhook_cache_authorized_ttl",
        field="authorization.webhook.cacheAuthorizedTTL",
        value_type=_ANY_DURATION,
        help="How long to cache 'authorized' responses from the SubjectAccessReview API.",
        default="5m",
        group=_AGENT,
    ),
    Setting(
        name="authorization_webhook_cache_unauthorized_ttl",
        field="authorization.webhook.cacheUnauthorizedTTL",
        value_type=_ANY_DURATION,
        help="How long to cache 'unauthorized' responses from the SubjectAccessReview API.",
        default="30s",
        group=_AGENT,
    ),
    Setting(
        name="streaming_connection_idle_timeout",
        field="streamingConnectionIdleTimeout",
        value_type=_ANY_DURATION,
        help="Maximum time that a streaming connection can be idle before it is closed; 0 means "
        "no timeout.",
        default="4h",
        group=_AGENT,
    ),
    Setting(
        name="max_streams",
        value_type=integer(1),
        help="Maximum number of concurrent log and exec streams.",
        default="100",
        group=_AGENT,
    ),
    Setting(
        name="healthz_bind_address",
        field="healthzBindAddress",
        value_type=ADDRESS,
        help="IP address that the /healthz server listens on.",
        default="127.0.0.1",
        group=_AGENT,
    ),
    Setting(
        name="healthz_port",
        field="healthzPort",
        value_type=PORT,
        help="Port of the /healthz server; 0 disables it.",
        default_help="10248, or a free port if --port is 0",
        group=_AGENT,
    ),
    Setting(
        name="on_stop",
        value_type=choice((AUTO, KEEP, DRAIN)),
        help="What to do with the pods when the agent stops. keep: leave them running; drain: "
        "terminate them first; auto: drain if the machine is shutting down, otherwise keep.",
        default=AUTO,
        group=_AGENT,
    ),
    Setting(
        name="shutdown_grace_period",
        field="shutdownGracePeriod",
        value_type=_SHUTDOWN_PERIOD,
        help="Total time given to pods to terminate when the node is shut down or drained. "
        "With --on-stop=auto, 0 disables draining when the machine shuts down.",
        default="30s",
        group=_AGENT,
    ),
    Setting(
        name="shutdown_grace_period_critical_pods",
        field="shutdownGracePeriodCriticalPods",
        value_type=_SHUTDOWN_PERIOD,
        help="Part of --shutdown-grace-period that is reserved for critical pods, which are "
        "terminated last.",
        default_help="a third of --shutdown-grace-period",
        group=_AGENT,
    ),
    Setting(
        name="shutdown_grace_period_by_pod_priority",
        field="shutdownGracePeriodByPodPriority",
        value_type=PERIODS,
        help="Grace periods in seconds by pod priority, such as 0=20,2000000000=10; they "
        "override --shutdown-grace-period and --shutdown-grace-period-critical-pods.",
        default="",
        group=_AGENT,
    ),
    Setting(
        name="history",
        value_type=BOOL,
        help="Record pod status transitions and events in the file history.db in the root "
        "directory.",
        default="true",
        group=_AGENT,
    ),
    Setting(
        name="history_days",
        value_type=integer(1, 3650),
        help="Number of days for which the history is retained.",
        default="7",
        group=_AGENT,
    ),
    Setting(
        name="history_size",
        value_type=BYTES,
        help="Maximum size of the history; when it is exceeded, the oldest entries are removed.",
        default="256Mi",
        group=_AGENT,
    ),
    Setting(
        name="alerts",
        value_type=BOOL,
        help="Evaluate the default alert rules and the rules from --alert-rules.",
        default="true",
        group=_AGENT,
    ),
    Setting(
        name="alert_rules",
        value_type=PATHS,
        help="Comma-separated list of alert rule files in YAML.",
        default="",
        group=_AGENT,
    ),
    Setting(
        name="alertmanager_url",
        value_type=URL,
        help="URL of the Alertmanager to send alerts to, except alerts from rules that define "
        "their own actions.",
        default_help="none",
        secret=True,
        group=_AGENT,
    ),
    Setting(
        name="samples",
        value_type=BOOL,
        help="Create two sample pods if the embedded API server has no pods.",
        default="true",
        group=_AGENT,
    ),
    Setting(
        name="supervise",
        value_type=BOOL,
        help="Run the agent in a child process and restart it if it fails; each exit is "
        "recorded in restarts.jsonl in the root directory.",
        default="false",
        group=_AGENT,
    ),
    Setting(
        name="v",
        short="v",
        field="logging.verbosity",
        value_type=integer(0, 10),
        help="Log verbosity: 0 for warnings and errors, 2 to add info messages, 4 to add debug "
        "messages, 6 to add debug messages of third-party libraries.",
        default_help="2, or 0 if standard error is a terminal",
        group=_AGENT,
    ),
    Setting(
        name="log_format",
        field="logging.format",
        value_type=choice(("text", "json")),
        help="Format of the log messages.",
        default="text",
        group=_AGENT,
    ),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}
