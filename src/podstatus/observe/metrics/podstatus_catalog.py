"""Our own metrics: what a kubelet does not tell."""

from podstatus.observe.metrics.model import counter, gauge

BUILD_INFO = gauge("podstatus_build_info", "Which podstatus this is. Always 1.", "version")

# Pods

PODS = gauge("podstatus_pods", "Pods, by node and phase.", "node", "phase")
PODS_BY_HEALTH = gauge(
    "podstatus_pod_health", "Pods, by node and how they are, in one word.", "node", "health"
)
READY_PODS = gauge("podstatus_ready_pods", "Pods that are Ready, by node.", "node")
RESTARTS = gauge(
    "podstatus_container_restarts",
    "Restarts that the containers of all pods there are have behind them, by node.",
    "node",
)

# Nodes

NODE_READY = gauge("podstatus_node_ready", "1 if the node is Ready, 0 otherwise.", "node")
NODE_LEASE_AGE = gauge(
    "podstatus_node_lease_age_seconds", "Seconds since the lease of the node was renewed.", "node"
)

# How far the API server has it

UNSENT = gauge(
    "podstatus_status_unsent", "Pods with a status that the API server has not acknowledged."
)
STATUS_AGE = gauge(
    "podstatus_status_age_seconds",
    "Age of the oldest change of a status that the API server has not acknowledged; 0: none.",
)
IN_FLIGHT = gauge("podstatus_status_in_flight", "Statuses that are being sent.")
QUARANTINED = gauge(
    "podstatus_status_quarantined", "Pods whose status the API server rejects: seldom retried."
)
OUTBOX = gauge("podstatus_outbox_statuses", "Last statuses that wait on the disk.")
SYNC_FAILURES = counter(
    "podstatus_status_sync_failures_total",
    "Statuses that could not be sent, by what kept them: gone, conflict, busy and so on.",
    "failure",
)

# How old what is shown may be

SERVER_REACHABLE = gauge(
    "podstatus_server_reachable", "1 if the API server answers, 0 if it does not."
)
SERVER_AGE = gauge("podstatus_server_age_seconds", "Seconds since the API server was last heard.")
RUNTIME_AGE = gauge("podstatus_runtime_age_seconds", "Seconds since the runtime was last listed.")

# The history

TRANSITIONS = counter(
    "podstatus_transitions_total",
    "Transitions of pods that were noted, by what changed: phase, condition, container and so on.",
    "kind",
)
HISTORY_WRITTEN = counter("podstatus_history_written_total", "Moments written to the history.")
HISTORY_OVERFLOWED = counter(
    "podstatus_history_overflowed_total",
    "Changes that found the queue of the history full; what they changed is noted with the next.",
)
HISTORY_EVENTS_LOST = counter(
    "podstatus_history_lost_events_total",
    "Events that found the queue of the history full, and are noted nowhere.",
)
HISTORY_REPLACED = counter(
    "podstatus_history_replaced_total",
    "Files of the history that were deleted or damaged while in use, and replaced by new ones.",
)
HISTORY_WAITING = gauge(
    "podstatus_history_waiting", "Changes that wait to be written to the history."
)

# Alerts

ALERTS = gauge(
    "ALERTS",
    "1 for each alert that is pending or fires, as Prometheus has it; 1000 at most.",
    "alertname",
    "alertstate",
    "severity",
    "namespace",
    "pod",
    "node",
)
ALERTS_TRUNCATED = gauge(
    "podstatus_alerts_left_out", "Alerts that are pending or fire, and are not among ALERTS."
)
ALERT_RULES_FAILING = gauge(
    "podstatus_alert_rule_failing", "Pods or nodes that a rule cannot be asked about.", "rule"
)
ALERT_RULE_FAILURES = counter(
    "podstatus_alert_rule_failures_total", "How often the expression of a rule failed.", "rule"
)
ALERT_RULE_DISABLED = gauge(
    "podstatus_alert_rule_switched_off",
    "1 if a rule was over its budget of CPU or memory, and is not evaluated any more.",
    "rule",
)
ALERT_DELIVERIES = counter(
    "podstatus_alert_deliveries_total", "What a receiver of alerts was told.", "receiver"
)
ALERT_DELIVERIES_DROPPED = counter(
    "podstatus_alert_deliveries_dropped_total",
    "What a receiver of alerts refused, or what found its queue full.",
    "receiver",
)
ALERT_DELIVERIES_WAITING = gauge(
    "podstatus_alert_deliveries_waiting", "What a receiver of alerts is yet to be told.", "receiver"
)

