"""Event reasons: the kubelet's, followed by our own.

The string after each has its type, its messages (braces mark what is filled in, ` · ` separates
alternatives), and when it occurs; `make docs` writes docs/reference/events.md from it. Upstream:
pkg/kubelet/events/event.go v1.36.4, and for admission pkg/kubelet/lifecycle/predicate.go.
"""

from typing import Final

# Containers

CREATED: Final = "Created"
"""Normal: Container created

A container was created.
"""
STARTED: Final = "Started"
"""Normal: Container started

The container is running.
"""
FAILED: Final = "Failed"
"""Warning: Error: {why}

The container could not be created or started.
"""
KILLING: Final = "Killing"
"""Normal: Stopping container {container} · Container {container} failed liveness probe, will be
restarted · Container {container} failed startup probe, will be restarted · Container {container}
definition changed, will be restarted · Container {container} restart requested, will be
restarted · FailedPostStartHook

A container is being stopped: its pod terminates, a probe failed, its image changed, an alert action
restarts it, or its postStart hook failed.
"""
BACK_OFF: Final = "BackOff"
"""Warning; for images Normal: Back-off restarting failed container {container} in pod
{name}_{namespace}({uid}) · Back-off pulling image "{image}"

The restart or the image pull of a container is delayed.
"""
UNHEALTHY: Final = "Unhealthy"
"""Warning: {Liveness, Readiness or Startup} probe failed: {output} · {…} probe errored and
resulted in unknown state: {why}

A probe failed, or could not be run.
"""
PROBE_WARNING: Final = "ProbeWarning"
"""Warning: {Liveness, Readiness or Startup} probe warning: {output}

A probe succeeded with a warning, such as a redirect to another host.
"""
FAILED_POST_START_HOOK: Final = "FailedPostStartHook"
"""Warning: PostStartHook failed

A hook failed; the container is killed.
"""
FAILED_PRE_STOP_HOOK: Final = "FailedPreStopHook"
"""Warning: PreStopHook failed

A hook failed, or was aborted at the end of the grace period; the container is stopped anyway.
"""
LIFECYCLE_HTTP_FALLBACK: Final = "LifecycleHTTPFallback"
"""Warning: request to HTTPS lifecycle hook {host} got HTTP response, retry with HTTP succeeded

A hook has `scheme: HTTPS`, but the container's server speaks HTTP.
"""

# Images

PULLING: Final = "Pulling"
"""Normal: Pulling image "{image}"

An image is being pulled.
"""
PULLED: Final = "Pulled"
"""Normal: Container image "{image}" already present on machine and can be accessed by the pod ·
Container image "{image}" is not used: the process runtime runs programs on the host

A container is about to be created; what an image is depends on the runtime.
"""
ERR_IMAGE_NEVER_PULL: Final = "ErrImageNeverPull"
"""Warning: Container image "{image}" is not present with pull policy of Never

The image is not present, and must not be pulled.
"""
INSPECT_FAILED: Final = "InspectFailed"
"""Warning: Failed to apply default image tag "{image}": {why}

The image name cannot be parsed.
"""

# Pods

FAILED_SYNC: Final = "FailedSync"
"""Warning: error determining status: {why}

A sync of the pod failed and is retried.
"""
FAILED_CREATE_POD_SANDBOX: Final = "FailedCreatePodSandBox"
"""Warning: Failed to create pod sandbox: {why}

The runtime could not create the pod's sandbox.
"""
FAILED_MOUNT: Final = "FailedMount"
"""Warning: MountVolume.SetUp failed for volume "{volume}" : {why}

The runtime could not set up a volume of the pod.
"""
SANDBOX_CHANGED: Final = "SandboxChanged"
"""Normal: Pod sandbox changed, it will be killed and re-created.

The pod's sandbox was lost; it is created again.
"""
FAILED_KILL_POD: Final = "FailedKillPod"
"""Warning: error killing pod: {why}

The pod could not be stopped; this is retried.
"""
EXCEEDED_GRACE_PERIOD: Final = "ExceededGracePeriod"
"""Warning: Container runtime did not kill the pod within specified grace period.

The runtime took longer than the grace period.
"""
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
"""Normal: Pod was active on the node longer than the specified deadline

`activeDeadlineSeconds` have passed.
"""
EVICTED: Final = "Evicted"
"""Warning: The node was low on resource: {resource}. Threshold quantity: {quantity}, available:
{amount}. {Container or Pod} {name} was using {usage}, request is {request}, has larger consumption
of {resource}. · Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". · Pod ephemeral
local storage usage exceeds the total limit of containers {limit}. · Container {name} exceeded its
local ephemeral storage limit "{limit}". · The node had condition: [{conditions}].

The pod is terminated: the node runs out of a resource, or the pod exceeds a local storage limit of
its own · a new pod is rejected, since the node is under pressure.
"""
FAILED_VALIDATION: Final = "FailedValidation"
"""Warning: Error validating pod {name}_{namespace}({uid}) from {source} due to {why}, ignoring

A pod of a source is ignored: it is invalid, or its name is in use.
"""

