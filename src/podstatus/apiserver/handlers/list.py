"""Which objects a list is about, and in which pages it is handed out."""

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
from podstatus.apiserver.request.selectors import parse_field_selector, parse_label_selector
from podstatus.apiserver.storage.store import StorageKey, Store, StoredObject
from podstatus.apiserver.storage.watch_cache import ResourceVersionTooOldError, WatchCache

SelectionPredicate = Callable[[StoredObject], bool]

TOO_OLD = "The resourceVersion for the provided list is too old."
CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. Start a new "
    "list without it, or go on with the token in this answer: the rest of the list is then as it "
    "is by now, not as it was."
)


class ListPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some objects of a list."""

    objects: tuple[StoredObject, ...]
    version: int
    """Of the store, when the list was made."""
    token: str = ""
    """Where the next page begins; empty if there is none."""
    remaining: int | None = None


class ListHandler:
    """Lists what is in a store."""

    def __init__(self, store: Store, watch_cache: WatchCache) -> None:
        self._store = store
        self._watch_cache = watch_cache

    @property
    def version(self) -> int:
        """Of the store, now."""
        return self._store.version

    def page(self, request: HttpRequest, target: ResourcePath) -> ListPage:
        """What a request lists. Raises Problem."""
        asked = parse_list_options(request.query)
        request.number("timeoutSeconds")
        selects = build_predicate(request, target)
        if asked.version is not None and asked.version > self._store.version:
            raise too_large_resource_version(asked.version, self._store.version)
        if not asked.limit and not asked.token and not asked.exact:
            return ListPage(objects=self.all(target, selects), version=self._store.version)
        version, start = self._start(asked)
        objects = self._objects_at(target, version, start)
        return self._paginate(target, objects, version, start, asked.limit, selects)

    def all(self, target: ResourcePath, predicate: SelectionPredicate) -> tuple[StoredObject, ...]:
        """All objects that are selected, now."""
        return tuple(
            filter(predicate, self._store.objects(target.resource.plural, target.namespace))
        )

    def _start(self, options: ListOptions) -> tuple[int, StorageKey | None]:
        """The version that is listed, and after which key."""
        if options.token:
            version, key = decode_continue(options.token)
            return self._store.version if version == NEWEST else version, StorageKey(*key)
        if options.exact and options.version is not None:
            return options.version, None
        return self._store.version, None

    def _objects_at(
        self, target: ResourcePath, version: int, start: StorageKey | None
    ) -> list[StoredObject]:
        """The objects as they were, in the order of their keys."""
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
        target: ResourcePath,
        objects: list[StoredObject],
        version: int,
        start: StorageKey | None,
        limit: int,
        predicate: SelectionPredicate,
    ) -> ListPage:
        after = [stored for stored in objects if start is None or stored.key > start]
        chosen: list[StoredObject] = []
        for index, stored in enumerate(after):
            if limit and len(chosen) == limit:
                remaining = len(after) - index
                token = encode_continue(version, chosen[-1].key)
                whole = not _has_selector(target, predicate)
                return ListPage(
                    objects=tuple(chosen),
                    version=version,
                    token=token,
                    remaining=remaining if whole else None,
                )
            if predicate(stored):
                chosen.append(stored)
        return ListPage(objects=tuple(chosen), version=version)


def build_predicate(request: HttpRequest, target: ResourcePath) -> SelectionPredicate:
    """Whether an object is selected by a request. Raises Problem."""
    labels = parse_label_selector(request.query.get("labelSelector", ""))
    fields = parse_field_selector(request.query.get("fieldSelector", ""), target.resource)
    by_name = target.name
    if not labels.requirements and not fields.requirements and by_name is None:
        return _match_all

    def selects(stored: StoredObject) -> bool:
        return labels.matches(stored.labels) and fields.matches(stored.fields)

    return selects


def _match_all(_: StoredObject) -> bool:
    return True


def _has_selector(_: ResourcePath, predicate: SelectionPredicate) -> bool:
    return predicate is not _match_all
