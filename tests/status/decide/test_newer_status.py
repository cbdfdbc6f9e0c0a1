"""What an earlier life could not deliver counts, unless the API server knows more by now."""

import pytest
from msgspec import structs

from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodStatus,
)
from podstatus.status.decide.newer_status import has_terminated_container, newer_status

ENDED = ContainerState(terminated=ContainerStateTerminated(exit_code=3))
RUNS = ContainerState(running=ContainerStateRunning())
WAITS = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))
NEVER = ContainerState()


def status(
    state: ContainerState, restarts: int, last: ContainerState = NEVER, name: str = "a"
) -> PodStatus:
    container = ContainerStatus(name=name, state=state, last_state=last, restart_count=restarts)
    return PodStatus(phase="Running", container_statuses=(container,))


@pytest.mark.parametrize(
    ("remembered", "shown", "is_newer"),
    [
        (status(ENDED, 0), status(RUNS, 0), True),
        (status(WAITS, 0, ENDED), status(ENDED, 0), True),
        (status(RUNS, 2, ENDED), status(RUNS, 0), True),
        (status(RUNS, 2, ENDED), status(WAITS, 1, ENDED), True),
        (status(ENDED, 0), PodStatus(phase="Pending"), True),
        (status(ENDED, 0), status(ENDED, 0), True),
        (status(WAITS, 0, ENDED), status(RUNS, 1, ENDED), False),
        (status(RUNS, 1, ENDED), status(ENDED, 1, ENDED), False),
        (status(ENDED, 1), status(WAITS, 1, ENDED), False),
        (status(ENDED, 0), status(RUNS, 0, name="of another spec"), False),
        (status(ENDED, 5), PodStatus(phase="Failed"), False),
        (status(NEVER, 0), status(RUNS, 0), False),
        (status(RUNS, 0), status(NEVER, 0), True),
    ],
)
def test_it_counts_if_its_containers_have_come_as_far(
    remembered: PodStatus, shown: PodStatus, is_newer: bool
) -> None:
    assert newer_status(remembered, shown) is (remembered if is_newer else shown)
    assert newer_status(None, shown) is shown


@pytest.mark.parametrize(
    ("status", "is_end"),
    [
        (status(ENDED, 0), True),
        (status(WAITS, 1, ENDED), True),
        (status(RUNS, 1, ENDED), True),
        (status(RUNS, 0), False),
        (PodStatus(phase="Pending"), False),
    ],
)
def test_only_ends_are_worth_keeping(status: PodStatus, is_end: bool) -> None:
    assert has_terminated_container(status) is is_end
    containers = status.container_statuses
    assert has_terminated_container(PodStatus(init_container_statuses=containers)) is is_end
    assert has_terminated_container(structs.replace(status, phase="Failed")) is is_end
