"""The kubelet's metrics that we have, with its names, labels and buckets; what they mean here.

Upstream: pkg/kubelet/metrics/metrics.go, prober/prober_manager.go and
metrics/collectors/resource_metrics.go v1.36.4, component-base/metrics/prometheus/slis and
restclient v0.36.4.
"""

from podstatus.client.rest.server_health import REQUEST_BOUNDS
from podstatus.observe.metrics.model import counter, gauge, histogram
from podstatus.status.metrics import STARTUP_BOUNDS, SYNC_BOUNDS

DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Seconds. Prometheus' own, where upstream says no others."""
OPERATION_BUCKETS = tuple(0.005 * 2.5**power for power in range(14))
"""Seconds. Upstream: RuntimeOperationsDuration."""

NODE_NAME = gauge("kubelet_node_name", "1, for the node of this name.", "node")

# Pods

DESIRED_PODS = gauge(
    "kubelet_desired_pods",
    "Pods that are to run here; static: they are not from the API server.",
    "static",
)
ACTIVE_PODS = gauge(
    "kubelet_active_pods",
    "Pods that hold resources of the node, beside which a new one has to fit.",
    "static",
)
MIRROR_PODS = gauge(
    "kubelet_mirror_pods",
    "Mirror pods: API objects that stand for static pods.",
)
WORKING_PODS = gauge(
    "kubelet_working_pods",
    "Pods that are looked after, by what is done for them and who asks for them: a source, "
    "nobody any more (orphan), or only the runtime has something of them.",
    "lifecycle",
    "config",
    "static",
)
RUNNING_PODS = gauge("kubelet_running_pods", "Pods that have a ready sandbox.")
RUNNING_CONTAINERS = gauge(
    "kubelet_running_containers",
    "Containers that the runtime has, by state; ended ones too.",
    "container_state",
)
EPHEMERAL_CONTAINERS = gauge(
    "kubelet_managed_ephemeral_containers",
    "Ephemeral containers of the pods that are to run here.",
)
RESTARTED_PODS = counter(
    "kubelet_restarted_pods_total",
    "Pods that were taken away and came again under the same UID before they had ended.",
    "static",
)
ORPHANED_PODS = counter(
    "kubelet_orphaned_runtime_pods_total",
    "Pods that the runtime has and nobody asks for.",
)
STARTED_PODS = counter("kubelet_started_pods_total", "Sandboxes that were to be started.")
STARTED_PODS_ERRORS = counter(
    "kubelet_started_pods_errors_total", "Sandboxes that could not be started."
)
STARTED_CONTAINERS = counter(
    "kubelet_started_containers_total",
    "Containers that were to be started, by type.",
    "container_type",
)
STARTED_CONTAINERS_ERRORS = counter(
    "kubelet_started_containers_errors_total",
    "Containers that could not be started, by type and reason.",
    "container_type",
    "code",
)
TERMINATED_CONTAINERS = counter(
    "kubelet_terminated_containers_total",
    "Containers that ended, by type and how; kinds beyond 1000 are other.",
    "container_type",
    "exit_code",
    "reason",
)
PENDING_RESIZES = gauge(
    "kubelet_pod_pending_resizes", "Resizes of pods that wait, by why.", "reason"
)
RESIZES_IN_PROGRESS = gauge(
    "kubelet_pod_in_progress_resizes", "Resizes of pods that are under way."
)

# How long things take

STATUS_SYNC = histogram(
    "kubelet_pod_status_sync_duration_seconds",
    "From the oldest change of a pod's status that was not sent yet until the API server has it.",
    SYNC_BOUNDS,
)
POD_START = histogram(
    "kubelet_pod_start_duration_seconds",
    "From when a pod was first seen here until its phase is Running.",
    STARTUP_BOUNDS,
)
POD_WORKER_START = histogram(
    "kubelet_pod_worker_start_duration_seconds",
    "From when a pod was first seen here until something is done for it.",
    DEFAULT_BUCKETS,
)
POD_START_SLI = histogram(
    "kubelet_pod_start_sli_duration_seconds",
    "From the creation of a stateless pod until it was seen running, without pulling images "
    "and init containers.",
    STARTUP_BOUNDS,
)
POD_START_TOTAL = histogram(
    "kubelet_pod_start_total_duration_seconds",
    "From the creation of a pod until it was seen running.",
    STARTUP_BOUNDS,
)
FIRST_NETWORK_POD = gauge(
    "kubelet_first_network_pod_start_sli_duration_seconds",
    "The same as kubelet_pod_start_sli_duration_seconds, of the first pod that needs the pod "
    "network.",
)
POD_WORKER = histogram(
    "kubelet_pod_worker_duration_seconds",
    "Steps of a pod's life: create, update and sync keep it running, kill ends it, terminated "
    "closes its books.",
    DEFAULT_BUCKETS,
    "operation_type",
)
RELIST_DURATION = histogram(
    "kubelet_pleg_relist_duration_seconds",
    "Listing all pods of the runtime.",
    DEFAULT_BUCKETS,
)
RELIST_INTERVAL = histogram(
    "kubelet_pleg_relist_interval_seconds",
    "From the beginning of one such list to the next.",
    DEFAULT_BUCKETS,
)
POD_RELIST_DURATION = histogram(
    "kubelet_pleg_pod_relist_duration_seconds",
    "Asking the runtime about one pod.",
    DEFAULT_BUCKETS,
)
RELIST_LAST_SEEN = gauge(
    "kubelet_pleg_last_seen_seconds",
    "When the latest list that came was asked for, since the Unix epoch.",
)
RUNTIME_OPERATIONS = counter(
    "kubelet_runtime_operations_total",
    "What the runtime was asked to do, by kind.",
    "operation_type",
)
RUNTIME_OPERATIONS_DURATION = histogram(
    "kubelet_runtime_operations_duration_seconds",
    "How long it took, by kind.",
    OPERATION_BUCKETS,
    "operation_type",
)
RUNTIME_OPERATIONS_ERRORS = counter(
    "kubelet_runtime_operations_errors_total",
    "What the runtime failed to do, by kind.",
    "operation_type",
)

