"""Read and print objects for `podstatus get` and `podstatus describe`.

The API server is queried first: it also has unscheduled pods and those of other nodes. While it is
unreachable the agent is queried, which has the newest state of its own pods.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from podstatus.cli.client.agent_objects import AgentObjects
from podstatus.cli.client.https_client import AgentClient, find_agent
from podstatus.cli.client.open_server import open_server
from podstatus.cli.client.request_errors import (
    NotFoundError,
    RequestError,
    ServerUnavailableError,
)
from podstatus.cli.client.server_objects import (
    POD_KIND,
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
from podstatus.cli.program import describe_pod_command, suggested_command, timeline_command
from podstatus.cli.render.tables import Table, object_table, with_health, with_labels, with_load
from podstatus.cli.styled_output import TablePrinter
from podstatus.cli.terminal import exit_with_reader, terminal_width, write
from podstatus.client.rest.resources import EVENTS, NODES, PODS
from podstatus.kube.encoding.codec import DecodeError, from_document
from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.unstructured import nested_str
from podstatus.observe.summary.health import PodHealth
from podstatus.observe.summary.node_load import NodeLoad
from podstatus.workers.shutdown.progress import OFF

T = TypeVar("T", bound=Wire)
Document = dict[str, Any]
ObjectSource = ServerObjects | AgentObjects


class ObjectQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that `get` prints."""

    kind: str
    names: tuple[str, ...] = ()
    """Empty for all objects that the selectors select."""
    all_namespaces: bool
    selectors: Selectors
    watch: bool
    labels: bool = False
    """Show the labels in tables."""


def get_objects(query: ObjectQuery, options: SourceOptions, output: OutputFormat | None) -> bool:
    """Print the objects, and with `watch` their changes, without end. Raises RequestError.

    Returns False if some of those that were named do not exist.
    """
    kind = _parse_kind(query.kind, "pods, nodes, events or alerts", options, "get")

    def print_objects(objects: ObjectSource) -> bool:
        where = None if query.all_namespaces else options.namespace or objects.namespace
        selectors = _named(query.names[0]) if query.watch and query.names else query.selectors
        named = _find(objects, kind, where, query.names)
        listed = (
            ObjectList(named)
            if query.names and not query.watch
            else objects.list(kind, where, selectors)
        )
        printer = _ObjectPrinter(kind, output, query, options)
        printer.print(listed.items, one=len(query.names) == 1 and bool(listed.items))
        if not listed.items and not query.names and output in (None, OutputFormat.WIDE):
            write(f"{_empty_message(kind, where)}\n", err=True)
        if query.watch and isinstance(objects, WatchableObjects):
            exit_with_reader()
            for document in objects.watch(kind, where, selectors, listed.version):
                printer.print([document], one=True)
        return len(named) == len(query.names)

    return _query(options, print_objects, watch=query.watch)


def _named(name: str) -> Selectors:
    return Selectors(fields=f"metadata.name={name}")


def _no_hint(namespace: str | None, name: str) -> str:  # noqa: ARG001
    return ""


def _history_hint(options: SourceOptions, namespace: str | None, name: str) -> str:
    """How to see what happened to a pod that does not exist; empty if it has no history."""
    if options.kubeconfig is not None or namespace is None:
        return ""
    try:
        agent = find_agent(options.root_dir, os.environ)
    except RequestError:  # without an agent there is no history
        return ""
    if not agent.has_history(namespace, name):
        return ""
    return f"; to see what happened to an earlier one: {timeline_command(namespace, name)}"


def _find(
    objects: ObjectSource,
    kind: ResourceKind,
    namespace: str | None,
    names: Sequence[str],
    hint: Callable[[str | None, str], str] = _no_hint,
) -> list[Document]:
    """Return the objects of these names; report those that do not exist if there are others.

    `hint` returns what to add to the report.
    """
    found = []
    for name in names:
        try:
            found.append(objects.get(kind, namespace, name))
        except NotFoundError as error:
            message = f"{error}{_events_hint(kind, namespace, name)}{hint(namespace, name)}"
            if len(names) == 1:
                raise NotFoundError(message) from error
            warn(message)
    return found


def _events_hint(kind: ResourceKind, namespace: str | None, name: str) -> str:
    """For the name of a pod in place of that of an event; empty for other types."""
    if kind.resource is not EVENTS or namespace is None:
        return ""
    return f"; for the events of a pod: {describe_pod_command(namespace, name)}"


def describe_objects(kind_name: str, names: Sequence[str], options: SourceOptions) -> bool:
    """Print the details of pods or nodes, and their events. Raises RequestError.

    Returns False if some of those that were named do not exist.
    """
    kind = _parse_kind(kind_name, "pods or nodes", options, "describe")
    if kind.resource not in (PODS, NODES):
        plural = kind.printed_resource.plural
        usage_error(
            f"cannot describe {plural}, only pods and nodes; to list them: "
            f"{suggested_command(f'get {plural}')}"
        )

    def print_details(objects: ObjectSource) -> bool:
        where = options.namespace or objects.namespace
        hint = partial(_history_hint, options) if kind.resource is PODS else _no_hint
        items = (
            _find(objects, kind, where, names, hint) if names else objects.list(kind, where).items
        )
        terminating = _terminating_pods(options) if kind.resource is PODS and items else {}
        loads = _node_loads(options) if kind.resource is NODES and items else {}
        for index, item in enumerate(items):
            text = (
                _describe_pod(objects, item, options, terminating)
                if kind.resource is PODS
                else _describe_node(objects, item, loads)
            )
            write(("\n\n" if index else "") + _fit_terminal(text))
        if not items and not names:
            write(f"{_empty_message(kind, where)}\n", err=True)
        return not names or len(items) == len(names)

    return _query(options, print_details)