# Resizes

RESIZE_DEFERRED: Final = "ResizeDeferred"
"""Warning: Pod resize {what is missing, as OutOfcpu}: {resources}

The new resources do not fit at present.
"""
RESIZE_INFEASIBLE: Final = "ResizeInfeasible"
"""Warning: Pod resize Infeasible: {resources}

The runtime cannot resize running containers.
"""
RESIZE_STARTED: Final = "ResizeStarted"
"""Normal: Pod resize started: {resources}

The new resources are allocated and being actuated.
"""
RESIZE_COMPLETED: Final = "ResizeCompleted"
"""Normal: Pod resize completed: {resources}

The new resources are actuated.
"""
RESIZE_ERROR: Final = "ResizeError"
"""Warning: Pod resize error: {resources}

The new resources could not be actuated.
"""

# Pods rejected at admission

OUT_OF: Final = "OutOf"
"""Warning: Prefix of the reason; the name of the scarce resource follows. Node didn't have
enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}

A resource is scarce, such as `OutOfexample.com/gpu`.
"""
OUT_OF_CPU: Final = "OutOfcpu"
"""Warning: As `OutOf`, in millicores.

CPU is scarce.
"""
OUT_OF_MEMORY: Final = "OutOfmemory"
"""Warning: As `OutOf`, in bytes.

Memory is scarce.
"""
OUT_OF_EPHEMERAL_STORAGE: Final = "OutOfephemeral-storage"
"""Warning: As `OutOf`, in bytes.

Disk space is scarce.
"""
OUT_OF_PODS: Final = "OutOfpods"
"""Warning: As `OutOf`, in pods.

The node has its maximum number of pods.
"""
NODE_AFFINITY: Final = "NodeAffinity"
"""Warning: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector

Node selector or affinity do not match the node.
"""
TAINT_TOLERATION: Final = "TaintToleration"
"""Warning: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate

The node has a taint of effect NoExecute; static pods are exempt.
"""
SYSCTL_FORBIDDEN: Final = "SysctlForbidden"
"""Warning: forbidden sysctl: "{sysctl}" not allowlisted

The sysctl is not one of the safe ones, or the pod is in the host namespace that it belongs to.
"""
POD_OS_SELECTOR_NODE_LABEL_DOES_NOT_MATCH: Final = "PodOSSelectorNodeLabelDoesNotMatch"
"""Warning: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label

The pod selects another operating system by label.
"""
POD_OS_NOT_SUPPORTED: Final = "PodOSNotSupported"
"""Warning: Failed to admit pod as the OS field doesn't match node OS

The pod selects another operating system by `spec.os`.
"""
TOO_MANY_CONTAINERS: Final = "TooManyContainers"
"""Warning: Pod has {count} containers, this node takes at most {limit}

Containers of all kinds count; see docs/decisions/0041-size-limits-of-pods.md.
"""
TOO_MANY_VOLUMES: Final = "TooManyVolumes"
"""Warning: Pod has {count} volumes, this node takes at most {limit}

See docs/decisions/0041-size-limits-of-pods.md.
"""
POD_TOO_LARGE: Final = "PodTooLarge"
"""Warning: Pod has {count} {what}, this node takes at most {limit}

Variables, tolerations, labels, …; see docs/decisions/0041-size-limits-of-pods.md.
"""
INVALID_NODE_INFO: Final = "InvalidNodeInfo"
"""Warning: Kubelet cannot get node info.

The agent has not read its Node object yet.
"""
UNEXPECTED_ADMISSION_ERROR: Final = "UnexpectedAdmissionError"
"""Warning: {what}, which is unexpected.

Any other error.
"""

# The node

