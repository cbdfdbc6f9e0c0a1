"""Read and print objects for `podstatus get` and `podstatus describe`.

The API server is queried first: it also has unscheduled pods and those of other nodes. While it is
unreachable the agent is queried, which has the newest state of its own pods.
"""

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from podstatus.cli.client.agent_objects import AgentObjects
from podstatus.cli.client.https_client import AgentClient, find_agent
from podstatus.cli.client.open_server import open_server
from podstatus.cli.client.request_errors import RequestError, ServerUnavailableError
from podstatus.cli.client.server_objects import (
    ObjectList,
    ResourceKind,
    Selectors,
    ServerObjects,
    WatchableObjects,
    current_time,
    find_resource_kind,
)
from podstatus.cli.client.staleness import warn_if_stale
from podstatus.cli.document_output import write_json, write_yaml
from podstatus.cli.errors import usage_error, warn
from podstatus.cli.options import DataSource, OutputFormat, SourceOptions
from podstatus.cli.render.tables import Table, object_table, with_health
from podstatus.cli.styled_output import TablePrinter
from podstatus.cli.terminal import terminal_width, write
from podstatus.client.rest.resources import NODES, PODS
from podstatus.kube.encoding.codec import DecodeError, from_document
from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.unstructured import nested_str

T = TypeVar("T", bound=Wire)
Document = dict[str, Any]
ObjectSource = ServerObjects | AgentObjects


class ObjectQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that `get` prints."""

    kind: str
    name: str | None
    all_namespaces: bool
    selectors: Selectors
    watch: bool


def get_objects(query: ObjectQuery, options: SourceOptions, output: OutputFormat | None) -> None:
    """Print the objects, and with `watch` their changes, without end. Raises RequestError."""
    kind = _parse_kind(query.kind, "pods, nodes, events or alerts")

    def print_objects(objects: ObjectSource) -> None:
        where = None if query.all_namespaces else options.namespace or objects.namespace
        if query.name is not None:
            listed = ObjectList([objects.get(kind, where, query.name)])
        else:
            listed = objects.list(kind, where, query.selectors)
        printer = _ObjectPrinter(kind, output, namespaces=query.all_namespaces)
        printer.print(listed.items, one=query.name is not None)
        if not listed.items and output in (None, OutputFormat.WIDE):
            write(f"{_empty_message(kind, where)}\n", err=True)
        if query.watch and isinstance(objects, WatchableObjects):
            for document in objects.watch(kind, where, query.selectors, listed.version):
                printer.print([document], one=True)

    _query(options, print_objects, watch=query.watch)


def describe_objects(kind_name: str, name: str | None, options: SourceOptions) -> None:
    """Print the details of pods or nodes, and their events. Raises RequestError."""
    kind = _parse_kind(kind_name, "pods or nodes, as in: podstatus describe pod NAME")
    if kind.resource not in (PODS, NODES):
        plural = kind.printed_resource.plural
        usage_error(f"cannot describe {plural}, only pods and nodes; see: podstatus get {plural}")

    def print_details(objects: ObjectSource) -> None:
        where = options.namespace or objects.namespace
        items = (
            objects.list(kind, where).items if name is None else [objects.get(kind, where, name)]
        )
        describe = _describe_pod if kind.resource is PODS else _describe_node
        for index, item in enumerate(items):
            write(("\n\n" if index else "") + _fit_terminal(describe(objects, item)))
        if not items:
            write(f"{_empty_message(kind, where)}\n", err=True)

    _query(options, print_details)


def _fit_terminal(text: str) -> str:
    from podstatus.cli.render.described_fields import wrap_lines

    return wrap_lines(text, terminal_width()) if sys.stdout.isatty() else text


def _describe_pod(objects: ObjectSource, document: Document) -> str:
    from podstatus.cli.render.describe_pod import describe_pod
    from podstatus.kube.objects.pod import Pod

    pod = _decode(document, Pod)
    events = objects.events_about("Pod", pod.name, pod.namespace).items
    # Without the events of an earlier pod of the same name.
    own = [e for e in events if nested_str(e, "involvedObject", "uid") in ("", pod.uid)]
    return describe_pod(pod, own, current_time())


def _describe_node(objects: ObjectSource, document: Document) -> str:
    from podstatus.cli.render.describe_node import describe_node
    from podstatus.kube.objects.node import Node
    from podstatus.kube.objects.pod import Pod

    node = _decode(document, Node)
    name = node.metadata.name
    on_node = Selectors(fields=f"spec.nodeName={name}")
    pods = objects.list(find_resource_kind("pods"), None, on_node).items
    events = objects.events_about("Node", name, None).items
    return describe_node(node, [_decode(pod, Pod) for pod in pods], events, current_time())


def _decode(document: Document, kind: type[T]) -> T:
    try:
        return from_document(document, kind)
    except DecodeError as error:
        raise RequestError(f"cannot decode the {kind.__name__.lower()}: {error}") from error


def _parse_kind(name: str, supported: str) -> ResourceKind:
    try:
        return find_resource_kind(name, supported)
    except RequestError as error:
        usage_error(str(error))


def _query(
    options: SourceOptions, print_objects: Callable[[ObjectSource], None], *, watch: bool = False
) -> None:
    """Query the source, with the agent as a fallback of `auto`; only a server can be watched."""
    root_dir, kubeconfig = options.root_dir, options.kubeconfig
    if options.source is DataSource.AGENT:
        if kubeconfig is not None:
            usage_error("--from agent cannot be combined with --kubeconfig")
        _query_agent(find_agent(root_dir, os.environ), print_objects)
        return
    try:
        with open_server(root_dir, kubeconfig, os.environ, watch=watch) as objects:
            print_objects(objects)
    except ServerUnavailableError as error:
        if options.source is DataSource.SERVER or kubeconfig is not None or watch:
            raise
        agent = find_agent(root_dir, os.environ)
        fallback = "observer" if agent.is_observer else "agent"
        warn(f"{error}; showing the data of the {fallback}")
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
