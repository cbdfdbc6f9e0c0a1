"""A reflector that runs in virtual time, on a server in memory."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from podstatus.client.informer.list_watch_calls import ObjectSelection
from podstatus.client.informer.object_store import Added, ObjectChange, Removed, Updated
from podstatus.client.informer.reflector import Reflector
from podstatus.client.informer.reflector_timing import ReflectorPolicy
from podstatus.client.rest.resources import CONFIG_MAPS
from podstatus.kube.api_errors import UnavailableError
from podstatus.kube.objects.cluster import ConfigMap
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.client.informer.story import Story
from tests.support.fake_source import FakeSource
from tests.support.loops import in_background

DOWN = UnavailableError("the server is down")


class Scene:
    """A running reflector, its server, its clock, and the reported changes."""

    def __init__(
        self,
        source: FakeSource,
        *,
        chance: float = 0.0,
        page: int = 500,
        versions_grow: bool = True,
    ) -> None:
        self.source = source
        self.clock = FakeClock()
        self._story = Story[ConfigMap](versions_grow=versions_grow)
        self.changes: list[str] = []
        self.reflector = Reflector(
            source,
            ObjectSelection(CONFIG_MAPS),
            ConfigMap,
            self._hear,
            policy=ReflectorPolicy(page=page),
            clock=self.clock,
            random=lambda: chance,
        )

    def _hear(self, change: ObjectChange[ConfigMap]) -> None:
        match change:
            case Added(new):
                self.changes.append(f"+{new.metadata.name}")
            case Updated(_, new):
                self.changes.append(f"~{new.metadata.name}")
            case Removed(last):
                self.changes.append(f"-{last.metadata.name}")
        self._story(change)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with in_background(self.reflector.run()):
            await run_ready_tasks()
            yield
        assert self.reflector.counts.handler_failures == 0

    async def attempts(self, seconds: float, count: Callable[[], int]) -> list[int]:
        """Return when the count grew, in seconds from now, rounded to a tenth."""
        seen, times = count(), []
        for tenth in range(round(seconds * 10) + 1):
            if count() > seen:
                times.append(tenth)
                seen = count()
            await self.clock.advance(0.1)
        return times


def names(scene: Scene) -> list[str]:
    return sorted(found.metadata.name for found in scene.reflector.objects())
