"""The Go type names of fields, as in the error messages of Go's JSON decoder.

Most names follow from `patch.schema`: `str` is `string`, `[Container]` is `[]v1.Container`.
These are the others, of k8s.io/api v0.36.4.
"""

import re
from functools import cache
from typing import Final

from podstatus.kube.patch.schema import table_rows

_NAMED: Final = """
ObjectMeta: uid=types.UID
OwnerReference: uid=types.UID
ManagedFieldsEntry: operation=ManagedFieldsOperationType
PodSpec: restartPolicy=RestartPolicy dnsPolicy=DNSPolicy preemptionPolicy=PreemptionPolicy
  overhead=ResourceList
HostPathVolumeSource: type=HostPathType
EmptyDirVolumeSource: medium=StorageMedium
AzureDiskVolumeSource: cachingMode=AzureDataDiskCachingMode kind=AzureDataDiskKind
LabelSelectorRequirement: operator=LabelSelectorOperator
PersistentVolumeClaimSpec: accessModes=[]PersistentVolumeAccessMode volumeMode=PersistentVolumeMode
VolumeResourceRequirements: limits=ResourceList requests=ResourceList
ImageVolumeSource: pullPolicy=PullPolicy
Container: restartPolicy=ContainerRestartPolicy terminationMessagePolicy=TerminationMessagePolicy
  imagePullPolicy=PullPolicy
ContainerPort: protocol=Protocol
ResourceRequirements: limits=ResourceList requests=ResourceList
ContainerResizePolicy: resourceName=ResourceName restartPolicy=ResourceResizeRestartPolicy
ContainerRestartRule: action=ContainerRestartRuleAction
ContainerRestartRuleOnExitCodes: operator=ContainerRestartRuleOnExitCodesOperator
VolumeMount: recursiveReadOnly=RecursiveReadOnlyMode mountPropagation=MountPropagationMode
HTTPGetAction: scheme=URIScheme
Lifecycle: stopSignal=Signal
SecurityContext: procMount=ProcMountType
Capabilities: add=[]Capability drop=[]Capability
SeccompProfile: type=SeccompProfileType
AppArmorProfile: type=AppArmorProfileType
EphemeralContainer: restartPolicy=ContainerRestartPolicy
  terminationMessagePolicy=TerminationMessagePolicy imagePullPolicy=PullPolicy
PodSecurityContext: supplementalGroupsPolicy=SupplementalGroupsPolicy
  fsGroupChangePolicy=PodFSGroupChangePolicy seLinuxChangePolicy=PodSELinuxChangePolicy
NodeSelectorRequirement: operator=NodeSelectorOperator
Toleration: operator=TolerationOperator effect=TaintEffect
PodReadinessGate: conditionType=PodConditionType
TopologySpreadConstraint: whenUnsatisfiable=UnsatisfiableConstraintAction
  nodeAffinityPolicy=NodeInclusionPolicy nodeTaintsPolicy=NodeInclusionPolicy
PodOS: name=OSName
PodStatus: phase=PodPhase qosClass=PodQOSClass resize=PodResizeStatus
  allocatedResources=ResourceList
PodCondition: type=PodConditionType status=ConditionStatus
ContainerStatus: allocatedResources=ResourceList stopSignal=Signal
VolumeMountStatus: recursiveReadOnly=RecursiveReadOnlyMode
ResourceStatus: name=ResourceName
ResourceHealth: resourceID=ResourceID health=ResourceHealthStatus
NodeAllocatableResourceClaimStatus: resources=map[v1.ResourceName]resource.Quantity
Taint: effect=TaintEffect
ConfigMapNodeConfigSource: uid=types.UID
NodeStatus: capacity=ResourceList allocatable=ResourceList phase=NodePhase
  volumesInUse=[]UniqueVolumeName
NodeCondition: type=NodeConditionType status=ConditionStatus
NodeAddress: type=NodeAddressType
AttachedVolume: name=UniqueVolumeName
ObjectReference: uid=types.UID
NamespaceSpec: finalizers=[]FinalizerName
NamespaceStatus: phase=NamespacePhase
NamespaceCondition: type=NamespaceConditionType status=ConditionStatus
LeaseSpec: strategy=CoordinatedLeaseStrategy
Secret: type=SecretType
DeleteOptions: propagationPolicy=DeletionPropagation
Preconditions: uid=types.UID
UserInfo: extra=map[string]ExtraValue
SubjectAccessReviewSpec: extra=map[string]ExtraValue
FieldSelectorRequirement: operator=FieldSelectorOperator
"""
"""One entry per type; a name without a package belongs to `v1`."""

_EMBEDDED: Final = """
Volume: VolumeSource !name
Probe: ProbeHandler exec httpGet tcpSocket grpc
EphemeralContainer: EphemeralContainerCommon !targetContainerName
ConfigMapVolumeSource: LocalObjectReference name
SecretProjection: LocalObjectReference name
ConfigMapProjection: LocalObjectReference name
ConfigMapEnvSource: LocalObjectReference name
SecretEnvSource: LocalObjectReference name
ConfigMapKeySelector: LocalObjectReference name
SecretKeySelector: LocalObjectReference name
"""
"""The struct that Go embeds in a type, and its fields; `!` means all except these."""

_BUILT_IN: Final = {
    "str": "string",
    "bool": "bool",
    "int32": "int32",
    "int64": "int64",
    "bytes": "[]uint8",
    "Quantity": "resource.Quantity",
}


@cache
def go_type(struct: str, field: str, of_type: str) -> str:
    """Return Go's name of a field's type; `of_type` is the type in `patch.schema`."""
    named = table_rows(_NAMED).get(struct, "").split()
    name = next((text.partition("=")[2] for text in named if text.startswith(f"{field}=")), "")
    return _with_package(name) if name else plain_go_type(of_type)


def plain_go_type(of_type: str) -> str:
    """Return Go's name of a type of `patch.schema`."""
    if of_type.startswith("["):
        return f"[]{plain_go_type(of_type[1:-1])}"
    if of_type.startswith("{"):
        return f"map[string]{plain_go_type(of_type[1:-1])}"
    return _BUILT_IN.get(of_type) or f"v1.{of_type}"


def element_go_type(container: str, of_type: str) -> str:
    """Return Go's name of the elements of a list or map, from its name and their type."""
    for prefix in ("[]", "map[string]"):
        if container.startswith(prefix):
            return container.removeprefix(prefix)
    return plain_go_type(of_type)


@cache
def go_path(struct: str, field: str) -> tuple[str, ...]:
    """Return the names from a struct to a field, including an embedded struct."""
    embedded, *fields = table_rows(_EMBEDDED).get(struct, "none").split()
    has_all_but = any(name.startswith("!") for name in fields)
    inside = f"!{field}" not in fields if has_all_but else field in fields
    return (embedded, field) if inside else (field,)


def _with_package(name: str) -> str:
    """Return `[]Capability` with its package; a name that has one is unchanged."""
    return name if "." in name else re.sub(r"(\w+)$", r"v1.\1", name)
