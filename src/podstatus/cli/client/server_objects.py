"""Read and watch objects of the API server for the commands."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from podstatus.apiserver import resources
from podstatus.base.system_time import wall_clock_ns
from podstatus.cli.client.request_errors import (
    NotFoundError,
    RequestError,
    ServerUnavailableError,
)
from podstatus.cli.program import suggested_command
from podstatus.client.rest.resources import EVENTS, NODES, PODS, ApiResource
from podstatus.client.rest.watch_events import BOOKMARK
from podstatus.client.token_client import TokenClient
from podstatus.kube.api_errors import ApiError, GoneError, RejectedError, UnavailableError
from podstatus.kube.scalars.time import Time
from podstatus.kube.unstructured import nested_str, nested_time

if TYPE_CHECKING:
    from podstatus.client.sync_client import SyncClient

Document = dict[str, Any]
_PAGE_SIZE = 500


class ResourceKind(msgspec.Struct, frozen=True):
    """A type of object that `get` supports."""

    resource: ApiResource
    printed_resource: resources.ResourceInfo

    @property
    def list_command(self) -> str:
        """The command that prints all objects of the type."""
        every = " -A" if self.resource.namespaced else ""
        return suggested_command(f"get {self.printed_resource.plural}{every}")


POD_KIND = ResourceKind(PODS, resources.PODS)
_EVENT_KIND = ResourceKind(EVENTS, resources.EVENTS)
_RESOURCE_KINDS = (POD_KIND, ResourceKind(NODES, resources.NODES), _EVENT_KIND)


def find_resource_kind(name: str) -> ResourceKind | None:
    """Return a type by its plural, singular or short name; None if it is not supported."""
    for kind in _RESOURCE_KINDS:
        printed = kind.printed_resource
        if name.lower() in (printed.plural, printed.singular, *printed.short_names):
            return kind
    return None


class Selectors(msgspec.Struct, frozen=True, kw_only=True):
    """A label selector and a field selector, as text; empty ones select everything."""

    labels: str = ""
    fields: str = ""


EVERYTHING = Selectors()


class ObjectList(msgspec.Struct, frozen=True):
    """Objects, and the resource version of the list."""

    items: list[Document]
    version: str = ""


class ServerObjects:
    """Objects of an API server. All methods raise RequestError."""

    def __init__(self, client: "SyncClient | TokenClient", *, namespace: str) -> None:
        self._client = client
        self.namespace = namespace
        """The namespace used when none is given."""

    def get(self, kind: ResourceKind, namespace: str | None, name: str) -> Document:
        """Return an object by name. Raises NotFoundError if it does not exist."""
        where = namespace if kind.resource.namespaced else None
        with _translate_errors(kind, where, name):
            document: Document = msgspec.json.decode(
                self._client.get(kind.resource, name, namespace=where)
            )
        return document

    def delete_pod(self, namespace: str, name: str, grace_seconds: int | None) -> Document:
        """Delete a pod and return it; `grace_seconds` None: its own grace period.

        Raises NotFoundError if it does not exist.
        """
        options: Document = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        with _translate_errors(POD_KIND, namespace, name):
            document: Document = msgspec.json.decode(
                self._client.delete(
                    PODS, name, namespace=namespace, options=msgspec.json.encode(options)
                )
            )
        return document

    def pod_uid(self, namespace: str, name: str) -> str:
        """Return the UID of a pod, empty if it does not exist."""
        try:
            pod = self.get(POD_KIND, namespace, name)
        except NotFoundError:
            return ""
        return nested_str(pod, "metadata", "uid")

    def list(
        self, kind: ResourceKind, namespace: str | None, selectors: Selectors = EVERYTHING
    ) -> ObjectList:
        """Return the objects of a namespace, None for all; events are sorted by time."""
        where = namespace if kind.resource.namespaced else None
        items: list[Document] = []
        token = version = ""
        try:
            while True:
                page = msgspec.json.decode(
                    self._client.list(
                        kind.resource,
                        namespace=where,
                        label_selector=selectors.labels,
                        field_selector=selectors.fields,
                        limit=_PAGE_SIZE,
                        continue_token=token,
                    )
                )
                items += page.get("items") or []
                version = nested_str(page, "metadata", "resourceVersion")
                token = nested_str(page, "metadata", "continue")
                if not token:
                    break
        except (ApiError, ValueError) as error:
            if isinstance(error, RejectedError) and selectors.fields:
                from podstatus.cli.client.field_selector import check_field_selector

                check_field_selector(selectors.fields, kind.printed_resource)
            raise _to_request_error(error) from error
        for item in items:  # list items lack their type; kubectl adds it, too
            item.update(
                kind=kind.printed_resource.kind, apiVersion=kind.printed_resource.api_version
            )
        return ObjectList(sort_events(items) if kind.resource is EVENTS else items, version)

    def events_about(self, kind: str, name: str, namespace: str | None) -> ObjectList:
        """Return the events about all objects of a kind with this name."""
        about = f"involvedObject.kind={kind},involvedObject.name={name}"
        return self.list(_EVENT_KIND, namespace, Selectors(fields=about))


class WatchableObjects(ServerObjects):
    """Objects of an API server that can also be watched."""

    def __init__(self, client: "SyncClient", *, namespace: str) -> None:
        super().__init__(client, namespace=namespace)
        self._watches = client

    def watch(
        self, kind: ResourceKind, namespace: str | None, selectors: Selectors, version: str
    ) -> Iterator[Document]:
        """Yield every object that changes after `version`, without end."""
        where = namespace if kind.resource.namespaced else None
        try:
            while True:
                watch = self._watches.watch(
                    kind.resource,
                    namespace=where,
                    label_selector=selectors.labels,
                    field_selector=selectors.fields,
                    resource_version=version,
                )
                with watch as events:
                    for event in events:
                        document = msgspec.json.decode(event.object)
                        version = nested_str(document, "metadata", "resourceVersion")
                        if event.type != BOOKMARK:
                            yield document
        except ApiError as error:
            raise RequestError(str(error)) from error


@contextmanager
def _translate_errors(kind: ResourceKind, namespace: str | None, name: str) -> Iterator[None]:
    """Translate the errors of a request for one object."""
    try:
        yield
    except GoneError as error:
        inside = f" in namespace {namespace}" if namespace else ""
        printed = kind.printed_resource
        raise NotFoundError(
            f"{printed.singular} {name!r} not found{inside}; see: {kind.list_command}"
        ) from error
    except (ApiError, ValueError) as error:
        raise _to_request_error(error) from error


def _to_request_error(error: ApiError | ValueError) -> RequestError:
    is_unavailable = isinstance(error, UnavailableError)
    return ServerUnavailableError(str(error)) if is_unavailable else RequestError(str(error))


def sort_events(events: Sequence[Document]) -> list[Document]:
    """Sort events by the time they were last observed, the newest last.

    Some times have microseconds and some have seconds: within a second, events are sorted by their
    last write.
    """

    def last(event: Document) -> tuple[Time, int]:
        time = (
            nested_time(event, "series", "lastObservedTime")
            or nested_time(event, "lastTimestamp")
            or nested_time(event, "eventTime")
            or nested_time(event, "metadata", "creationTimestamp")
        )
        version = nested_str(event, "metadata", "resourceVersion")
        return time.truncated(), int(version) if version.isdecimal() else 0

    return sorted(events, key=last)


def current_time() -> Time:
    """Return the current wall-clock time."""
    return Time.from_unix_nanos(wall_clock_ns())
