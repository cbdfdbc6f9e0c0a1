"""Two processes with the same alerts: the one that leads notifies, the other one takes over."""

import asyncio
from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.model import Action, Alert, AlertId
from podstatus.alerts.ports import AlertNotifier, BatchAlertNotifier, NotSentError
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.alerts.sample_alerts import BatchListener, Listener, firing, message, resolved
from tests.support.loops import in_background

HOOK = Action(kind="hook")


def dispatcher(
    notifier: AlertNotifier | BatchAlertNotifier,
    clock: FakeClock,
    *,
    standby: bool = True,
    may_send: Callable[[], bool] = lambda: True,
) -> AlertDispatcher:
    return AlertDispatcher(
        {"hook": notifier},
        None,
        clock=clock,
        random=lambda: 0.0,
        standby=standby,
        may_send=may_send,
    )


async def test_after_a_takeover_all_that_fires_and_what_resolved_lately_is_sent() -> None:
    hook, clock = Listener(), FakeClock()
    early, late, over, held = (firing(name) for name in ("early", "late", "over", "held"))
    made = dispatcher(hook, clock)
    async with in_background(made.run()):
        for alert in (early, over, late, held):
            made.dispatch(alert, [HOOK])
        made.dispatch(resolved(early), [HOOK])
        await clock.advance(500)
        made.dispatch(resolved(over), [HOOK])
        await clock.advance(599)
        assert hook.received == []
        assert [it.waiting for it in made.deliveries()] == [0]
        made.take_over()
        await run_ready_tasks()
        assert sorted(hook.received) == sorted(map(message, (resolved(over), late, held)))
        assert [it.dropped for it in made.deliveries()] == [0]
        made.dispatch(resolved(late), [HOOK])
        await run_ready_tasks()
        assert hook.received[-1] == message(resolved(late))


async def test_of_a_flapping_alert_only_the_latest_message_is_sent() -> None:
    hook, clock = Listener(), FakeClock()
    made = dispatcher(hook, clock)
    async with in_background(made.run()):
        for life in range(20):
            made.dispatch(firing("a", life=life), [HOOK])
            made.dispatch(resolved(firing("a", life=life)), [HOOK])
            made.dispatch(firing("b", life=life), [HOOK])
            if life < 19:
                made.dispatch(resolved(firing("b", life=life)), [HOOK])
        made.take_over()
        await run_ready_tasks()
        last = resolved(firing("a", life=19)), firing("b", life=19)
        assert sorted(hook.received) == sorted(map(message, last))


async def test_what_was_sent_is_sent_once_more_after_the_next_takeover() -> None:
    hook, clock, alert = Listener(), FakeClock(), firing()
    made = dispatcher(hook, clock, standby=False)
    async with in_background(made.run()):
        made.dispatch(alert, [HOOK])
        await run_ready_tasks()
        made.stand_by()
        await clock.advance(3600)
        assert hook.received == [message(alert)]
        made.take_over()
        await clock.advance(3600)
        assert hook.received == [message(alert)] * 2


async def test_an_attempt_in_flight_ends_when_another_process_leads() -> None:
    hook, clock, alert = Listener(), FakeClock(), firing()
    hook.open.clear()
    made = dispatcher(hook, clock, standby=False)
    async with in_background(made.run()):
        made.dispatch(alert, [HOOK])
        await run_ready_tasks()
        assert hook.tries == 1
        made.stand_by()
        hook.open.set()
        await clock.advance(120)
        assert (hook.tries, hook.received) == (1, [])
        assert [it.problem for it in made.deliveries()] == [""]
        # It may have been received.
        made.dispatch(resolved(alert), [HOOK])
        made.take_over()
        await run_ready_tasks()
        assert hook.received == [message(resolved(alert))]


async def test_a_process_stops_although_an_attempt_was_just_ended() -> None:
    hook, clock = Listener(), FakeClock()
    hook.open.clear()
    made = dispatcher(hook, clock, standby=False)
    running = asyncio.ensure_future(made.run())
    made.dispatch(firing(), [HOOK])
    await run_ready_tasks()
    made.stand_by()
    running.cancel()
    await clock.advance(2)
    assert running.done()


async def test_nothing_is_sent_once_the_lease_has_run_out() -> None:
    hook, clock, held = Listener(), FakeClock(), [True]
    made = dispatcher(hook, clock, standby=False, may_send=lambda: held[0])
    async with in_background(made.run()):
        held[0] = False
        made.dispatch(firing(), [HOOK])
        await clock.advance(10)
        assert hook.tries == 0
        held[0] = True
        await clock.advance(1)
        assert hook.received == [message(firing())]


