"""Which objects a list is about, and in which pages it is handed out."""

from collections.abc import Callable

import msgspec

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.messages import Request
from podstatus.apiserver.http.router import Target
from podstatus.apiserver.request.continue_token import NEWEST, continue_token, read_continue_token
from podstatus.apiserver.request.list_options import ListOptions, read_list_options, too_large
from podstatus.apiserver.request.selectors import parse_field_selector, parse_label_selector
from podstatus.apiserver.storage.store import Key, Store, Stored
from podstatus.apiserver.storage.watch_cache import Hub, TooOldError

Selects = Callable[[Stored], bool]

TOO_OLD = "The resourceVersion for the provided list is too old."
CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. Start a new "
    "list without it, or go on with the token in this answer: the rest of the list is then as it "
    "is by now, not as it was."
)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some objects of a list."""

    objects: tuple[Stored, ...]
    version: int
    """Of the store, when the list was made."""
    token: str = ""
    """Where the next page begins; empty if there is none."""
    remaining: int | None = None


class Lists:
    """Lists what is in a store."""

    def __init__(self, store: Store, hub: Hub) -> None:
        self._store = store
        self._hub = hub

    @property
    def version(self) -> int:
        """Of the store, now."""
        return self._store.version

    def page(self, request: Request, target: Target) -> Page:
        """What a request lists. Raises Problem."""
        asked = read_list_options(request.query)
        request.number("timeoutSeconds")
        selects = selector(request, target)
        if asked.version is not None and asked.version > self._store.version:
            raise too_large(asked.version, self._store.version)
        if not asked.limit and not asked.token and not asked.exact:
            return Page(objects=self.all(target, selects), version=self._store.version)
        version, start = self._begin(asked)
        objects = self._at(target, version, start)
        return self._cut(target, objects, version, start, asked.limit, selects)

    def all(self, target: Target, selects: Selects) -> tuple[Stored, ...]:
        """All objects that are selected, now."""
        return tuple(filter(selects, self._store.objects(target.resource.plural, target.namespace)))

    def _begin(self, asked: ListOptions) -> tuple[int, Key | None]:
        """The version that is listed, and after which key."""
        if asked.token:
            version, key = read_continue_token(asked.token)
            return self._store.version if version == NEWEST else version, Key(*key)
        if asked.exact and asked.version is not None:
            return asked.version, None
        return self._store.version, None

    def _at(self, target: Target, version: int, start: Key | None) -> list[Stored]:
        """The objects as they were, in the order of their keys."""
        plural = target.resource.plural
        now = {stored.key: stored for stored in self._store.objects(plural)}
        if version != self._store.version:
            try:
                now = self._hub.state_at(plural, version, now)
            except TooOldError:
                if start is None:
                    raise errors.expired(TOO_OLD) from None
                token = continue_token(NEWEST, start)
                raise errors.expired(CONTINUE_TOO_OLD, token) from None
        keys = sorted(k for k in now if target.namespace in (None, k.namespace))
        return [now[key] for key in keys]

    def _cut(
        self,
        target: Target,
        objects: list[Stored],
        version: int,
        start: Key | None,
        limit: int,
        selects: Selects,
    ) -> Page:
        after = [stored for stored in objects if start is None or stored.key > start]
        chosen: list[Stored] = []
        for index, stored in enumerate(after):
            if limit and len(chosen) == limit:
                remaining = len(after) - index
                token = continue_token(version, chosen[-1].key)
                whole = not _has_selector(target, selects)
                return Page(
                    objects=tuple(chosen),
                    version=version,
                    token=token,
                    remaining=remaining if whole else None,
                )
            if selects(stored):
                chosen.append(stored)
        return Page(objects=tuple(chosen), version=version)


def selector(request: Request, target: Target) -> Selects:
    """Whether an object is selected by a request. Raises Problem."""
    labels = parse_label_selector(request.query.get("labelSelector", ""))
    fields = parse_field_selector(request.query.get("fieldSelector", ""), target.resource)
    by_name = target.name
    if not labels.requirements and not fields.requirements and by_name is None:
        return _everything

    def selects(stored: Stored) -> bool:
        return labels.matches(stored.labels) and fields.matches(stored.fields)

    return selects


def _everything(_: Stored) -> bool:
    return True


def _has_selector(_: Target, selects: Selects) -> bool:
    return selects is not _everything
