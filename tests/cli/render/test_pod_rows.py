"""The rows of `podstatus watch` equal those of `kubectl get`."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podstatus.apiserver.printing.pods import PodPrinter
from podstatus.cli.render.pod_rows import pod_row
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.pod import summarize_pod

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
containers = st.fixed_dictionaries(
    {
        "ready": st.booleans(),
        "started": st.booleans(),
        "restartCount": st.integers(0, 3),
        "state": states,
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
def test_a_summary_says_what_the_printer_says_of_the_pod(document: dict[str, Any]) -> None:
    row = pod_row(summarize_pod(from_document(document, Pod)))
    _, ready, status, restarts, *_ = PodPrinter().cells(document, NOW)
    assert (f"{row.ready}/{row.total}", row.status, str(row.restarts)) == (ready, status, restarts)