async def test_a_takeover_does_not_wait_for_the_retries_of_an_earlier_term() -> None:
    hook, clock = Listener(), FakeClock()
    hook.is_away = NotSentError("connection refused")
    made = dispatcher(hook, clock, standby=False)
    async with in_background(made.run()):
        made.dispatch(firing(), [HOOK])
        await clock.advance(1000)
        made.stand_by()
        hook.is_away = None
        await clock.advance(1)
        made.take_over()
        await clock.advance(1)
        assert hook.received == [message(firing())]


async def test_repeated_firing_alerts_are_repeated_by_the_leader_only() -> None:
    hook, clock = BatchListener(), FakeClock()
    made = dispatcher(hook, clock)
    async with in_background(made.run()):
        made.dispatch(firing(), [HOOK])
        await clock.advance(300)
        assert hook.received == []
        made.take_over()
        await clock.advance(121)
        assert hook.received == [message(firing())] * 3
        made.stand_by()
        await clock.advance(300)
        assert len(hook.received) == 3


Process = tuple[int, AlertDispatcher, "asyncio.Task[None]"]


class Pair:
    """Two processes that see the same alerts, and a receiver that counts by deduplication key."""

    def __init__(self) -> None:
        self.clock = FakeClock(rounds=10)
        self.received: Counter[tuple[str, str, int]] = Counter()
        self.lives: dict[str, int] = {}
        self.firing: dict[str, int] = {}
        self.processes = [self._new(0, standby=False), self._new(1, standby=True)]
        self.generation = 2
        self.kills = 0

    def _new(
        self, number: int, *, standby: bool
    ) -> tuple[int, AlertDispatcher, "asyncio.Task[None]"]:
        made = dispatcher(self, self.clock, standby=standby)
        return number, made, asyncio.ensure_future(made.run())

    async def send(self, action: Action, alert: Alert) -> None:
        name, life = alert.annotations["name"], int(alert.annotations["life"])
        self.received[name, alert.state, life] += 1
        await self.clock.wait(0.2)  # the response is on its way, and a kill may be faster

    def alert(self, name: str, life: int, process: int) -> Alert:
        texts = {"name": name, "life": str(life)}
        alert = firing(name, annotations=texts)
        return structs.replace(alert, id=AlertId(f"{name}-{life}-of-{process}"))

    def turn(self, name: str) -> None:
        life = self.firing.pop(name, None)
        if life is None:
            self.lives[name] = life = self.lives.get(name, 0) + 1
            self.firing[name] = life
            for number, made, _ in self.processes:
                made.dispatch(self.alert(name, life, number), [HOOK])
            return
        for number, made, _ in self.processes:
            made.dispatch(resolved(self.alert(name, life, number)), [HOOK])

    async def kill_leader(self, seconds: float) -> None:
        """Kill it; another one leads after so many seconds, and a new process stands by."""
        _, _, task = self.processes.pop(0)
        task.cancel()
        self.kills += 1
        number, made, new = self._new(self.generation, standby=True)
        self.generation += 1
        self.processes.append((number, made, new))
        for name, life in self.firing.items():
            made.dispatch(self.alert(name, life, number), [HOOK])
        await self.clock.advance(seconds)
        self.processes[0][1].take_over()
        # A process that is killed at once has nothing on disk here, unlike a real one.
        await self.clock.advance(3)

    def check(self) -> None:
        """The newest state of each alert has arrived, hardly anything twice."""
        for name, life in self.firing.items():
            assert self.received[name, "firing", life] >= 1
        for key, count in self.received.items():
            assert count <= 1 + self.kills, key
        for name, last in self.lives.items():
            if name not in self.firing and self.received[name, "firing", last]:
                assert self.received[name, "resolved", last]


steps = st.one_of(
    st.sampled_from("abc"),
    st.floats(0.05, 1.0),
    st.tuples(st.just("kill"), st.sampled_from(["", "a", "b"])),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, max_size=15))
def test_each_alert_is_notified_with_at_most_one_duplicate_per_kill(
    story: list[str | float | tuple[str, str]],
) -> None:
    async def play() -> None:
        pair = Pair()
        for step in story:
            if isinstance(step, str):
                pair.turn(step)
            elif isinstance(step, float):
                await pair.clock.advance(step)
            else:
                await run_ready_tasks(10)
                if step[1]:
                    pair.turn(step[1])
                await pair.kill_leader(1.0)
        await pair.clock.advance(20)
        pair.check()
        for _, _, task in pair.processes:
            task.cancel()
        await asyncio.wait({task for _, _, task in pair.processes})

    asyncio.run(asyncio.wait_for(play(), 60))
