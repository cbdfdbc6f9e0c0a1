"""A pod built from a summary has the same summary, and the same row in a table."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.apiserver.printing.pods import POD_PRINTER, pod_cells
from podstatus.cli.client.pod_from_summary import pod_from_summary
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.container_state import ContainerStateSummary
from podstatus.observe.summary.pod import PodSummary, summarize_pod
from tests.support.data.strategies import pods

WAITING = ContainerStateSummary(state="waiting")


def alike(summary: PodSummary) -> PodSummary:
    """A state that says nothing is one of waiting for nothing, as it travels.

    Without `created`: a summary has no container ID that the pod could be given.
    """
    containers = tuple(
        structs.replace(it, state=it.state or WAITING, last_state=it.last_state or WAITING)
        if it.kind == "ephemeral" or it.state or it.last_state or it.started is not None
        else it
        for it in summary.containers
    )
    containers = tuple(structs.replace(it, created=False) for it in containers)
    return structs.replace(summary, containers=containers)


EMPTY = Pod(status=PodStatus(ephemeral_container_statuses=(ContainerStatus(name="debugger"),)))
"""A debug container of which the kubelet knows nothing yet."""


@given(pods())
@example(EMPTY)
def test_a_summary_is_that_of_the_pod_that_is_made_of_it(pod: Pod) -> None:
    summary = summarize_pod(pod)
    made = summarize_pod(pod_from_summary(summary))
    assert alike(made) == alike(summary)


NOW = Time.parse("2026-11-15T10:00:00Z")
REASONS = ["", "Error", "Completed", "CrashLoopBackOff", "PodInitializing", "ContainerCreating"]
reasons = st.sampled_from(REASONS)
states = st.one_of(
    st.just({"running": {}}),
    st.builds(lambda reason: {"waiting": {"reason": reason}}, reasons),
    st.builds(
        lambda reason, code: {"terminated": {"reason": reason, "exitCode": code}},
        reasons,
        st.sampled_from([0, 0, 1, 137]),
    ),
)
ended = st.just({"terminated": {"exitCode": 1, "finishedAt": "2026-11-15T09:59:00Z"}})
containers = st.fixed_dictionaries(
    {
        "ready": st.booleans(),
        "started": st.booleans(),
        "restartCount": st.integers(0, 3),
        "state": states,
        "lastState": st.one_of(st.just({}), ended),
    }
)
conditions = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Initialized", "Ready", "PodScheduled"]),
            "status": st.sampled_from(["True", "False"]),
            "reason": st.sampled_from(["", "SchedulingGated"]),
        }
    ),
    unique_by=lambda condition: str(condition["type"]),
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    init = draw(st.lists(st.tuples(st.booleans(), containers), max_size=3))
    regular = draw(st.lists(containers, min_size=1, max_size=3))
    metadata: dict[str, Any] = {"name": "p", "namespace": "n", "uid": "u"}
    if draw(st.booleans()):
        metadata["deletionTimestamp"] = "2026-11-15T09:00:00Z"
    return {
        "metadata": metadata,
        "spec": {
            "initContainers": [
                {"name": f"i{i}", **({"restartPolicy": "Always"} if sidecar else {})}
                for i, (sidecar, _) in enumerate(init)
            ],
            "containers": [{"name": f"c{i}"} for i, _ in enumerate(regular)],
        },
        "status": {
            "phase": draw(st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])),
            "reason": draw(st.sampled_from(["", "Evicted", "NodeLost"])),
            "conditions": draw(conditions),
            "initContainerStatuses": [
                {"name": f"i{i}", **status} for i, (_, status) in enumerate(init)
            ],
            "containerStatuses": [{"name": f"c{i}", **s} for i, s in enumerate(regular)],
        },
    }


@given(documents())
def test_a_summary_has_the_row_of_its_pod(document: dict[str, Any]) -> None:
    made = pod_from_summary(summarize_pod(from_document(document, Pod)))
    assert pod_cells(made, NOW) == POD_PRINTER.cells(document, NOW)
