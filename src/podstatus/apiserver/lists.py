"""Which objects a list is about, and in which pages it is handed out."""

import re
from collections.abc import Callable

import msgspec

from podstatus.apiserver import problems
from podstatus.apiserver.exchange import Request
from podstatus.apiserver.hub import Hub, TooOldError
from podstatus.apiserver.paging import continue_token, read_continue_token, read_limit
from podstatus.apiserver.paths import Target
from podstatus.apiserver.problems import Problem
from podstatus.apiserver.selectors import parse_field_selector, parse_label_selector
from podstatus.apiserver.store import Key, Store, Stored

Selects = Callable[[Stored], bool]

_VERSION = re.compile("[0-9]{1,19}")
TOO_OLD = "The provided continue parameter is too old to display a consistent list result."


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
        check_version(request)
        limit = read_limit(request.query.get("limit", "0"))
        token = request.query.get("continue", "")
        selects = selector(request, target)
        if not limit and not token:
            objects = self._store.objects(target.resource.plural, target.namespace)
            return Page(objects=tuple(filter(selects, objects)), version=self._store.version)
        version, start = self._store.version, None
        if token:
            version, key = read_continue_token(token)
            start = Key(*key)
        return self._cut(target, self._at(target, version), version, start, limit, selects)

    def all(self, target: Target, selects: Selects) -> tuple[Stored, ...]:
        """All objects that are selected, now."""
        return tuple(filter(selects, self._store.objects(target.resource.plural, target.namespace)))

    def _at(self, target: Target, version: int) -> list[Stored]:
        """The objects as they were, in the order of their keys."""
        plural = target.resource.plural
        now = {stored.key: stored for stored in self._store.objects(plural)}
        if version != self._store.version:
            try:
                now = self._hub.state_at(plural, version, now)
            except TooOldError:
                raise problems.expired(TOO_OLD) from None
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


def check_version(request: Request) -> int | None:
    """The resource version that is asked for. Raises Problem."""
    text = request.query.get("resourceVersion", "")
    if not text:
        return None
    if not _VERSION.fullmatch(text):
        raise Problem(
            400, "BadRequest", f'resourceVersion: Invalid value: "{text[:40]}": not a number'
        )
    return int(text)


def _everything(_: Stored) -> bool:
    return True


def _has_selector(_: Target, selects: Selects) -> bool:
    return selects is not _everything
