"""Objects from the agent, in place of an unreachable API server.

Pods of a node are complete, as the kubelet serves them; those of an observer are built from
summaries. Nodes and events are built from what the agent stores: enough for a table, but not
everything that the API server has.
"""

from podstatus.cli.client.https_client import AgentClient
from podstatus.cli.client.pod_from_summary import pod_from_summary
from podstatus.cli.client.query_api_client import QueryClient
from podstatus.cli.client.request_errors import NotFoundError
from podstatus.cli.client.server_objects import (
    EVERYTHING,
    Document,
    ObjectList,
    ResourceKind,
    Selectors,
)
from podstatus.client.rest.resources import EVENTS, PODS
from podstatus.kube.encoding.codec import to_document
from podstatus.kube.label_selector import parse_label_selector
from podstatus.kube.unstructured import nested_dict, nested_str
from podstatus.observe.ports import NodeSummary
from podstatus.web.v1.wire import TransitionView


class AgentObjects:
    """Objects of an agent, with the methods of ServerObjects. All raise RequestError."""

    namespace = "default"
    """The namespace used when none is given."""

    def __init__(self, agent: AgentClient) -> None:
        self._agent = agent
        self._query = QueryClient(agent)

    def get(self, kind: ResourceKind, namespace: str | None, name: str) -> Document:
        """Return an object by name."""
        for document in self.list(kind, namespace).items:
            if nested_str(document, "metadata", "name") == name:
                return document
        inside = f" in namespace {namespace}" if kind.resource.namespaced else ""
        raise NotFoundError(
            f"{kind.printed_resource.singular} {name!r} not found{inside} on the agent; "
            f"to see all: {kind.list_command} --from agent"
        )

    def list(
        self, kind: ResourceKind, namespace: str | None, selectors: Selectors = EVERYTHING
    ) -> ObjectList:
        """Return the objects of a namespace, None for all; events are sorted by time."""
        if kind.resource is PODS and self._agent.is_observer:
            items = [to_document(pod_from_summary(pod)) for pod in self._query.pods(namespace)]
        elif kind.resource is PODS:
            items = self._agent.pods(namespace)
        elif kind.resource is EVENTS:
            items = [_event(it) for it in self._query.events(namespace).transitions]
        else:
            items = [_node(node) for node in self._query.nodes().nodes]
        for item in items:
            item.update(
                kind=kind.printed_resource.kind, apiVersion=kind.printed_resource.api_version
            )
        return ObjectList(_select(items, kind, selectors))

    def events_about(self, kind: str, name: str, namespace: str | None) -> ObjectList:
        """Return the events about all pods with this name; the agent stores no others."""
        events = self._query.events(namespace).transitions if kind == "Pod" else ()
        return ObjectList([_event(event) for event in events if event.name == name])


def _select(items: list[Document], kind: ResourceKind, selectors: Selectors) -> list[Document]:
    """Select as the API server does. The caller has validated the label selector."""
    if selectors.labels:
        labels = parse_label_selector(selectors.labels)
        items = [item for item in items if labels.matches(nested_dict(item, "metadata", "labels"))]
    if not selectors.fields:
        return items
    # Imported here: the rules of every resource, which are rarely needed.
    from podstatus.apiserver.strategies.by_resource import selectable_fields
    from podstatus.cli.client.field_selector import check_field_selector

    fields = check_field_selector(selectors.fields, kind.printed_resource)
    plural = kind.printed_resource.plural
    return [item for item in items if fields.matches(selectable_fields(plural, item))]


def _event(transition: TransitionView) -> Document:
    """An Event with count 1: the history has an entry for each repetition."""
    about: Document = {
        "kind": "Pod",
        "namespace": transition.namespace,
        "name": transition.name,
        "uid": transition.uid,
    }
    if transition.subject:
        about["fieldPath"] = f"spec.containers{{{transition.subject}}}"
    return {
        "metadata": {
            "name": f"{transition.name}.{transition.id}",
            "namespace": transition.namespace,
            "creationTimestamp": transition.at,
        },
        "involvedObject": about,
        "type": transition.after,
        "reason": transition.reason,
        "message": transition.message,
        "count": 1,
        "firstTimestamp": transition.at,
        "lastTimestamp": transition.at,
    }


def _node(node: NodeSummary) -> Document:
    return {
        "metadata": {"name": node.name, "labels": dict(node.labels)},
        "status": {
            "capacity": dict(node.capacity),
            "allocatable": dict(node.allocatable),
            "conditions": [{"type": t, "status": s} for t, s in node.conditions.items()],
            "nodeInfo": {"kubeletVersion": node.version},
        },
    }
