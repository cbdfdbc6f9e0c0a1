"""podstatus' own metrics, which a kubelet does not have."""

from podstatus.observe.metrics.model import counter, gauge

BUILD_INFO = gauge(
    "podstatus_build_info", "Version of podstatus. The value is always 1.", "version"
)

# Pods

PODS = gauge("podstatus_pods", "Number of pods, by node and phase.", "node", "phase")
PODS_BY_HEALTH = gauge(
    "podstatus_pod_health",
    "Number of pods, by node and health as computed by podstatus.",
    "node",
    "health",
)
READY_PODS = gauge(
    "podstatus_ready_pods", "Number of pods whose Ready condition is True, by node.", "node"
)
RESTARTS = gauge(
    "podstatus_container_restarts",
    "Sum of the restart counts of all containers of the existing pods, by node.",
    "node",
)

# Nodes

NODE_READY = gauge("podstatus_node_ready", "1 if the node is Ready, 0 otherwise.", "node")
NODE_LEASE_AGE = gauge(
    "podstatus_node_lease_age_seconds", "Seconds since the node lease was last renewed.", "node"
)
NODE_USED = gauge(
    "podstatus_node_used",
    "Measured usage of a node, by resource: cpu in cores, memory and disk in bytes, the number of "
    "inodes, pids and pods. No value while it is not measured.",
    "node",
    "resource",
)
NODE_USED_AVERAGE = gauge(
    "podstatus_node_used_average",
    "Exponentially weighted moving average of the usage of a node over the window 1m, 5m or 15m, "
    "as the Unix load average. No value until the whole window has been measured.",
    "node",
    "resource",
    "window",
)
NODE_REQUESTED = gauge(
    "podstatus_node_requested",
    "Sum of the requests of the pods of a node that have not terminated, by resource: cpu in "
    "cores, memory in bytes.",
    "node",
    "resource",
)
NODE_ALLOCATABLE = gauge(
    "podstatus_node_allocatable",
    "What pods can use of a node, by resource; of disk, inodes and pids the capacity.",
    "node",
    "resource",
)
NODE_USED_RATIO = gauge(
    "podstatus_node_used_ratio",
    "Usage of a node divided by what is allocatable, by resource.",
    "node",
    "resource",
)
NODE_REQUESTED_RATIO = gauge(
    "podstatus_node_requested_ratio",
    "Requests of the pods of a node divided by what is allocatable, by resource.",
    "node",
    "resource",
)
NODE_USAGE_AGE = gauge(
    "podstatus_node_usage_age_seconds",
    "Seconds since the usage of a node was last measured.",
    "node",
)

# Status sync

UNSENT = gauge(
    "podstatus_status_unsent",
    "Number of pods whose latest status has not been acknowledged by the API server.",
)
STATUS_AGE = gauge(
    "podstatus_status_age_seconds",
    "Age in seconds of the oldest status change that the API server has not acknowledged; 0 if "
    "there is none.",
)
IN_FLIGHT = gauge("podstatus_status_in_flight", "Number of status updates in flight.")
QUARANTINED = gauge(
    "podstatus_status_quarantined",
    "Number of pods whose status update was rejected by the API server. The update is retried "
    "every 5 minutes and when the status changes.",
)
OUTBOX = gauge(
    "podstatus_outbox_statuses",
    "Number of pod statuses stored on disk because the API server has not yet acknowledged "
    "that the pod or a container has terminated.",
)
SYNC_FAILURES = counter(
    "podstatus_status_sync_failures_total",
    "Number of failed status updates, by failure: gone (pod not found), conflict, busy (429), "
    "unavailable (no response or 5xx), rejected (invalid status), denied (401 or 403) or broken "
    "(an internal error of the agent).",
    "failure",
)

# Freshness of the data

SERVER_REACHABLE = gauge(
    "podstatus_server_reachable", "1 if the API server is reachable, 0 otherwise."
)
SERVER_AGE = gauge(
    "podstatus_server_age_seconds", "Seconds since the last response from the API server."
)
RUNTIME_AGE = gauge(
    "podstatus_runtime_age_seconds", "Seconds since the last successful relist in PLEG."
)

# The history

