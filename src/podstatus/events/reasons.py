"""Event reasons: the kubelet's, followed by our own.

The docstring of each constant is its message; braces mark what is filled in. docs/events.md lists
the type of each and when it occurs. Upstream: pkg/kubelet/events/event.go v1.36.4, and for
admission pkg/kubelet/lifecycle/predicate.go.
"""

from typing import Final

# Containers

CREATED: Final = "Created"
"""Container created"""
STARTED: Final = "Started"
"""Container started"""
FAILED: Final = "Failed"
"""Error: {why}"""
KILLING: Final = "Killing"
"""Stopping container {container} · Container {container} failed liveness probe, will be restarted
· Container {container} failed startup probe, will be restarted · Container {container} definition
changed, will be restarted · Container {container} restart requested, will be restarted ·
FailedPostStartHook"""
BACK_OFF: Final = "BackOff"
"""Back-off restarting failed container {container} in pod {name}_{namespace}({uid}) · Back-off
pulling image "{image}\""""
UNHEALTHY: Final = "Unhealthy"
"""{Liveness, Readiness or Startup} probe failed: {output} · {…} probe errored and resulted in
unknown state: {why}"""
PROBE_WARNING: Final = "ProbeWarning"
"""{Liveness, Readiness or Startup} probe warning: {output}"""
FAILED_POST_START_HOOK: Final = "FailedPostStartHook"
"""PostStartHook failed"""
FAILED_PRE_STOP_HOOK: Final = "FailedPreStopHook"
"""PreStopHook failed"""
LIFECYCLE_HTTP_FALLBACK: Final = "LifecycleHTTPFallback"
"""request to HTTPS lifecycle hook {host} got HTTP response, retry with HTTP succeeded"""

# Images

PULLING: Final = "Pulling"
"""Pulling image "{image}\""""
PULLED: Final = "Pulled"
"""Container image "{image}" already present on machine and can be accessed by the pod"""
ERR_IMAGE_NEVER_PULL: Final = "ErrImageNeverPull"
"""Container image "{image}" is not present with pull policy of Never"""
INSPECT_FAILED: Final = "InspectFailed"
"""Failed to apply default image tag "{image}": {why}"""

# Pods

FAILED_SYNC: Final = "FailedSync"
"""error determining status: {why}"""
FAILED_CREATE_POD_SANDBOX: Final = "FailedCreatePodSandBox"
"""Failed to create pod sandbox: {why}"""
FAILED_MOUNT: Final = "FailedMount"
"""MountVolume.SetUp failed for volume "{volume}" : {why}"""
SANDBOX_CHANGED: Final = "SandboxChanged"
"""Pod sandbox changed, it will be killed and re-created."""
FAILED_KILL_POD: Final = "FailedKillPod"
"""error killing pod: {why}"""
EXCEEDED_GRACE_PERIOD: Final = "ExceededGracePeriod"
"""Container runtime did not kill the pod within specified grace period."""
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
"""Pod was active on the node longer than the specified deadline"""
FAILED_VALIDATION: Final = "FailedValidation"
"""Error validating pod {name}_{namespace}({uid}) from {source} due to {why}, ignoring"""

# Resizes

RESIZE_DEFERRED: Final = "ResizeDeferred"
"""Pod resize {what is missing, as OutOfcpu}: {resources}"""
RESIZE_INFEASIBLE: Final = "ResizeInfeasible"
"""Pod resize Infeasible: {resources}"""
RESIZE_STARTED: Final = "ResizeStarted"
"""Pod resize started: {resources}"""
RESIZE_COMPLETED: Final = "ResizeCompleted"
"""Pod resize completed: {resources}"""
RESIZE_ERROR: Final = "ResizeError"
"""Pod resize error: {resources}"""

# Pods that are rejected at admission

