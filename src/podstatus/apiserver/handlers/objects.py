"""Dispatch of object requests: list, get, watch, create, update, patch, delete, subresources."""

import msgspec

from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.handlers.list import ListHandler
from podstatus.apiserver.handlers.responses import ResponseRenderer
from podstatus.apiserver.handlers.watch import start_watch, too_old_event, watch_lines
from podstatus.apiserver.http import errors
from podstatus.apiserver.http.messages import (
    HttpRequest,
    Response,
    StreamResponse,
    WebSocketProxy,
    json_response,
)
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.kubelet.proxy import KubeletProxy
from podstatus.apiserver.request.field_validation import (
    check_body,
    check_directive,
    check_kind,
    check_patched,
    check_patched_types,
    check_types,
    decode_error_prefix,
    warning_headers,
)
from podstatus.apiserver.request.patch import apply_patch_body, check_patch_type, describe_patch
from podstatus.apiserver.resources import PODS
from podstatus.apiserver.service_accounts.mount import mount_service_account_token
from podstatus.apiserver.service_accounts.token_request import TokenRequestHandler
from podstatus.apiserver.storage.store import Store
from podstatus.apiserver.storage.watch_cache import ResourceVersionTooOldError, WatchCache
from podstatus.apiserver.strategies.base import Document
from podstatus.apiserver.strategies.managed_fields import manager_name
from podstatus.apiserver.strategies.pod.binding import bind_pod, check_binding_name
from podstatus.base.clock import Clock
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.cluster import DeleteOptions
from podstatus.kube.patch.schema import BINDING, DELETE_OPTIONS
from podstatus.kube.scalars.time import Time


class ObjectHandlers:
    def __init__(
        self,
        store: Store,
        watch_cache: WatchCache,
        registry: Registry,
        kubelet_proxy: KubeletProxy,
        token_requests: TokenRequestHandler,
        clock: Clock,
    ) -> None:
        self._store = store
        self._watch_cache = watch_cache
        self._registry = registry
        self._clock = clock
        self._renderer = ResponseRenderer(clock)
        self._list_handler = ListHandler(store, watch_cache)
        self._kubelet_proxy = kubelet_proxy
        self._token_requests = token_requests

    async def handle(
        self, request: HttpRequest, target: ResourcePath
    ) -> Response | StreamResponse | WebSocketProxy:
        """Handle a request for an object or a collection. Raises StatusError, StorageError."""
        if target.name is None:
            return self._handle_collection(request, target)
        if target.subresource in ("", "status", "resize"):
            return self._handle_object(request, target)
        match request.method, target.subresource:
            case "GET", "log":
                return await self._kubelet_proxy.log(request, target)
            case "GET" | "POST", "exec" | "attach":
                return self._kubelet_proxy.exec_or_attach(request, target)
            case "GET", "proxy":
                return await self._kubelet_proxy.proxy(request, target)
            case "POST", "binding":
                return self._bind(request, target)
            case "POST", "token":
                return self._token_requests.handle(request, target)
        raise errors.method_not_allowed()

    def _handle_collection(
        self, request: HttpRequest, target: ResourcePath
    ) -> Response | StreamResponse:
        match request.method:
            case "GET" if request.flag("watch"):
                return self._watch(request, target)
            case "GET":
                return self._renderer.list(
                    request, target, self._list_handler.page(request, target)
                )
            case "POST":
                return self._create(request, target)
            case "DELETE":
                return self._delete_all(request, target)
        raise errors.method_not_allowed()

    def _handle_object(self, request: HttpRequest, target: ResourcePath) -> Response:
        match request.method:
            case "GET":
                return self._renderer.stored_object(request, target, self._registry.get(target))
            case "PUT":
                return self._replace(request, target)
            case "PATCH":
                return self._patch(request, target)
            case "DELETE" if not target.subresource:
                return self._delete(request, target)
        raise errors.method_not_allowed()

    def _watch(self, request: HttpRequest, target: ResourcePath) -> StreamResponse:
        self._renderer.check_accept(request)
        try:
            session = start_watch(request, target, self._list_handler, self._watch_cache)
        except ResourceVersionTooOldError:
            return StreamResponse(lines=too_old_event(request))
        return StreamResponse(
            lines=watch_lines(session, request, target, self._list_handler, self._renderer),
            close=lambda: self._watch_cache.unwatch(target.resource.plural, session.watcher),
        )

    def _create(self, request: HttpRequest, target: ResourcePath) -> Response:
        document = _read_object(request, target)
        warnings = _check_fields(request, target, "CreateOptions")
        if target.resource is PODS:
            document = mount_service_account_token(document)
        created = self._registry.create(target, document, dry_run=_is_dry_run(request))
        return _with_warnings(self._renderer.document(request, target, created, code=201), warnings)

    def _replace(self, request: HttpRequest, target: ResourcePath) -> Response:
        document = _read_object(request, target)
        warnings = _check_fields(request, target, "UpdateOptions")
        name = (document.get("metadata") or {}).get("name") or target.name
        if name != target.name:
            raise errors.bad_request(
                f"the name of the object ({name}) does not match the name on the URL "
                f"({target.name})"
            )
        named = document | {"metadata": (document.get("metadata") or {}) | {"name": name}}
        if target.namespace is not None:
            named["metadata"].setdefault("namespace", target.namespace)
        updated, is_new = self._registry.replace(
            target, named, manager=_field_manager(request), dry_run=_is_dry_run(request)
        )
        code = 201 if is_new else 200
        return _with_warnings(
            self._renderer.document(request, target, updated, code=code), warnings
        )

    def _patch(self, request: HttpRequest, target: ResourcePath) -> Response:
        check_patch_type(request.content_type)
        directive = check_directive(request.query.get("fieldValidation", ""), "PatchOptions")
        warnings: list[str] = []

        def patched(old: Document) -> Document:
            new = apply_patch_body(request.content_type, old, request.body, target.resource)
            check_patched_types(
                new,
                old,
                target.resource,
                lambda: describe_patch(request.content_type, request.body, new),
            )
            warnings[:] = check_patched(new, old, target.resource, directive)
            return new

        updated = self._registry.patch(
            target, patched, manager=_field_manager(request), dry_run=_is_dry_run(request)
        )
        return _with_warnings(self._renderer.document(request, target, updated), warnings)

    def _bind(self, request: HttpRequest, target: ResourcePath) -> Response:
        binding = request.document()
        check_types(request.body, BINDING, decode_error_prefix("Binding"))
        check_binding_name(target.name or "", binding)
        now = Time.from_unix_nanos(self._clock.now())
        self._registry.overwrite(target, lambda pod: bind_pod(pod, binding, now))
        return json_response(_success_status(), 201)

    def _delete(self, request: HttpRequest, target: ResourcePath) -> Response:
        last, removed = self._registry.delete(target, _delete_options(request))
        if target.resource is PODS or not removed:
            return self._renderer.document(request, target, last)
        details = {
            "name": target.name,
            "group": target.resource.group,
            "kind": target.resource.plural,
            "uid": last["metadata"]["uid"],
        }
        return json_response(
            _success_status() | {"details": {k: v for k, v in details.items() if v}}
        )

    def _delete_all(self, request: HttpRequest, target: ResourcePath) -> Response:
        options = _delete_options(request)
        page = self._list_handler.page(request, target)
        for stored in page.objects:
            each = msgspec.structs.replace(
                target, namespace=stored.key.namespace or None, name=stored.key.name
            )
            self._registry.delete(each, options)
        return self._renderer.list(request, target, page)


