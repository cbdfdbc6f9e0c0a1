"""Across a restart nothing is lost or sent twice; a failing disk stops nothing."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NoReturn

import pytest

from podstatus.alerts.delivery.decide.queue import StoredAlert
from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.delivery.store import AlertStore, AlertStoreError
from podstatus.alerts.model import Action, Location
from podstatus.alerts.ports import (
    ActionError,
    AlertNotifier,
    BatchAlertNotifier,
    NotSentError,
    RetryableError,
)
from podstatus.base.system_clock import SystemClock
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.alerts.sample_alerts import (
    SECOND,
    START,
    BatchListener,
    Listener,
    firing,
    message,
    pending,
    resolved,
)
from tests.support.full_disk import no_file_can_grow
from tests.support.loops import in_background

HOOK = Action(kind="hook", options={"url": "https://host/path"})
OTHER = Action(kind="other")
Notifiers = Mapping[str, AlertNotifier | BatchAlertNotifier]


@asynccontextmanager
async def living(path: Path, notifiers: Notifiers) -> AsyncIterator[AlertDispatcher]:
    """One process with a dispatcher."""
    store = AlertStore.open(path / "alerts.db")
    dispatcher = AlertDispatcher(notifiers, store, clock=SystemClock(), random=lambda: 1.0)
    try:
        async with in_background(dispatcher.run()):
            yield dispatcher
    finally:
        store.close()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 - a thread and a disk take part
            await asyncio.sleep(0.002)


def on_disk(path: Path) -> dict[str, tuple[str, list[str]]]:
    store = AlertStore.open(path / "alerts.db")
    try:
        return {
            id_: (kept.alert.state, [one.progress for one in kept.deliveries.values()])
            for id_, kept in store.read().items()
        }
    finally:
        store.close()


async def test_a_sent_alert_is_not_sent_again_and_its_resolution_is(tmp_path: Path) -> None:
    hook, alert = Listener(), firing()
    async with living(tmp_path, {"hook": hook}) as first:
        first.dispatch(alert, [HOOK])
        await until(lambda: bool(hook.received))
    assert on_disk(tmp_path) == {alert.id: ("firing", ["sent"])}
    other = Listener()
    async with living(tmp_path, {"hook": hook, "other": other}) as second:
        assert second.restored == {alert.id: alert}
        # The rule has moved in its file, and has one more action.
        moved = Action(kind="hook", options=HOOK.options, place=Location(40, 2))
        second.dispatch(alert, [moved, OTHER])
        await until(lambda: other.received == [message(alert)])
        second.dispatch(resolved(alert), [])
        await until(lambda: len(hook.received) == 2)
    assert hook.received == [message(alert), message(resolved(alert))]
    assert on_disk(tmp_path) == {}


async def test_an_unsent_alert_is_sent_by_the_next_process(tmp_path: Path) -> None:
    hook, alert, over = Listener(), firing("a"), firing("b")
    async with living(tmp_path, {"hook": hook}) as first:
        first.dispatch(over, [HOOK])
        await until(lambda: bool(hook.received))
        hook.is_away = NotSentError("away")
        first.dispatch(alert, [HOOK])
        end = SystemClock().now()
        first.dispatch(resolved(over, end), [HOOK])
        first.dispatch(pending(firing("c")), [HOOK])
        await until(lambda: hook.tries > 2)
    assert on_disk(tmp_path) == {
        alert.id: ("firing", ["waiting"]),
        over.id: ("resolved", ["sent"]),
        firing("c").id: ("pending", []),
    }
    hook.is_away = None
    async with living(tmp_path, {"hook": hook}) as second:
        assert set(second.restored) == {alert.id, firing("c").id}
        await until(lambda: len(hook.received) == 3)
    assert set(hook.received[1:]) == {message(alert), message(resolved(over))}
    assert set(on_disk(tmp_path)) == {alert.id, firing("c").id}


async def test_a_resolution_of_an_hour_before_a_restart_is_dropped(tmp_path: Path) -> None:
    hook, alert = Listener(), firing()
    async with living(tmp_path, {"hook": hook}) as first:
        first.dispatch(alert, [HOOK])
        await until(lambda: bool(hook.received))
        hook.is_away = NotSentError("away")
        first.dispatch(resolved(alert, SystemClock().now() - 3601 * SECOND), [HOOK])
        await until(lambda: hook.tries == 2)
    hook.is_away = None
    async with living(tmp_path, {"hook": hook}) as second:
        await until(lambda: second.deliveries()[0].dropped == 1)
    assert hook.received == [message(alert)]
    assert on_disk(tmp_path) == {}


@pytest.mark.parametrize("still_fires", [True, False])
async def test_an_alert_in_flight_at_shutdown_is_sent_once_more(
    tmp_path: Path, still_fires: bool
) -> None:
    hook, alert = Listener(), firing()
    hook.open.clear()
    async with living(tmp_path, {"hook": hook}) as first:
        first.dispatch(alert, [HOOK])
        await until(lambda: hook.tries == 1)
    assert on_disk(tmp_path) == {alert.id: ("firing", ["tried"])}
    hook.open.set()
    async with living(tmp_path, {"hook": hook}) as second:
        if not still_fires:
            # A receiver that may know that it fires gets the resolution.
            second.dispatch(resolved(alert, SystemClock().now()), [HOOK])
        await until(lambda: bool(hook.received))
    expected = alert if still_fires else resolved(alert)
    assert hook.received == [message(expected)]


@pytest.mark.parametrize(("kind", "is_tried"), [("hook", True), ("deletePod", False)])
async def test_a_rejected_alert_is_sent_by_the_next_process_but_no_remediation_runs(
    tmp_path: Path, kind: str, is_tried: bool
) -> None:
    hook, alert, action = Listener(), firing(), Action(kind=kind)
    hook.errors = [ActionError("never")]
    async with living(tmp_path, {kind: hook}) as first:
        first.dispatch(alert, [action])
        await until(lambda: first.deliveries()[0].dropped == 1)
    async with living(tmp_path, {kind: hook}) as second:
        second.dispatch(alert, [action])
        second.dispatch(firing("b"), [action])
        await until(lambda: message(firing("b")) in hook.received)
    assert (message(alert) in hook.received) is is_tried


@pytest.mark.parametrize("kind", ["hook", "deletePod"])
async def test_of_what_was_refused_nothing_is_left_when_it_is_over(
    tmp_path: Path, kind: str
) -> None:
    hook, alert = Listener(), firing()
    hook.errors = [ActionError("never")]
    async with living(tmp_path, {kind: hook}) as first:
        first.dispatch(alert, [Action(kind=kind)])
        await until(lambda: first.deliveries()[0].dropped == 1)
    async with living(tmp_path, {kind: hook}) as second:
        second.dispatch(resolved(alert), [Action(kind=kind)])
        await run_ready_tasks()
    assert hook.received == []
    assert on_disk(tmp_path) == {}


async def test_who_wants_to_hear_again_does_so_at_once(tmp_path: Path) -> None:
    many, alert = BatchListener(), firing()
    async with living(tmp_path, {"hook": many}) as first:
        first.dispatch(alert, [HOOK])
        await until(lambda: bool(many.batches))
    async with living(tmp_path, {"hook": many}):
        await until(lambda: len(many.batches) == 2)
    assert many.received == [message(alert)] * 2


async def test_texts_that_no_file_takes_are_made_ones_that_it_does(tmp_path: Path) -> None:
    hook = Listener()
    alert = firing(annotations={"summary": "cut \udcc3", "long": "x" * 10_000})
    async with living(tmp_path, {"hook": hook}) as first:
        first.dispatch(alert, [HOOK])
        await until(lambda: bool(hook.received))
        assert first.problem == ""
    async with living(tmp_path, {"hook": hook}) as second:
        (found,) = second.restored.values()
        assert found.annotations == {"summary": "cut ?", "long": "x" * 4096}


# A failing disk


async def test_a_full_disk_delays_no_delivery_and_is_reported_until_it_has_space(
    tmp_path: Path,
) -> None:
    hook = Listener()
    store = AlertStore.open(tmp_path / "alerts.db")
    clock = FakeClock()
    dispatcher = AlertDispatcher({"hook": hook}, store, clock=clock, random=lambda: 1.0)
    async with in_background(dispatcher.run()):
        with no_file_can_grow():
            alerts = [firing(str(number)) for number in range(200)]
            for alert in alerts:
                dispatcher.dispatch(alert, [HOOK])
            await until(lambda: len(hook.received) == 200)
            assert "disk" in dispatcher.problem
            for alert in alerts[:150]:
                dispatcher.dispatch(resolved(alert, START), [HOOK])
            await until(lambda: len(hook.received) == 350)
        while dispatcher.problem:
            await clock.advance(30)
            await asyncio.sleep(0.01)
    store.close()
    assert on_disk(tmp_path) == {
        firing(str(number)).id: ("firing", ["sent"]) for number in range(150, 200)
    }


async def test_what_could_not_be_written_is_written_though_nothing_else_changes(
    tmp_path: Path,
) -> None:
    store, clock = AlertStore.open(tmp_path / "alerts.db"), FakeClock()
    dispatcher = AlertDispatcher({}, store, clock=clock, random=lambda: 1.0)
    async with in_background(dispatcher.run()):
        with no_file_can_grow():
            dispatcher.dispatch(pending(firing()), [])
            await until(lambda: "disk" in dispatcher.problem)
        await clock.advance(1)
        await until(lambda: dispatcher.problem == "")
        assert list(store.read()) == [firing().id]
    store.close()


def test_a_disk_that_hangs_delays_by_two_seconds_and_the_end_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go = threading.Event()

    async def scene() -> None:
        hook, clock, loop = Listener(), FakeClock(), asyncio.get_running_loop()
        store = AlertStore.open(tmp_path / "alerts.db")
        monkeypatch.setattr(store, "replace", lambda _: may_go.wait(30))
        dispatcher = AlertDispatcher({"hook": hook}, store, clock=clock, random=lambda: 1.0)
        task = asyncio.create_task(dispatcher.run())
        dispatcher.dispatch(firing(), [HOOK])
        await clock.advance(1.9)
        assert hook.received == []
        await clock.advance(0.2)
        assert hook.received == [message(firing())]
        assert dispatcher.problem == "the disk is not responding"
        dispatcher.dispatch(firing("b"), [HOOK])
        await run_ready_tasks()
        assert hook.received[1:] == [message(firing("b"))]  # once is enough
        await clock.advance(10)
        began = loop.time()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert loop.time() - began < 20.0  # a second, on a machine that has time
        may_go.set()

    asyncio.run(scene())


async def test_a_file_that_cannot_be_read_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = AlertStore.open(tmp_path / "alerts.db")
    before = {firing("a").id: StoredAlert(alert=firing("a"))}
    store.replace(before)

    def broken(_: AlertStore) -> NoReturn:
        raise AlertStoreError("cannot read alerts.db: disk I/O error")

    hook = Listener()
    with monkeypatch.context() as once:
        once.setattr(AlertStore, "read", broken)
        dispatcher = AlertDispatcher({"hook": hook}, store, clock=FakeClock(), random=lambda: 1.0)
    async with in_background(dispatcher.run()):
        dispatcher.dispatch(firing("b"), [HOOK])
        await until(lambda: bool(hook.received))
        assert "disk I/O error; restart the agent" in dispatcher.problem
    assert store.read() == before


async def test_without_a_store_alerts_are_still_sent() -> None:
    hook = Listener()
    hook.errors = [RetryableError("busy")]
    dispatcher = AlertDispatcher({"hook": hook}, None, clock=SystemClock(), random=lambda: 1.0)
    async with in_background(dispatcher.run()):
        dispatcher.dispatch(firing(), [HOOK])
        await until(lambda: bool(hook.received))
        assert dispatcher.problem == ""
