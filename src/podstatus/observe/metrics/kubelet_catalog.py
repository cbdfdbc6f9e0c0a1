"""The kubelet's metrics that podstatus has, with the same names, labels and buckets.

Upstream: pkg/kubelet/metrics/metrics.go, prober/prober_manager.go and
metrics/collectors/resource_metrics.go v1.36.4, component-base/metrics/prometheus/slis and
restclient v0.36.4.
"""

from podstatus.base.metric_values import DEFAULT_BUCKETS
from podstatus.client.rest.server_health import REQUEST_BOUNDS
from podstatus.observe.metrics.model import counter, gauge, histogram
from podstatus.runtime.metrics import OPERATION_BUCKETS
from podstatus.status.counters import STARTUP_BOUNDS, SYNC_BOUNDS

NODE_NAME = gauge("kubelet_node_name", "The node's name. The count is always 1.", "node")

# Pods

DESIRED_PODS = gauge(
    "kubelet_desired_pods",
    "Number of pods that the agent is instructed to run. static is true if the pod does not come "
    "from the API server.",
    "static",
)
ACTIVE_PODS = gauge(
    "kubelet_active_pods",
    "Number of pods that are considered when new pods are admitted. static is true if the pod "
    "does not come from the API server.",
    "static",
)
MIRROR_PODS = gauge(
    "kubelet_mirror_pods",
    "Number of mirror pods: API objects that represent static pods.",
)
WORKING_PODS = gauge(
    "kubelet_working_pods",
    "Number of pods that have a pod worker, broken down by lifecycle phase, whether the pod is "
    "desired, orphaned, or runtime only (also orphaned), and whether the pod is static.",
    "lifecycle",
    "config",
    "static",
)
RUNNING_PODS = gauge("kubelet_running_pods", "Number of pods that have a running pod sandbox.")
RUNNING_CONTAINERS = gauge(
    "kubelet_running_containers",
    "Number of containers in the runtime, including exited ones, by state.",
    "container_state",
)
EPHEMERAL_CONTAINERS = gauge(
    "kubelet_managed_ephemeral_containers",
    "Number of ephemeral containers in the desired pods.",
)
EVICTIONS = counter(
    "kubelet_evictions",
    "Number of pods that were evicted, by signal, or by the name of the limit that the pod "
    "exceeded.",
    "eviction_signal",
)
EVICTION_STATS_AGE = histogram(
    "kubelet_eviction_stats_age_seconds",
    "Time between the collection of usage and the eviction of a pod because of it, by signal.",
    DEFAULT_BUCKETS,
    "eviction_signal",
)
RESTARTED_PODS = counter(
    "kubelet_restarted_pods_total",
    "Number of pods that were deleted and recreated with the same UID before they terminated.",
    "static",
)
ORPHANED_PODS = counter(
    "kubelet_orphaned_runtime_pods_total",
    "Number of pods that were found in the runtime although no pod source has them.",
)
STARTED_PODS = counter("kubelet_started_pods_total", "Number of attempts to start a pod sandbox.")
STARTED_PODS_ERRORS = counter(
    "kubelet_started_pods_errors_total", "Number of failed attempts to start a pod sandbox."
)
STARTED_CONTAINERS = counter(
    "kubelet_started_containers_total",
    "Number of attempts to start a container, by container type.",
    "container_type",
)
STARTED_CONTAINERS_ERRORS = counter(
    "kubelet_started_containers_errors_total",
    "Number of failed attempts to start a container, by container type and reason.",
    "container_type",
    "code",
)
TERMINATED_CONTAINERS = counter(
    "kubelet_terminated_containers_total",
    "Number of terminated containers, by container type, exit code and reason. After the first "
    "1000 label combinations, exit code and reason are set to 'other'.",
    "container_type",
    "exit_code",
    "reason",
)
PENDING_RESIZES = gauge(
    "kubelet_pod_pending_resizes", "Number of pending pod resizes, by reason.", "reason"
)
RESIZES_IN_PROGRESS = gauge("kubelet_pod_in_progress_resizes", "Number of pod resizes in progress.")

# Durations