def _read_object(request: HttpRequest, target: ResourcePath) -> Document:
    """Return the object in the body.

    A missing kind or apiVersion is that of the path. Raises StatusError (400) if they differ.
    """
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


def _check_fields(request: HttpRequest, target: ResourcePath, options: str) -> list[str]:
    """Return the warnings about the body's fields. Raises StatusError (400)."""
    directive = check_directive(request.query.get("fieldValidation", ""), options)
    if request.is_protobuf:
        return []
    resource = target.resource
    check_types(request.body, resource.schema, decode_error_prefix(resource.kind, resource.version))
    return check_body(request.body, target.resource, directive)


def _with_warnings(response: Response, warnings: list[str]) -> Response:
    headers = warning_headers(warnings)
    return msgspec.structs.replace(response, headers={**response.headers, **headers})


def _is_dry_run(request: HttpRequest) -> bool:
    value = request.query.get("dryRun")
    if value not in (None, "All"):
        raise errors.bad_request(f"dryRun is {value!r}; All is expected")
    return value == "All"


def _field_manager(request: HttpRequest) -> str:
    return manager_name(request.query.get("fieldManager", ""), request.user_agent)


def _delete_options(request: HttpRequest) -> DeleteOptions:
    options = DeleteOptions()
    if request.body:
        body = request.document("options")
        if not request.is_protobuf:
            check_types(request.body, DELETE_OPTIONS)
        options = from_document(body, DeleteOptions)
    grace, sent = request.number("gracePeriodSeconds"), options.grace_period_seconds
    return msgspec.structs.replace(
        options,
        grace_period_seconds=grace if sent is None else sent,
        dry_run=("All",) if _is_dry_run(request) else options.dry_run,
    )


def _success_status() -> Document:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
