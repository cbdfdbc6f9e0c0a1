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

# Made once: an example draws hundreds of times, and to make a strategy costs more than to draw.
texts = st.sampled_from(TEXTS)
times = st.sampled_from(TIMES)
generations = st.integers(0, 4)
restart_counts = st.integers(0, 3)
exit_codes = st.sampled_from([0, 1, 42, 137])
resources = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.sampled_from(QUANTITIES)
)
states = st.sampled_from(["waiting", "running", "terminated", None]).flatmap(
    {
        None: st.just({}),
        "waiting": st.fixed_dictionaries(
            {
                "waiting": st.fixed_dictionaries(
                    {"reason": st.sampled_from(["", "CrashLoopBackOff"])}
                )
            }
        ),
        "running": st.fixed_dictionaries({"running": st.fixed_dictionaries({"startedAt": times})}),
        "terminated": st.fixed_dictionaries(
            {
                "terminated": st.fixed_dictionaries(
                    {
                        "exitCode": exit_codes,
                        "message": texts,
                        "startedAt": times,
                        "finishedAt": times,
                    }
                )
            }
        ),
    }.__getitem__
)
"""The state of a container."""
condition_fields = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["True", "False", "Unknown", ""]),
        "reason": st.sampled_from(["", "PodFailed", "Custom"]),
        "message": texts,
        "lastProbeTime": times,
        "lastTransitionTime": times,
        "observedGeneration": generations,
    }
)
container_status_fields = st.fixed_dictionaries(
    {
        "state": states,
        "lastState": states,
        "ready": st.booleans(),
        "started": st.sampled_from([True, False, None]),
        "restartCount": restart_counts,
        "allocatedResources": resources,
        "resources": st.none() | st.fixed_dictionaries({"limits": resources}),
    }
)


def named(
    words: list[str], key: str, *, unique: bool, max_size: int
) -> st.SearchStrategy[list[dict[str, str]]]:
    """A list of objects with one field each."""
    chosen = st.lists(st.sampled_from(words), unique=unique, max_size=max_size)
    return chosen.map(lambda values: [{key: value} for value in values])


@st.composite
def each_with(
    draw: Draw, heads: st.SearchStrategy[list[dict[str, str]]], fields: st.SearchStrategy[Any]
) -> list[dict[str, Any]]:
    """The objects of a list, each with more fields."""
    return [head | draw(fields) for head in draw(heads)]


def status_documents(
    *, types: list[str] = OURS + FOREIGN, unique: bool = True
) -> st.SearchStrategy[dict[str, Any]]:
    """A whole status as JSON."""
    kinds = named(types, "type", unique=unique, max_size=8)
    names = named(NAMES, "name", unique=unique, max_size=4)
    ids = names.map(
        lambda objects: [one | {"containerID": f"fake://{one['name']}"} for one in objects]
    )
    containers = st.none() | each_with(ids, container_status_fields)
    ips = named(IPS, "ip", unique=unique, max_size=3)
    return st.fixed_dictionaries(
        {
            "phase": st.sampled_from(PHASES),
            "reason": st.sampled_from(["", "Evicted"]),
            "message": texts,
            "observedGeneration": generations,
            "startTime": times,
            "qosClass": st.sampled_from(["", "BestEffort", "Burstable"]),
            "conditions": st.none() | each_with(kinds, condition_fields),
            "containerStatuses": containers,
            "initContainerStatuses": containers,
            "ephemeralContainerStatuses": containers,
            "podIPs": ips,
            "hostIPs": ips,
            "resourceClaimStatuses": named(["gpu", "nic"], "name", unique=unique, max_size=2),
            "allocatedResources": resources,
            "resize": st.sampled_from(["", "Deferred"]),
        }
    )


def statuses(
    *, types: list[str] = OURS + FOREIGN, unique: bool = True
) -> st.SearchStrategy[PodStatus]:
    """A whole status."""
    documents = status_documents(types=types, unique=unique)
    return documents.map(lambda document: from_document(document, PodStatus))


pod_names = st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=4)
restart_policies = st.sampled_from(["Always", "OnFailure", "Never", ""])
any_status_document = status_documents()


@st.composite
def pods(draw: Draw) -> Pod:
    """A pod whose spec names some of the containers."""
    names = draw(pod_names)
    split = draw(st.integers(0, len(names) - 1))
    document = {
        "metadata": {"name": "pod-1", "namespace": "default", "uid": "u-1", "generation": 3},
        "spec": {
            "restartPolicy": draw(restart_policies),
            "initContainers": [{"name": name} for name in names[:split]],
            "containers": [{"name": name} for name in names[split:]],
        },
        "status": draw(any_status_document),
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
            exit_code=draw(exit_codes),
            restart_count=draw(restart_counts),
            active=draw(st.booleans()),
        )
        for number, name in enumerate(names)
    ]
    return PodFacts(containers=tuple(attempts), ips=tuple(draw(st.lists(st.sampled_from(IPS)))))
