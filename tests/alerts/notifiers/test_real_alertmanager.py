"""A real Alertmanager gets alerts and notifies a webhook once when each fires and resolves."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.delivery.store import AlertStore
from podstatus.alerts.model import Action, Alert, AlertId
from podstatus.alerts.notifiers.alertmanager import AlertmanagerNotifier
from podstatus.alerts.notifiers.http_post import HttpPostClient
from podstatus.base.system_clock import SystemClock
from tests.alerts.sample_alerts import firing, resolved
from tests.support.loops import in_background
from tests.support.processes.alertmanager import MISSING, PROGRAM, alertmanager
from tests.support.processes.alertmanager import Alertmanager as Manager

ACTIONS = [Action(kind="alertmanager")]
AGAIN = 2.0
"""After four periods it resolves an alert: long enough for a busy machine."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]


def received(manager: Manager) -> list[tuple[str, str]]:
    """What the webhook received: pods and their state."""
    return [(labels["pod"], state) for labels, state in manager.told]


def known(manager: Manager) -> dict[str, str]:
    """Its firing alerts: `endsAt` by pod name."""
    return {one["labels"]["pod"]: one["endsAt"] for one in manager.alerts()}


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(90):
        while not is_so():  # noqa: ASYNC110 - another program takes part
            await asyncio.sleep(0.05)


@asynccontextmanager
async def living(folder: Path, manager: Manager) -> AsyncIterator[AlertDispatcher]:
    """One process with a dispatcher."""
    clock = SystemClock()
    store, http = AlertStore.open(folder / "alerts.db"), HttpPostClient(clock=clock)
    notifier = AlertmanagerNotifier(
        http, clock=clock, url=manager.url, link=lambda _: "", resend_seconds=AGAIN
    )
    dispatcher = AlertDispatcher({"alertmanager": notifier}, store, clock=clock, random=lambda: 0.5)
    try:
        async with in_background(dispatcher.run()):
            yield dispatcher
    finally:
        await http.close()
        store.close()


def fires(name: str) -> Alert:
    return structs.replace(firing(name), fired=SystemClock().now())


def over(alert: Alert) -> Alert:
    return resolved(alert, SystemClock().now())


async def test_an_alert_fires_and_resolves_through_it_once_over_a_restart(tmp_path: Path) -> None:
    with alertmanager(tmp_path) as manager:
        alert = fires("a")
        async with living(tmp_path, manager) as first:
            first.dispatch(alert, ACTIONS)
            await until(lambda: received(manager) == [("pod-a", "firing")])
            before = known(manager)["pod-a"]
        async with living(tmp_path, manager) as second:
            second.dispatch(second.restored[alert.id], ACTIONS)
            await until(lambda: known(manager)["pod-a"] > before)
            # Longer than four periods: without a repetition the Alertmanager would resolve it.
            await asyncio.sleep(6 * AGAIN)
            assert received(manager) == [("pod-a", "firing")]
            second.dispatch(over(alert), ACTIONS)
            await until(lambda: len(received(manager)) == 2)
            await asyncio.sleep(2.5)
            assert received(manager) == [("pod-a", "firing"), ("pod-a", "resolved")]
            assert second.deliveries()[0].problem == ""


async def test_after_an_outage_all_are_sent_except_those_that_came_and_went(tmp_path: Path) -> None:
    with alertmanager(tmp_path) as manager:
        async with living(tmp_path, manager) as agent:
            stays, ends, short, new = (fires(name) for name in ("stays", "ends", "short", "new"))
            agent.dispatch(stays, ACTIONS)
            agent.dispatch(ends, ACTIONS)
            await until(lambda: len(received(manager)) == 2)
            await asyncio.to_thread(manager.kill)
            agent.dispatch(over(ends), ACTIONS)
            agent.dispatch(short, ACTIONS)
            agent.dispatch(new, ACTIONS)
            await until(lambda: "cannot connect" in agent.deliveries()[0].problem)
            agent.dispatch(over(short), ACTIONS)
            await asyncio.to_thread(manager.start)
            await until(lambda: ("pod-new", "firing") in received(manager))
            await until(lambda: set(known(manager)) == {"pod-stays", "pod-new"})
            await until(lambda: agent.deliveries()[0].problem == "")
            assert agent.deliveries()[0].waiting == 0
            assert not any(pod == "pod-short" for pod, _ in received(manager))


async def test_another_life_of_the_same_alert_fires_though_both_come_at_once(
    tmp_path: Path,
) -> None:
    with alertmanager(tmp_path) as manager:
        async with living(tmp_path, manager) as agent:
            first = fires("a")
            agent.dispatch(first, ACTIONS)
            await until(lambda: received(manager) == [("pod-a", "firing")])
            # To an Alertmanager they are the same alert: their labels are equal.
            agent.dispatch(over(first), ACTIONS)
            agent.dispatch(structs.replace(fires("a"), id=AlertId("another")), ACTIONS)
            await until(lambda: agent.deliveries()[0].delivered == 3)
            await asyncio.sleep(6 * AGAIN)
            assert set(known(manager)) == {"pod-a"}
            assert received(manager)[-1] == ("pod-a", "firing")


async def test_one_that_it_refuses_holds_up_no_other(tmp_path: Path) -> None:
    with alertmanager(tmp_path) as manager:
        async with living(tmp_path, manager) as agent:
            # It identifies alerts by their labels, and rejects one without labels.
            bad = structs.replace(fires("bad"), labels={})
            for alert in (fires("a"), bad, fires("b"), fires("c")):
                agent.dispatch(alert, ACTIONS)
            pods = {f"pod-{name}" for name in "abc"}
            await until(lambda: {pod for pod, _ in received(manager)} == pods)
            await until(lambda: agent.deliveries()[0].dropped == 1)
            assert agent.deliveries()[0].waiting == 0