# Events

EVENTS_RECORDED = counter("podstatus_events_recorded_total", "Events that were recorded.")
EVENTS_SENT = counter("podstatus_events_sent_total", "Events that were created at the API server.")
EVENTS_PATCHED = counter(
    "podstatus_events_patched_total", "Repeats that were added to the count of an event."
)
EVENTS_DROPPED = counter(
    "podstatus_events_dropped_total", "Events that did not arrive, by cause.", "cause"
)
EVENTS_WAITING = gauge("podstatus_events_waiting", "Events that have not come to their end.")

# Those who watch

WATCHERS = gauge("podstatus_watchers", "Clients of /v1/watch.")
WATCH_EVENTS = counter("podstatus_watch_events_total", "Events that were sent to clients of it.")
WATCHES_CLOSED = counter(
    "podstatus_watch_cuts_total",
    "Clients of it that were cut off, by why: slow, long, history, stop.",
    "reason",
)
WATCHES_REJECTED = counter(
    "podstatus_watch_refusals_total",
    "Clients of it that were refused, by whose places were taken: all, or those of one client.",
    "places",
)

# The agent itself

SERVICE_SILENT = gauge(
    "podstatus_service_silent_seconds",
    "Seconds since a service of the agent showed that it is alive.",
    "service",
)
SERVICE_STALLED = gauge(
    "podstatus_service_stalled",
    "1 if a service of the agent has been silent for longer than it may be, 0 otherwise.",
    "service",
)
CPU = counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.")
RESIDENT = gauge("process_resident_memory_bytes", "Resident memory size in bytes.")
VIRTUAL = gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.")
START = gauge(
    "process_start_time_seconds", "Start time of the process since unix epoch in seconds."
)
OPEN_FDS = gauge("process_open_fds", "Number of open file descriptors.")

PROCESS_METRICS = (CPU, RESIDENT, VIRTUAL, START, OPEN_FDS)
PODSTATUS_METRICS = (
    BUILD_INFO,
    PODS,
    PODS_BY_HEALTH,
    READY_PODS,
    RESTARTS,
    NODE_READY,
    NODE_LEASE_AGE,
    UNSENT,
    STATUS_AGE,
    IN_FLIGHT,
    QUARANTINED,
    OUTBOX,
    SYNC_FAILURES,
    SERVER_REACHABLE,
    SERVER_AGE,
    RUNTIME_AGE,
    TRANSITIONS,
    HISTORY_WRITTEN,
    HISTORY_OVERFLOWED,
    HISTORY_EVENTS_LOST,
    HISTORY_REPLACED,
    HISTORY_WAITING,
    ALERTS,
    ALERTS_TRUNCATED,
    ALERT_RULES_FAILING,
    ALERT_RULE_FAILURES,
    ALERT_RULE_DISABLED,
    ALERT_DELIVERIES,
    ALERT_DELIVERIES_DROPPED,
    ALERT_DELIVERIES_WAITING,
    EVENTS_RECORDED,
    EVENTS_SENT,
    EVENTS_PATCHED,
    EVENTS_DROPPED,
    EVENTS_WAITING,
    WATCHERS,
    WATCH_EVENTS,
    WATCHES_CLOSED,
    WATCHES_REJECTED,
    SERVICE_SILENT,
    SERVICE_STALLED,
)
