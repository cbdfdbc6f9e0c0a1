"""Writes the events of controllers."""

import logging
from collections.abc import Callable

from podstatus.apiserver.controllers.decide.events import EventText, controller_event, count_event
from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.resources import EVENTS
from podstatus.apiserver.storage.store import StorageError, StorageKey, Store
from podstatus.apiserver.strategies.base import Document
from podstatus.base.clock import Clock
from podstatus.kube.scalars.time import Time

logger = logging.getLogger(__name__)


class EventWriter:
    """Creates events, or counts their repetition. Best effort: a failed write is logged."""

    def __init__(self, store: Store, registry: Registry, clock: Clock, component: str) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._component = component

    def record(self, about: Document, text: EventText) -> None:
        """Record an event about the object of this reference."""
        now = Time.from_unix_nanos(self._clock.now())
        event = controller_event(about, text, self._component, now)
        self.write(event, lambda old: count_event(old, now))

    def write(self, event: Document, repeated: Callable[[Document], Document]) -> None:
        """Create the event; if it exists, overwrite it with what `repeated` returns."""
        metadata = event["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        target = ResourcePath(resource=EVENTS, namespace=namespace, name=name)
        try:
            if self._store.get(EVENTS.plural, StorageKey(namespace, name)) is None:
                self._registry.create(target, event)
            else:
                self._registry.overwrite(target, repeated)
        except (StatusError, StorageError) as error:
            logger.warning("cannot record event: event=%s/%s error=%s", namespace, name, error)
