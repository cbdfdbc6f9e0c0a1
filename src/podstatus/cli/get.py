"""`podstatus get` and `podstatus describe`, for machines without kubectl.

They query the API server first: it also has unscheduled pods and those of other nodes. While it is
unreachable they query the agent, which has the newest state of its own pods.
"""

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import structs

from podstatus.cli.client.agent_objects import AgentObjects
from podstatus.cli.client.https_client import AgentClient, find_agent
from podstatus.cli.client.query_api_client import QueryClient
from podstatus.cli.client.running_agent import (
    RequestError,
    ServerUnavailableError,
    find_client_config,
)
from podstatus.cli.client.server_objects import (
    ObjectList,
    ResourceKind,
    ServerObjects,
    current_time,
    find_resource_kind,
)
from podstatus.cli.client.staleness import warn_if_stale
from podstatus.cli.completion import complete_kind, complete_pod
from podstatus.cli.errors import fail, report_errors, usage_error
from podstatus.cli.get_alerts import ALERT_KINDS, print_alerts
from podstatus.cli.options import (
    AllNamespacesOption,
    NamespaceOption,
    OutputFormat,
    OutputOption,
    RootDirOption,
    with_bundle,
)
from podstatus.cli.render.describe_pod import describe_pod
from podstatus.cli.render.tables import Table, object_table, with_health
from podstatus.cli.terminal import TablePrinter, write, write_json, write_yaml
from podstatus.client.rest.http_transport import Timeouts
from podstatus.client.rest.resources import PODS
from podstatus.client.sync_client import SyncClient
from podstatus.kube.encoding.codec import DecodeError, from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.unstructured import nested_str

Document = dict[str, Any]
ObjectSource = ServerObjects | AgentObjects


class DataSource(StrEnum):
    """The sources of objects: API server, agent, or automatic."""

    AUTO = "auto"
    SERVER = "server"
    AGENT = "agent"


KindArgument = Annotated[
    str,
    typer.Argument(
        metavar="pods|nodes|events|alerts",
        help="Type of objects to display.",
        autocompletion=complete_kind,
    ),
]
NameArgument = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Display only this object.", autocompletion=complete_pod),
]
PodKindArgument = Annotated[
    str, typer.Argument(metavar="pod", help="Type of the object; must be pod.")
]
PodNameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the pod.", autocompletion=complete_pod)
]
KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Path to the kubeconfig of the cluster to query instead of the agent's API server.",
    ),
]
FromOption = Annotated[
    DataSource,
    typer.Option(
        "--from",
        metavar="auto|server|agent",
        help="Where to read the objects from; auto means the API server, or the agent if the API "
        "server is unreachable.",
    ),
]
WatchOption = Annotated[
    bool, typer.Option("--watch", "-w", help="After listing the objects, watch for changes.")
]


class SourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the source of objects."""

    root_dir: RootDirOption = None
    kubeconfig: KubeconfigOption = None
    namespace: NamespaceOption = None
    source: FromOption = DataSource.AUTO


@with_bundle
def get(
    kind: KindArgument,
    name: NameArgument = None,
    *,
    options: SourceOptions,
    all_namespaces: AllNamespacesOption = False,
    output: OutputOption = None,
    watch: WatchOption = False,
) -> None:
    """Display pods, nodes, events or alerts.

    The tables and output formats are the same as in kubectl get.
    """
    if kind.lower() in ALERT_KINDS:
        where = None if all_namespaces else options.namespace
        _get_alerts(name, where, output, options, watch=watch)
        return
    if name is not None and (all_namespaces or watch):
        usage_error("NAME cannot be combined with -A or --watch")
    if watch and options.source is DataSource.AGENT:
        usage_error("get --watch requires the API server; to watch the agent use podstatus watch")

    try:
        resource_kind = find_resource_kind(kind)
    except RequestError as error:
        usage_error(str(error))

    def print_objects(objects: ObjectSource) -> None:
        where = None if all_namespaces else options.namespace or objects.namespace
        if name is not None:
            listed = ObjectList([objects.get(resource_kind, where, name)])
        else:
            listed = objects.list(resource_kind, where)
        printer = _ObjectPrinter(resource_kind, output, namespaces=all_namespaces)
        printer.print(listed.items, one=name is not None)
        if not listed.items and output in (None, OutputFormat.WIDE):
            write(f"{_empty_message(resource_kind, where)}\n", err=True)
        if watch and isinstance(objects, ServerObjects):
            for document in objects.watch(resource_kind, where, listed.version):
                printer.print([document], one=True)

    with report_errors():
        _query(
            structs.replace(options, source=DataSource.SERVER) if watch else options, print_objects
        )


def _get_alerts(
    rule: str | None,
    namespace: str | None,
    output: OutputFormat | None,
    options: SourceOptions,
    *,
    watch: bool,
) -> None:
    if options.source is DataSource.SERVER or options.kubeconfig is not None:
        fail("only the agent has alerts, not the API server; leave --from and --kubeconfig out")
    if watch:
        fail("--watch does not support alerts; use actions of the rules for notifications")
    with report_errors():
        client = QueryClient(find_agent(options.root_dir, os.environ))
        print_alerts(client, rule, namespace, output, current_time())


@with_bundle
def describe(kind: PodKindArgument, name: PodNameArgument, *, options: SourceOptions) -> None:
    """Show details of a pod and its events."""
    if kind not in ("pod", "pods", "po"):
        usage_error(f"cannot describe {kind!r}, only pods; for other objects use kubectl")

    def print_details(objects: ObjectSource) -> None:
        where = options.namespace or objects.namespace
        document = objects.get(find_resource_kind("pods"), where, name)
        events = objects.pod_events(where, name).items
        try:
            pod = from_document(document, Pod)
        except DecodeError as error:
            raise RequestError(f"cannot decode the pod: {error}") from error
        # Without the events of an earlier pod of the same name.
        own = [e for e in events if nested_str(e, "involvedObject", "uid") in ("", pod.uid)]
        write(describe_pod(pod, own, current_time()))

    with report_errors():
        _query(options, print_details)


def _query(options: SourceOptions, print_objects: Callable[[ObjectSource], None]) -> None:
    """Query the source, with the agent as a fallback of `auto`. Raises RequestError."""
    root_dir, kubeconfig = options.root_dir, options.kubeconfig
    if options.source is DataSource.AGENT:
        if kubeconfig is not None:
            usage_error("--from agent cannot be combined with --kubeconfig")
        _query_agent(find_agent(root_dir, os.environ), print_objects)
        return
    access = find_client_config(root_dir, kubeconfig, os.environ)
    try:
        with SyncClient(access, timeouts=Timeouts(connect_seconds=3.0)) as client:
            print_objects(ServerObjects(client))
    except ServerUnavailableError as error:
        if options.source is DataSource.SERVER or kubeconfig is not None:
            raise
        agent = find_agent(root_dir, os.environ)
        fallback = "observer" if agent.is_observer else "agent"
        write(f"podstatus: {error}; showing the data of the {fallback}\n", err=True)
        _query_agent(agent, print_objects)


def _query_agent(agent: AgentClient, print_objects: Callable[[ObjectSource], None]) -> None:
    warn_if_stale(agent)
    print_objects(AgentObjects(agent))


class _ObjectPrinter:
    """Prints objects of one type in an output format; tables continue those above."""

    def __init__(
        self, kind: ResourceKind, output: OutputFormat | None, *, namespaces: bool
    ) -> None:
        self._kind = kind
        self._output = output
        self._namespaces = namespaces and kind.resource.namespaced
        self._printer = TablePrinter()

    def print(self, items: list[Document], *, one: bool = False) -> None:
        match self._output:
            case OutputFormat.NAME:
                for item in items:
                    write(f"{self._kind.printed_resource.singular}/{item['metadata']['name']}\n")
            case OutputFormat.JSON:
                write_json(_to_document(items, one=one))
            case OutputFormat.YAML:
                write_yaml(_to_document(items, one=one))
            case _ if items:
                self._printer.print(self._table(items))

    def _table(self, items: list[Document]) -> Table:
        now, wide = current_time(), self._output is OutputFormat.WIDE
        printed = self._kind.printed_resource
        table = object_table(printed, items, now, wide=wide, namespaces=self._namespaces)
        return with_health(table, items, now) if wide and self._kind.resource is PODS else table


def _to_document(items: list[Document], *, one: bool) -> Document:
    if one:
        return items[0]
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def _empty_message(kind: ResourceKind, namespace: str | None) -> str:
    if namespace is None or not kind.resource.namespaced:
        return "No resources found"
    return f"No resources found in {namespace} namespace."
