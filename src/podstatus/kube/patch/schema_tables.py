"""The Go types of the objects and request bodies that we serve: fields, types, merge keys.

One entry per type, `Type: field field=type …`, continued on indented lines. A field without a type
is a string. Types: `int32` and `int64` as in Go, `?` is a pointer, `[…]` a list, `{…}` a map.
`+key` means that the list is merged by that key (`+` alone: a list of scalars), `+key,retainKeys`
that a patch of an element lists the keys to retain. The types of Pod, Node and Event are recorded
in tests/conformance/types.json; all are those of k8s.io/api v0.36.4.
"""

from typing import Final

TYPES: Final = """
Pod: kind apiVersion metadata=ObjectMeta spec=PodSpec status=PodStatus
ObjectMeta: name generateName namespace selfLink uid resourceVersion generation=int64
  creationTimestamp=Time deletionTimestamp=Time? deletionGracePeriodSeconds=int64? labels={str}
  annotations={str} ownerReferences=[OwnerReference]+uid finalizers=[str]+
  managedFields=[ManagedFieldsEntry]
OwnerReference: apiVersion kind name uid controller=bool? blockOwnerDeletion=bool?
ManagedFieldsEntry: manager operation apiVersion time=Time? fieldsType fieldsV1=FieldsV1?
  subresource
PodSpec: volumes=[Volume]+name,retainKeys initContainers=[Container]+name
  containers=[Container]+name ephemeralContainers=[EphemeralContainer]+name restartPolicy
  terminationGracePeriodSeconds=int64? activeDeadlineSeconds=int64? dnsPolicy nodeSelector={str}
  serviceAccountName serviceAccount automountServiceAccountToken=bool? nodeName hostNetwork=bool
  hostPID=bool hostIPC=bool shareProcessNamespace=bool? securityContext=PodSecurityContext?
  imagePullSecrets=[LocalObjectReference]+name hostname subdomain affinity=Affinity? schedulerName
  tolerations=[Toleration] hostAliases=[HostAlias]+ip priorityClassName priority=int32?
  dnsConfig=PodDNSConfig? readinessGates=[PodReadinessGate] runtimeClassName=str?
  enableServiceLinks=bool? preemptionPolicy=str? overhead={Quantity}
  topologySpreadConstraints=[TopologySpreadConstraint]+topologyKey setHostnameAsFQDN=bool? os=PodOS?
  hostUsers=bool? schedulingGates=[PodSchedulingGate]+name
  resourceClaims=[PodResourceClaim]+name,retainKeys resources=ResourceRequirements?
  hostnameOverride=str? schedulingGroup=PodSchedulingGroup?
Volume: name hostPath=HostPathVolumeSource? emptyDir=EmptyDirVolumeSource?
  gcePersistentDisk=GCEPersistentDiskVolumeSource?
  awsElasticBlockStore=AWSElasticBlockStoreVolumeSource? gitRepo=GitRepoVolumeSource?
  secret=SecretVolumeSource? nfs=NFSVolumeSource? iscsi=ISCSIVolumeSource?
  glusterfs=GlusterfsVolumeSource? persistentVolumeClaim=PersistentVolumeClaimVolumeSource?
  rbd=RBDVolumeSource? flexVolume=FlexVolumeSource? cinder=CinderVolumeSource?
  cephfs=CephFSVolumeSource? flocker=FlockerVolumeSource? downwardAPI=DownwardAPIVolumeSource?
  fc=FCVolumeSource? azureFile=AzureFileVolumeSource? configMap=ConfigMapVolumeSource?
  vsphereVolume=VsphereVirtualDiskVolumeSource? quobyte=QuobyteVolumeSource?
  azureDisk=AzureDiskVolumeSource? photonPersistentDisk=PhotonPersistentDiskVolumeSource?
  projected=ProjectedVolumeSource? portworxVolume=PortworxVolumeSource? scaleIO=ScaleIOVolumeSource?
  storageos=StorageOSVolumeSource? csi=CSIVolumeSource? ephemeral=EphemeralVolumeSource?
  image=ImageVolumeSource?
HostPathVolumeSource: path type=str?
EmptyDirVolumeSource: medium sizeLimit=Quantity?
GCEPersistentDiskVolumeSource: pdName fsType partition=int32 readOnly=bool
AWSElasticBlockStoreVolumeSource: volumeID fsType partition=int32 readOnly=bool
GitRepoVolumeSource: repository revision directory
SecretVolumeSource: secretName items=[KeyToPath] defaultMode=int32? optional=bool?
KeyToPath: key path mode=int32?
NFSVolumeSource: server path readOnly=bool
ISCSIVolumeSource: targetPortal iqn lun=int32 iscsiInterface fsType readOnly=bool portals=[str]
  chapAuthDiscovery=bool chapAuthSession=bool secretRef=LocalObjectReference? initiatorName=str?
LocalObjectReference: name
GlusterfsVolumeSource: endpoints path readOnly=bool
PersistentVolumeClaimVolumeSource: claimName readOnly=bool
RBDVolumeSource: monitors=[str] image fsType pool user keyring secretRef=LocalObjectReference?
  readOnly=bool
FlexVolumeSource: driver fsType secretRef=LocalObjectReference? readOnly=bool options={str}
CinderVolumeSource: volumeID fsType readOnly=bool secretRef=LocalObjectReference?
CephFSVolumeSource: monitors=[str] path user secretFile secretRef=LocalObjectReference?
  readOnly=bool
FlockerVolumeSource: datasetName datasetUUID
DownwardAPIVolumeSource: items=[DownwardAPIVolumeFile] defaultMode=int32?
DownwardAPIVolumeFile: path fieldRef=ObjectFieldSelector? resourceFieldRef=ResourceFieldSelector?
  mode=int32?
ObjectFieldSelector: apiVersion fieldPath
ResourceFieldSelector: containerName resource divisor=Quantity
FCVolumeSource: targetWWNs=[str] lun=int32? fsType readOnly=bool wwids=[str]
AzureFileVolumeSource: secretName shareName readOnly=bool
ConfigMapVolumeSource: name items=[KeyToPath] defaultMode=int32? optional=bool?
VsphereVirtualDiskVolumeSource: volumePath fsType storagePolicyName storagePolicyID
QuobyteVolumeSource: registry volume readOnly=bool user group tenant
AzureDiskVolumeSource: diskName diskURI cachingMode=str? fsType=str? readOnly=bool? kind=str?
PhotonPersistentDiskVolumeSource: pdID fsType
ProjectedVolumeSource: sources=[VolumeProjection] defaultMode=int32?
VolumeProjection: secret=SecretProjection? downwardAPI=DownwardAPIProjection?
  configMap=ConfigMapProjection? serviceAccountToken=ServiceAccountTokenProjection?
  clusterTrustBundle=ClusterTrustBundleProjection? podCertificate=PodCertificateProjection?
SecretProjection: name items=[KeyToPath] optional=bool?
DownwardAPIProjection: items=[DownwardAPIVolumeFile]
ConfigMapProjection: name items=[KeyToPath] optional=bool?
ServiceAccountTokenProjection: audience expirationSeconds=int64? path
ClusterTrustBundleProjection: name=str? signerName=str? labelSelector=LabelSelector? optional=bool?
  path
LabelSelector: matchLabels={str} matchExpressions=[LabelSelectorRequirement]
LabelSelectorRequirement: key operator values=[str]
PodCertificateProjection: signerName keyType maxExpirationSeconds=int32? credentialBundlePath
  keyPath certificateChainPath userAnnotations={str}
PortworxVolumeSource: volumeID fsType readOnly=bool
ScaleIOVolumeSource: gateway system secretRef=LocalObjectReference? sslEnabled=bool protectionDomain
  storagePool storageMode volumeName fsType readOnly=bool
StorageOSVolumeSource: volumeName volumeNamespace fsType readOnly=bool
  secretRef=LocalObjectReference?
CSIVolumeSource: driver readOnly=bool? fsType=str? volumeAttributes={str}
  nodePublishSecretRef=LocalObjectReference?
EphemeralVolumeSource: volumeClaimTemplate=PersistentVolumeClaimTemplate?
PersistentVolumeClaimTemplate: metadata=ObjectMeta spec=PersistentVolumeClaimSpec
PersistentVolumeClaimSpec: accessModes=[str] selector=LabelSelector?
  resources=VolumeResourceRequirements volumeName storageClassName=str? volumeMode=str?
  dataSource=TypedLocalObjectReference? dataSourceRef=TypedObjectReference?
  volumeAttributesClassName=str?
VolumeResourceRequirements: limits={Quantity} requests={Quantity}
TypedLocalObjectReference: apiGroup=str? kind name
TypedObjectReference: apiGroup=str? kind name namespace=str?
ImageVolumeSource: reference pullPolicy
Container: name image command=[str] args=[str] workingDir ports=[ContainerPort]+containerPort
  envFrom=[EnvFromSource] env=[EnvVar]+name resources=ResourceRequirements
  resizePolicy=[ContainerResizePolicy] restartPolicy=str? restartPolicyRules=[ContainerRestartRule]
  volumeMounts=[VolumeMount]+mountPath volumeDevices=[VolumeDevice]+devicePath livenessProbe=Probe?
  readinessProbe=Probe? startupProbe=Probe? lifecycle=Lifecycle? terminationMessagePath
  terminationMessagePolicy imagePullPolicy securityContext=SecurityContext? stdin=bool
  stdinOnce=bool tty=bool
ContainerPort: name hostPort=int32 containerPort=int32 protocol hostIP
EnvFromSource: prefix configMapRef=ConfigMapEnvSource? secretRef=SecretEnvSource?
ConfigMapEnvSource: name optional=bool?
SecretEnvSource: name optional=bool?
EnvVar: name value valueFrom=EnvVarSource?
EnvVarSource: fieldRef=ObjectFieldSelector? resourceFieldRef=ResourceFieldSelector?
  configMapKeyRef=ConfigMapKeySelector? secretKeyRef=SecretKeySelector? fileKeyRef=FileKeySelector?
ConfigMapKeySelector: name key optional=bool?
SecretKeySelector: name key optional=bool?
FileKeySelector: volumeName path key optional=bool?
ResourceRequirements: limits={Quantity} requests={Quantity} claims=[ResourceClaim]
ResourceClaim: name request
ContainerResizePolicy: resourceName restartPolicy
ContainerRestartRule: action exitCodes=ContainerRestartRuleOnExitCodes?
ContainerRestartRuleOnExitCodes: operator values=[int32]
VolumeMount: name readOnly=bool recursiveReadOnly=str? mountPath subPath mountPropagation=str?
  subPathExpr
VolumeDevice: name devicePath
Probe: exec=ExecAction? httpGet=HTTPGetAction? tcpSocket=TCPSocketAction? grpc=GRPCAction?
  initialDelaySeconds=int32 timeoutSeconds=int32 periodSeconds=int32 successThreshold=int32
  failureThreshold=int32 terminationGracePeriodSeconds=int64?
ExecAction: command=[str]
HTTPGetAction: path port=IntOrString host scheme httpHeaders=[HTTPHeader]
HTTPHeader: name value
TCPSocketAction: port=IntOrString host
GRPCAction: port=int32 service=str?
Lifecycle: postStart=LifecycleHandler? preStop=LifecycleHandler? stopSignal=str?
LifecycleHandler: exec=ExecAction? httpGet=HTTPGetAction? tcpSocket=TCPSocketAction?
  sleep=SleepAction?
SleepAction: seconds=int64
SecurityContext: capabilities=Capabilities? privileged=bool? seLinuxOptions=SELinuxOptions?
  windowsOptions=WindowsSecurityContextOptions? runAsUser=int64? runAsGroup=int64?
  runAsNonRoot=bool? readOnlyRootFilesystem=bool? allowPrivilegeEscalation=bool? procMount=str?
  seccompProfile=SeccompProfile? appArmorProfile=AppArmorProfile?
Capabilities: add=[str] drop=[str]
SELinuxOptions: user role type level
WindowsSecurityContextOptions: gmsaCredentialSpecName=str? gmsaCredentialSpec=str?
  runAsUserName=str? hostProcess=bool?
SeccompProfile: type localhostProfile=str?
AppArmorProfile: type localhostProfile=str?
EphemeralContainer: name image command=[str] args=[str] workingDir
  ports=[ContainerPort]+containerPort envFrom=[EnvFromSource] env=[EnvVar]+name
  resources=ResourceRequirements resizePolicy=[ContainerResizePolicy] restartPolicy=str?
  restartPolicyRules=[ContainerRestartRule] volumeMounts=[VolumeMount]+mountPath
  volumeDevices=[VolumeDevice]+devicePath livenessProbe=Probe? readinessProbe=Probe?
  startupProbe=Probe? lifecycle=Lifecycle? terminationMessagePath terminationMessagePolicy
  imagePullPolicy securityContext=SecurityContext? stdin=bool stdinOnce=bool tty=bool
  targetContainerName
PodSecurityContext: seLinuxOptions=SELinuxOptions? windowsOptions=WindowsSecurityContextOptions?
  runAsUser=int64? runAsGroup=int64? runAsNonRoot=bool? supplementalGroups=[int64]
  supplementalGroupsPolicy=str? fsGroup=int64? sysctls=[Sysctl] fsGroupChangePolicy=str?
  seccompProfile=SeccompProfile? appArmorProfile=AppArmorProfile? seLinuxChangePolicy=str?
Sysctl: name value
Affinity: nodeAffinity=NodeAffinity? podAffinity=PodAffinity? podAntiAffinity=PodAntiAffinity?
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution=NodeSelector?
  preferredDuringSchedulingIgnoredDuringExecution=[PreferredSchedulingTerm]
NodeSelector: nodeSelectorTerms=[NodeSelectorTerm]
NodeSelectorTerm: matchExpressions=[NodeSelectorRequirement] matchFields=[NodeSelectorRequirement]
NodeSelectorRequirement: key operator values=[str]
PreferredSchedulingTerm: weight=int32 preference=NodeSelectorTerm
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
PodAffinityTerm: labelSelector=LabelSelector? namespaces=[str] topologyKey
  namespaceSelector=LabelSelector? matchLabelKeys=[str] mismatchLabelKeys=[str]
WeightedPodAffinityTerm: weight=int32 podAffinityTerm=PodAffinityTerm
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
Toleration: key operator value effect tolerationSeconds=int64?
HostAlias: ip hostnames=[str]
PodDNSConfig: nameservers=[str] searches=[str] options=[PodDNSConfigOption]
PodDNSConfigOption: name value=str?
PodReadinessGate: conditionType
TopologySpreadConstraint: maxSkew=int32 topologyKey whenUnsatisfiable labelSelector=LabelSelector?
  minDomains=int32? nodeAffinityPolicy=str? nodeTaintsPolicy=str? matchLabelKeys=[str]
PodOS: name
PodSchedulingGate: name
PodResourceClaim: name resourceClaimName=str? resourceClaimTemplateName=str?
PodSchedulingGroup: podGroupName=str?
PodStatus: observedGeneration=int64 phase conditions=[PodCondition]+type message reason
  nominatedNodeName hostIP hostIPs=[HostIP]+ip podIP podIPs=[PodIP]+ip startTime=Time?
  initContainerStatuses=[ContainerStatus] containerStatuses=[ContainerStatus] qosClass
  ephemeralContainerStatuses=[ContainerStatus] resize
  resourceClaimStatuses=[PodResourceClaimStatus]+name,retainKeys
  extendedResourceClaimStatus=PodExtendedResourceClaimStatus? allocatedResources={Quantity}
  resources=ResourceRequirements?
  nodeAllocatableResourceClaimStatuses=[NodeAllocatableResourceClaimStatus]
PodCondition: type observedGeneration=int64 status lastProbeTime=Time lastTransitionTime=Time reason
  message
HostIP: ip
PodIP: ip
ContainerStatus: name state=ContainerState lastState=ContainerState ready=bool restartCount=int32
  image imageID containerID started=bool? allocatedResources={Quantity}
  resources=ResourceRequirements? volumeMounts=[VolumeMountStatus]+mountPath user=ContainerUser?
  allocatedResourcesStatus=[ResourceStatus]+name stopSignal=str?
ContainerState: waiting=ContainerStateWaiting? running=ContainerStateRunning?
  terminated=ContainerStateTerminated?
ContainerStateWaiting: reason message
ContainerStateRunning: startedAt=Time
ContainerStateTerminated: exitCode=int32 signal=int32 reason message startedAt=Time finishedAt=Time
  containerID
VolumeMountStatus: name mountPath readOnly=bool recursiveReadOnly=str? volumeStatus=VolumeStatus?
VolumeStatus: image=ImageVolumeStatus?
ImageVolumeStatus: imageRef
ContainerUser: linux=LinuxContainerUser?
LinuxContainerUser: uid=int64 gid=int64 supplementalGroups=[int64]
ResourceStatus: name resources=[ResourceHealth]
ResourceHealth: resourceID health message=str?
PodResourceClaimStatus: name resourceClaimName=str?
PodExtendedResourceClaimStatus: requestMappings=[ContainerExtendedResourceRequest] resourceClaimName
ContainerExtendedResourceRequest: containerName resourceName requestName
NodeAllocatableResourceClaimStatus: resourceClaimName containers=[str] resources={Quantity}
Node: kind apiVersion metadata=ObjectMeta spec=NodeSpec status=NodeStatus
NodeSpec: podCIDR podCIDRs=[str]+ providerID unschedulable=bool taints=[Taint]
  configSource=NodeConfigSource? externalID
Taint: key value effect timeAdded=Time?
NodeConfigSource: configMap=ConfigMapNodeConfigSource?
ConfigMapNodeConfigSource: namespace name uid resourceVersion kubeletConfigKey
NodeStatus: capacity={Quantity} allocatable={Quantity} phase conditions=[NodeCondition]+type
  addresses=[NodeAddress]+type daemonEndpoints=NodeDaemonEndpoints nodeInfo=NodeSystemInfo
  images=[ContainerImage] volumesInUse=[str] volumesAttached=[AttachedVolume]
  config=NodeConfigStatus? runtimeHandlers=[NodeRuntimeHandler] features=NodeFeatures?
  declaredFeatures=[str]
NodeCondition: type status lastHeartbeatTime=Time lastTransitionTime=Time reason message
NodeAddress: type address
NodeDaemonEndpoints: kubeletEndpoint=DaemonEndpoint
DaemonEndpoint: Port=int32
NodeSystemInfo: machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion
  kubeletVersion kubeProxyVersion operatingSystem architecture swap=NodeSwapStatus?
NodeSwapStatus: capacity=int64?
ContainerImage: names=[str] sizeBytes=int64
AttachedVolume: name devicePath
NodeConfigStatus: assigned=NodeConfigSource? active=NodeConfigSource?
  lastKnownGood=NodeConfigSource? error
NodeRuntimeHandler: name features=NodeRuntimeHandlerFeatures?
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts=bool? userNamespaces=bool?
NodeFeatures: supplementalGroupsPolicy=bool?
Event: kind apiVersion metadata=ObjectMeta involvedObject=ObjectReference reason message
  source=EventSource firstTimestamp=Time lastTimestamp=Time count=int32 type eventTime=MicroTime
  series=EventSeries? action related=ObjectReference? reportingComponent reportingInstance
ObjectReference: kind namespace name uid apiVersion resourceVersion fieldPath
EventSource: component host
EventSeries: count=int32 lastObservedTime=MicroTime
Namespace: kind apiVersion metadata=ObjectMeta spec=NamespaceSpec status=NamespaceStatus
NamespaceSpec: finalizers=[str]
NamespaceStatus: phase conditions=[NamespaceCondition]+type
NamespaceCondition: type status lastTransitionTime=Time reason message
Lease: kind apiVersion metadata=ObjectMeta spec=LeaseSpec
LeaseSpec: holderIdentity=str? leaseDurationSeconds=int32? acquireTime=MicroTime?
  renewTime=MicroTime? leaseTransitions=int32? strategy=str? preferredHolder=str?
ConfigMap: kind apiVersion metadata=ObjectMeta immutable=bool? data={str} binaryData={bytes}
Secret: kind apiVersion metadata=ObjectMeta immutable=bool? data={bytes} stringData={str} type
ServiceAccount: kind apiVersion metadata=ObjectMeta secrets=[ObjectReference]+name
  imagePullSecrets=[LocalObjectReference] automountServiceAccountToken=bool?
Binding: kind apiVersion metadata=ObjectMeta target=ObjectReference
DeleteOptions: kind apiVersion gracePeriodSeconds=int64? preconditions=Preconditions?
  orphanDependents=bool? propagationPolicy=str? dryRun=[str]
  ignoreStoreReadErrorWithClusterBreakingPotential=bool?
Preconditions: uid=str? resourceVersion=str?
TokenReview: kind apiVersion metadata=ObjectMeta spec=TokenReviewSpec status=TokenReviewStatus
TokenReviewSpec: token audiences=[str]
TokenReviewStatus: authenticated=bool user=UserInfo audiences=[str] error
UserInfo: username uid groups=[str] extra={[str]}
SubjectAccessReview: kind apiVersion metadata=ObjectMeta spec=SubjectAccessReviewSpec
  status=SubjectAccessReviewStatus
SubjectAccessReviewSpec: resourceAttributes=ResourceAttributes?
  nonResourceAttributes=NonResourceAttributes? user groups=[str] extra={[str]} uid
SubjectAccessReviewStatus: allowed=bool denied=bool reason evaluationError
ResourceAttributes: namespace verb group version resource subresource name
  fieldSelector=FieldSelectorAttributes? labelSelector=LabelSelectorAttributes?
FieldSelectorAttributes: rawSelector requirements=[FieldSelectorRequirement]
FieldSelectorRequirement: key operator values=[str]
LabelSelectorAttributes: rawSelector requirements=[LabelSelectorRequirement]
NonResourceAttributes: path verb
IntOrString: Type=int64 IntVal=int32 StrVal
Quantity: Format
"""
