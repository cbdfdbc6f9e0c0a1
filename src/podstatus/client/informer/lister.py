"""Read a full list, page by page."""

from collections.abc import Callable
from typing import Generic

import msgspec

from podstatus.client.informer.decode import ObjectKey, ObjectState, T, read_item
from podstatus.client.informer.list_watch_calls import ListerWatcher, ObjectSelection
from podstatus.client.informer.object_store import ListResult
from podstatus.client.informer.resource_version import ResourceVersion
from podstatus.client.informer.transform import Transform
from podstatus.kube.api_errors import GoneError, UnavailableError

_MAX_PAGES = 10_000
_MAX_BYTES = 1 << 30
"""Limit on the size of all pages. The list of a cluster with 100,000 pods is smaller."""


class Lister(Generic[T]):
    """Lists the objects of a selection, in pages."""

    def __init__(
        self,
        source: ListerWatcher,
        selection: ObjectSelection,
        kind: type[T] | Transform[T],
        *,
        page: int,
        max_objects: int,
    ) -> None:
        self._source = source
        self._selection = selection
        self._kind = kind
        self._page = page
        self._max_objects = max_objects

    async def read(self, cached: Callable[[ObjectKey], T | None]) -> ListResult[T]:
        """Return all objects at one current version; unchanged `cached` ones are not decoded.

        If the continue token expires (410), the list is repeated in one piece. Raises ApiError.
        """
        try:
            return await self._list(cached, self._page)
        except GoneError as error:
            if error.code != 410:
                raise
        return await self._list(cached, 0)

    async def _list(self, cached: Callable[[ObjectKey], T | None], limit: int) -> ListResult[T]:
        items: list[ObjectState[T]] = []
        undecodable, unidentified, size, token = 0, 0, 0, ""
        for _ in range(_MAX_PAGES):
            body = await self._request_page(limit, token)
            size += len(body)
            page = _read_page(body)
            for data in page.items or ():
                item = read_item(data, self._kind, cached)
                if item is not None and not self._selection.has(item.key):
                    item = None
                if item is not None:
                    items.append(item)
                undecodable += item is None or item.object is None
                unidentified += item is None
            self._check_size(len(items), size)
            before, token = token, page.metadata.continue_token or ""
            if not token:
                version = ResourceVersion.parse(page.metadata.resource_version or "")
                return ListResult(version, items, undecodable, is_whole=not unidentified)
            if token == before:
                raise UnavailableError("the list is endless: the server repeats a continue token")
        raise UnavailableError(f"the list is endless: it has more than {_MAX_PAGES} pages")

    def _check_size(self, items: int, size: int) -> None:
        if items > self._max_objects:
            raise UnavailableError(f"the list has more than {self._max_objects} objects")
        if size > _MAX_BYTES:
            raise UnavailableError(f"the list has more than {_MAX_BYTES >> 20} MiB")

    async def _request_page(self, limit: int, token: str) -> bytes:
        selection = self._selection
        return await self._source.list(
            selection.resource,
            namespace=selection.namespace,
            label_selector=selection.label_selector,
            field_selector=selection.field_selector,
            limit=limit,
            continue_token=token,
        )


class _PageMetadata(msgspec.Struct, frozen=True):
    resource_version: str | None = msgspec.field(default=None, name="resourceVersion")
    continue_token: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct, frozen=True):
    metadata: _PageMetadata
    items: tuple[msgspec.Raw, ...] | None
    """Null for an empty list, as Go writes it; missing if the response is not a list."""
    kind: str = ""


_DECODER = msgspec.json.Decoder(_Page)


def _read_page(data: bytes) -> _Page:
    try:
        page = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UnavailableError(f"the response is not a list: {error}") from error
    if page.kind and not page.kind.endswith("List"):
        raise UnavailableError(f"the response is not a list: its kind is {page.kind[:100]!r}")
    return page
