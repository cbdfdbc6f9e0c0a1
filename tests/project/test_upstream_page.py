"""The page that maps upstream's names to ours names every identifier of upstream.

On the page a name of ours begins with its package (`pods.phase.get_phase`), or is in a table
whose heading names the class of the methods (`ours, in ...`).
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstatus import StatusManager
from tests.support.dotted_names import dotted_names, resolve

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "upstream.md"
TEXT = PAGE.read_text()
SURPRISES = (ROOT / "tests" / "conformance" / "SURPRISES.md").read_text()
CODE_WORDS = {
    word for code in re.findall(r"`([^`\n]+)`", TEXT) for word in re.findall(r"\w+", code)
}

# The interface Manager of pkg/kubelet/status/status_manager.go, with the PodStatusProvider in it.
UPSTREAM_V1_36_4 = [
    "AddPodUpdateNotifier",
    "BackfillPodResizeConditions",
    "ClearPodResizeInProgressCondition",
    "ClearPodResizePendingCondition",
    "GetPodResizeConditions",
    "GetPodStatus",
    "IsPodResizeDeferred",
    "IsPodResizeInfeasible",
    "RemoveOrphanedStatuses",
    "SetContainerReadiness",
    "SetContainerStartup",
    "SetPodResizeInProgressCondition",
    "SetPodResizePendingCondition",
    "SetPodStatus",
    "Start",
    "TerminatePod",
]


# Top-level identifiers, struct fields and methods, read from the Go sources with go/parser: of
# status/*.go, status/state, allocation/state, pod/*.go, types/pod_status.go and pkg/util/pod. Each
# is in the list of the first release that has it. "callers" are the functions around them.
UPSTREAM_IDENTIFIERS = {
    "v1.16": """
        AddPod apiserverClient apiStatusVersions basicManager basicMirrorClient canBeDeleted
        checkContainerStateTransition checkpointManager configMapManager ContainersNotInitialized
        ContainersNotReady CreateMirrorPod DeleteMirrorPod DeleteOrphanedMirrorPods DeletePod
        deletePodStatus findContainerStatus GenerateContainersReadyCondition
        GeneratePodInitializedCondition GeneratePodReadyCondition getHashFromMirrorPod
        GetMirrorPodByPod getOrphanedMirrorPodNames GetPodByFullName GetPodByMirrorPod
        GetPodByName GetPodByUID getPodHash GetPods GetPodsAndMirrorPods GetPodStatus
        GetUIDTranslations IsMirrorPod IsMirrorPodOf isPodInTerminatedState
        isPodStatusByKubeletEqual IsStaticPod kubeClient lock Manager manager mergePodStatus
        MirrorClient mirrorPodByFullName mirrorPodByUID mirrorPodsMapToMirrorPods needsReconcile
        needsUpdate NeedToReconcilePodReadiness NewBasicMirrorClient NewBasicPodManager NewManager
        normalizeStatus PatchPodStatus podByFullName podByUID PodCompleted PodConditionByKubelet
        PodConditionsByKubelet podDeletionSafety PodDeletionSafetyProvider podManager podName
        podNamespace PodResourcesAreReclaimed podsMapToPods podStatusChannel podStatuses
        podStatusesLock PodStatusProvider podStatusSyncRequest podUID
        preparePatchBytesforPodStatus ReadinessGatesNotReady RemoveOrphanedStatuses secretManager
        SetContainerReadiness SetContainerStartup SetPods SetPodStatus Start status syncBatch
        syncPeriod syncPod TerminatePod TranslatePodUID translationByUID UnknownContainerStatuses
        updateLastTransitionTime UpdatePod updatePodsInternal updateStatusInternal version
        versionedPodStatus
    """,
    "v1.22": """
        generateContainersReadyConditionForTerminalPhase generatePodReadyConditionForTerminalPhase
        Get getNodeUID GetOrphanedMirrorPodNames hasPodInitialized initializedContainers
        nodeGetter nodeName PodCouldHaveRunningContainers PodFailed preparePatchBytesForPodStatus
        updateMetrics
    """,
    "v1.28": """
        AllocationEntries at cache checkpointName Checksum ClearState Clone Delete deleteContainer
        DeletePodStartupState fakeManager GeneratePodReadyToStartContainersCondition
        GetContainerResourceAllocation GetPodAndMirrorPod GetPodResizeStatus
        GetPodResourceAllocation GetResizeStatus isInitContainerInitialized MarshalCheckpoint mux
        NewFakeManager NewNoopStateCheckpoint NewPodResourceAllocationCheckpoint
        NewStateCheckpoint NewStateMemory noopStateCheckpoint podAllocation
        PodConditionSharedByKubelet podIsFinished PodManager podResizeStatus PodResizeStatus
        PodResourceAllocation PodResourceAllocationCheckpoint podStartupLatencyHelper
        PodStartupLatencyStateHelper podStatusManagerStateFile Reader RecordStatusUpdated
        RemovePod ReplaceOrAppendPodCondition ResizeStatusEntries restoreState
        SetContainerResourceAllocation SetPodAllocation SetPodResizeStatus
        SetPodResourceAllocation SetResizeStatus State state stateCheckpoint stateFileDirectory
        stateMemory storeState UnmarshalCheckpoint VerifyChecksum writer
    """,
    "v1.36": """
        AddPodUpdateNotifier BackfillPodResizeConditions Checkpoint
        ClearPodResizeInProgressCondition ClearPodResizePendingCondition ContainerResources Data
        Entries GenerateAllContainersRestartingCondition GetContainerResources
        GetPodLevelResources GetPodResizeConditions GetPodResourceCheckpointInfo
        GetPodResourceInfo GetPodResourceInfoMap GetStaticPodToMirrorPodMap isAdded
        IsPodResizeDeferred IsPodResizeInfeasible lastChecksum List NewCheckpoint notifiers
        OnPodRemoved OnPodUpdated pod PodLevelResources podResizeConditions PodResizeInProgress
        PodResizePending PodResourceCheckpointInfo PodResourceInfo PodResourceInfoMap podResources
        podStatusNotification PodUpdateNotifier recordInProgressResizeCount
        recordPendingResizeCount RemoveOrphanedPods RestartAllContainersStarted sendNotification
        SetContainerResources SetPodLevelResources SetPodResizeInProgressCondition
        SetPodResizePendingCondition SetPodResourceInfo updatedPodResizeCondition
    """,
    "callers": """
        activeDeadlineHandler CgroupsPerQOS checkAndRecordTerminations CheckpointManager
        CouldHaveRunningContainers determinePodResizeStatus dispatchWork ErrCheckpointNotFound
        FakePodDeletionSafetyProvider FilterOutConditionsByType generateAPIPodStatus
        GetKubeletContainerLogs getPhase GetPodConditionFromList HandlePodAdditions
        HandlePodCleanups handlePodResourcesResize HandlePodUpdates isAdmittedPodTerminal
        IsContainersReadyConditionTrue IsPodPhaseTerminal IsPodReadyConditionTrue
        keepTerminatedPodVolumes MaxPodTerminationMessageLogLength MirrorPodUID
        MockPodStatusProvider NewMainKubelet NewUIDPreconditions notRunning OnPodSandboxReady pleg
        podCache PodMightNeedToUnprepareResources PodStatusSyncDuration podSync podVolumesExist
        podWorkers proberManager readinessManager rejectPod removeOrphanedPodStatuses
        ResolvedPodUID SortedContainerStatuses startupManager statusUID syncLoop SyncPod
        SyncTerminatedPod syncTerminatedPod SyncTerminatingPod syncTerminatingPod syncTicker
        updateConditionFunc volumeManager Writer
    """,
}


def names_under_a_class() -> Iterator[str]:
    for table in re.findall(r"(?:^\|.*\n)+", TEXT, re.MULTILINE):
        heading, _, *rows = table.splitlines()
        owner = re.search(r"ours, in `([\w.]+)`", heading)
        if owner is None:
            continue
        for row in rows:
            for method in re.findall(r"`([a-z]\w*)\(", row.split("|")[2]):
                yield f"{owner[1]}.{method}"


OURS = sorted({*dotted_names(TEXT), *names_under_a_class()})


@pytest.mark.parametrize("name", OURS)
def test_every_name_of_ours_on_the_page_exists(name: str) -> None:
    assert resolve(name) is not None


def test_the_page_names_every_public_method_of_the_manager() -> None:
    methods = [name for name in vars(StatusManager) if not name.startswith("_")]
    assert [name for name in methods if f"status.manager.StatusManager.{name}" not in OURS] == []


@pytest.mark.parametrize("method", UPSTREAM_V1_36_4)
def test_the_map_has_every_method_of_upstreams_manager(method: str) -> None:
    the_map = TEXT.partition("\n## The map\n")[2].partition("\n## ")[0]
    assert re.search(rf"^\| `{method}` \| `[a-z]", the_map, re.MULTILINE)


@pytest.mark.parametrize("release", UPSTREAM_IDENTIFIERS)
def test_the_page_names_every_identifier_of_upstream(release: str) -> None:
    names = UPSTREAM_IDENTIFIERS[release].split()
    assert [name for name in names if name not in CODE_WORDS] == []


def test_a_name_that_does_not_exist_is_found_out() -> None:
    with pytest.raises(AttributeError):
        resolve("status.manager.StatusManager.no_such_method")
    with pytest.raises(AttributeError):
        resolve("no_such_package.module")


def test_surprises_that_are_cited_are_in_the_list() -> None:
    cited = set(re.findall(r"\bS (\d+)", TEXT))
    first_list = SURPRISES.partition("\n# ")[0]
    assert cited
    assert cited <= set(re.findall(r"^(\d+)\. ", first_list, re.MULTILINE))


def test_the_page_uses_the_vocabulary_of_the_style_guide() -> None:
    banned = r"\b(told|whoever|whom|who|somebody|nobody|anew|rooms?|manners)\b"
    assert re.findall(banned, TEXT, re.IGNORECASE) == []
