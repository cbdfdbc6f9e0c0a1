"""The history of a pod that crash-loops and recovers."""

from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.transitions import compare_statuses as kinds
from podstatus.observe.transitions.compare_statuses import Transition

SECOND = 1_000_000_000
BEGIN = 1_794_736_800 * SECOND + 123_456_789
"""2026-11-15T10:00:00.123456789Z."""
BACK_OFFS = (10, 20, 40, 80)
"""Seconds; then it stays."""


def moment(
    seconds: float,
    kind: str,
    subject: str = "",
    states: tuple[str, str] = ("", ""),
    reason: str = "",
    message: str = "",
    uid: str = "u1",
) -> HistoryEntry:
    before, after = states
    transition = Transition(
        kind=kind, subject=subject, before=before, after=after, reason=reason, message=message
    )
    if kinds.has_duration(kind) and after.endswith(" s"):
        duration = float(after.removesuffix(" s"))
        transition = Transition(
            kind=kind, duration_seconds=duration, reason=reason, message=message
        )
    if kind == kinds.CONTAINER:
        transition = Transition(
            kind=kind,
            subject=subject,
            state_before=parse_container_state(before),
            state_after=parse_container_state(after),
            reason=reason,
            message=message,
        )
    return HistoryEntry(
        at=BEGIN + round(seconds * SECOND),
        uid=PodUID(uid),
        namespace="default",
        name="crash",
        transition=transition,
    )


def crash_loop() -> list[HistoryEntry]:
    """Runs for 2 s four times, and then for good; 160 s until then."""
    creating = "waiting ContainerCreating"
    unready = "ContainersNotReady"
    entries = [
        moment(0, kinds.FIRST_SEEN),
        moment(0, kinds.CONTAINER, "app", ("", creating), "ContainerCreating"),
        moment(0, kinds.CONTAINER, "log", ("", creating), "ContainerCreating"),
        moment(0, kinds.PHASE, "", ("", "Pending")),
        moment(0, kinds.CONDITION, "Initialized", ("", "True")),
        moment(0, kinds.CONDITION, "Ready", ("", "False"), unready),
        moment(0, kinds.CONDITION, "ContainersReady", ("", "False"), unready),
        moment(0, kinds.CONDITION, "PodScheduled", ("", "True")),
        moment(0.4, kinds.EVENT, "app", ("", "Normal"), "Pulled", "Container image is there"),
        moment(0.5, kinds.CONTAINER, "log", (creating, "running")),
    ]
    now, before = 0.5, creating
    for number, back_off in enumerate((*BACK_OFFS, 0)):
        if number:
            entries.append(moment(now, kinds.RESTART, "app", (str(number - 1), str(number))))
        entries.append(moment(now, kinds.CONTAINER, "app", (before, "running")))
        if not number:
            entries.append(moment(now, kinds.PHASE, "", ("Pending", "Running")))
        entries += _ready(now, ("False", "True"))
        if not back_off:
            break
        before = "waiting CrashLoopBackOff"
        now += 2
        ended = ("running", "terminated Error 3")
        entries.append(moment(now, kinds.CONTAINER, "app", ended, "Error"))
        entries += _ready(now, ("True", "False"), unready)
        why = "back-off restarting failed container app"
        entries += [
            moment(now + 0.2, kinds.CONTAINER, "app", (ended[1], before), "CrashLoopBackOff", why),
            moment(now + 0.25, kinds.EVENT, "app", ("", "Warning"), "BackOff", why),
        ]
        now += back_off
    return entries


def _ready(now: float, states: tuple[str, str], reason: str = "") -> list[HistoryEntry]:
    types = ("Ready", "ContainersReady")
    return [moment(now, kinds.CONDITION, type_, states, reason) for type_ in types]
