"""Two pods to look at, for whoever starts an agent on an empty cluster of its own."""

import logging

import msgspec

from podstatus.client import PODS, ApiClient
from podstatus.kube.errors import ApiError
from podstatus.runtime.simulated.script import CONTAINER_PREFIX

logger = logging.getLogger(__name__)

NAMESPACE = "default"


class _List(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


def sample_pods() -> list[dict[str, object]]:
    """A server that takes a moment to be ready, and a worker with a sidecar."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "web",
                "labels": {"app": "web"},
                "annotations": {f"{CONTAINER_PREFIX}app": "start=500ms, ready=-1s+, stop=1s"},
            },
            "spec": {
                "containers": [
                    {
                        "name": "app",
                        "image": "registry.k8s.io/nginx-slim:0.27",
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                        "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
                    }
                ]
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "worker", "labels": {"app": "worker"}},
            "spec": {
                "initContainers": [
                    {"name": "proxy", "image": "envoy:1.35", "restartPolicy": "Always"}
                ],
                "containers": [{"name": "app", "image": "busybox:1.37"}],
            },
        },
    ]


async def create_samples(client: ApiClient) -> None:
    """Create them if the cluster has no pods at all."""
    try:
        found = msgspec.json.decode(await client.list(PODS, limit=1), type=_List)
        if found.items:
            return
        for pod in sample_pods():
            await client.create(PODS, msgspec.json.encode(pod), namespace=NAMESPACE)
    except ApiError as error:
        logger.warning("sample pods could not be created: %s", error)
