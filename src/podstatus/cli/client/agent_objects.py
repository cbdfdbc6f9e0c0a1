"""What the agent knows of objects, in place of an API server that is away.

Pods are whole, as the kubelet serves them; those of an observer are made of summaries. Nodes and
events are made of what the agent keeps of them: enough for a table, and not all that the API
server would have.
"""

from typing import Any

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.cli.client.agent_client import NodePort
from podstatus.cli.client.api_server import CannotAskError, Document, Listed, Shown
from podstatus.cli.client.pod_from_summary import pod_document
from podstatus.cli.client.query_client import QueryPort
from podstatus.client.rest.resources import EVENTS, PODS
from podstatus.kube.unstructured import nested_str
from podstatus.observe.status_view import NodeSummary
from podstatus.web.v1.wire import TransitionView


class AgentObjects:
    """The agent, asked as a server is. All methods raise CannotAskError."""

    namespace = "default"
    """The one of those who name none."""

    def __init__(self, node: NodePort) -> None:
        self._node = node
        self._query = QueryPort(node)

    def get(self, shown: Shown, namespace: str | None, name: str) -> Document:
        """One object."""
        for document in self.list(shown, namespace).items:
            if nested_str(document, "metadata", "name") == name:
                return document
        inside = f" in namespace {namespace}" if shown.asked.namespaced else ""
        raise CannotAskError(
            f"the agent knows no {shown.printed.singular} {name!r}{inside}; see: podstatus get "
            f"{shown.printed.plural} -A --from agent"
        )

    def list(self, shown: Shown, namespace: str | None) -> Listed:
        """All of a namespace, or of all namespaces if it is None; events by time."""
        if shown.asked is PODS:
            items = _pods(self._node, namespace)
        elif shown.asked is EVENTS:
            items = [_event(moment) for moment in self._query.events(namespace).moments]
        else:
            items = [_node(node) for node in self._query.nodes().nodes]
        for item in items:
            item.update(kind=shown.printed.kind, apiVersion=shown.printed.api_version)
        return Listed(items)

    def events_of(self, namespace: str, pod: str) -> Listed:
        """Events about the pods of a name."""
        happened = self._query.events(namespace).moments
        return Listed([_event(moment) for moment in happened if moment.name == pod])


def _pods(node: NodePort, namespace: str | None) -> list[Document]:
    if node.observes:
        return [pod_document(pod) for pod in QueryPort(node).pods(namespace)]
    try:
        listed = decode_json(b"".join(node.ask("/pods", {})), dict[str, Any])
    except msgspec.DecodeError as error:
        raise CannotAskError(f"the agent's pods cannot be read: {error}") from error
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
