"""Pods and statuses for property tests, made of the words of the recorded data."""

from typing import Any

from hypothesis import strategies as st

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.scalars.time import Time

Draw = st.DrawFn

OURS = [
    "PodScheduled",
    "Ready",
    "Initialized",
    "ContainersReady",
    "PodReadyToStartContainers",
    "PodResizePending",
    "AllContainersRestarting",
]
FOREIGN = ["example.com/lb-attached", "cloud.example.org/ready", "Custom"]
NAMES = ["app", "zeta", "sidecar", "init", "debugger"]
PHASES = ["Pending", "Running", "Succeeded", "Failed", "Unknown", "", "Odd"]
TEXTS = ["", "msg", 'quote " and \\ <tag> & é 漢', "line\nbreak\ttab", "x" * 40]
TIMES = ["2019-01-12T23:27:43Z", "2023-02-27T20:40:45Z", "2024-09-21T20:53:07Z", None]
QUANTITIES = ["0", "1", "1000m", "1.5", "0.5Gi", "128Mi", "1e3", "00012Ki", "100n"]
IPS = ["10.0.0.1", "10.9.9.9", "fd00::7"]

texts = st.sampled_from(TEXTS)
times = st.sampled_from(TIMES)
resources = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.sampled_from(QUANTITIES)
)


@st.composite
def conditions(draw: Draw, types: list[str], *, unique: bool = True) -> list[dict[str, Any]]:
    """A list of conditions, or none."""
    chosen = draw(st.lists(st.sampled_from(types), unique=unique, max_size=8))
    return [
        {
            "type": kind,
            "status": draw(st.sampled_from(["True", "False", "Unknown", ""])),
            "reason": draw(st.sampled_from(["", "PodFailed", "Custom"])),
            "message": draw(texts),
            "lastProbeTime": draw(times),
            "lastTransitionTime": draw(times),
            "observedGeneration": draw(st.integers(0, 4)),
        }
        for kind in chosen
    ]


@st.composite
def states(draw: Draw) -> dict[str, Any]:
    """The state of a container."""
    kind = draw(st.sampled_from(["waiting", "running", "terminated", None]))
    if kind is None:
        return {}
    if kind == "waiting":
        return {"waiting": {"reason": draw(st.sampled_from(["", "CrashLoopBackOff"]))}}
    if kind == "running":
        return {"running": {"startedAt": draw(times)}}
    return {
        "terminated": {
            "exitCode": draw(st.sampled_from([0, 1, 42, 137])),
            "message": draw(texts),
            "startedAt": draw(times),
            "finishedAt": draw(times),
        }
    }


@st.composite
def container_statuses(draw: Draw, *, unique: bool = True) -> list[dict[str, Any]]:
    """The statuses of some containers."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=unique, max_size=4))
    return [
        {
            "name": name,
            "state": draw(states()),
            "lastState": draw(states()),
            "ready": draw(st.booleans()),
            "started": draw(st.sampled_from([True, False, None])),
            "restartCount": draw(st.integers(0, 3)),
            "containerID": f"fake://{name}",
            "allocatedResources": draw(resources),
            "resources": draw(st.none() | st.fixed_dictionaries({"limits": resources})),
        }
        for name in names
    ]


@st.composite
def status_documents(
    draw: Draw, *, types: list[str] = OURS + FOREIGN, unique: bool = True
) -> dict[str, Any]:
    """A whole status as JSON."""
    ips = st.lists(st.sampled_from(IPS), unique=unique, max_size=3)
    claims = st.lists(st.sampled_from(["gpu", "nic"]), unique=unique, max_size=2)
    return {
        "phase": draw(st.sampled_from(PHASES)),
        "reason": draw(st.sampled_from(["", "Evicted"])),
        "message": draw(texts),
        "observedGeneration": draw(st.integers(0, 4)),
        "startTime": draw(times),
        "qosClass": draw(st.sampled_from(["", "BestEffort", "Burstable"])),
        "conditions": draw(st.none() | conditions(types, unique=unique)),
        "containerStatuses": draw(st.none() | container_statuses(unique=unique)),
        "initContainerStatuses": draw(st.none() | container_statuses(unique=unique)),
        "ephemeralContainerStatuses": draw(st.none() | container_statuses(unique=unique)),
        "podIPs": [{"ip": ip} for ip in draw(ips)],
        "hostIPs": [{"ip": ip} for ip in draw(ips)],
        "resourceClaimStatuses": [{"name": name} for name in draw(claims)],
        "allocatedResources": draw(resources),
        "resize": draw(st.sampled_from(["", "Deferred"])),
    }


def statuses(
    *, types: list[str] = OURS + FOREIGN, unique: bool = True
) -> st.SearchStrategy[PodStatus]:
    """A whole status."""
    documents = status_documents(types=types, unique=unique)
    return documents.map(lambda document: from_document(document, PodStatus))


@st.composite
def pods(draw: Draw) -> Pod:
    """A pod whose spec names some of the containers."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=4))
    split = draw(st.integers(0, len(names) - 1))
    document = {
        "metadata": {"name": "pod-1", "namespace": "default", "uid": "u-1", "generation": 3},
        "spec": {
            "restartPolicy": draw(st.sampled_from(["Always", "OnFailure", "Never", ""])),
            "initContainers": [{"name": name} for name in names[:split]],
            "containers": [{"name": name} for name in names[split:]],
        },
        "status": draw(status_documents()),
    }
    return from_document(document, Pod)


@st.composite
def facts(
    draw: Draw, *, states: tuple[ContainerRunState, ...] = tuple(ContainerRunState)
) -> PodFacts:
    """What a runtime reports about some of the containers, each tried a few times."""
    names = draw(st.lists(st.sampled_from(NAMES), max_size=6))
    attempts = [
        ContainerFacts(
            id=draw(st.sampled_from([f"fake://{name}", f"fake://{name}-{number}"])),
            name=name,
            state=draw(st.sampled_from(states)),
            created_at=Time.from_unix_nanos(draw(st.integers(0, 9))),
            started_at=Time.parse(draw(times)),
            exit_code=draw(st.sampled_from([0, 1, 42, 137])),
            restart_count=draw(st.integers(0, 3)),
            active=draw(st.booleans()),
        )
        for number, name in enumerate(names)
    ]
    return PodFacts(containers=tuple(attempts), ips=tuple(draw(st.lists(st.sampled_from(IPS)))))