def _fit_terminal(text: str) -> str:
    from podstatus.cli.render.described_fields import wrap_lines

    return wrap_lines(text, terminal_width()) if sys.stdout.isatty() else text


def _describe_pod(
    objects: ObjectSource,
    document: Document,
    options: SourceOptions,
    terminating: Mapping[PodUID, PodHealth],
) -> str:
    from podstatus.cli.render.describe_pod import describe_pod
    from podstatus.kube.objects.pod import Pod

    pod = _decode(document, Pod)
    events = objects.events_about("Pod", pod.name, pod.namespace).items
    # Without the events of an earlier pod of the same name.
    own = [e for e in events if nested_str(e, "involvedObject", "uid") in ("", pod.uid)]
    is_waiting = pod.status.phase == "Pending" and not pod.spec.node_name
    remedy = _drain_remedy(options) if is_waiting else ""
    return describe_pod(pod, own, current_time(), remedy, terminating.get(pod.uid))


def _terminating_pods(options: SourceOptions) -> Mapping[PodUID, PodHealth]:
    """The health of pods that the node of the agent terminates, which only the agent has."""
    if options.kubeconfig is not None:
        return {}
    from podstatus.cli.client.terminating_pods import terminating_pods

    return terminating_pods(options.root_dir)


def _drain_remedy(options: SourceOptions) -> str:
    """How to let the node of the agent accept pods again; empty if it does."""
    if options.kubeconfig is not None:
        return ""
    try:
        agent = find_agent(options.root_dir, os.environ)
        if agent.is_observer or agent.drain_progress().state == OFF:
            return ""
    except RequestError:  # the pods come from the API server
        return ""
    return (
        f"Node {agent.node} is drained; to let it accept pods again:\n"
        f"{suggested_command('drain --cancel')}"
    )


def _node_loads(options: SourceOptions) -> Mapping[str, NodeLoad]:
    """The load by node, which only an agent or observer has."""
    if options.kubeconfig is not None:
        return {}
    from podstatus.cli.client.node_loads import node_loads

    return node_loads(options.root_dir)


def _describe_node(objects: ObjectSource, document: Document, loads: Mapping[str, NodeLoad]) -> str:
    from podstatus.cli.render.describe_node import describe_node
    from podstatus.kube.objects.node import Node
    from podstatus.kube.objects.pod import Pod

    node = _decode(document, Node)
    name = node.metadata.name
    on_node = Selectors(fields=f"spec.nodeName={name}")
    pods = objects.list(POD_KIND, None, on_node).items
    events = objects.events_about("Node", name, None).items
    on_it = [_decode(pod, Pod) for pod in pods]
    return describe_node(node, on_it, events, current_time(), loads.get(name))


def _decode(document: Document, kind: type[T]) -> T:
    try:
        return from_document(document, kind)
    except DecodeError as error:
        raise RequestError(f"cannot decode the {kind.__name__.lower()}: {error}") from error


def _parse_kind(name: str, supported: str, options: SourceOptions, verb: str) -> ResourceKind:
    """Return the type; exit with code 2 if it is not supported."""
    kind = find_resource_kind(name)
    if kind is None:
        from podstatus.cli.unsupported_type import refuse_type

        root_dir, kubeconfig = options.root_dir, options.kubeconfig
        refuse_type(verb, name, supported=supported, root_dir=root_dir, kubeconfig=kubeconfig)
    return kind


def _query(
    options: SourceOptions, print_objects: Callable[[ObjectSource], bool], *, watch: bool = False
) -> bool:
    """Query the source, with the agent as a fallback of `auto`; only a server can be watched."""
    root_dir, kubeconfig = options.root_dir, options.kubeconfig
    if options.source is DataSource.AGENT:
        if kubeconfig is not None:
            usage_error("--from agent cannot be combined with --kubeconfig")
        return _query_agent(find_agent(root_dir, os.environ), print_objects)
    try:
        with open_server(root_dir, kubeconfig, os.environ, watch=watch) as objects:
            return print_objects(objects)
    except ServerUnavailableError as error:
        if options.source is DataSource.SERVER or kubeconfig is not None or watch:
            raise
        agent = find_agent(root_dir, os.environ)
        fallback = "observer" if agent.is_observer else "agent"
        warn(f"{error}; showing the data of the {fallback}")
        return _query_agent(agent, print_objects)


def _query_agent(agent: AgentClient, print_objects: Callable[[ObjectSource], bool]) -> bool:
    warn_if_stale(agent)
    return print_objects(AgentObjects(agent))


class _ObjectPrinter:
    """Prints objects of one type in an output format; tables continue those above."""

    def __init__(
        self,
        kind: ResourceKind,
        output: OutputFormat | None,
        query: ObjectQuery,
        options: SourceOptions,
    ) -> None:
        self._options = options
        self._kind = kind
        self._output = output
        self._labels = query.labels
        self._namespaces = query.all_namespaces and kind.resource.namespaced
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
        if wide and self._kind.resource is PODS:
            table = with_health(table, items, now, _terminating_pods(self._options))
        if wide and self._kind.resource is NODES:
            table = with_load(table, items, _node_loads(self._options))
        return with_labels(table, items) if self._labels else table


def _to_document(items: list[Document], *, one: bool) -> Document:
    if one:
        return items[0]
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def _empty_message(kind: ResourceKind, namespace: str | None) -> str:
    if namespace is None or not kind.resource.namespaced:
        return "No resources found"
    return f"No resources found in {namespace} namespace."
