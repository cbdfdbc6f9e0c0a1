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

from podstatus.cli.client.agent_client import NodePort, find_node
from podstatus.cli.client.agent_objects import AgentObjects
from podstatus.cli.client.api_server import (
    CannotAskError,
    Listed,
    Server,
    ServerAwayError,
    Shown,
    find_access,
    shown_kind,
    wall_time,
)
from podstatus.cli.client.query_client import QueryPort
from podstatus.cli.client.staleness import tell_silence
from podstatus.cli.completion import complete_kind, complete_pod
from podstatus.cli.get_alerts import KINDS, show_alerts
from podstatus.cli.render.describe_pod import describe_pod
from podstatus.cli.render.tables import Table, object_table, with_health
from podstatus.cli.terminal import print_table, show, show_json, show_yaml
from podstatus.client.rest.resources import PODS
from podstatus.client.rest.transport import Timeouts
from podstatus.client.sync_client import SyncClient
from podstatus.kube.encoding.codec import DecodeError, from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.unstructured import nested_str

Document = dict[str, Any]
Asked = Server | AgentObjects


class Output(StrEnum):
    """How objects are printed."""

    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class Source(StrEnum):
    """Who is asked."""

    AUTO = "auto"
    SERVER = "server"
    AGENT = "agent"


Kind = Annotated[
    str,
    typer.Argument(
        metavar="pods|node|events|alerts", help="What to show.", autocompletion=complete_kind
    ),
]
Name = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="One of them.", autocompletion=complete_pod)
]
PodKind = Annotated[str, typer.Argument(metavar="pod", help="What to describe: a pod.")]
PodName = Annotated[
    str, typer.Argument(metavar="NAME", help="Which one.", autocompletion=complete_pod)
]
RootDir = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The root-dir of the agent to ask (PODSTATUS_ROOT_DIR)."),
]
Kubeconfig = Annotated[
    Path | None, typer.Option(metavar="PATH", help="The cluster to ask instead of an agent's.")
]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", metavar="NAME", help="In this namespace.")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="In all of them.")]
Format = Annotated[
    Output | None,
    typer.Option("--output", "-o", metavar="wide|json|yaml|name", help="In this form."),
]
From = Annotated[
    Source,
    typer.Option(
        "--from",
        metavar="auto|server|agent",
        help="Whom to ask; auto: the API server, and the agent if that is away.",
    ),
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Go on with what changes.")]


def get(
    kind: Kind,
    name: Name = None,
    *,
    root_dir: RootDir = None,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    output: Format = None,
    watch: Watch = False,
    source: From = Source.AUTO,
) -> None:
    """Show pods, the node or events, as kubectl does, or alerts."""
    if kind.lower() in KINDS:
        where = None if all_namespaces else namespace
        _get_alerts(name, root_dir, kubeconfig, where, output, watch=watch, source=source)
        return
    if name is not None and (all_namespaces or watch):
        mistaken("one object is named; leave -A and --watch out")
    if watch and source is Source.AGENT:
        mistaken("get --watch asks the API server; the agent is asked by podstatus watch")

    try:
        shown = shown_kind(kind)
    except CannotAskError as error:
        mistaken(str(error))

    def show_them(asked: Asked) -> None:
        where = None if all_namespaces else namespace or asked.namespace
        if name is not None:
            listed = Listed([asked.get(shown, where, name)])
        else:
            listed = asked.list(shown, where)
        _print(shown, listed.items, output, namespaces=all_namespaces, one=name is not None)
        if not listed.items and output in (None, Output.WIDE):
            show(f"{_nothing(shown, where)}\n", err=True)
        if watch and isinstance(asked, Server):
            _follow(asked, shown, where, listed, output)

    with complaining():
        _ask(Source.SERVER if watch else source, root_dir, kubeconfig, show_them)


def _get_alerts(
    rule: str | None,
    root_dir: Path | None,
    kubeconfig: Path | None,
    namespace: str | None,
    output: Output | None,
    *,
    watch: bool,
    source: Source,
) -> None:
    if source is Source.SERVER or kubeconfig is not None:
        fail("alerts are the agent's: the API server knows none; leave --from and --kubeconfig out")
    if watch:
        fail("alerts cannot be watched; ask again, or have rules tell you")
    with complaining():
        asked = QueryPort(find_node(root_dir, os.environ))
        show_alerts(asked, rule, namespace, output, wall_time())


def describe(
    kind: PodKind,
    name: PodName,
    *,
    root_dir: RootDir = None,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = None,
    source: From = Source.AUTO,
) -> None:
    """Say all there is to say about a pod, with its events."""
    if kind not in ("pod", "pods", "po"):
        mistaken(f"{kind!r} cannot be described; a pod can; for all else use kubectl")

    def show_it(asked: Asked) -> None:
        where = namespace or asked.namespace
        document = asked.get(shown_kind("pods"), where, name)
        events = asked.events_of(where, name).items
        try:
            pod = from_document(document, Pod)
        except DecodeError as error:
            raise CannotAskError(f"the server's pod cannot be read: {error}") from error
        # Not those of a pod that had the same name before.
        ours = [e for e in events if nested_str(e, "involvedObject", "uid") in ("", pod.uid)]
        show(describe_pod(pod, ours, wall_time()))

    with complaining():
        _ask(source, root_dir, kubeconfig, show_it)


def _ask(
    source: Source, root_dir: Path | None, kubeconfig: Path | None, show_it: Callable[[Asked], None]
) -> None:
    """Show what whoever is to be asked says. Raises CannotAskError."""
    if source is Source.AGENT:
        if kubeconfig is not None:
            mistaken("--kubeconfig names an API server; leave it out to ask the agent")
        _ask_agent(find_node(root_dir, os.environ), show_it)
        return
    access = find_access(root_dir, kubeconfig, os.environ)
    try:
        with SyncClient(access, timeouts=Timeouts(connect_seconds=3.0)) as client:
            show_it(Server(client))
    except ServerAwayError as error:
        if source is Source.SERVER or kubeconfig is not None:
            raise
        node = find_node(root_dir, os.environ)
        who = "observer" if node.observes else "agent"
        show(f"podstatus: {error}; this is what the {who} knows\n", err=True)
        _ask_agent(node, show_it)


def _ask_agent(node: NodePort, show_it: Callable[[Asked], None]) -> None:
    tell_silence(node)
    show_it(AgentObjects(node))


@contextmanager
def complaining() -> Iterator[None]:
    """Tell in one line why something cannot be shown, and end the program."""
    try:
        yield
    except CannotAskError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # Whoever read it has seen enough; nobody is there for the rest, nor for a complaint.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(0) from None


def _print(
    shown: Shown,
    items: list[Document],
    output: Output | None,
    *,
    namespaces: bool = False,
    one: bool = False,
) -> None:
    match output:
        case Output.NAME:
            for item in items:
                show(f"{shown.printed.singular}/{item['metadata']['name']}\n")
        case Output.JSON:
            show_json(_whole(items, one=one))
        case Output.YAML:
            show_yaml(_whole(items, one=one))
        case _ if items:
            print_table(_table(shown, items, output, namespaces=namespaces))


def _table(
    shown: Shown, items: list[Document], output: Output | None, *, namespaces: bool
) -> Table:
    wide, namespaces = output is Output.WIDE, namespaces and shown.asked.namespaced
    now = wall_time()
    table = object_table(shown.printed, items, now, wide=wide, namespaces=namespaces)
    return with_health(table, items, now) if wide and shown.asked is PODS else table


def _follow(
    server: Server, shown: Shown, where: str | None, listed: Listed, output: Output | None
) -> None:
    namespaces, above = where is None, bool(listed.items)
    least = _table(shown, listed.items, output, namespaces=namespaces).widths()
    for document in server.changes(shown, where, listed.version):
        if output in (None, Output.WIDE):
            table = _table(shown, [document], output, namespaces=namespaces)
            print_table(table, headings=not above, least=least)
            above = True
            least = [max(pair) for pair in zip(least, table.widths(), strict=True)]
        else:
            _print(shown, [document], output, one=True)
        sys.stdout.flush()


def _whole(items: list[Document], *, one: bool) -> Document:
    if one:
        return items[0]
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def _nothing(shown: Shown, where: str | None) -> str:
    if where is None or not shown.asked.namespaced:
        return "No resources found"
    return f"No resources found in {where} namespace."


def fail(message: str, code: int = 1) -> NoReturn:
    """Say why, and end the program."""
    show(f"podstatus: {message}\n", err=True)
    raise typer.Exit(code)


def mistaken(message: str) -> NoReturn:
    """Say what is wrong with the command line, and end the program."""
    fail(message, 2)
