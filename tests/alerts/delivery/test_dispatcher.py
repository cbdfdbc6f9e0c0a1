"""Delivery to receivers that fail, hang, or recover."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from msgspec import structs

from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.model import Action, Alert, Location
from podstatus.alerts.ports import (
    ActionError,
    AlertNotifier,
    BatchAlertNotifier,
    DeliveryState,
    NotSentError,
    RetryableError,
)
from podstatus.kube.objects.pod import PodUID
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.alerts.sample_alerts import (
    BatchListener,
    Listener,
    firing,
    message,
    pending,
    resolved,
)
from tests.support.loops import in_background

HOOK = Action(kind="hook")
OTHER = Action(kind="other")
BUSY = RetryableError("busy")
AWAY = NotSentError("connection refused")
NEVER = ActionError("never")


@asynccontextmanager
async def dispatching(
    notifiers: Mapping[str, AlertNotifier | BatchAlertNotifier], clock: FakeClock
) -> AsyncIterator[AlertDispatcher]:
    """A running dispatcher without a store and without jitter."""
    made = AlertDispatcher(notifiers, None, clock=clock, random=lambda: 0.0)
    async with in_background(made.run()):
        yield made


def only(dispatcher: AlertDispatcher) -> DeliveryState:
    (state,) = dispatcher.deliveries()
    return state


async def test_firing_and_resolved_are_sent_once_each_and_pending_is_not() -> None:
    hook, clock, alert = Listener(), FakeClock(), firing()
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(pending(alert), [HOOK])
        await run_ready_tasks()
        assert hook.received == []
        for _ in range(3):  # a sent alert is not sent again
            dispatcher.dispatch(alert, [HOOK])
        await run_ready_tasks()
        assert hook.received == [message(alert)]
        dispatcher.dispatch(resolved(alert), [HOOK])
        await run_ready_tasks()
        dispatcher.dispatch(resolved(alert), [HOOK])
        await clock.advance(3600)
        assert hook.received == [message(alert), message(resolved(alert))]
        assert only(dispatcher) == DeliveryState(name="hook", delivered=2)


async def test_an_alert_that_resolves_during_an_outage_is_not_sent() -> None:
    hook, clock, alert = Listener(), FakeClock(), firing()
    hook.is_away = AWAY
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(alert, [HOOK])
        await clock.advance(10)
        assert hook.tries > 2
        assert only(dispatcher).problem == "connection refused"
        dispatcher.dispatch(resolved(alert), [HOOK])
        hook.is_away = None
        await clock.advance(3600)
        assert hook.received == []
        assert only(dispatcher) == DeliveryState(name="hook")


async def test_a_resolution_is_sent_if_the_outcome_of_the_first_send_is_unknown() -> None:
    hook, clock, alert = Listener(), FakeClock(), firing()
    hook.errors = [BUSY, AWAY]
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(alert, [HOOK])
        await clock.advance(1.5)  # once it may have been received, once certainly not
        assert hook.tries == 2
        dispatcher.dispatch(resolved(alert), [HOOK])
        await clock.advance(10)
        assert hook.received == [message(resolved(alert))]


async def test_a_hanging_receiver_delays_no_other_and_is_retried() -> None:
    slow, quick, clock, alert = Listener(), Listener(), FakeClock(), firing()
    slow.open.clear()
    async with dispatching({"hook": slow, "other": quick}, clock) as dispatcher:
        dispatcher.dispatch(alert, [HOOK, OTHER])
        await run_ready_tasks()
        assert quick.received == [message(alert)]
        await clock.advance(31)
        states = {state.name: state for state in dispatcher.deliveries()}
        assert states["hook"].problem == "not sent within 30 s"
        assert states["other"].problem == ""
        slow.open.set()
        await clock.advance(5)
        assert slow.received == [message(alert)]
        assert all(state.problem == "" for state in dispatcher.deliveries())


class MistakenListener(BatchListener):
    """A batch notifier whose `resend_seconds` may raise."""

    is_mistaken = False

    def __getattribute__(self, name: str) -> Any:
        if name == "resend_seconds" and self.is_mistaken:
            raise ZeroDivisionError("a mistake")
        return super().__getattribute__(name)


async def test_an_error_between_two_attempts_is_logged_and_ends_no_receiver(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hook, clock, alert = MistakenListener(), FakeClock(), firing()
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(alert, [HOOK])
        hook.is_mistaken = True
        await clock.advance(60)
        assert only(dispatcher).problem == "a mistake"
        hook.is_mistaken = False
        await clock.advance(5)
        assert only(dispatcher).problem == ""
        dispatcher.dispatch(resolved(alert), [HOOK])
        await clock.advance(5)
        assert hook.received[-1] == message(resolved(alert))
    assert caplog.text.count("sending to hook failed, will retry: error=a mistake") == 1


@pytest.mark.slow
async def test_tries_become_rarer_up_to_one_in_five_minutes_and_go_on_while_it_fires() -> None:
    hook, clock, alert = Listener(), FakeClock(), firing()
    hook.is_away = BUSY
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(alert, [HOOK])
        await clock.advance(511)  # 1 + 2 + 4 + … + 256
        assert hook.tries == 10
        await clock.advance(24 * 3600)
        assert hook.tries == 10 + 24 * 12
        hook.is_away = None
        await clock.advance(300)
        assert hook.received == [message(alert)]


@pytest.mark.parametrize("days", [-1, 1])
async def test_a_clock_step_delays_no_delivery(days: int) -> None:
    hook, many, clock = Listener(), BatchListener(), FakeClock()
    hook.is_away = AWAY
    async with dispatching({"hook": hook, "other": many}, clock) as dispatcher:
        dispatcher.dispatch(firing(), [HOOK, OTHER])
        await clock.advance(1)
        clock.step(days * 24 * 3600)
        await clock.advance(5)
        hook.is_away = None
        await clock.advance(120)  # the rest that was cut by it does not count
        assert hook.received == [message(firing())]
        assert 2 <= len(many.batches) <= 4


@pytest.mark.parametrize("days", [-1, 1])
async def test_a_clock_step_drops_no_resolution(days: int) -> None:
    hook, clock = Listener(), FakeClock()
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(firing(), [HOOK])
        await clock.advance(1)
        hook.is_away = AWAY
        dispatcher.dispatch(resolved(firing()), [HOOK])
        clock.step(days * 24 * 3600)
        await clock.advance(60)
        hook.is_away = None
        await clock.advance(300)
        assert hook.received[1:] == [message(resolved(firing()))]


async def test_a_resolution_is_retried_for_an_hour_and_then_dropped() -> None:
    hook, clock, alert = Listener(), FakeClock(), firing()
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(alert, [HOOK])
        await run_ready_tasks()
        hook.is_away = BUSY
        dispatcher.dispatch(resolved(alert), [HOOK])
        await clock.advance(3000)
        assert only(dispatcher).waiting == 1
        await clock.advance(1000)
        assert (only(dispatcher).waiting, only(dispatcher).dropped) == (0, 1)
        tries = hook.tries
        await clock.advance(3600)
        assert hook.tries == tries


async def test_who_asks_to_be_left_alone_is_left_alone_by_news_too() -> None:
    hook, clock = Listener(), FakeClock()
    hook.errors = [RetryableError("slow down", retry_after_seconds=40)]
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(firing("a"), [HOOK])
        await run_ready_tasks()
        dispatcher.dispatch(firing("b"), [HOOK])
        await clock.advance(39.9)
        assert hook.tries == 1
        await clock.advance(0.2)
        assert sorted(hook.received) == [message(firing("a")), message(firing("b"))]


async def test_one_alert_that_always_fails_holds_up_no_other() -> None:
    hook, clock = Listener(), FakeClock()
    hook.is_away, hook.never = BUSY, {firing("bad").id}
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(firing("bad"), [HOOK])
        await clock.advance(1000)
        for name in "abc":
            dispatcher.dispatch(firing(name), [HOOK])
            await clock.advance(1.5)
        assert [id_ for id_, _ in hook.received] == [firing(name).id for name in "abc"]
        assert only(dispatcher).waiting == 1
        hook.is_away = None
        await clock.advance(300)
        assert hook.received[-1] == message(firing("bad"))
        assert only(dispatcher).problem == ""


async def test_of_news_that_come_together_one_that_fails_holds_up_no_other() -> None:
    hook, clock = Listener(), FakeClock()
    hook.is_away, hook.never = BUSY, {firing(name).id for name in ("bad", "worse")}
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(firing("bad"), [HOOK])
        await clock.advance(1000)
        for name in ("worse", "a", "b"):
            dispatcher.dispatch(firing(name), [HOOK])
        tries = hook.tries
        await clock.advance(1.5)
        assert hook.received == [message(firing("a")), message(firing("b"))]
        # The failed alert still backs off.
        assert hook.tries == tries + 3


async def test_news_during_a_short_outage_put_off_nothing() -> None:
    hook, clock = Listener(), FakeClock(rounds=500)
    hook.is_away = AWAY
    alerts = [firing(str(number)) for number in range(30)]
    async with dispatching({"hook": hook}, clock) as dispatcher:
        for alert in alerts:
            dispatcher.dispatch(alert, [HOOK])
            await clock.advance(1)
        assert hook.tries <= 31 + 6  # a second apart, and 1, 2, 4 … s after the first
        hook.is_away = None
        await clock.advance(32)
        assert set(hook.received) == {message(alert) for alert in alerts}


@pytest.mark.parametrize("uid", ["u-a", "u-of-a-recreated-pod"])
async def test_news_about_the_same_name_keep_their_order(uid: str) -> None:
    hook, clock, first = Listener(), FakeClock(), firing()
    second = firing(life=2, subject=structs.replace(first.subject, uid=PodUID(uid)))
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(first, [HOOK])
        await run_ready_tasks()
        hook.is_away, hook.never = BUSY, {first.id}
        dispatcher.dispatch(resolved(first), [HOOK])
        await run_ready_tasks()
        dispatcher.dispatch(second, [HOOK])
        await clock.advance(100)
        dispatcher.dispatch(firing("other"), [HOOK])
        await clock.advance(2)
        assert hook.received == [message(first), message(firing("other"))]
        hook.is_away = None
        await clock.advance(300)
        assert hook.received[2:] == [message(resolved(first)), message(second)]


async def test_a_rejected_alert_is_counted_and_neither_retried_nor_resolved() -> None:
    hook, clock, alert = Listener(), FakeClock(), firing()
    hook.errors = [NEVER]
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(alert, [HOOK])
        await clock.advance(3600)
        assert only(dispatcher) == DeliveryState(name="hook", dropped=1, problem="never")
        dispatcher.dispatch(alert, [HOOK])
        dispatcher.dispatch(resolved(alert), [HOOK])
        dispatcher.dispatch(firing("b"), [HOOK])
        await clock.advance(10)
        assert hook.received == [message(firing("b"))]
        assert only(dispatcher).problem == ""


async def test_a_mistake_in_a_deed_is_logged_with_its_place_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hook, clock, alert = Listener(), FakeClock(), firing()
    hook.errors = [KeyError("oops")]
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(alert, [HOOK])
        await clock.advance(5)
        assert hook.received == [message(alert)]
    assert "sending to hook failed, will retry" in caplog.text
    assert "Traceback" in caplog.text


async def test_a_kind_that_is_not_there_is_a_problem_of_that_receiver_alone() -> None:
    hook, clock, alert = Listener(), FakeClock(), firing()
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(alert, [Action(kind="fax", place=Location(7, 3)), HOOK])
        await run_ready_tasks()
        assert hook.received == [message(alert)]
        fax = dispatcher.deliveries()[0]
        assert (fax.name, fax.dropped) == ("fax", 1)
        assert "action kind 'fax' is not available" in fax.problem


async def test_a_resolution_goes_to_receivers_of_the_firing_alert_though_the_rule_changed() -> None:
    hook, clock, alert = Listener(), FakeClock(), firing()
    async with dispatching({"hook": hook}, clock) as dispatcher:
        dispatcher.dispatch(alert, [HOOK])
        await run_ready_tasks()
        dispatcher.dispatch(resolved(alert), [])
        await run_ready_tasks()
        assert hook.received[-1] == message(resolved(alert))


# Batch receivers


async def test_many_are_sent_at_once_and_firing_ones_are_repeated() -> None:
    many, clock = BatchListener(), FakeClock()
    alerts = [firing(name) for name in "abcd"]
    async with dispatching({"hook": many}, clock) as dispatcher:
        for alert in alerts:
            dispatcher.dispatch(alert, [HOOK])
        await run_ready_tasks()
        first = [message(alert) for alert in alerts]
        assert many.batches == [first[:3], first[3:]]
        many.batches.clear()
        await clock.advance(60)
        assert many.batches == [first[:3], first[3:]]
        dispatcher.dispatch(resolved(alerts[0]), [HOOK])
        await clock.advance(60)
        assert many.batches[2:] == [[message(resolved(alerts[0]))], first[1:]]
        assert only(dispatcher).delivered == 5


async def test_after_an_outage_of_ten_minutes_all_are_sent_and_nothing_piles_up() -> None:
    many, clock = BatchListener(max_batch=100), FakeClock()
    old, early, short = firing("old"), firing("early"), firing("short")
    async with dispatching({"hook": many}, clock) as dispatcher:
        dispatcher.dispatch(old, [HOOK])
        dispatcher.dispatch(early, [HOOK])
        await clock.advance(1)
        many.batches.clear()
        many.is_away = AWAY
        dispatcher.dispatch(resolved(early), [HOOK])
        for number in range(600):
            await clock.advance(1)
            one = firing(f"short-{number}")
            dispatcher.dispatch(one, [HOOK])
            dispatcher.dispatch(resolved(one, clock.now()), [HOOK])
            if number == 300:
                dispatcher.dispatch(short, [HOOK])
            assert only(dispatcher).waiting <= 3
        many.is_away = None
        await clock.advance(61)
        assert set(many.received) == {message(old), message(resolved(early)), message(short)}
        assert only(dispatcher).problem == ""


async def test_who_was_away_hears_at_once_of_all_that_fires_for_it_may_have_forgotten() -> None:
    many, clock = BatchListener(), FakeClock()
    async with dispatching({"hook": many}, clock) as dispatcher:
        dispatcher.dispatch(firing("old"), [HOOK])
        await clock.advance(10)
        many.is_away = AWAY
        dispatcher.dispatch(firing("new"), [HOOK])
        await clock.advance(2)
        many.is_away = None
        many.batches.clear()
        await clock.advance(2)
        assert set(many.received) == {message(firing("old")), message(firing("new"))}


async def test_one_that_is_refused_is_found_among_many() -> None:
    many, clock = BatchListener(max_batch=100), FakeClock()
    alerts: list[Alert] = [firing(str(number)) for number in range(20)]
    many.refused = {alerts[13].id: NEVER}
    async with dispatching({"hook": many}, clock) as dispatcher:
        for alert in alerts:
            dispatcher.dispatch(alert, [HOOK])
        await run_ready_tasks(500)
        assert set(many.received) == {message(alert) for alert in alerts} - {message(alerts[13])}
        assert (only(dispatcher).delivered, only(dispatcher).dropped) == (19, 1)


async def test_a_rejected_repetition_delays_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    many, clock = BatchListener(max_batch=4), FakeClock()
    alerts = [firing(name) for name in "abcdefghij"]
    async with dispatching({"hook": many}, clock) as dispatcher:
        for alert in alerts:
            dispatcher.dispatch(alert, [HOOK])
        await run_ready_tasks()
        many.refused = {alerts[1].id: NEVER}
        for _ in range(3):
            many.batches.clear()
            await clock.advance(60)
            assert sorted(many.received) == [message(a) for a in alerts if a is not alerts[1]]
        assert only(dispatcher).problem == "never"
        many.refused.clear()
        many.batches.clear()
        await clock.advance(60)
        assert sorted(many.received) == [message(alert) for alert in alerts]
        assert only(dispatcher).problem == ""
    assert sum("alert rejected" in line for line in caplog.messages) == 1


@pytest.mark.parametrize("error", [BUSY, KeyError("ours")])
async def test_a_repetition_that_always_fails_comes_last(error: Exception) -> None:
    many, clock = BatchListener(max_batch=2), FakeClock()
    alerts = [firing(name) for name in "abcdef"]
    async with dispatching({"hook": many}, clock) as dispatcher:
        for alert in alerts:
            dispatcher.dispatch(alert, [HOOK])
        await run_ready_tasks()
        many.refused = {alerts[0].id: error}
        many.batches.clear()
        await clock.advance(60)
        assert many.batches == []
        for _ in range(3):
            many.batches.clear()
            await clock.advance(60)
            assert {message(alert) for alert in alerts[2:]} <= set(many.received)


# Shutdown


async def test_the_end_waits_for_a_try_that_is_under_way_but_not_long() -> None:
    slow, stuck, clock = Listener(), Listener(), FakeClock()
    slow.open.clear()
    stuck.open.clear()
    made = AlertDispatcher({"hook": slow, "other": stuck}, None, clock=clock, random=lambda: 0.0)
    task = asyncio.create_task(made.run())
    made.dispatch(firing("a"), [HOOK, OTHER])
    made.dispatch(firing("b"), [HOOK])
    await run_ready_tasks()
    loop = asyncio.get_running_loop()
    began = loop.time()
    task.cancel()
    await run_ready_tasks()
    slow.open.set()
    with suppress(asyncio.CancelledError):
        await task
    assert loop.time() - began < 20.0  # a second, on a machine that has time
    assert slow.received == [message(firing("a"))]  # and no other after it
    assert stuck.received == []
