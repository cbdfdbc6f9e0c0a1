"""Which request does what: list, get, watch, create, replace, patch, delete, and subresources."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from podstatus.apiserver.handlers.list import Lists
from podstatus.apiserver.handlers.responses import Views
from podstatus.apiserver.handlers.watch import begin, lines, too_old_line
from podstatus.apiserver.http import errors
from podstatus.apiserver.http.messages import Answer, Request, Stream, Tunnel, answer
from podstatus.apiserver.http.router import Target
from podstatus.apiserver.kubelet.kubelet_client import NodeClient
from podstatus.apiserver.kubelet.proxy import NodeEndpoints
from podstatus.apiserver.registry import Registry
from podstatus.apiserver.request.field_validation import (
    check_body,
    check_directive,
    check_kind,
    check_patched,
    check_patched_types,
    check_types,
    unhandled,
    warning_headers,
)
from podstatus.apiserver.request.patch import apply_patch_of, check_patch_type, shown_patch
from podstatus.apiserver.resources import PODS
from podstatus.apiserver.storage.store import Store
from podstatus.apiserver.storage.watch_cache import Hub, TooOldError
from podstatus.apiserver.strategies.base import DeleteOptions, Document
from podstatus.apiserver.strategies.managed_fields import manager_name
from podstatus.apiserver.strategies.pod.binding import bound_pod, check_binding_name
from podstatus.base.clock import Clock
from podstatus.kube.patch.schema import BINDING, DELETE_OPTIONS
from podstatus.kube.scalars.time import Time

Verb = Callable[[Request, Target], Awaitable[Answer | Stream]]


class Endpoints:
    """Answers requests about objects."""

    def __init__(
        self, store: Store, hub: Hub, registry: Registry, nodes: NodeClient, clock: Clock
    ) -> None:
        self._store = store
        self._hub = hub
        self._registry = registry
        self._clock = clock
        self._views = Views(clock)
        self._lists = Lists(store, hub)
        self._nodes = NodeEndpoints(registry, nodes)

    async def handle(self, request: Request, target: Target) -> Answer | Stream | Tunnel:
        """Do what the request asks of these objects. Raises Problem."""
        if target.name is None:
            return self._collection(request, target)
        if target.subresource in ("", "status", "resize"):
            return self._object(request, target)
        match request.method, target.subresource:
            case "GET", "log":
                return await self._nodes.log(request, target)
            case "GET" | "POST", "exec" | "attach":
                return self._nodes.talk(request, target)
            case "GET", "proxy":
                return await self._nodes.proxy(request, target)
            case "POST", "binding":
                return self._bind(request, target)
        raise errors.method_not_allowed()

    def _collection(self, request: Request, target: Target) -> Answer | Stream:
        match request.method:
            case "GET" if request.flag("watch"):
                return self._watch(request, target)
            case "GET":
                return self._views.list(request, target, self._lists.page(request, target))
            case "POST":
                return self._create(request, target)
            case "DELETE":
                return self._delete_all(request, target)
        raise errors.method_not_allowed()

    def _object(self, request: Request, target: Target) -> Answer:
        match request.method:
            case "GET":
                return self._views.one(request, target, self._registry.get(target))
            case "PUT":
                return self._replace(request, target)
            case "PATCH":
                return self._patch(request, target)
            case "DELETE" if not target.subresource:
                return self._delete(request, target)
        raise errors.method_not_allowed()

    def _watch(self, request: Request, target: Target) -> Stream:
        self._views.check(request)
        try:
            begun = begin(request, target, self._lists, self._hub)
        except TooOldError:
            return Stream(lines=too_old_line(request), end=_nothing)
        return Stream(
            lines=lines(begun, request, target, self._lists, self._views),
            end=lambda: self._hub.unwatch(target.resource.plural, begun.watcher),
        )

    def _create(self, request: Request, target: Target) -> Answer:
        document = _sent(request, target)
        warnings = _check_fields(request, target, "CreateOptions")
        created = self._registry.create(target, document, dry_run=_is_dry_run(request))
        return _warn(self._views.document(request, target, created, code=201), warnings)

    def _replace(self, request: Request, target: Target) -> Answer:
        document = _sent(request, target)
        warnings = _check_fields(request, target, "UpdateOptions")
        name = (document.get("metadata") or {}).get("name") or target.name
        if name != target.name:
            raise errors.bad_request(
                f"the name of the object ({name}) does not match the name on the URL "
                f"({target.name})"
            )
        given = document | {"metadata": (document.get("metadata") or {}) | {"name": name}}
        if target.namespace is not None:
            given["metadata"].setdefault("namespace", target.namespace)
        updated, is_new = self._registry.replace(
            target, given, manager=_manager(request), dry_run=_is_dry_run(request)
        )
        code = 201 if is_new else 200
        return _warn(self._views.document(request, target, updated, code=code), warnings)

    def _patch(self, request: Request, target: Target) -> Answer:
        check_patch_type(request.content_type)
        directive = check_directive(request.query.get("fieldValidation", ""), "PatchOptions")
        warnings: list[str] = []

        def patched(old: Document) -> Document:
            new = apply_patch_of(request.content_type, old, request.body, target.resource)
            check_patched_types(
                new,
                old,
                target.resource,
                lambda: shown_patch(request.content_type, request.body, new),
            )
            warnings[:] = check_patched(new, old, target.resource, directive)
            return new

        updated = self._registry.patch(
            target, patched, manager=_manager(request), dry_run=_is_dry_run(request)
        )
        return _warn(self._views.document(request, target, updated), warnings)

    def _bind(self, request: Request, target: Target) -> Answer:
        binding = request.document()
        check_types(request.body, BINDING, unhandled("Binding"))
        check_binding_name(target.name or "", binding)
        now = Time.from_unix_nanos(self._clock.now())
        self._registry.overwrite(target, lambda pod: bound_pod(pod, binding, now))
        return answer(_success(), 201)

    def _delete(self, request: Request, target: Target) -> Answer:
        last, gone = self._registry.delete(target, _delete_options(request))
        if target.resource is PODS or not gone:
            return self._views.document(request, target, last)
        details = {
            "name": target.name,
            "group": target.resource.group,
            "kind": target.resource.plural,
            "uid": last["metadata"]["uid"],
        }
        return answer(_success() | {"details": {k: v for k, v in details.items() if v}})

    def _delete_all(self, request: Request, target: Target) -> Answer:
        options = _delete_options(request)
        page = self._lists.page(request, target)
        for stored in page.objects:
            one = msgspec.structs.replace(
                target, namespace=stored.key.namespace or None, name=stored.key.name
            )
            self._registry.delete(one, options)
        return self._views.list(request, target, page)


def _nothing() -> None:
    """There is nobody to be told."""


def _sent(request: Request, target: Target) -> Document:
    """The object in the body, if it is of the right kind; one that does not say is taken for it."""
    document = request.document()
    resource = target.resource
    check_kind(request.body, document, resource.kind)
    kind = document.get("kind") or resource.kind
    version = document.get("apiVersion") or resource.api_version
    document |= {"kind": kind, "apiVersion": version}
    if (kind, version) != (resource.kind, resource.api_version):
        raise errors.bad_request(
            f"{version}, Kind={kind} in the body is not {resource.api_version}, "
            f"Kind={resource.kind} of the path"
        )
    return document


def _check_fields(request: Request, target: Target, options: str) -> list[str]:
    """The warnings about the fields in the body. Raises Problem."""
    directive = check_directive(request.query.get("fieldValidation", ""), options)
    if request.is_protobuf:
        return []
    resource = target.resource
    check_types(request.body, resource.schema, unhandled(resource.kind, resource.version))
    return check_body(request.body, target.resource, directive)


def _warn(given: Answer, warnings: list[str]) -> Answer:
    headers = warning_headers(warnings)
    return msgspec.structs.replace(given, headers={**given.headers, **headers})


def _is_dry_run(request: Request) -> bool:
    asked = request.query.get("dryRun")
    if asked not in (None, "All"):
        raise errors.bad_request(f"dryRun is {asked!r}; All is expected")
    return asked == "All"


def _manager(request: Request) -> str:
    return manager_name(request.query.get("fieldManager", ""), request.user_agent)


def _delete_options(request: Request) -> DeleteOptions:
    body: dict[str, Any] = request.document("options") if request.body else {}
    if request.body and not request.is_protobuf:
        check_types(request.body, DELETE_OPTIONS)
    grace = body.get("gracePeriodSeconds", request.number("gracePeriodSeconds"))
    preconditions, dry_run = body.get("preconditions") or {}, body.get("dryRun") or []
    return DeleteOptions(
        grace_period_seconds=grace,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        propagation_policy=body.get("propagationPolicy", request.query.get("propagationPolicy")),
        dry_run="All" in dry_run or _is_dry_run(request),
    )


def _success() -> Document:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