STATUS_SYNC = histogram(
    "kubelet_pod_status_sync_duration_seconds",
    "Duration in seconds to sync a pod status, from the oldest unsent change to the "
    "acknowledgement of the update by the API server.",
    SYNC_BOUNDS,
)
POD_START = histogram(
    "kubelet_pod_start_duration_seconds",
    "Duration in seconds from the agent seeing a pod for the first time until the phase of the "
    "pod is Running.",
    STARTUP_BOUNDS,
)
POD_WORKER_START = histogram(
    "kubelet_pod_worker_start_duration_seconds",
    "Duration in seconds from the agent seeing a pod for the first time until the worker of the "
    "pod starts.",
    DEFAULT_BUCKETS,
)
POD_START_SLI = histogram(
    "kubelet_pod_start_sli_duration_seconds",
    "Duration in seconds to start a stateless pod, excluding the time to pull images and run "
    "init containers, measured from the creation of the pod until "
    "all its containers are reported as started and observed via watch.",
    STARTUP_BOUNDS,
)
POD_START_TOTAL = histogram(
    "kubelet_pod_start_total_duration_seconds",
    "Duration in seconds to start a pod, measured from the creation of the pod until "
    "all its containers are reported as started and observed via watch.",
    STARTUP_BOUNDS,
)
FIRST_NETWORK_POD = gauge(
    "kubelet_first_network_pod_start_sli_duration_seconds",
    "Duration in seconds to start the first pod that needs the pod network, measured like "
    "kubelet_pod_start_sli_duration_seconds.",
)
POD_WORKER = histogram(
    "kubelet_pod_worker_duration_seconds",
    "Duration in seconds to sync a single pod, by operation type: create, update, sync, kill or "
    "terminated.",
    DEFAULT_BUCKETS,
    "operation_type",
)
RELIST_DURATION = histogram(
    "kubelet_pleg_relist_duration_seconds",
    "Duration in seconds to relist all pods in PLEG.",
    DEFAULT_BUCKETS,
)
RELIST_INTERVAL = histogram(
    "kubelet_pleg_relist_interval_seconds",
    "Interval in seconds between two relists in PLEG.",
    DEFAULT_BUCKETS,
)
POD_RELIST_DURATION = histogram(
    "kubelet_pleg_pod_relist_duration_seconds",
    "Duration in seconds to read the state of a single pod from the runtime.",
    DEFAULT_BUCKETS,
)
RELIST_LAST_SEEN = gauge(
    "kubelet_pleg_last_seen_seconds",
    "Unix time in seconds at which the last successful relist in PLEG started.",
)
RUNTIME_OPERATIONS = counter(
    "kubelet_runtime_operations_total",
    "Number of runtime operations, by operation type.",
    "operation_type",
)
RUNTIME_OPERATIONS_DURATION = histogram(
    "kubelet_runtime_operations_duration_seconds",
    "Duration in seconds of runtime operations, by operation type.",
    OPERATION_BUCKETS,
    "operation_type",
)
RUNTIME_OPERATIONS_ERRORS = counter(
    "kubelet_runtime_operations_errors_total",
    "Number of failed runtime operations, by operation type.",
    "operation_type",
)

REQUESTS = counter(
    "rest_client_requests_total",
    "Number of HTTP requests to the API server, by status code (<error> if there was no "
    "response), method and host.",
    "code",
    "method",
    "host",
)
REQUEST_DURATION = histogram(
    "rest_client_request_duration_seconds",
    "Duration in seconds of HTTP requests to the API server, excluding watches, by verb and host.",
    REQUEST_BOUNDS,
    "verb",
    "host",
)

# Probes

PROBES_TOTAL = counter(
    "prober_probe_total",
    "Number of liveness, readiness and startup probes of a container, by result. The series are "
    "removed with the pod.",
    "probe_type",
    "result",
    "container",
    "pod",
    "namespace",
    "pod_uid",
)
PROBE_DURATION = histogram(
    "prober_probe_duration_seconds",
    "Duration in seconds of probes that did not fail.",
    DEFAULT_BUCKETS,
    "probe_type",
    "container",
    "pod",
    "namespace",
)

# Resource usage

_CONTAINER_LABELS = ("container", "pod", "namespace")
_POD_LABELS = ("pod", "namespace")

NODE_CPU = counter(
    "node_cpu_usage_seconds_total", "Cumulative CPU time in core-seconds that the node has used."
)
NODE_MEMORY = gauge("node_memory_working_set_bytes", "Current working set of the node in bytes.")
NODE_SWAP = gauge("node_swap_usage_bytes", "Current swap usage of the node in bytes.")
CONTAINER_START = gauge(
    "container_start_time_seconds",
    "Start time of the container since the Unix epoch in seconds.",
    *_CONTAINER_LABELS,
)
CONTAINER_CPU = counter(
    "container_cpu_usage_seconds_total",
    "Cumulative CPU time in core-seconds that the container has used.",
    *_CONTAINER_LABELS,
)
CONTAINER_MEMORY = gauge(
    "container_memory_working_set_bytes",
    "Current working set of the container in bytes.",
    *_CONTAINER_LABELS,
)
CONTAINER_SWAP = gauge(
    "container_swap_usage_bytes",
    "Current swap usage of the container in bytes.",
    *_CONTAINER_LABELS,
)
CONTAINER_SWAP_LIMIT = gauge(
    "container_swap_limit_bytes",
    "Swap limit of the container in bytes.",
    *_CONTAINER_LABELS,
)
POD_CPU = counter(
    "pod_cpu_usage_seconds_total",
    "Cumulative CPU time in core-seconds that the pod has used.",
    *_POD_LABELS,
)
POD_MEMORY = gauge(
    "pod_memory_working_set_bytes",
    "Current working set of the pod in bytes.",
    *_POD_LABELS,
)
POD_SWAP = gauge("pod_swap_usage_bytes", "Current swap usage of the pod in bytes.", *_POD_LABELS)
RESOURCE_ERROR = gauge(
    "resource_scrape_error",
    "1 if resource usage could not be measured, 0 otherwise.",
)

# Health checks

HEALTHCHECK = gauge(
    "kubernetes_healthcheck",
    "Result of a health check of the agent: 1 if it passes, 0 otherwise.",
    "name",
    "type",
)
HEALTHCHECKS = counter(
    "kubernetes_healthchecks_total",
    "Number of health checks of the agent, by result.",
    "name",
    "type",
    "status",
)
