"""After a restart of the agent, the history continues where it was."""

import pytest
from msgspec import structs

from podstatus import PodStatus
from podstatus.kube.objects.pod_status import ContainerStatus
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.transitions.compare_statuses import status_transitions
from podstatus.observe.transitions.resume import TransitionKey, TransitionValue, resume_transitions
from podstatus.testing.builders import ended, make_status, running, waiting

BACK_OFF = "waiting CrashLoopBackOff"
ENDED = "terminated Error 3"


def restarted(container: ContainerStatus, restarts: int) -> PodStatus:
    last = ended("app", 3).state
    shown = structs.replace(container, restart_count=restarts, last_state=last)
    return make_status("Running", shown, Ready=str(container.ready))


def noted(state: str, restarts: int, *, ready: bool = True) -> dict[TransitionKey, TransitionValue]:
    return {
        ("seen", ""): "",
        ("phase", ""): "Running",
        ("container", "app"): parse_container_state(state),
        ("restart", "app"): str(restarts),
        ("readiness", "app"): str(ready),
        ("condition", "Ready"): str(ready),
        ("event", "app"): "Normal",
    }


@pytest.mark.parametrize(
    ("last", "status", "expected"),
    [
        pytest.param(noted("running", 2), restarted(running("app"), 2), [], id="nothing"),
        pytest.param(
            noted("running", 2),
            restarted(running("app"), 3),
            [
                ("container", "running", ENDED),
                ("restart", "2", "3"),
                ("container", ENDED, "running"),
            ],
            id="ended and started again meanwhile",
        ),
        pytest.param(
            noted(ENDED, 2),
            restarted(running("app"), 3),
            [("restart", "2", "3"), ("container", ENDED, "running")],
            id="started again meanwhile",
        ),
        pytest.param(
            noted(BACK_OFF, 2),
            restarted(running("app"), 3),
            [("restart", "2", "3"), ("container", BACK_OFF, "running")],
            id="started again after its wait",
        ),
        pytest.param(
            noted(BACK_OFF, 2),
            restarted(running("app"), 4),
            [
                ("container", BACK_OFF, ENDED),
                ("restart", "2", "4"),
                ("container", ENDED, "running"),
            ],
            id="started again after its wait, and once more",
        ),
        pytest.param(
            noted("running", 2),
            restarted(waiting("app", "CrashLoopBackOff"), 2),
            [
                ("container", "running", ENDED),
                ("container", ENDED, BACK_OFF),
                ("readiness", "True", "False"),
                ("condition", "True", "False"),
            ],
            id="ended meanwhile, and waits",
        ),
        pytest.param(
            noted("waiting ContainerCreating", 0, ready=False),
            restarted(waiting("app", "CrashLoopBackOff"), 0),
            [("container", "waiting ContainerCreating", ENDED), ("container", ENDED, BACK_OFF)],
            id="started and ended meanwhile, and waits",
        ),
        pytest.param(
            noted(ENDED, 2, ready=False),
            restarted(waiting("app", "CrashLoopBackOff"), 2),
            [("container", ENDED, BACK_OFF)],
            id="had ended, and waits",
        ),
        pytest.param(
            noted("waiting ImagePullBackOff", 2, ready=False),
            restarted(waiting("app", "CrashLoopBackOff"), 2),
            [("container", "waiting ImagePullBackOff", BACK_OFF)],
            id="may have ended before it waited for something else",
        ),
        *(
            pytest.param(
                noted(f"waiting {reason}", 2, ready=False),
                restarted(waiting("app", reason), 2),
                [],
                id=f"waits as before: {reason}",
            )
            for reason in ("CrashLoopBackOff", "ContainerCreating", "RunContainerError")
        ),
        pytest.param(
            noted("running", 2) | {("condition", "Gate"): "True", ("condition", "Old"): ""},
            restarted(running("app"), 2),
            [("condition", "True", "")],
            id="a condition was taken away",
        ),
    ],
)
def test_only_what_is_new_is_noted(
    last: dict[TransitionKey, TransitionValue],
    status: PodStatus,
    expected: list[tuple[str, str, str]],
) -> None:
    words = status_transitions(None, status)
    found = [(it.kind, it.before_text, it.after_text) for it in resume_transitions(last, words)]
    assert found == expected
