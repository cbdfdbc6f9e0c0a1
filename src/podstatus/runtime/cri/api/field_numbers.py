"""Field numbers and enums of CRI v1, written by tools/cri_field_numbers.py from api.proto.

Upstream: pkg/apis/runtime/v1/api.proto, cri-api v0.36.4.
"""

from typing import Final

MESSAGES: Final = """
AttachRequest: 1=container_id 2=stdin:bool 3=tty:bool 4=stdout:bool 5=stderr:bool
AttachResponse: 1=url
AuthConfig: 1=username 2=password 3=auth 4=server_address 5=identity_token 6=registry_token
CDIDevice: 1=name
Capability: 1=add_capabilities:[str] 2=drop_capabilities:[str] 3=add_ambient_capabilities:[str]
CheckpointContainerRequest: 1=container_id 2=location 3=timeout:int64
Container: 1=id 2=pod_sandbox_id 3=metadata:ContainerMetadata 4=image:ImageSpec 5=image_ref
  6=state:enum 7=created_at:int64 8=labels:{str} 9=annotations:{str} 10=image_id
ContainerAttributes: 1=id 2=metadata:ContainerMetadata 3=labels:{str} 4=annotations:{str}
ContainerConfig: 1=metadata:ContainerMetadata 2=image:ImageSpec 3=command:[str] 4=args:[str]
  5=working_dir 6=envs:[KeyValue] 7=mounts:[Mount] 8=devices:[Device] 9=labels:{str}
  10=annotations:{str} 11=log_path 12=stdin:bool 13=stdin_once:bool 14=tty:bool
  15=linux:LinuxContainerConfig 17=CDI_devices:[CDIDevice] 18=stop_signal:enum
ContainerEventResponse: 1=container_id 2=container_event_type:enum 3=created_at:int64
  4=pod_sandbox_status:PodSandboxStatus 5=containers_statuses:[ContainerStatus]
ContainerFilter: 1=id 2=state:ContainerStateValue 3=pod_sandbox_id 4=label_selector:{str}
ContainerMetadata: 1=name 2=attempt:uint32
ContainerMetrics: 1=container_id 2=metrics:[Metric]
ContainerResources: 1=linux:LinuxContainerResources
ContainerStateValue: 1=state:enum
ContainerStats: 1=attributes:ContainerAttributes 2=cpu:CpuUsage 3=memory:MemoryUsage
  4=writable_layer:FilesystemUsage 5=swap:SwapUsage 6=io:IoUsage
ContainerStatsFilter: 1=id 2=pod_sandbox_id 3=label_selector:{str}
ContainerStatsRequest: 1=container_id
ContainerStatsResponse: 1=stats:ContainerStats
ContainerStatus: 1=id 2=metadata:ContainerMetadata 3=state:enum 4=created_at:int64
  5=started_at:int64 6=finished_at:int64 7=exit_code:int32 8=image:ImageSpec 9=image_ref 10=reason
  11=message 12=labels:{str} 13=annotations:{str} 14=mounts:[Mount] 15=log_path
  16=resources:ContainerResources 17=image_id 18=user:ContainerUser 19=stop_signal:enum
ContainerStatusRequest: 1=container_id 2=verbose:bool
ContainerStatusResponse: 1=status:ContainerStatus 2=info:{str}
ContainerUser: 1=linux:LinuxContainerUser
CpuUsage: 1=timestamp:int64 2=usage_core_nano_seconds:UInt64Value 3=usage_nano_cores:UInt64Value
  4=psi:PsiStats
CreateContainerRequest: 1=pod_sandbox_id 2=config:ContainerConfig 3=sandbox_config:PodSandboxConfig
CreateContainerResponse: 1=container_id
DNSConfig: 1=servers:[str] 2=searches:[str] 3=options:[str]
Device: 1=container_path 2=host_path 3=permissions
ExecRequest: 1=container_id 2=cmd:[str] 3=tty:bool 4=stdin:bool 5=stdout:bool 6=stderr:bool
ExecResponse: 1=url
ExecSyncRequest: 1=container_id 2=cmd:[str] 3=timeout:int64
ExecSyncResponse: 1=stdout:bytes 2=stderr:bytes 3=exit_code:int32
FilesystemIdentifier: 1=mountpoint
FilesystemUsage: 1=timestamp:int64 2=fs_id:FilesystemIdentifier 3=used_bytes:UInt64Value
  4=inodes_used:UInt64Value
HugepageLimit: 1=page_size 2=limit:uint64
IDMapping: 1=host_id:uint32 2=container_id:uint32 3=length:uint32
Image: 1=id 2=repo_tags:[str] 3=repo_digests:[str] 4=size:uint64 5=uid:Int64Value 6=username
  7=spec:ImageSpec 8=pinned:bool
ImageFilter: 1=image:ImageSpec
ImageFsInfoResponse: 1=image_filesystems:[FilesystemUsage] 2=container_filesystems:[FilesystemUsage]
ImageSpec: 1=image 2=annotations:{str} 18=user_specified_image 19=runtime_handler 20=image_ref
ImageStatusRequest: 1=image:ImageSpec 2=verbose:bool
ImageStatusResponse: 1=image:Image 2=info:{str}
Int64Value: 1=value:int64
IoUsage: 1=timestamp:int64 2=psi:PsiStats
KeyValue: 1=key 2=value:bytes
LinuxContainerConfig: 1=resources:LinuxContainerResources
  2=security_context:LinuxContainerSecurityContext
LinuxContainerResources: 1=cpu_period:int64 2=cpu_quota:int64 3=cpu_shares:int64
  4=memory_limit_in_bytes:int64 5=oom_score_adj:int64 6=cpuset_cpus 7=cpuset_mems
  8=hugepage_limits:[HugepageLimit] 9=unified:{str} 10=memory_swap_limit_in_bytes:int64
LinuxContainerSecurityContext: 1=capabilities:Capability 2=privileged:bool
  3=namespace_options:NamespaceOption 4=selinux_options:SELinuxOption 5=run_as_user:Int64Value
  12=run_as_group:Int64Value 6=run_as_username 7=readonly_rootfs:bool 8=supplemental_groups:[int64]
  17=supplemental_groups_policy:enum 11=no_new_privs:bool 13=masked_paths:[str]
  14=readonly_paths:[str] 15=seccomp:SecurityProfile 16=apparmor:SecurityProfile
LinuxContainerUser: 1=uid:int64 2=gid:int64 3=supplemental_groups:[int64]
LinuxPodSandboxConfig: 1=cgroup_parent 2=security_context:LinuxSandboxSecurityContext
  3=sysctls:{str} 4=overhead:LinuxContainerResources 5=resources:LinuxContainerResources
LinuxPodSandboxStats: 1=cpu:CpuUsage 2=memory:MemoryUsage 3=network:NetworkUsage
  4=process:ProcessUsage 5=containers:[ContainerStats] 6=io:IoUsage
LinuxPodSandboxStatus: 1=namespaces:Namespace
LinuxRuntimeConfiguration: 1=cgroup_driver:enum
LinuxSandboxSecurityContext: 1=namespace_options:NamespaceOption 2=selinux_options:SELinuxOption
  3=run_as_user:Int64Value 8=run_as_group:Int64Value 4=readonly_rootfs:bool
  5=supplemental_groups:[int64] 11=supplemental_groups_policy:enum 6=privileged:bool
  9=seccomp:SecurityProfile 10=apparmor:SecurityProfile
ListContainerStatsRequest: 1=filter:ContainerStatsFilter
ListContainerStatsResponse: 1=stats:[ContainerStats]
ListContainersRequest: 1=filter:ContainerFilter
ListContainersResponse: 1=containers:[Container]
ListImagesRequest: 1=filter:ImageFilter
ListImagesResponse: 1=images:[Image]
ListMetricDescriptorsResponse: 1=descriptors:[MetricDescriptor]
ListPodSandboxMetricsResponse: 1=pod_metrics:[PodSandboxMetrics]
ListPodSandboxRequest: 1=filter:PodSandboxFilter
ListPodSandboxResponse: 1=items:[PodSandbox]
ListPodSandboxStatsRequest: 1=filter:PodSandboxStatsFilter
ListPodSandboxStatsResponse: 1=stats:[PodSandboxStats]
MemoryUsage: 1=timestamp:int64 2=working_set_bytes:UInt64Value 3=available_bytes:UInt64Value
  4=usage_bytes:UInt64Value 5=rss_bytes:UInt64Value 6=page_faults:UInt64Value
  7=major_page_faults:UInt64Value 8=psi:PsiStats
Metric: 1=name 2=timestamp:int64 3=metric_type:enum 4=label_values:[str] 5=value:UInt64Value
MetricDescriptor: 1=name 2=help 3=label_keys:[str]
Mount: 1=container_path 2=host_path 3=readonly:bool 4=selinux_relabel:bool 5=propagation:enum
  6=uidMappings:[IDMapping] 7=gidMappings:[IDMapping] 8=recursive_read_only:bool 9=image:ImageSpec
  10=image_sub_path
Namespace: 2=options:NamespaceOption
NamespaceOption: 1=network:enum 2=pid:enum 3=ipc:enum 4=target_id 5=userns_options:UserNamespace
NetworkConfig: 1=pod_cidr
NetworkInterfaceUsage: 1=name 2=rx_bytes:UInt64Value 3=rx_errors:UInt64Value 4=tx_bytes:UInt64Value
  5=tx_errors:UInt64Value
NetworkUsage: 1=timestamp:int64 2=default_interface:NetworkInterfaceUsage
  3=interfaces:[NetworkInterfaceUsage]
PodIP: 1=ip
PodSandbox: 1=id 2=metadata:PodSandboxMetadata 3=state:enum 4=created_at:int64 5=labels:{str}
  6=annotations:{str} 7=runtime_handler
PodSandboxAttributes: 1=id 2=metadata:PodSandboxMetadata 3=labels:{str} 4=annotations:{str}
PodSandboxConfig: 1=metadata:PodSandboxMetadata 2=hostname 3=log_directory 4=dns_config:DNSConfig
  5=port_mappings:[PortMapping] 6=labels:{str} 7=annotations:{str} 8=linux:LinuxPodSandboxConfig
PodSandboxFilter: 1=id 2=state:PodSandboxStateValue 3=label_selector:{str}
PodSandboxMetadata: 1=name 2=uid 3=namespace 4=attempt:uint32
PodSandboxMetrics: 1=pod_sandbox_id 2=metrics:[Metric] 3=container_metrics:[ContainerMetrics]
PodSandboxNetworkStatus: 1=ip 2=additional_ips:[PodIP]
PodSandboxStateValue: 1=state:enum
PodSandboxStats: 1=attributes:PodSandboxAttributes 2=linux:LinuxPodSandboxStats
PodSandboxStatsFilter: 1=id 2=label_selector:{str}
PodSandboxStatsRequest: 1=pod_sandbox_id
PodSandboxStatsResponse: 1=stats:PodSandboxStats
PodSandboxStatus: 1=id 2=metadata:PodSandboxMetadata 3=state:enum 4=created_at:int64
  5=network:PodSandboxNetworkStatus 6=linux:LinuxPodSandboxStatus 7=labels:{str} 8=annotations:{str}
  9=runtime_handler
PodSandboxStatusRequest: 1=pod_sandbox_id 2=verbose:bool
PodSandboxStatusResponse: 1=status:PodSandboxStatus 2=info:{str}
  3=containers_statuses:[ContainerStatus] 4=timestamp:int64
PortForwardRequest: 1=pod_sandbox_id 2=port:[int32]
PortForwardResponse: 1=url
PortMapping: 1=protocol:enum 2=container_port:int32 3=host_port:int32 4=host_ip
ProcessUsage: 1=timestamp:int64 2=process_count:UInt64Value
PsiData: 1=Total:uint64 2=Avg10:double 3=Avg60:double 4=Avg300:double
PsiStats: 1=Full:PsiData 2=Some:PsiData
PullImageRequest: 1=image:ImageSpec 2=auth:AuthConfig 3=sandbox_config:PodSandboxConfig
PullImageResponse: 1=image_ref
RemoveContainerRequest: 1=container_id
RemoveImageRequest: 1=image:ImageSpec
RemovePodSandboxRequest: 1=pod_sandbox_id
ReopenContainerLogRequest: 1=container_id
RunPodSandboxRequest: 1=config:PodSandboxConfig 2=runtime_handler
RunPodSandboxResponse: 1=pod_sandbox_id
RuntimeCondition: 1=type 2=status:bool 3=reason 4=message
RuntimeConfig: 1=network_config:NetworkConfig
RuntimeConfigResponse: 1=linux:LinuxRuntimeConfiguration
RuntimeFeatures: 1=supplemental_groups_policy:bool 2=user_namespaces_host_network:bool
RuntimeHandler: 1=name 2=features:RuntimeHandlerFeatures
RuntimeHandlerFeatures: 1=recursive_read_only_mounts:bool 2=user_namespaces:bool
RuntimeStatus: 1=conditions:[RuntimeCondition]
SELinuxOption: 1=user 2=role 3=type 4=level
SecurityProfile: 1=profile_type:enum 2=localhost_ref
StartContainerRequest: 1=container_id
StatusRequest: 1=verbose:bool
StatusResponse: 1=status:RuntimeStatus 2=info:{str} 3=runtime_handlers:[RuntimeHandler]
  4=features:RuntimeFeatures
StopContainerRequest: 1=container_id 2=timeout:int64
StopPodSandboxRequest: 1=pod_sandbox_id
StreamContainerStatsRequest: 1=filter:ContainerStatsFilter
StreamContainerStatsResponse: 1=container_stats:[ContainerStats]
StreamContainersRequest: 1=filter:ContainerFilter
StreamContainersResponse: 1=containers:[Container]
StreamImagesRequest: 1=filter:ImageFilter
StreamImagesResponse: 1=images:[Image]
StreamPodSandboxMetricsResponse: 1=pod_sandbox_metrics:[PodSandboxMetrics]
StreamPodSandboxStatsRequest: 1=filter:PodSandboxStatsFilter
StreamPodSandboxStatsResponse: 1=pod_sandbox_stats:[PodSandboxStats]
StreamPodSandboxesRequest: 1=filter:PodSandboxFilter
StreamPodSandboxesResponse: 1=pod_sandboxes:[PodSandbox]
SwapUsage: 1=timestamp:int64 2=swap_available_bytes:UInt64Value 3=swap_usage_bytes:UInt64Value
UInt64Value: 1=value:uint64
UpdateContainerResourcesRequest: 1=container_id 2=linux:LinuxContainerResources 4=annotations:{str}
UpdatePodSandboxResourcesRequest: 1=pod_sandbox_id 2=overhead:LinuxContainerResources
  3=resources:LinuxContainerResources
UpdateRuntimeConfigRequest: 1=runtime_config:RuntimeConfig
UserNamespace: 1=mode:enum 2=uids:[IDMapping] 3=gids:[IDMapping]
VersionRequest: 1=version
VersionResponse: 1=version 2=runtime_name 3=runtime_version 4=runtime_api_version
"""

