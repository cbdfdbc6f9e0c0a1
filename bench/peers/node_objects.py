"""The pods that the benchmark flips, with the size of a Deployment's pods."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from podstatus.client.api_client import ApiClient
from podstatus.client.rest.resources import PODS

_SENDERS = 16
_SINCE = "2024-01-01T00:00:00Z"
_IMAGE = "registry.example/shop/web:v1.7.3"
_DIGEST = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
_TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - where it is


async def create_pods(client: ApiClient, nodes: Iterable[str], pods: int) -> None:
    """Create this many pods on each node, all running, none ready."""
    waiting = ((node, number) for node in nodes for number in range(pods))
    async with asyncio.TaskGroup() as tasks:
        for _ in range(_SENDERS):
            tasks.create_task(_create(client, waiting))


async def _create(client: ApiClient, waiting: Iterator[tuple[str, int]]) -> None:
    for node, number in waiting:
        pod = pod_document(node, number)
        await client.create(PODS, msgspec.json.encode(pod), namespace="default")
        status = msgspec.json.encode({"status": status_document(number)})
        name = pod["metadata"]["name"]
        await client.patch(PODS, name, status, namespace="default", subresource="status")


def pod_document(node: str, number: int) -> dict[str, Any]:
    """Return a new pod that is bound to a node."""
    probe = {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 5}
    container = {
        "name": "app",
        "image": _IMAGE,
        "args": ["--listen=:8080", "--log-level=info"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "GOMAXPROCS", "value": "2"},
        ],
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"name": "api-access", "mountPath": _TOKEN_FOLDER, "readOnly": True}],
    }
    labels = {"app": "web", "pod-template-hash": "6d4cf56db6", "team": "shop", "tier": "front"}
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{node}-{number}", "namespace": "default", "labels": labels},
        "spec": {
            "nodeName": node,
            "serviceAccountName": "default",
            "containers": [container],
            "volumes": [{"name": "api-access", "projected": {"sources": [token]}}],
        },
    }


def status_document(number: int) -> dict[str, Any]:
    """Return the status of a running pod that is not ready."""
    address = f"10.0.{number // 250}.{number % 250 + 1}"
    unready = {"reason": "ContainersNotReady", "message": "containers with unready status: [app]"}
    conditions = [
        {"type": "PodReadyToStartContainers", "status": "True"},
        {"type": "Initialized", "status": "True"},
        {"type": "Ready", "status": "False"} | unready,
        {"type": "ContainersReady", "status": "False"} | unready,
        {"type": "PodScheduled", "status": "True"},
    ]
    container = {
        "name": "app",
        "image": _IMAGE,
        "imageID": f"registry.example/shop/web@sha256:{_DIGEST}",
        "containerID": f"containerd://{number:064x}",
        "ready": False,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": _SINCE}},
    }
    return {
        "phase": "Running",
        "conditions": [c | {"lastTransitionTime": _SINCE} for c in conditions],
        "containerStatuses": [container],
        "hostIP": "192.0.2.1",
        "hostIPs": [{"ip": "192.0.2.1"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": _SINCE,
        "qosClass": "Burstable",
    }
