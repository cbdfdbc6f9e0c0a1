"""How severe the states of pods and nodes are, and their short names."""

from enum import IntEnum

from podstatus.node.decide.conditions import AGENT_STOPPED
from podstatus.observe.summary.container_state import (
    ContainerStateSummary,
    format_container_state,
)
from podstatus.observe.transitions.compare_statuses import Transition

GOOD_WHEN_FALSE = ("DisruptionTarget", "PodResizePending", "PodResizeInProgress")
TERMINATING = "Terminating"


class Severity(IntEnum):
    """How severe a state is; greater is worse."""

    GOOD = 0
    DONE = 1
    WAITING = 2
    UNKNOWN = 3
    BACK_OFF = 4
    BAD = 5
    AWAY = 6
    """No agent was running."""


def short_state(state: ContainerStateSummary | None) -> str:
    """Format a state as `running`, `CrashLoopBackOff` or `Error 3`."""
    if state is None or not (state.reason or state.is_terminated):
        return format_container_state(state)
    code = "" if state.exit_code is None else str(state.exit_code)
    return " ".join(filter(None, (state.reason, code)))


def phase_severity(text: str) -> Severity:
    """Return the severity of a phase."""
    severities = {
        "Running": Severity.GOOD,
        "Succeeded": Severity.DONE,
        "Failed": Severity.BAD,
        "Pending": Severity.WAITING,
        TERMINATING: Severity.WAITING,
    }
    return severities.get(text, Severity.UNKNOWN)


def condition_severity(change: Transition, text: str) -> Severity:
    """Return the severity of a condition; some are good when they are False."""
    if text not in ("True", "False"):
        return Severity.UNKNOWN
    is_true = text == "True"
    if change.subject in GOOD_WHEN_FALSE:
        return Severity.WAITING if is_true else Severity.DONE
    if is_true:
        return Severity.GOOD
    return {"PodCompleted": Severity.DONE, "PodFailed": Severity.BAD}.get(
        change.reason, Severity.WAITING
    )


def node_condition_severity(change: Transition, text: str) -> Severity:
    """Return the severity of a condition of a node: all but Ready are good when they are False."""
    if text not in ("True", "False"):
        return Severity.UNKNOWN
    is_good = (text == "True") == (change.subject == "Ready")
    # An orderly stop is no failure.
    bad = Severity.WAITING if change.subject == AGENT_STOPPED else Severity.BAD
    return Severity.GOOD if is_good else bad


def taint_severity(taint: str) -> Severity:
    """Return the severity of a taint: pods are evicted, or only not scheduled."""
    return Severity.BAD if taint.endswith(":NoExecute") else Severity.WAITING


def container_severity(state: ContainerStateSummary | None) -> Severity:
    """Return the severity of a container state."""
    if state is None or state.is_starting or (state.is_waiting and not state.reason):
        return Severity.WAITING
    if state.is_running:
        return Severity.GOOD
    if state.is_terminated:
        return Severity.BAD if state.has_failed else Severity.DONE
    return Severity.BACK_OFF if state.reason.endswith("BackOff") else Severity.BAD