TRANSITIONS = counter(
    "podstatus_transitions_total",
    "Number of pod status transitions recorded in the history, by transition type.",
    "kind",
)
HISTORY_WRITTEN = counter(
    "podstatus_history_written_total", "Number of entries written to the history."
)
HISTORY_OVERFLOWED = counter(
    "podstatus_history_overflowed_total",
    "Number of pod changes that were not recorded individually because the history queue was "
    "full; each is merged into the next recorded change of the pod.",
)
HISTORY_EVENTS_LOST = counter(
    "podstatus_history_lost_events_total",
    "Number of events that were not recorded because the history queue was full.",
)
HISTORY_REPLACED = counter(
    "podstatus_history_replaced_total",
    "Number of times that the history file was replaced because it was deleted or damaged while "
    "in use.",
)
HISTORY_WAITING = gauge(
    "podstatus_history_waiting", "Number of changes that are waiting to be written to the history."
)

# Alerts

ALERTS = gauge(
    "ALERTS",
    "1 for each pending or firing alert, with the same labels as in Prometheus; limited to 1000 "
    "series.",
    "alertname",
    "alertstate",
    "severity",
    "namespace",
    "pod",
    "node",
)
ALERTS_TRUNCATED = gauge(
    "podstatus_alerts_left_out",
    "Number of pending or firing alerts that are omitted from ALERTS because of its limit of "
    "1000 series.",
)
ALERT_RULES_FAILING = gauge(
    "podstatus_alert_rule_failing",
    "Number of pods or nodes for which the evaluation of an alert rule currently fails.",
    "rule",
)
ALERT_RULE_FAILURES = counter(
    "podstatus_alert_rule_failures_total", "Number of failed evaluations of an alert rule.", "rule"
)
ALERT_RULE_DISABLED = gauge(
    "podstatus_alert_rule_switched_off",
    "1 if an alert rule is no longer evaluated because it exceeded its CPU or memory budget, 0 "
    "otherwise.",
    "rule",
)
ALERT_DELIVERIES = counter(
    "podstatus_alert_deliveries_total",
    "Number of alert messages that were delivered to a receiver.",
    "receiver",
)
ALERT_DELIVERIES_DROPPED = counter(
    "podstatus_alert_deliveries_dropped_total",
    "Number of alert messages that were rejected by a receiver, or dropped because the agent's "
    "queue for the receiver was full.",
    "receiver",
)
ALERT_DELIVERIES_WAITING = gauge(
    "podstatus_alert_deliveries_waiting",
    "Number of alert messages that are waiting to be delivered to a receiver.",
    "receiver",
)

LEADER = gauge(
    "leader_election_master_status",
    "Whether this observer holds the lease and so sends alerts: 1, or 0 for a standby.",
    "name",
)

# Events

EVENTS_RECORDED = counter(
    "podstatus_events_recorded_total",
    "Number of Kubernetes events generated by the agent, sent or not.",
)
EVENTS_SENT = counter(
    "podstatus_events_sent_total", "Number of events that were created in the API server."
)
EVENTS_PATCHED = counter(
    "podstatus_events_patched_total",
    "Number of repeated events that increased the count of an existing event.",
)
EVENTS_DROPPED = counter(
    "podstatus_events_dropped_total", "Number of dropped events, by cause.", "cause"
)
EVENTS_WAITING = gauge(
    "podstatus_events_waiting", "Number of events that are queued or being sent."
)

# Watch clients

WATCHERS = gauge("podstatus_watchers", "Number of connected clients of /v1/watch.")
WATCH_EVENTS = counter(
    "podstatus_watch_events_total", "Number of events sent to clients of /v1/watch."
)
WATCHES_CLOSED = counter(
    "podstatus_watch_cuts_total",
    "Number of clients of /v1/watch that the server disconnected, by reason: slow (the client "
    "stopped reading), long (the maximum duration was reached), history (the history could not "
    "be read) or stop (the server was stopped).",
    "reason",
)
WATCHES_REJECTED = counter(
    "podstatus_watch_refusals_total",
    "Number of rejected connections to /v1/watch, by the limit that was reached: all (total "
    "number of clients) or client (number of clients per user).",
    "places",
)

# The agent itself

SERVICE_SILENT = gauge(
    "podstatus_service_silent_seconds",
    "Seconds since the last heartbeat of an internal component of the agent.",
    "service",
)
SERVICE_STALLED = gauge(
    "podstatus_service_stalled",
    "1 if an internal component of the agent has missed its heartbeat deadline, 0 otherwise.",
    "service",
)
CPU = counter(
    "process_cpu_seconds_total",
    "Total user and system CPU time in seconds that the process has used.",
)
RESIDENT = gauge("process_resident_memory_bytes", "Resident memory size in bytes.")
VIRTUAL = gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.")
START = gauge(
    "process_start_time_seconds", "Start time of the process since the Unix epoch in seconds."
)
OPEN_FDS = gauge("process_open_fds", "Number of open file descriptors.")
