"""A crash looping pod that recovers: every transition, in order, with its time."""

from pathlib import Path

from msgspec import structs

from podstatus import PodManager, StatusManager
from podstatus.kube.objects.pod_status import ContainerStatus
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.sqlite_store import History, HistoryEntry
from podstatus.observe.history.status_listener import StatusHistoryWriter
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeDeletionSafety

CRASHES = 3


def crash(number: int) -> ContainerStatus:
    """The container status with the termination of this attempt."""
    end = ended("app", 3)
    assert end.state.terminated is not None
    at = Time.parse(f"2024-01-01T00:0{number}:00Z")
    terminated = structs.replace(end.state.terminated, finished_at=at)
    state = structs.replace(end.state, terminated=terminated)
    return structs.replace(end, state=state, restart_count=number)


def after(container: ContainerStatus, last: ContainerStatus, restarts: int) -> ContainerStatus:
    """The container status, with its last termination state."""
    return structs.replace(container, restart_count=restarts, last_state=last.state)


def line(entry: HistoryEntry, began: int) -> str:
    t = entry.transition
    milliseconds = (entry.at - began) // 1_000_000
    return f"{milliseconds} {t.kind} {t.subject}: {t.before_text} → {t.after_text}".replace(
        " :", ":"
    )


async def test_the_timeline_of_a_crash_loop_is_complete(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    clock = FakeClock()
    pod = make_pod("web")
    statuses = StatusManager(None, PodManager([pod]), FakeDeletionSafety(), clock=clock)
    writer = StatusHistoryWriter(history, clock=clock)
    statuses.add_notifier(writer)
    began = clock.now()

    async def show(container: ContainerStatus, phase: str = "Running") -> None:
        ready = str(container.ready)
        status = make_status(phase, container, Ready=ready)
        statuses.set_pod_status(pod, status)
        await clock.advance(0.25)

    await show(waiting("app"), "Pending")
    last = waiting("app")
    for number in range(CRASHES):
        shown = running("app")
        await show(after(shown, last, number) if number else shown)
        last = crash(number)
        await show(last)
        await show(after(waiting("app", "CrashLoopBackOff"), last, number))
    await show(after(running("app", ready=False), last, CRASHES))
    await show(after(running("app"), last, CRASHES))
    await writer.write_once()
    lines = [line(entry, began) for entry in history.timeline("default", "web")]
    expected = [
        "0 seen: →",
        "0 container app: → waiting ContainerCreating",
        "0 phase: → Pending",
        "0 condition Ready: → False",
    ]
    state, at = "waiting ContainerCreating", 250
    for crashes in range(CRASHES):
        if crashes:
            expected.append(f"{at} restart app: {crashes - 1} → {crashes}")
            state = "waiting CrashLoopBackOff"
        expected += [
            f"{at} container app: {state} → running",
            f"{at} readiness app: False → True",
            *([f"{at} phase: Pending → Running"] if not crashes else []),
            f"{at} condition Ready: False → True",
            f"{at + 250} container app: running → terminated Error 3",
            f"{at + 250} readiness app: True → False",
            f"{at + 250} condition Ready: True → False",
            f"{at + 500} container app: terminated Error 3 → waiting CrashLoopBackOff",
        ]
        at += 750
    expected += [
        f"{at} restart app: {CRASHES - 1} → {CRASHES}",
        f"{at} container app: waiting CrashLoopBackOff → running",
        f"{at + 250} readiness app: False → True",
        f"{at + 250} condition Ready: False → True",
    ]
    assert [" ".join(text.split()) for text in lines] == expected
