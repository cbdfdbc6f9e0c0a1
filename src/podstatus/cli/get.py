"""`podstatus get` and `podstatus describe`, for machines without kubectl.

The API server is asked first: it has what nobody has taken yet, and what runs elsewhere. While it
is away, the agent is asked, which knows its own pods better than anybody.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from podstatus.cli.client.agent_client import AgentClient, find_agent
from podstatus.cli.client.agent_objects import AgentObjects
from podstatus.cli.client.api_server import (
    ObjectList,
    RequestError,
    ResourceKind,
    ServerObjects,
    ServerUnavailableError,
    current_time,
    find_client_config,
    find_resource_kind,
)
from podstatus.cli.client.query_client import QueryClient
from podstatus.cli.client.staleness import warn_if_stale
from podstatus.cli.completion import complete_kind, complete_pod
from podstatus.cli.get_alerts import ALERT_KINDS, print_alerts
from podstatus.cli.render.describe_pod import describe_pod
from podstatus.cli.render.tables import Table, object_table, with_health
from podstatus.cli.terminal import print_table, write, write_json, write_yaml
from podstatus.client.rest.resources import PODS
from podstatus.client.rest.transport import Timeouts
from podstatus.client.sync_client import SyncClient
from podstatus.kube.encoding.codec import DecodeError, from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.unstructured import nested_str

Document = dict[str, Any]
ObjectSource = ServerObjects | AgentObjects


class OutputFormat(StrEnum):
    """How objects are printed."""

    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class DataSource(StrEnum):
    """Who is asked."""

    AUTO = "auto"
    SERVER = "server"
    AGENT = "agent"


KindArgument = Annotated[
    str,
    typer.Argument(
        metavar="pods|node|events|alerts", help="What to show.", autocompletion=complete_kind
    ),
]
NameArgument = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="One of them.", autocompletion=complete_pod)
]
PodKindArgument = Annotated[str, typer.Argument(metavar="pod", help="What to describe: a pod.")]
PodNameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Which one.", autocompletion=complete_pod)
]
RootDirOption = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The root-dir of the agent to ask (PODSTATUS_ROOT_DIR)."),
]
KubeconfigOption = Annotated[
    Path | None, typer.Option(metavar="PATH", help="The cluster to ask instead of an agent's.")
]
NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", "-n", metavar="NAME", help="In this namespace.")
]
AllNamespacesOption = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="In all of them.")
]
OutputOption = Annotated[
    OutputFormat | None,
    typer.Option("--output", "-o", metavar="wide|json|yaml|name", help="In this form."),
]
FromOption = Annotated[
    DataSource,
    typer.Option(
        "--from",
        metavar="auto|server|agent",
        help="Whom to ask; auto: the API server, and the agent if that is away.",
    ),
]
WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="Go on with what changes.")]


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
    """Show pods, the node or events, as kubectl does, or alerts."""
    if kind.lower() in ALERT_KINDS:
        where = None if all_namespaces else namespace
        _get_alerts(name, root_dir, kubeconfig, where, output, watch=watch, source=source)
        return
    if name is not None and (all_namespaces or watch):
        usage_error("one object is named; leave -A and --watch out")
    if watch and source is DataSource.AGENT:
        usage_error("get --watch asks the API server; the agent is asked by podstatus watch")

    try:
        shown = find_resource_kind(kind)
    except RequestError as error:
        usage_error(str(error))

    def show_them(asked: ObjectSource) -> None:
        where = None if all_namespaces else namespace or asked.namespace
        if name is not None:
            listed = ObjectList([asked.get(shown, where, name)])
        else:
            listed = asked.list(shown, where)
        _print(shown, listed.items, output, namespaces=all_namespaces, one=name is not None)
        if not listed.items and output in (None, OutputFormat.WIDE):
            write(f"{_empty_message(shown, where)}\n", err=True)
        if watch and isinstance(asked, ServerObjects):
            _follow(asked, shown, where, listed, output)

    with report_errors():
        _query(DataSource.SERVER if watch else source, root_dir, kubeconfig, show_them)


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
        fail("alerts are the agent's: the API server knows none; leave --from and --kubeconfig out")
    if watch:
        fail("alerts cannot be watched; ask again, or have rules tell you")
    with report_errors():
        asked = QueryClient(find_agent(root_dir, os.environ))
        print_alerts(asked, rule, namespace, output, current_time())


def describe(
    kind: PodKindArgument,
    name: PodNameArgument,
    *,
    root_dir: RootDirOption = None,
    kubeconfig: KubeconfigOption = None,
    namespace: NamespaceOption = None,
    source: FromOption = DataSource.AUTO,
) -> None:
    """Say all there is to say about a pod, with its events."""
    if kind not in ("pod", "pods", "po"):
        usage_error(f"{kind!r} cannot be described; a pod can; for all else use kubectl")

    def show_it(asked: ObjectSource) -> None:
        where = namespace or asked.namespace
        document = asked.get(find_resource_kind("pods"), where, name)
        events = asked.pod_events(where, name).items
        try:
            pod = from_document(document, Pod)
        except DecodeError as error:
            raise RequestError(f"the server's pod cannot be read: {error}") from error
        # Not those of a pod that had the same name before.
        ours = [e for e in events if nested_str(e, "involvedObject", "uid") in ("", pod.uid)]
        write(describe_pod(pod, ours, current_time()))

    with report_errors():
        _query(source, root_dir, kubeconfig, show_it)


def _query(
    source: DataSource,
    root_dir: Path | None,
    kubeconfig: Path | None,
    print_objects: Callable[[ObjectSource], None],
) -> None:
    """Show what whoever is to be asked says. Raises CannotAskError."""
    if source is DataSource.AGENT:
        if kubeconfig is not None:
            usage_error("--kubeconfig names an API server; leave it out to ask the agent")
        _query_agent(find_agent(root_dir, os.environ), print_objects)
        return
    access = find_client_config(root_dir, kubeconfig, os.environ)
    try:
        with SyncClient(access, timeouts=Timeouts(connect_seconds=3.0)) as client:
            print_objects(ServerObjects(client))
    except ServerUnavailableError as error:
        if source is DataSource.SERVER or kubeconfig is not None:
            raise
        node = find_agent(root_dir, os.environ)
        who = "observer" if node.is_observer else "agent"
        write(f"podstatus: {error}; this is what the {who} knows\n", err=True)
        _query_agent(node, print_objects)


def _query_agent(agent: AgentClient, print_objects: Callable[[ObjectSource], None]) -> None:
    warn_if_stale(agent)
    print_objects(AgentObjects(agent))


@contextmanager
def report_errors() -> Iterator[None]:
    """Tell in one line why something cannot be shown, and end the program."""
    try:
        yield
    except RequestError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # Whoever read it has seen enough; nobody is there for the rest, nor for a complaint.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(0) from None


def _print(
    kind: ResourceKind,
    items: list[Document],
    output: OutputFormat | None,
    *,
    namespaces: bool = False,
    one: bool = False,
) -> None:
    match output:
        case OutputFormat.NAME:
            for item in items:
                write(f"{kind.printed_resource.singular}/{item['metadata']['name']}\n")
        case OutputFormat.JSON:
            write_json(_to_document(items, one=one))
        case OutputFormat.YAML:
            write_yaml(_to_document(items, one=one))
        case _ if items:
            print_table(_table(kind, items, output, namespaces=namespaces))


def _table(
    kind: ResourceKind, items: list[Document], output: OutputFormat | None, *, namespaces: bool
) -> Table:
    wide, namespaces = output is OutputFormat.WIDE, namespaces and kind.resource.namespaced
    now = current_time()
    table = object_table(kind.printed_resource, items, now, wide=wide, namespaces=namespaces)
    return with_health(table, items, now) if wide and kind.resource is PODS else table


def _follow(
    server: ServerObjects,
    kind: ResourceKind,
    namespace: str | None,
    listed: ObjectList,
    output: OutputFormat | None,
) -> None:
    namespaces, above = namespace is None, bool(listed.items)
    least = _table(kind, listed.items, output, namespaces=namespaces).widths()
    for document in server.watch(kind, namespace, listed.version):
        if output in (None, OutputFormat.WIDE):
            table = _table(kind, [document], output, namespaces=namespaces)
            print_table(table, headings=not above, min_widths=least)
            above = True
            least = [max(pair) for pair in zip(least, table.widths(), strict=True)]
        else:
            _print(kind, [document], output, one=True)
        sys.stdout.flush()


def _to_document(items: list[Document], *, one: bool) -> Document:
    if one:
        return items[0]
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def _empty_message(kind: ResourceKind, namespace: str | None) -> str:
    if namespace is None or not kind.resource.namespaced:
        return "No resources found"
    return f"No resources found in {namespace} namespace."


def fail(message: str, code: int = 1) -> NoReturn:
    """Say why, and end the program."""
    write(f"podstatus: {message}\n", err=True)
    raise typer.Exit(code)


def usage_error(message: str) -> NoReturn:
    """Say what is wrong with the command line, and end the program."""
    fail(message, 2)
