"""List the pods of one node, and compute their ready flips."""

from pathlib import Path

import msgspec
from msgspec import structs

from peers.orders import Start
from podstatus import Pod, PodStatus, decode
from podstatus.client import PODS, ApiClient, token_config
from podstatus.client.auth.config import ResolvedClientConfig
from podstatus.kube.conditions import replace_or_append_pod_condition
from podstatus.status.decide.generate_conditions import (
    generate_containers_ready_condition,
    generate_pod_ready_condition,
)


def way_in(start: Start) -> ResolvedClientConfig:
    """Return the client configuration of a peer."""
    return token_config(start.server, start.token, Path(start.authority))


class NothingRuns:
    """A node without running containers."""

    def could_have_running_containers(self, pod: Pod) -> bool:
        """Return False: no containers are running."""
        return False


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str


class _List(msgspec.Struct, frozen=True):
    metadata: _Meta
    items: list[msgspec.Raw]


def on_node(node: str) -> str:
    """Return the field selector for the pods of a node."""
    return f"spec.nodeName={node}"


async def list_pods(client: ApiClient, node: str) -> tuple[list[Pod], str]:
    """Return the pods of a node, and the resource version of the list."""
    text = await client.list(PODS, field_selector=on_node(node))
    listed = msgspec.json.decode(text, type=_List)
    pods = [decode(bytes(item), Pod) for item in listed.items]
    return pods, listed.metadata.resource_version


def is_ready(status: PodStatus) -> bool:
    """Whether the status has Ready=True."""
    return any(c.type == "Ready" and c.status == "True" for c in status.conditions or ())


def flipped(pod: Pod, *, ready: bool) -> PodStatus:
    """Return the pod's status with all containers ready or unready, as a kubelet sets it."""
    status = pod.status
    containers = tuple(structs.replace(c, ready=ready) for c in status.container_statuses or ())
    conditions = status.conditions
    for condition in (
        generate_pod_ready_condition(pod, status, conditions, containers, status.phase),
        generate_containers_ready_condition(pod, status, containers, status.phase),
    ):
        conditions = replace_or_append_pod_condition(conditions, condition)
    return structs.replace(status, container_statuses=containers, conditions=conditions)
