"""What a receiver gets, whatever fails and whenever the agent is killed."""

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from podstatus.alerts.delivery.decide.queue import (
    DeliveryProgress,
    DeliveryQueue,
    receiver_key,
    receiver_name,
)
from podstatus.alerts.model import Action, Alert, AlertId, Location
from tests.alerts.sample_alerts import SECOND, START, firing, message, resolved

Result = Literal["received", "lost answer", "lost request", "not reached", "refused"]


class World:
    """Alerts, a receiver, and the stored progress between them."""

    def __init__(self, max_queued: int = 100) -> None:
        self.max_queued = max_queued
        self.disk: dict[AlertId, DeliveryProgress] = {}
        self.alerts: dict[AlertId, Alert] = {}
        self.lives: dict[str, int] = {}
        self.received: list[tuple[str, str]] = []
        self.dropped = 0
        self.book = self._new_book()

    def _new_book(self) -> DeliveryQueue:
        return DeliveryQueue(self._record_progress, max_queued=self.max_queued)

    def _record_progress(self, id_: AlertId, progress: DeliveryProgress | None) -> None:
        if progress is None:
            del self.disk[id_]
        else:
            self.disk[id_] = progress

    def turn(self, name: str) -> None:
        """Toggle an alert between firing and resolved."""
        life = self.lives.get(name, 0)
        alert = firing(name, life=life)
        if self.alerts.get(alert.id, resolved(alert)).state == "firing":
            self.alerts[alert.id] = resolved(alert)
        else:
            self.lives[name] = life + 1
            alert = firing(name, life=life + 1)
            self.alerts[alert.id] = alert
        self.book.add(self.alerts[alert.id], START + SECOND)

    def attempt(self, most: int, result: Result, meanwhile: str = "") -> None:
        """Send the next batch; an alert may change while it is in flight."""
        alerts = self.book.next_batch(most)
        first = self.book.mark_sending(alerts)
        if meanwhile:
            self.turn(meanwhile)
        if result in ("received", "lost answer"):
            self.received += [message(alert) for alert in alerts]
        if result == "received":
            self.book.succeeded(alerts)
        elif result == "refused":
            for alert in alerts:
                self.book.rejected(alert)
        else:
            self.book.failed(alerts, first if result == "not reached" else ())

    def kill(self) -> None:
        """Another process restores the stored progress."""
        self.book = self._new_book()
        for id_, progress in dict(self.disk).items():
            self.book.restore(self.alerts[id_], progress, START + SECOND)


names = st.sampled_from("abc")
attempts = st.tuples(
    st.integers(1, 3),
    st.sampled_from(["received", "received", "lost answer", "lost request", "not reached"]),
    st.sampled_from(["", "a", "b", "c"]),
)
steps = st.lists(st.one_of(names, attempts, st.just(None)), max_size=40)


def play(world: World, played: list[str | tuple[int, Result, str] | None]) -> None:
    for step in played:
        if step is None:
            world.kill()
        elif isinstance(step, str):
            world.turn(step)
        else:
            world.attempt(*step)


@given(steps)
def test_in_the_end_it_knows_what_fires_and_what_is_over(
    played: list[str | tuple[int, Result, str] | None],
) -> None:
    world = World()
    play(world, played)
    while world.book.waiting:
        world.attempt(2, "received")
    for alert in world.alerts.values():
        states = [state for id_, state in world.received if id_ == alert.id]
        # Never firing after resolved; the last message is the current state.
        assert states == sorted(states)
        if alert.state == "firing":
            assert states[-1:] == ["firing"]
        else:
            assert states[-1:] in ([], ["resolved"])
    # For several alerts of one subject, the last message is about the last one.
    for name in "abc":
        lives = [int(id_.split("-")[2]) for id_, _ in world.received if id_.split("-")[1] == name]
        assert lives[-1:] == sorted(lives)[-1:]
    fires = {id_: "sent" for id_, alert in world.alerts.items() if alert.state == "firing"}
    assert world.disk == fires
    assert {alert.id for alert in world.book.firing()} == set(fires)


@given(steps)
def test_without_lost_answers_and_kills_nothing_is_sent_twice(
    played: list[str | tuple[int, Result, str] | None],
) -> None:
    world = World()
    play(world, [s for s in played if s is not None and "lost answer" not in s])
    while world.book.waiting:
        world.attempt(2, "received")
    assert len(world.received) == len(set(world.received))


@given(steps, st.integers(2, 6))
def test_what_does_not_fit_is_counted_and_no_end_comes_without_a_beginning(
    played: list[str | tuple[int, Result, str] | None], most: int
) -> None:
    world = World(max_queued=most)
    play(world, [s for s in played if s is not None and "lost request" not in s])
    assert world.book.waiting <= most
    while world.book.waiting:
        world.attempt(1, "received")
    begun = {id_ for id_, state in world.received if state == "firing"}
    assert {id_ for id_, state in world.received if state == "resolved"} <= begun
    silent = {id_ for id_, a in world.alerts.items() if a.state == "firing"} - begun
    assert len(silent) <= world.book.dropped
    assert all(world.disk[id_] == "refused" for id_ in silent)


def test_ends_have_room_that_beginnings_do_not_take() -> None:
    world = World(max_queued=4)
    for name in "ab":
        world.turn(name)
    world.attempt(2, "received")
    for name in "cdef":
        world.turn(name)
    assert (world.book.waiting, world.book.dropped) == (2, 2)
    world.turn("a")
    world.turn("b")
    assert (world.book.waiting, world.book.dropped) == (4, 2)
    world.turn("c")  # it was not sent
    assert world.book.waiting == 3


def test_an_end_is_dropped_after_an_hour() -> None:
    world = World()
    world.turn("a")
    world.attempt(1, "received")
    world.turn("a")
    world.book.expire(START + 3601 * SECOND)
    assert (world.book.waiting, world.book.dropped) == (1, 0)
    world.book.expire(START + 3602 * SECOND)
    assert (world.book.waiting, world.book.dropped) == (0, 1)
    assert world.disk == {}


# Receiver names


def test_the_same_options_are_the_same_receiver_wherever_they_stand() -> None:
    first = Action(kind="webhook", options={"url": "https://h/a", "caFile": "c"})
    again = Action(
        kind="webhook", options={"caFile": "c", "url": "https://h/a"}, place=Location(9, 1)
    )
    other = Action(kind="webhook", options={"url": "https://h/b", "caFile": "c"})
    assert receiver_key(first) == receiver_key(again) != receiver_key(other)


def test_names_show_the_host_alone_and_tell_receivers_apart() -> None:
    urls = {
        "https://user:s3cret@hooks.example.org/services/s3cret?token=s3cret": (
            "webhook https://hooks.example.org ("
        ),
        "http://[::1]:9093/x": "webhook http://[::1]:9093 (",
        "no address s3cret": "webhook (",
        "http://h:port": "webhook (",
    }
    names = {url: receiver_name(Action(kind="webhook", options={"url": url})) for url in urls}
    assert all(names[url].startswith(begin) for url, begin in urls.items())
    assert not any("s3cret" in name for name in names.values())
    assert len(set(names.values())) == len(urls)
    assert receiver_name(Action(kind="log")) == "log"