OUT_OF: Final = "OutOf"
"""Prefix of the reason; the name of the scarce resource follows. Node didn't have enough
resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"""
OUT_OF_CPU: Final = "OutOfcpu"
"""As `OutOf`, in millicores."""
OUT_OF_MEMORY: Final = "OutOfmemory"
"""As `OutOf`, in bytes."""
OUT_OF_EPHEMERAL_STORAGE: Final = "OutOfephemeral-storage"
"""As `OutOf`, in bytes."""
OUT_OF_PODS: Final = "OutOfpods"
"""As `OutOf`, in pods."""
NODE_AFFINITY: Final = "NodeAffinity"
"""Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"""
TAINT_TOLERATION: Final = "TaintToleration"
"""Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"""
POD_OS_SELECTOR_NODE_LABEL_DOES_NOT_MATCH: Final = "PodOSSelectorNodeLabelDoesNotMatch"
"""Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"""
POD_OS_NOT_SUPPORTED: Final = "PodOSNotSupported"
"""Failed to admit pod as the OS field doesn't match node OS"""
TOO_MANY_CONTAINERS: Final = "TooManyContainers"
"""Pod has {count} containers, this node takes at most {limit}"""
TOO_MANY_VOLUMES: Final = "TooManyVolumes"
"""Pod has {count} volumes, this node takes at most {limit}"""
POD_TOO_LARGE: Final = "PodTooLarge"
"""Pod has {count} {what}, this node takes at most {limit}"""
INVALID_NODE_INFO: Final = "InvalidNodeInfo"
"""Kubelet cannot get node info."""
UNEXPECTED_ADMISSION_ERROR: Final = "UnexpectedAdmissionError"
"""{what}, which is unexpected."""

# The node

STARTING: Final = "Starting"
"""Starting kubelet."""
NODE_READY: Final = "NodeReady"
"""Node {node} status is now: NodeReady"""
NODE_NOT_READY: Final = "NodeNotReady"
"""Node {node} status is now: NodeNotReady"""
NODE_SCHEDULABLE: Final = "NodeSchedulable"
"""Node {node} status is now: NodeSchedulable"""
NODE_NOT_SCHEDULABLE: Final = "NodeNotSchedulable"
"""Node {node} status is now: NodeNotSchedulable"""
NODE_HAS_SUFFICIENT_MEMORY: Final = "NodeHasSufficientMemory"
"""Node {node} status is now: NodeHasSufficientMemory"""
NODE_HAS_INSUFFICIENT_MEMORY: Final = "NodeHasInsufficientMemory"
"""Node {node} status is now: NodeHasInsufficientMemory"""
NODE_HAS_NO_DISK_PRESSURE: Final = "NodeHasNoDiskPressure"
"""Node {node} status is now: NodeHasNoDiskPressure"""
NODE_HAS_DISK_PRESSURE: Final = "NodeHasDiskPressure"
"""Node {node} status is now: NodeHasDiskPressure"""
NODE_HAS_SUFFICIENT_PID: Final = "NodeHasSufficientPID"
"""Node {node} status is now: NodeHasSufficientPID"""
NODE_HAS_INSUFFICIENT_PID: Final = "NodeHasInsufficientPID"
"""Node {node} status is now: NodeHasInsufficientPID"""
NODE_SHUTDOWN: Final = "NodeShutdown"
"""Shutdown manager detected shutdown event · Shutdown manager detected shutdown cancellation · Pod
was rejected as the node is shutting down."""
REBOOTED: Final = "Rebooted"
"""Node {node} has been rebooted, boot id: {boot id}"""

# Our own: the kubelet has no event for these

INVALID_MANIFEST: Final = "InvalidManifest"
"""Cannot read static pods from {file or URL}: {why}"""
FAILED_CREATE_MIRROR_POD: Final = "FailedCreateMirrorPod"
"""Cannot create the mirror pod: {why}"""
STATUS_REJECTED: Final = "StatusRejected"
"""Status was rejected: {why}"""
FOREIGN_STATUS_WRITE: Final = "ForeignStatusWrite"
"""Pod {namespace}/{name}: Condition {type} was set to {status} (reason {reason}) by "{field
manager}"; the node owns it and has set it back to {status} · Pod {namespace}/{name}: Field {field}
was changed by {…}; the node owns it and has set it back"""
HISTORY_NOT_KEPT: Final = "HistoryNotKept"
"""cannot use the history {file}: {why}; move it away to start a new one"""
HISTORY_LOST: Final = "HistoryLost"
"""{file} {was deleted, replaced, truncated or changed by another program}; started a new history"""
AGENT_RESTARTED: Final = "AgentRestarted"
"""The agent was restarted: {why}"""
LIMITS_NOT_ENFORCED: Final = "LimitsNotEnforced"
"""Container runs without some of its resource limits: {why}"""
ALERT_FIRING: Final = "AlertFiring"
"""{alert}: {summary}"""
ALERT_RESOLVED: Final = "AlertResolved"
"""{alert}: {summary}"""
ALERT_ACTION: Final = "AlertAction"
"""{alert}: {do what}: done · remove the taint {taint}: done"""
ALERT_ACTION_NOT_DONE: Final = "AlertActionNotDone"
"""{alert}: {do what}: not done, {why}"""


def reasons_by_constant() -> dict[str, str]:
    """Return every reason by the name of its constant."""
    return {name: value for name, value in globals().items() if name.isupper()}
