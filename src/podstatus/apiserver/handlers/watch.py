"""Watches: initial events, changes, bookmarks, timeouts."""

import asyncio
from collections.abc import AsyncGenerator

import msgspec

from podstatus.apiserver.handlers.list import ListHandler, SelectionPredicate, build_predicate
from podstatus.apiserver.handlers.responses import ResponseRenderer
from podstatus.apiserver.http import errors
from podstatus.apiserver.http.messages import HttpRequest
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.request.list_options import (
    check_watch_options,
    parse_resource_version,
    too_large_resource_version,
)
from podstatus.apiserver.storage.store import ADDED
from podstatus.apiserver.storage.watch_cache import (
    CacheWatcher,
    WatchCache,
    WatchCacheEvent,
    filter_change,
)

BOOKMARK_SECONDS = 60.0
"""The interval of bookmarks, about that of upstream's watch cache."""
MAX_WATCH_SECONDS = 1800 * 2
"""The maximum duration of a watch; upstream ends one after 30 to 60 minutes."""


class WatchSession(msgspec.Struct, frozen=True):
    """A started watch with its initial events."""

    initial: list[WatchCacheEvent]
    watcher: CacheWatcher
    version: int
    """The resource version when the watch started."""
    seconds: int
    bookmarks: bool
    initial_events_end: bool


def start_watch(
    request: HttpRequest, target: ResourcePath, lists: ListHandler, watch_cache: WatchCache
) -> WatchSession:
    """Collect the initial events and start to listen.

    Raises StatusError, ResourceVersionTooOldError.
    """
    check_watch_options(request.query)
    version = parse_resource_version(request.query.get("resourceVersion", ""))
    predicate = build_predicate(request, target)
    send_initial = request.flag("sendInitialEvents")
    seconds, bookmarks = request.number("timeoutSeconds"), request.flag("allowWatchBookmarks")
    if not version or send_initial:
        initial = [(ADDED, stored) for stored in lists.all(target, predicate)]
    elif version > lists.version:
        raise too_large_resource_version(version, lists.version)
    else:
        initial = _missed_events(target, watch_cache, version, predicate)
    watcher = watch_cache.watch(
        target.resource.plural,
        predicate,
        namespace=target.namespace,
        on_overflow=request.abort,
    )
    return WatchSession(
        initial,
        watcher,
        lists.version,
        seconds or MAX_WATCH_SECONDS,
        bookmarks,
        send_initial and bookmarks,
    )


def _missed_events(
    target: ResourcePath, watch_cache: WatchCache, version: int, predicate: SelectionPredicate
) -> list[WatchCacheEvent]:
    changes = watch_cache.events_since(target.resource.plural, version)
    events = [
        filter_change(change, predicate)
        for change in changes
        if target.namespace in (None, change.new.key.namespace)
    ]
    return [event for event in events if event is not None]


async def too_old_event(request: HttpRequest) -> AsyncGenerator[bytes, None]:
    """Yield a single ERROR event: the version is too old.

    Like upstream's watch cache, in a stream with status 200, not as a 410 response.
    """
    problem = errors.expired(f"too old resource version: {request.query['resourceVersion']}")
    yield msgspec.json.encode({"type": "ERROR", "object": problem.document}) + b"\n"


async def watch_lines(
    watch: WatchSession,
    request: HttpRequest,
    target: ResourcePath,
    lists: ListHandler,
    renderer: ResponseRenderer,
) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a watch, until it times out or is terminated."""
    first = True
    loop = asyncio.get_running_loop()
    end = loop.time() + watch.seconds
    pause = BOOKMARK_SECONDS if watch.bookmarks else MAX_WATCH_SECONDS
    for type_, stored in watch.initial:
        yield renderer.event(request, target, type_, stored, first=first)
        first = False
    if watch.initial_events_end:
        # The version at the start, not the current one: changes since then are still to be sent.
        yield _bookmark(target, watch.version, initial_events_end=True)
    while loop.time() < end:
        try:
            async with asyncio.timeout_at(min(end, loop.time() + pause)):
                events = await watch.watcher.next_events()
        except TimeoutError:
            if watch.bookmarks and not watch.watcher.has_events:
                yield _bookmark(target, lists.version)
            continue
        if not events:
            return
        lines = []
        for type_, stored in events:
            lines.append(renderer.event(request, target, type_, stored, first=first))
            first = False
        yield b"".join(lines)


def _bookmark(target: ResourcePath, version: int, *, initial_events_end: bool = False) -> bytes:
    """Encode a bookmark: all changes up to this version have been sent."""
    metadata: dict[str, object] = {"resourceVersion": str(version), "creationTimestamp": None}
    if initial_events_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    resource = target.resource
    bookmark = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return msgspec.json.encode({"type": "BOOKMARK", "object": bookmark}) + b"\n"
