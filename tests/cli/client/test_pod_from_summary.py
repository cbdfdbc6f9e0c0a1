"""A pod built from a summary has the same summary."""

from hypothesis import example, given
from msgspec import structs

from podstatus.cli.client.pod_from_summary import pod_document
from podstatus.cli.render.pod_rows import pod_row
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.observe.summary.container_state import ContainerStateSummary
from podstatus.observe.summary.pod import PodSummary, summarize_pod
from tests.support.data.strategies import pods

WAITING = ContainerStateSummary(state="waiting")


def alike(summary: PodSummary) -> PodSummary:
    """A state that says nothing is one of waiting for nothing, as it travels."""
    containers = tuple(
        structs.replace(it, state=it.state or WAITING, last_state=it.last_state or WAITING)
        if it.kind == "ephemeral" or it.state or it.last_state or it.started is not None
        else it
        for it in summary.containers
    )
    return structs.replace(summary, containers=containers)


EMPTY = Pod(status=PodStatus(ephemeral_container_statuses=(ContainerStatus(name="debugger"),)))
"""A debug container of which the kubelet knows nothing yet."""


@given(pods())
@example(EMPTY)
def test_a_summary_is_that_of_the_pod_that_is_made_of_it(pod: Pod) -> None:
    summary = summarize_pod(pod)
    made = summarize_pod(from_document(pod_document(summary), Pod))
    assert alike(made) == alike(summary)
    assert pod_row(made) == pod_row(summary)
