"""All fields of a KubeletConfiguration, supported by podstatus or not.

The fields of a map are listed if podstatus supports one of them.

Upstream: config/v1beta1/types.go, kubelet v0.36.4.
"""

_NAMES = """
    address allowedUnsafeSysctls authentication authentication.anonymous authentication.webhook
    authentication.webhook.cacheTTL authentication.webhook.enabled authentication.x509
    authentication.x509.clientCAFile authorization authorization.mode authorization.webhook
    authorization.webhook.cacheAuthorizedTTL authorization.webhook.cacheUnauthorizedTTL
    cgroupDriver cgroupRoot
    cgroupsPerQOS clusterDNS clusterDomain configMapAndSecretChangeDetectionStrategy
    containerLogMaxFiles containerLogMaxSize containerLogMaxWorkers containerLogMonitorInterval
    containerRuntimeEndpoint contentType cpuCFSQuota cpuCFSQuotaPeriod cpuManagerPolicy
    cpuManagerPolicyOptions cpuManagerReconcilePeriod crashLoopBackOff
    crashLoopBackOff.maxContainerRestartPeriod enableContentionProfiling
    enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers
    enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery
    enforceNodeAllocatable eventBurst eventRecordQPS evictionHard evictionMaxPodGracePeriod
    evictionMinimumReclaim evictionPressureTransitionPeriod evictionSoft evictionSoftGracePeriod
    failCgroupV1 failSwapOn featureGates fileCheckFrequency hairpinMode healthzBindAddress
    healthzPort httpCheckFrequency imageGCHighThresholdPercent imageGCLowThresholdPercent
    imageMaximumGCAge imageMinimumGCAge imagePullCredentialsVerificationPolicy
    imageServiceEndpoint iptablesDropBit iptablesMasqueradeBit kernelMemcgNotification
    kubeAPIBurst kubeAPIQPS kubeReserved kubeReservedCgroup kubeletCgroups
    localStorageCapacityIsolation logging logging.flushFrequency logging.format logging.options
    logging.verbosity logging.vmodule makeIPTablesUtilChains maxOpenFiles
    maxParallelImagePulls maxPods memoryManagerPolicy memoryReservationPolicy memorySwap
    memoryThrottlingFactor mergeDefaultEvictionSettings nodeLeaseDurationSeconds
    nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj podCIDR
    podLogsDir podPidsLimit podsPerCore port preloadedImagesVerificationAllowlist
    protectKernelDefaults providerID qosReserved readOnlyPort registerNode registerWithTaints
    registryBurst registryPullQPS reservedMemory reservedSystemCPUs resolvConf
    rotateCertificates runOnce runtimeRequestTimeout seccompDefault serializeImagePulls
    serverTLSBootstrap showHiddenMetricsForVersion shutdownGracePeriod
    shutdownGracePeriodByPodPriority shutdownGracePeriodCriticalPods singleProcessOOMKill
    staticPodPath staticPodURL staticPodURLHeader streamingConnectionIdleTimeout syncFrequency
    systemCgroups systemReserved systemReservedCgroup tlsCertFile tlsCipherSuites
    tlsCurvePreferences tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy
    topologyManagerPolicyOptions topologyManagerScope tracing userNamespaces volumePluginDir
    volumeStatsAggPeriod
"""

FIELDS = frozenset(_NAMES.split())
