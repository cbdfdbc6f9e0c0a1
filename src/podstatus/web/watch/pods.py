"""The pods on the board, sent to somebody who watches: all there are, then what changes.

Nobody has a queue. Who has taken what there was is given all that changed since, each pod once and
as it is then: a slow client gets fewer states of a pod, and never an old one after a new one.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator

import msgspec

from podstatus.base.clock import Clock
from podstatus.kube.scalars.time import Time
from podstatus.observe.snapshot_cache import Board, Changed
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.watch.request import Place, WatchRequest
from podstatus.web.watch.selection import Selection, Tell
from podstatus.web.watch.sse import (
    HEARTBEAT,
    anew_body,
    gone_body,
    numbered,
    pod_body,
    reached,
    synced_body,
)

_PIECE = 32 * 2**10
"""Bytes that are sent at a time, about."""
_FRESH_NANOS = 2 * 1_000_000_000


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How often something is sent."""

    batch_seconds: float = 0.05
    """For changes that come soon after another: they are sent together."""
    beat_seconds: float = 15.0
    """Of silence, then a sign of life."""


class PodBodies:
    """Events of pods, made once for all who watch.

    What they say of a pod's health is as old as they are, which is twice the span at most; and so
    there are not more of them than pods that somebody was sent meanwhile.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._new: dict[int, bytes] = {}
        self._old: dict[int, bytes] = {}
        self._began = 0

    def body(self, number: int, pod: PodSummary) -> bytes:
        """The event of the pod as it is since the change with this number."""
        self._age()
        found = self._new.get(number) or self._old.get(number)
        if found is None:
            found = self._new[number] = pod_body(pod, Time.from_unix_nanos(self._clock.now()))
        return found

    def forget(self) -> None:
        """Nobody watches."""
        self._new, self._old = {}, {}

    def _age(self) -> None:
        now = self._clock.now()
        if abs(now - self._began) > 2 * _FRESH_NANOS:
            self.forget()
            self._began = now
        elif abs(now - self._began) > _FRESH_NANOS:
            self._new, self._old = {}, self._new
            self._began = now


class PodWatch:
    """What one client is sent."""

    def __init__(
        self, board: Board, wanted: WatchRequest, bodies: PodBodies, clock: Clock, pace: Pace
    ) -> None:
        self._board = board
        self._wanted = wanted
        self._bodies = bodies
        self._clock = clock
        self._pace = pace
        self._selection = Selection(wanted.filter, resumed=True)
        self._reached = 0
        """All changes up to this one have been sent."""
        self._told = 0
        """The number that the client was told."""

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """One after the other, without end. Never long silent."""
        came_back = self._wanted.after is not None
        after, is_first = self._begin(), True
        while True:
            changed = self._board.changed(after)
            if changed.anew:
                self._selection = Selection(self._wanted.filter, resumed=False)
            if changed.anew and came_back:
                yield self._event(anew_body(self._why_anew(after)))
            for piece in self._changes(changed):
                yield piece
            after = self._reached = changed.number
            if is_first or changed.anew:
                yield self._event(synced_body(resumed=not changed.anew))
            came_back, is_first = True, False
            while not await self._news(after):
                yield self._heartbeat()

    def _begin(self) -> int | None:
        after = self._wanted.after
        if after is None or after.life != self._board.life:
            return None
        self._reached = after.number
        return after.number

    def _why_anew(self, after: int | None) -> str:
        if after is None:
            return "what you have seen was of another life of this server; it was restarted"
        return "so much has happened since that not all of it is remembered"

    async def _news(self, after: int) -> bool:
        """Wait for changes, and a little longer for those that come with them."""
        try:
            async with asyncio.timeout(self._pace.beat_seconds):
                await self._board.wait(after)
        except TimeoutError:
            return False
        await self._clock.wait(self._pace.batch_seconds)
        return True

    def _changes(self, changed: Changed) -> Iterator[bytes]:
        """Their events, some at a time. What is last has the number of all."""
        events: list[bytes] = []
        size = 0
        for body in self._bodies_of(changed):
            if size > _PIECE:
                yield b"".join(events)
                events, size = [], 0
            events.append(self._event(body))
            size += len(body)
        if events:
            self._reached = changed.number
            events[-1] = self._event(body)
            yield b"".join(events)

    def _bodies_of(self, changed: Changed) -> Iterator[bytes]:
        """Those that are gone first: a pod that came back is there.

        A pod may have changed again since: it is sent as it is now, and once more when the later
        change has its turn, so that a client that is cut off meanwhile misses nothing.
        """
        for _, gone in changed.gone:
            if self._selection.gone(gone) is Tell.GONE:
                yield gone_body(gone.uid, gone.namespace, gone.name)
        now = Time.from_unix_nanos(self._clock.now())
        for uid in changed.pods:
            found = self._board.find(uid)
            if found is None:
                continue
            number, pod = found
            if number <= changed.number:
                self._reached = number
            match self._selection.pod(pod, now):
                case Tell.POD:
                    yield self._bodies.body(number, pod)
                case Tell.GONE:
                    yield gone_body(pod.uid, pod.namespace, pod.name)

    def _event(self, body: bytes) -> bytes:
        self._told = self._reached
        return numbered(Place(self._board.life, self._reached), body)

    def _heartbeat(self) -> bytes:
        """Who is told nothing, since other pods change, is told how far he has got."""
        if self._told == self._reached:
            return HEARTBEAT
        self._told = self._reached
        return HEARTBEAT + reached(Place(self._board.life, self._reached))
