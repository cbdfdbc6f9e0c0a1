"""Event reasons: the kubelet's, followed by our own.

docs/reference/events.md lists the type and the messages of each, and when it occurs. Upstream:
pkg/kubelet/events/event.go v1.36.4, and for admission pkg/kubelet/lifecycle/predicate.go.
"""

from typing import Final

# Containers

CREATED: Final = "Created"
STARTED: Final = "Started"
FAILED: Final = "Failed"
KILLING: Final = "Killing"
BACK_OFF: Final = "BackOff"
UNHEALTHY: Final = "Unhealthy"
PROBE_WARNING: Final = "ProbeWarning"
FAILED_POST_START_HOOK: Final = "FailedPostStartHook"
FAILED_PRE_STOP_HOOK: Final = "FailedPreStopHook"
LIFECYCLE_HTTP_FALLBACK: Final = "LifecycleHTTPFallback"

# Images

PULLING: Final = "Pulling"
PULLED: Final = "Pulled"
ERR_IMAGE_NEVER_PULL: Final = "ErrImageNeverPull"
INSPECT_FAILED: Final = "InspectFailed"

# Pods

FAILED_SYNC: Final = "FailedSync"
FAILED_CREATE_POD_SANDBOX: Final = "FailedCreatePodSandBox"
FAILED_MOUNT: Final = "FailedMount"
SANDBOX_CHANGED: Final = "SandboxChanged"
FAILED_KILL_POD: Final = "FailedKillPod"
EXCEEDED_GRACE_PERIOD: Final = "ExceededGracePeriod"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
FAILED_VALIDATION: Final = "FailedValidation"

# Resizes

RESIZE_DEFERRED: Final = "ResizeDeferred"
RESIZE_INFEASIBLE: Final = "ResizeInfeasible"
RESIZE_STARTED: Final = "ResizeStarted"
RESIZE_COMPLETED: Final = "ResizeCompleted"
RESIZE_ERROR: Final = "ResizeError"

# Pods that are rejected at admission

OUT_OF: Final = "OutOf"
"""Prefix of the reason; the name of the scarce resource follows."""
OUT_OF_CPU: Final = "OutOfcpu"
OUT_OF_MEMORY: Final = "OutOfmemory"
OUT_OF_EPHEMERAL_STORAGE: Final = "OutOfephemeral-storage"
OUT_OF_PODS: Final = "OutOfpods"
NODE_AFFINITY: Final = "NodeAffinity"
TAINT_TOLERATION: Final = "TaintToleration"
POD_OS_SELECTOR_NODE_LABEL_DOES_NOT_MATCH: Final = "PodOSSelectorNodeLabelDoesNotMatch"
POD_OS_NOT_SUPPORTED: Final = "PodOSNotSupported"
TOO_MANY_CONTAINERS: Final = "TooManyContainers"
TOO_MANY_VOLUMES: Final = "TooManyVolumes"
POD_TOO_LARGE: Final = "PodTooLarge"
INVALID_NODE_INFO: Final = "InvalidNodeInfo"
UNEXPECTED_ADMISSION_ERROR: Final = "UnexpectedAdmissionError"

# The node

STARTING: Final = "Starting"
NODE_READY: Final = "NodeReady"
NODE_NOT_READY: Final = "NodeNotReady"
NODE_SCHEDULABLE: Final = "NodeSchedulable"
NODE_NOT_SCHEDULABLE: Final = "NodeNotSchedulable"
NODE_HAS_SUFFICIENT_MEMORY: Final = "NodeHasSufficientMemory"
NODE_HAS_INSUFFICIENT_MEMORY: Final = "NodeHasInsufficientMemory"
NODE_HAS_NO_DISK_PRESSURE: Final = "NodeHasNoDiskPressure"
NODE_HAS_DISK_PRESSURE: Final = "NodeHasDiskPressure"
NODE_HAS_SUFFICIENT_PID: Final = "NodeHasSufficientPID"
NODE_HAS_INSUFFICIENT_PID: Final = "NodeHasInsufficientPID"
NODE_SHUTDOWN: Final = "NodeShutdown"
REBOOTED: Final = "Rebooted"

# Our own: the kubelet has no event for these

INVALID_MANIFEST: Final = "InvalidManifest"
FAILED_CREATE_MIRROR_POD: Final = "FailedCreateMirrorPod"
STATUS_REJECTED: Final = "StatusRejected"
FOREIGN_STATUS_WRITE: Final = "ForeignStatusWrite"
HISTORY_NOT_KEPT: Final = "HistoryNotKept"
HISTORY_LOST: Final = "HistoryLost"
AGENT_RESTARTED: Final = "AgentRestarted"
LIMITS_NOT_ENFORCED: Final = "LimitsNotEnforced"
ALERT_FIRING: Final = "AlertFiring"
ALERT_RESOLVED: Final = "AlertResolved"
ALERT_ACTION: Final = "AlertAction"
ALERT_ACTION_NOT_DONE: Final = "AlertActionNotDone"
