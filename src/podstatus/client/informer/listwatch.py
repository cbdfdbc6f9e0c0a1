"""What a reflector asks an API server for."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from podstatus.client.informer.decode import ObjectKey
from podstatus.client.rest.resources import ApiResource
from podstatus.client.rest.watch import WatchEvent


class ObjectSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects."""

    resource: ApiResource
    namespace: str | None = None
    """None for all of them."""
    label_selector: str = ""
    field_selector: str = ""

    def has(self, key: ObjectKey) -> bool:
        """Whether it can be the place of one of them; a server may show what was not asked for."""
        if not self.resource.namespaced:
            return not key.namespace
        return bool(key.namespace) and self.namespace in (None, key.namespace)

    def __str__(self) -> str:
        where = "" if self.namespace is None else f" namespace={self.namespace}"
        selectors = ",".join(filter(None, (self.label_selector, self.field_selector)))
        return f"{self.resource.plural}{where}" + (f" selector={selectors}" if selectors else "")


class ListerWatcher(Protocol):
    """Lists and watches. Both raise the errors of `podstatus.kube.errors`, and never hang."""

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
        """One page of a list that is not older than the question, as it came."""

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
        """The changes after a version, and bookmarks.

        Opening and iterating raise GoneError with code 410 if these are not known any more, and
        UnavailableError if the stream was cut or silent for so long. It just ends if the server
        ended it in peace.
        """