REQUESTS = counter(
    "rest_client_requests_total",
    "Requests to the API server, by code of the answer (<error>: there was none), method and host.",
    "code",
    "method",
    "host",
)
REQUEST_DURATION = histogram(
    "rest_client_request_duration_seconds",
    "How long requests to the API server took that are no watches, by method and host.",
    REQUEST_BOUNDS,
    "verb",
    "host",
)

KUBELET_METRICS = (
    NODE_NAME,
    DESIRED_PODS,
    ACTIVE_PODS,
    MIRROR_PODS,
    WORKING_PODS,
    RUNNING_PODS,
    RUNNING_CONTAINERS,
    EPHEMERAL_CONTAINERS,
    RESTARTED_PODS,
    ORPHANED_PODS,
    STARTED_PODS,
    STARTED_PODS_ERRORS,
    STARTED_CONTAINERS,
    STARTED_CONTAINERS_ERRORS,
    TERMINATED_CONTAINERS,
    PENDING_RESIZES,
    RESIZES_IN_PROGRESS,
    STATUS_SYNC,
    POD_START,
    POD_WORKER_START,
    POD_START_SLI,
    POD_START_TOTAL,
    FIRST_NETWORK_POD,
    POD_WORKER,
    RELIST_DURATION,
    RELIST_INTERVAL,
    POD_RELIST_DURATION,
    RELIST_LAST_SEEN,
    RUNTIME_OPERATIONS,
    RUNTIME_OPERATIONS_DURATION,
    RUNTIME_OPERATIONS_ERRORS,
    REQUESTS,
    REQUEST_DURATION,
)
"""On `/metrics`."""

# Probes

PROBES_TOTAL = counter(
    "prober_probe_total",
    "Checks of a container, by what they came to; until its pod is gone.",
    "probe_type",
    "result",
    "container",
    "pod",
    "namespace",
    "pod_uid",
)
PROBE_DURATION = histogram(
    "prober_probe_duration_seconds",
    "How long checks took that did not fail.",
    DEFAULT_BUCKETS,
    "probe_type",
    "container",
    "pod",
    "namespace",
)
PROBE_METRICS = (PROBES_TOTAL, PROBE_DURATION)
"""On `/metrics/probes`."""

# What is used

_CONTAINER_LABELS = ("container", "pod", "namespace")
_POD_LABELS = ("pod", "namespace")

NODE_CPU = counter("node_cpu_usage_seconds_total", "Time that the node's processors were busy.")
NODE_MEMORY = gauge(
    "node_memory_working_set_bytes", "Memory of the node that cannot be given back at once."
)
CONTAINER_START = gauge(
    "container_start_time_seconds",
    "When a running container was started, since the Unix epoch.",
    *_CONTAINER_LABELS,
)
CONTAINER_CPU = counter(
    "container_cpu_usage_seconds_total",
    "Processor time of a container.",
    *_CONTAINER_LABELS,
)
CONTAINER_MEMORY = gauge(
    "container_memory_working_set_bytes",
    "Memory of a container that cannot be given back at once.",
    *_CONTAINER_LABELS,
)
POD_CPU = counter(
    "pod_cpu_usage_seconds_total",
    "Processor time of a pod.",
    *_POD_LABELS,
)
POD_MEMORY = gauge(
    "pod_memory_working_set_bytes",
    "Memory of a pod that cannot be given back at once.",
    *_POD_LABELS,
)
RESOURCE_ERROR = gauge(
    "resource_scrape_error",
    "1 if nothing could be measured, 0 otherwise.",
)
RESOURCE_METRICS = (
    NODE_CPU,
    NODE_MEMORY,
    CONTAINER_START,
    CONTAINER_CPU,
    CONTAINER_MEMORY,
    POD_CPU,
    POD_MEMORY,
    RESOURCE_ERROR,
)
"""On `/metrics/resource`."""

# Whether it is well

HEALTHCHECK = gauge(
    "kubernetes_healthcheck",
    "1 if a check of the agent passes, 0 otherwise.",
    "name",
    "type",
)
HEALTHCHECKS = counter(
    "kubernetes_healthchecks_total",
    "Checks of the agent that were made, by what they came to.",
    "name",
    "type",
    "status",
)
SLI_METRICS = (HEALTHCHECK, HEALTHCHECKS)
"""On `/metrics/slis`."""
