"""The selection of objects and the `ListerWatcher` port of a reflector."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from podstatus.client.informer.decode import ObjectKey
from podstatus.client.rest.resources import ApiResource
from podstatus.client.rest.watch_events import WatchEvent


class ObjectSelection(msgspec.Struct, frozen=True):
    """The objects that a reflector lists and watches: `ObjectSelection(PODS, namespace="x")`."""

    resource: ApiResource
    namespace: str | None = None
    """None selects all namespaces."""
    label_selector: str = ""
    field_selector: str = ""

    def has(self, key: ObjectKey) -> bool:
        """Whether the key can belong to the selection; a server may return other objects."""
        if not self.resource.namespaced:
            return not key.namespace
        return bool(key.namespace) and self.namespace in (None, key.namespace)

    def __str__(self) -> str:
        where = "" if self.namespace is None else f" namespace={self.namespace}"
        selectors = ",".join(filter(None, (self.label_selector, self.field_selector)))
        return f"{self.resource.plural}{where}" + (f" selector={selectors}" if selectors else "")


class ListerWatcher(Protocol):
    """Lists and watches objects. Methods raise the errors of `podstatus.kube.api_errors`, and must
    not hang."""

    async def list(
        self,
        resource: ApiResource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> bytes:
        """Return one page of a list as JSON; the list must not be older than the request."""

    def watch(
        self,
        resource: ApiResource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        timeout_seconds: int = 300,
        idle_timeout_seconds: float = 90.0,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Yield the changes after `resource_version`, and bookmarks.

        Opening and iterating raise GoneError with code 410 if the version has expired, and
        UnavailableError if the stream was cut or idle for too long. The iteration ends without
        an error if the server ended the watch properly.
        """
