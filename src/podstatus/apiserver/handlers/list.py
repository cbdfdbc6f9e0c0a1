"""Lists: selection, consistent versions and pagination."""

from collections.abc import Callable

import msgspec

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.messages import HttpRequest
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.request.continue_token import NEWEST, decode_continue, encode_continue
from podstatus.apiserver.request.list_options import (
    ListOptions,
    parse_list_options,
    too_large_resource_version,
)
from podstatus.apiserver.request.selector_parameters import (
    parse_field_selector,
    parse_label_selector,
)
from podstatus.apiserver.storage.store import StorageKey, Store, StoredObject
from podstatus.apiserver.storage.watch_cache import ResourceVersionTooOldError, WatchCache

SelectionPredicate = Callable[[StoredObject], bool]

TOO_OLD = "The resourceVersion for the provided list is too old."
CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class ListPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list, at one resource version."""

    objects: tuple[StoredObject, ...]
    version: int
    """The resource version of the list."""
    token: str = ""
    """The continue token of the next page; empty on the last page."""
    remaining: int | None = None


class ListHandler:
    def __init__(self, store: Store, watch_cache: WatchCache) -> None:
        self._store = store
        self._watch_cache = watch_cache

    @property
    def version(self) -> int:
        return self._store.version

    def page(self, request: HttpRequest, target: ResourcePath) -> ListPage:
        """Return the page that a request asks for. Raises StatusError."""
        options = parse_list_options(request.query)
        request.number("timeoutSeconds")
        predicate = build_predicate(request, target)
        if options.version is not None and options.version > self._store.version:
            raise too_large_resource_version(options.version, self._store.version)
        if not options.limit and not options.token and not options.exact:
            return ListPage(objects=self.all(target, predicate), version=self._store.version)
        version, start = self._start(options)
        objects = self._objects_at(target, version, start)
        return self._paginate(objects, version, start, options.limit, predicate)

    def all(self, target: ResourcePath, predicate: SelectionPredicate) -> tuple[StoredObject, ...]:
        """Return all selected objects, as they are now."""
        return tuple(
            filter(predicate, self._store.objects(target.resource.plural, target.namespace))
        )

    def _start(self, options: ListOptions) -> tuple[int, StorageKey | None]:
        """Return the version to list, and the key after which the page begins."""
        if options.token:
            version, key = decode_continue(options.token)
            return self._store.version if version == NEWEST else version, StorageKey(*key)
        if options.exact and options.version is not None:
            return options.version, None
        return self._store.version, None

    def _objects_at(
        self, target: ResourcePath, version: int, start: StorageKey | None
    ) -> list[StoredObject]:
        """Return the objects at a version, sorted by key.

        Raises StatusError (410) if the version is no longer cached.
        """
        plural = target.resource.plural
        now = {stored.key: stored for stored in self._store.objects(plural)}
        if version != self._store.version:
            try:
                now = self._watch_cache.state_at(plural, version, now)
            except ResourceVersionTooOldError:
                if start is None:
                    raise errors.expired(TOO_OLD) from None
                token = encode_continue(NEWEST, start)
                raise errors.expired(CONTINUE_TOO_OLD, token) from None
        keys = sorted(k for k in now if target.namespace in (None, k.namespace))
        return [now[key] for key in keys]

    def _paginate(
        self,
        objects: list[StoredObject],
        version: int,
        start: StorageKey | None,
        limit: int,
        predicate: SelectionPredicate,
    ) -> ListPage:
        candidates = [stored for stored in objects if start is None or stored.key > start]
        selected: list[StoredObject] = []
        for index, stored in enumerate(candidates):
            if limit and len(selected) == limit:
                remaining = len(candidates) - index
                token = encode_continue(version, selected[-1].key)
                is_complete = predicate is _match_all
                return ListPage(
                    objects=tuple(selected),
                    version=version,
                    token=token,
                    remaining=remaining if is_complete else None,
                )
            if predicate(stored):
                selected.append(stored)
        return ListPage(objects=tuple(selected), version=version)


def build_predicate(request: HttpRequest, target: ResourcePath) -> SelectionPredicate:
    """Return the predicate of the request's selectors. Raises StatusError (400)."""
    labels = parse_label_selector(request.query.get("labelSelector", ""))
    fields = parse_field_selector(request.query.get("fieldSelector", ""), target.resource)
    if not labels.requirements and not fields.requirements:
        return _match_all

    def selects(stored: StoredObject) -> bool:
        return labels.matches(stored.labels) and fields.matches(stored.fields)

    return selects


def _match_all(_: StoredObject) -> bool:
    return True