ENUMS: Final = """
CgroupDriver: 0=SYSTEMD 1=CGROUPFS
ContainerEventType: 0=CONTAINER_CREATED_EVENT 1=CONTAINER_STARTED_EVENT 2=CONTAINER_STOPPED_EVENT
  3=CONTAINER_DELETED_EVENT
ContainerState: 0=CONTAINER_CREATED 1=CONTAINER_RUNNING 2=CONTAINER_EXITED 3=CONTAINER_UNKNOWN
MetricType: 0=COUNTER 1=GAUGE
MountPropagation: 0=PROPAGATION_PRIVATE 1=PROPAGATION_HOST_TO_CONTAINER 2=PROPAGATION_BIDIRECTIONAL
NamespaceMode: 0=POD 1=CONTAINER 2=NODE 3=TARGET
PodSandboxState: 0=SANDBOX_READY 1=SANDBOX_NOTREADY
ProfileType: 0=RuntimeDefault 1=Unconfined 2=Localhost
Protocol: 0=TCP 1=UDP 2=SCTP
Signal: 0=RUNTIME_DEFAULT 1=SIGABRT 2=SIGALRM 3=SIGBUS 4=SIGCHLD 5=SIGCLD 6=SIGCONT 7=SIGFPE
  8=SIGHUP 9=SIGILL 10=SIGINT 11=SIGIO 12=SIGIOT 13=SIGKILL 14=SIGPIPE 15=SIGPOLL 16=SIGPROF
  17=SIGPWR 18=SIGQUIT 19=SIGSEGV 20=SIGSTKFLT 21=SIGSTOP 22=SIGSYS 23=SIGTERM 24=SIGTRAP 25=SIGTSTP
  26=SIGTTIN 27=SIGTTOU 28=SIGURG 29=SIGUSR1 30=SIGUSR2 31=SIGVTALRM 32=SIGWINCH 33=SIGXCPU
  34=SIGXFSZ 35=SIGRTMIN 36=SIGRTMINPLUS1 37=SIGRTMINPLUS2 38=SIGRTMINPLUS3 39=SIGRTMINPLUS4
  40=SIGRTMINPLUS5 41=SIGRTMINPLUS6 42=SIGRTMINPLUS7 43=SIGRTMINPLUS8 44=SIGRTMINPLUS9
  45=SIGRTMINPLUS10 46=SIGRTMINPLUS11 47=SIGRTMINPLUS12 48=SIGRTMINPLUS13 49=SIGRTMINPLUS14
  50=SIGRTMINPLUS15 51=SIGRTMAXMINUS14 52=SIGRTMAXMINUS13 53=SIGRTMAXMINUS12 54=SIGRTMAXMINUS11
  55=SIGRTMAXMINUS10 56=SIGRTMAXMINUS9 57=SIGRTMAXMINUS8 58=SIGRTMAXMINUS7 59=SIGRTMAXMINUS6
  60=SIGRTMAXMINUS5 61=SIGRTMAXMINUS4 62=SIGRTMAXMINUS3 63=SIGRTMAXMINUS2 64=SIGRTMAXMINUS1
  65=SIGRTMAX
SupplementalGroupsPolicy: 0=Merge 1=Strict
"""
