"""Which API server the commands ask, and what they ask it."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from podstatus.agent.daemon.root_dir import Endpoints, RootDirError, read_endpoints
from podstatus.agent.settings.load import ROOT_DIR, default_root_dir
from podstatus.apiserver import resources
from podstatus.apiserver.state_dir import StateDirError, lock_holder
from podstatus.base.aio import wall_clock_ns
from podstatus.client.auth.config import ClientConfig
from podstatus.client.auth.load_config import in_cluster_config, kubeconfig_config
from podstatus.client.errors import KubeconfigError
from podstatus.client.rest.resources import EVENTS, NODES, PODS, ApiResource
from podstatus.client.rest.watch import BOOKMARK
from podstatus.client.sync_client import SyncClient
from podstatus.kube.errors import ApiError, GoneError, UnavailableError
from podstatus.kube.scalars.time import Time
from podstatus.kube.unstructured import nested_str, nested_time

Document = dict[str, Any]
_PAGE = 500


class CannotAskError(Exception):
    """There is no server to ask, or no answer; the message says what to do."""


class ServerAwayError(CannotAskError):
    """The API server, or the way to it, is broken."""


class Shown(msgspec.Struct, frozen=True):
    """A kind of object that can be shown."""

    asked: ApiResource
    printed: resources.ResourceInfo


_SHOWN = (
    Shown(PODS, resources.PODS),
    Shown(NODES, resources.NODES),
    Shown(EVENTS, resources.EVENTS),
)


def shown_kind(name: str) -> Shown:
    """The kind by any of its names. Raises CannotAskError."""
    for shown in _SHOWN:
        printed = shown.printed
        if name.lower() in (printed.plural, printed.singular, *printed.short_names):
            return shown
    known = ", ".join(shown.printed.plural for shown in _SHOWN)
    raise CannotAskError(
        f"{name!r} cannot be shown; there are {known}, alerts; for all else use kubectl"
    )


def find_access(
    root_dir: Path | None, kubeconfig: Path | None, environment: Mapping[str, str]
) -> ClientConfig:
    """The server of the kubeconfig, or of the agent in the root-dir. Raises CannotAskError."""
    try:
        if kubeconfig is not None:
            return kubeconfig_config(kubeconfig.expanduser())
        endpoints = running_endpoints(root_dir, environment, or_else=", or a --kubeconfig")
        if endpoints.kubeconfig:
            return kubeconfig_config(endpoints.kubeconfig)
        return in_cluster_config()
    except KubeconfigError as error:
        raise CannotAskError(str(error)) from error


def running_endpoints(
    root_dir: Path | None, environment: Mapping[str, str], *, or_else: str = ""
) -> Endpoints:
    """What the agent tells that runs in the root-dir. Raises CannotAskError."""
    if root_dir is None:
        root_dir = Path(environment.get(ROOT_DIR) or default_root_dir(environment))
    root_dir = root_dir.expanduser().absolute()
    try:
        endpoints = read_endpoints(root_dir)
        if endpoints is not None and lock_holder(root_dir) is not None:
            return endpoints
    except (StateDirError, RootDirError) as error:
        raise CannotAskError(str(error)) from error
    raise CannotAskError(
        f"no agent runs in {root_dir}; start one with: podstatus run --root-dir "
        f"{shlex.quote(str(root_dir))}, or name the root-dir of one that runs{or_else}"
    )


class Listed(msgspec.Struct, frozen=True):
    """Objects, and the version of the server's state they are from."""

    items: list[Document]
    version: str = ""


class Server:
    """What the commands need of a server. All methods raise CannotAskError."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client

    @property
    def namespace(self) -> str:
        """The one of those who name none."""
        return self._client.namespace

    def get(self, shown: Shown, namespace: str | None, name: str) -> Document:
        """One object."""
        where = namespace if shown.asked.namespaced else None
        try:
            document: Document = msgspec.json.decode(
                self._client.get(shown.asked, name, namespace=where)
            )
        except GoneError as error:
            inside = f" in namespace {where}" if where else ""
            told = f"{shown.printed.singular} {name!r} not found{inside}"
            raise CannotAskError(f"{told}; see: podstatus get {shown.printed.plural} -A") from error
        except (ApiError, ValueError) as error:
            raise _cannot_ask(error) from error
        return document

    def list(self, shown: Shown, namespace: str | None, field_selector: str = "") -> Listed:
        """All of a namespace, or of all namespaces if it is None; events by time."""
        where = namespace if shown.asked.namespaced else None
        items: list[Document] = []
        token = version = ""
        try:
            while True:
                page = msgspec.json.decode(
                    self._client.list(
                        shown.asked,
                        namespace=where,
                        field_selector=field_selector,
                        limit=_PAGE,
                        continue_token=token,
                    )
                )
                items += page.get("items") or []
                version = nested_str(page, "metadata", "resourceVersion")
                token = nested_str(page, "metadata", "continue")
                if not token:
                    break
        except (ApiError, ValueError) as error:
            raise _cannot_ask(error) from error
        for item in items:  # as kubectl: an object that stands alone says what it is
            item.update(kind=shown.printed.kind, apiVersion=shown.printed.api_version)
        return Listed(by_time(items) if shown.asked is EVENTS else items, version)

    def events_of(self, namespace: str, pod: str) -> Listed:
        """Events about the pods of a name."""
        about = f"involvedObject.kind=Pod,involvedObject.name={pod}"
        return self.list(shown_kind("events"), namespace, about)

    def changes(self, shown: Shown, namespace: str | None, version: str) -> Iterator[Document]:
        """The objects that change from then on; it never ends."""
        where = namespace if shown.asked.namespaced else None
        try:
            while True:
                watch = self._client.watch(shown.asked, namespace=where, resource_version=version)
                with watch as events:
                    for event in events:
                        document = msgspec.json.decode(event.object)
                        version = nested_str(document, "metadata", "resourceVersion")
                        if event.type != BOOKMARK:
                            yield document
        except ApiError as error:
            raise CannotAskError(str(error)) from error


def _cannot_ask(error: ApiError | ValueError) -> CannotAskError:
    away = isinstance(error, UnavailableError)
    return ServerAwayError(str(error)) if away else CannotAskError(str(error))


def by_time(events: Sequence[Document]) -> list[Document]:
    """Events, the one seen last at the end."""

    def last(event: Document) -> Time:
        return (
            nested_time(event, "series", "lastObservedTime")
            or nested_time(event, "lastTimestamp")
            or nested_time(event, "eventTime")
            or nested_time(event, "metadata", "creationTimestamp")
        )

    return sorted(events, key=last)


def wall_time() -> Time:
    """What time it is."""
    return Time.from_unix_nanos(wall_clock_ns())