STARTING: Final = "Starting"
"""Normal: Starting kubelet.

The agent has started.
"""
NODE_READY: Final = "NodeReady"
"""Normal: Node {node} status is now: NodeReady

Condition Ready became True.
"""
NODE_NOT_READY: Final = "NodeNotReady"
"""Normal: Node {node} status is now: NodeNotReady

Condition Ready became False; its message says why.
"""
NODE_SCHEDULABLE: Final = "NodeSchedulable"
"""Normal: Node {node} status is now: NodeSchedulable

`spec.unschedulable` was cleared.
"""
NODE_NOT_SCHEDULABLE: Final = "NodeNotSchedulable"
"""Normal: Node {node} status is now: NodeNotSchedulable

`spec.unschedulable` was set.
"""
NODE_HAS_SUFFICIENT_MEMORY: Final = "NodeHasSufficientMemory"
"""Normal: Node {node} status is now: NodeHasSufficientMemory

Condition MemoryPressure became False.
"""
NODE_HAS_INSUFFICIENT_MEMORY: Final = "NodeHasInsufficientMemory"
"""Normal: Node {node} status is now: NodeHasInsufficientMemory

Condition MemoryPressure became True.
"""
NODE_HAS_NO_DISK_PRESSURE: Final = "NodeHasNoDiskPressure"
"""Normal: Node {node} status is now: NodeHasNoDiskPressure

Condition DiskPressure became False.
"""
NODE_HAS_DISK_PRESSURE: Final = "NodeHasDiskPressure"
"""Normal: Node {node} status is now: NodeHasDiskPressure

Condition DiskPressure became True.
"""
NODE_HAS_SUFFICIENT_PID: Final = "NodeHasSufficientPID"
"""Normal: Node {node} status is now: NodeHasSufficientPID

Condition PIDPressure became False.
"""
NODE_HAS_INSUFFICIENT_PID: Final = "NodeHasInsufficientPID"
"""Normal: Node {node} status is now: NodeHasInsufficientPID

Condition PIDPressure became True.
"""
EVICTION_THRESHOLD_MET: Final = "EvictionThresholdMet"
"""Warning: Attempting to reclaim {resource}

Less of a resource is available than an eviction threshold requires.
"""
NODE_SHUTDOWN: Final = "NodeShutdown"
"""Normal: Shutdown manager detected shutdown event · Shutdown manager detected shutdown
cancellation · Pod was rejected as the node is shutting down.

The node terminates its pods and admits none (docs/how-to/drain-and-shut-down.md) · the shutdown
was cancelled · as a Warning: a pod arrived during the shutdown.
"""
REBOOTED: Final = "Rebooted"
"""Warning: Node {node} has been rebooted, boot id: {boot id}

The boot ID of the machine differs from that in the node's status.
"""

# Our own: the kubelet has no event for these

INVALID_MANIFEST: Final = "InvalidManifest"
"""Warning: Cannot read static pods from {file or URL}: {why}

About the node: a manifest is invalid; the other manifests are not affected.
"""
FAILED_CREATE_MIRROR_POD: Final = "FailedCreateMirrorPod"
"""Warning: Cannot create the mirror pod: {why}

About the static pod: the server rejected its mirror pod.
"""
STATUS_REJECTED: Final = "StatusRejected"
"""Warning: Status was rejected: {why}

The server rejected a pod's status; it is sent again when it changes, and every 5 minutes.
"""
FOREIGN_STATUS_WRITE: Final = "ForeignStatusWrite"
"""Warning: Pod {namespace}/{name}: Condition {type} was set to {status} (reason {reason}) by
"{field manager}"; the node owns it and has set it back to {status} · Pod {namespace}/{name}:
Field {field} was changed by {…}; the node owns it and has set it back

About the node: another client wrote to a part of a pod's status that the node owns, and it was
corrected (docs/explanation/foreign-status-writes.md); at most once every 10 minutes for the same
client, pod, and condition or field.
"""
HISTORY_NOT_KEPT: Final = "HistoryNotKept"
"""Warning: cannot use the history {file}: {why}; move it away to start a new one

About the node: the agent runs without a history (docs/reference/history.md).
"""
HISTORY_LOST: Final = "HistoryLost"
"""Warning: {file} {was deleted, replaced, truncated or changed by another program}; started a
new history

About the node: the earlier history is lost; a damaged file is renamed to `history.db.damaged`
(docs/reference/history.md).
"""
AGENT_RESTARTED: Final = "AgentRestarted"
"""Warning: The agent was restarted: {why}

About the node: `--supervise` restarted the agent, since it died or hung.
"""
AGENT_STOPPED: Final = "AgentStopped"
"""Normal: The agent was stopped on request. Its containers keep running, and nothing is reported
about them until it is started again · The agent was stopped on request. No containers are running.

About the node, which also has the condition `podstatus.dev/AgentStopped` until the agent is
started again. Not with the embedded API server, which stops, too.
"""
LIMITS_NOT_ENFORCED: Final = "LimitsNotEnforced"
"""Warning: Container runs without some of its resource limits: {why}

About the container: it has cpu or memory limits that the agent has no permission to set
(docs/decisions/0023-limits.md).
"""
ALERT_FIRING: Final = "AlertFiring"
"""Warning: {alert}: {summary}

About the pod or the node: an alert started to fire; Normal if its severity is info.
"""
ALERT_RESOLVED: Final = "AlertResolved"
"""Normal: {alert}: {summary}

About the pod or the node: the alert was resolved.
"""
ALERT_ACTION: Final = "AlertAction"
"""Normal: {alert}: {do what}: done · remove the taint {taint}: done

About the pod or the node: an alert action restarted a container, deleted a pod or tainted the
node; about the node: no alert requires the taint any more.
"""
ALERT_ACTION_NOT_DONE: Final = "AlertActionNotDone"
"""Warning: {alert}: {do what}: not done, {why}

About the pod or the node: an alert action was skipped (dry run, `allowActions`, a limit) or
failed.
"""
