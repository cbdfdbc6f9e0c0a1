"""`podstatus get` and `podstatus describe`, for machines without kubectl.

They query the API server first: it also has unscheduled pods and those of other nodes. While it is
unreachable they query the agent, which has the newest state of its own pods.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

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
from podstatus.cli.get_alerts import ALERT_KINDS, print_alerts
from podstatus.cli.render.describe_pod import describe_pod
from podstatus.cli.render.tables import Table, object_table, with_health
from podstatus.cli.terminal import TablePrinter, fail, write, write_json, write_yaml
from podstatus.client.rest.http_transport import Timeouts
from podstatus.client.rest.resources import PODS
from podstatus.client.sync_client import SyncClient
from podstatus.kube.encoding.codec import DecodeError, from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.unstructured import nested_str

Document = dict[str, Any]
ObjectSource = ServerObjects | AgentObjects


class OutputFormat(StrEnum):
    """The output formats of objects."""

    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


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
RootDirOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Root directory of the running agent. Default: $PODSTATUS_ROOT_DIR, or the default of "
        "podstatus run.",
    ),
]
KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Path to the kubeconfig of the cluster to query instead of the agent's API server.",
    ),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Namespace to use. Default: default."),
]
AllNamespacesOption = Annotated[
    bool,
    typer.Option("--all-namespaces", "-A", help="Include the objects of all namespaces."),
]
OutputOption = Annotated[
    OutputFormat | None,
    typer.Option("--output", "-o", metavar="wide|json|yaml|name", help="Output format."),
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


def get(
    kind: KindArgument,
    name: NameArgument = None,
    *,
    root_dir: RootDirOption = None,
    kubeconfig: KubeconfigOption = None,
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    output: OutputOption = None,
    watch: WatchOption = False,
    source: FromOption = DataSource.AUTO,
) -> None:
    """Display pods, nodes, events or alerts.

    The tables and output formats are the same as in kubectl get.
    """
    if kind.lower() in ALERT_KINDS:
        where = None if all_namespaces else namespace
        _get_alerts(name, root_dir, kubeconfig, where, output, watch=watch, source=source)
        return
    if name is not None and (all_namespaces or watch):
        usage_error("NAME cannot be combined with -A or --watch")
    if watch and source is DataSource.AGENT:
        usage_error("get --watch requires the API server; to watch the agent use podstatus watch")

    try:
        resource_kind = find_resource_kind(kind)
    except RequestError as error:
        usage_error(str(error))

    def print_objects(objects: ObjectSource) -> None:
        where = None if all_namespaces else namespace or objects.namespace
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
        _query(DataSource.SERVER if watch else source, root_dir, kubeconfig, print_objects)


def _get_alerts(
    rule: str | None,
    root_dir: Path | None,
    kubeconfig: Path | None,
    namespace: str | None,
    output: OutputFormat | None,
    *,
    watch: bool,
    source: DataSource,
) -> None:
    if source is DataSource.SERVER or kubeconfig is not None:
        fail("only the agent has alerts, not the API server; leave --from and --kubeconfig out")
    if watch:
        fail("--watch does not support alerts; use actions of the rules for notifications")
    with report_errors():
        client = QueryClient(find_agent(root_dir, os.environ))
        print_alerts(client, rule, namespace, output, current_time())


def describe(
    kind: PodKindArgument,
    name: PodNameArgument,
    *,
    root_dir: RootDirOption = None,
    kubeconfig: KubeconfigOption = None,
    namespace: NamespaceOption = None,
    source: FromOption = DataSource.AUTO,
) -> None:
    """Show details of a pod and its events."""
    if kind not in ("pod", "pods", "po"):
        usage_error(f"cannot describe {kind!r}, only pods; for other objects use kubectl")

    def print_details(objects: ObjectSource) -> None:
        where = namespace or objects.namespace
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
        _query(source, root_dir, kubeconfig, print_details)


def _query(
    source: DataSource,
    root_dir: Path | None,
    kubeconfig: Path | None,
    print_objects: Callable[[ObjectSource], None],
) -> None:
    """Query the source, with the agent as a fallback of `auto`. Raises RequestError."""
    if source is DataSource.AGENT:
        if kubeconfig is not None:
            usage_error("--from agent cannot be combined with --kubeconfig")
        _query_agent(find_agent(root_dir, os.environ), print_objects)
        return
    access = find_client_config(root_dir, kubeconfig, os.environ)
    try:
        with SyncClient(access, timeouts=Timeouts(connect_seconds=3.0)) as client:
            print_objects(ServerObjects(client))
    except ServerUnavailableError as error:
        if source is DataSource.SERVER or kubeconfig is not None:
            raise
        agent = find_agent(root_dir, os.environ)
        fallback = "observer" if agent.is_observer else "agent"
        write(f"podstatus: {error}; showing the data of the {fallback}\n", err=True)
        _query_agent(agent, print_objects)


def _query_agent(agent: AgentClient, print_objects: Callable[[ObjectSource], None]) -> None:
    warn_if_stale(agent)
    print_objects(AgentObjects(agent))


@contextmanager
def report_errors() -> Iterator[None]:
    """Print a RequestError in one line and exit; exit on Ctrl-C and on a closed pipe."""
    try:
        yield
    except RequestError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. Prevent an error from the flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(0) from None


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


def usage_error(message: str) -> NoReturn:
    """Print an error of the command line and exit with code 2."""
    fail(message, 2)
