"""What the agent knows of objects, in place of an API server that is away.

Pods are whole, as the kubelet serves them; those of an observer are made of summaries. Nodes and
events are made of what the agent keeps of them: enough for a table, and not all that the API
server would have.
"""

from typing import Any

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.cli.client.agent_client import AgentClient
from podstatus.cli.client.api_server import Document, ObjectList, RequestError, ResourceKind
from podstatus.cli.client.pod_from_summary import pod_document
from podstatus.cli.client.query_client import QueryClient
from podstatus.client.rest.resources import EVENTS, PODS
from podstatus.kube.unstructured import nested_str
from podstatus.observe.status_view import NodeSummary
from podstatus.web.v1.wire import TransitionView


class AgentObjects:
    """The agent, asked as a server is. All methods raise CannotAskError."""

    namespace = "default"
    """The one of those who name none."""

    def __init__(self, agent: AgentClient) -> None:
        self._agent = agent
        self._query = QueryClient(agent)

    def get(self, kind: ResourceKind, namespace: str | None, name: str) -> Document:
        """One object."""
        for document in self.list(kind, namespace).items:
            if nested_str(document, "metadata", "name") == name:
                return document
        inside = f" in namespace {namespace}" if kind.resource.namespaced else ""
        raise RequestError(
            f"the agent knows no {kind.printed_resource.singular} {name!r}{inside}; see: "
            "podstatus get "
            f"{kind.printed_resource.plural} -A --from agent"
        )

    def list(self, kind: ResourceKind, namespace: str | None) -> ObjectList:
        """All of a namespace, or of all namespaces if it is None; events by time."""
        if kind.resource is PODS:
            items = _pods(self._agent, namespace)
        elif kind.resource is EVENTS:
            items = [_event(it) for it in self._query.events(namespace).transitions]
        else:
            items = [_node(node) for node in self._query.nodes().nodes]
        for item in items:
            item.update(
                kind=kind.printed_resource.kind, apiVersion=kind.printed_resource.api_version
            )
        return ObjectList(items)

    def pod_events(self, namespace: str, pod: str) -> ObjectList:
        """Events about the pods of a name."""
        events = self._query.events(namespace).transitions
        return ObjectList([_event(event) for event in events if event.name == pod])


def _pods(agent: AgentClient, namespace: str | None) -> list[Document]:
    if agent.is_observer:
        return [pod_document(pod) for pod in QueryClient(agent).pods(namespace)]
    try:
        listed = decode_json(b"".join(agent.request("/pods", {})), dict[str, Any])
    except msgspec.DecodeError as error:
        raise RequestError(f"the agent's pods cannot be read: {error}") from error
    items: list[Document] = listed.get("items") or []
    return [item for item in sorted(items, key=_names) if namespace in (None, _names(item)[0])]


def _names(document: Document) -> tuple[str, str]:
    return nested_str(document, "metadata", "namespace"), nested_str(document, "metadata", "name")


def _event(moment: TransitionView) -> Document:
    """What was said once: whoever repeats it says it again."""
    about: Document = {
        "kind": "Pod",
        "namespace": moment.namespace,
        "name": moment.name,
        "uid": moment.uid,
    }
    if moment.subject:
        about["fieldPath"] = f"spec.containers{{{moment.subject}}}"
    return {
        "metadata": {
            "name": f"{moment.name}.{moment.id}",
            "namespace": moment.namespace,
            "creationTimestamp": moment.at,
        },
        "involvedObject": about,
        "type": moment.after,
        "reason": moment.reason,
        "message": moment.message,
        "count": 1,
        "firstTimestamp": moment.at,
        "lastTimestamp": moment.at,
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
