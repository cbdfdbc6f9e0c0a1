"""Two pods to look at, for whoever starts an agent on an empty cluster of its own."""

import logging

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.client import PODS, ApiClient
from podstatus.kube.errors import ApiError
from podstatus.runtime.simulated.model.script import CONTAINER_PREFIX

logger = logging.getLogger(__name__)

NAMESPACE = "default"


class _List(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


def sample_pods() -> list[dict[str, object]]:
    """A server that takes a moment to be ready, and a worker with a sidecar.

    They have commands for a runtime that runs them, and a script for one that pretends.
    """
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "web",
                "labels": {"app": "web"},
                "annotations": {f"{CONTAINER_PREFIX}app": "start=500ms, stop=1s"},
            },
            "spec": {
                "terminationGracePeriodSeconds": 5,
                "containers": [
                    {
                        "name": "app",
                        "image": "registry.k8s.io/nginx-slim:0.27",
                        "command": _repeat_command("served request $n"),
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    }
                ],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "worker", "labels": {"app": "worker"}},
            "spec": {
                "terminationGracePeriodSeconds": 5,
                "initContainers": [
                    {
                        "name": "proxy",
                        "image": "envoy:1.35",
                        "command": _repeat_command("passed on $n requests"),
                        "restartPolicy": "Always",
                    }
                ],
                "containers": [
                    {
                        "name": "app",
                        "image": "busybox:1.37",
                        "command": _repeat_command("worked on item $n"),
                    }
                ],
            },
        },
    ]


def _repeat_command(text: str) -> list[str]:
    """A command that says something now and then, and ends when it is asked to."""
    script = f'trap "exit 0" TERM; n=0; while n=$((n+1)); do echo "{text}"; sleep 5 & wait $!; done'
    return ["sh", "-c", script]


async def create_sample_pods(client: ApiClient) -> None:
    """Create them if the cluster has no pods at all."""
    try:
        found = decode_json(await client.list(PODS, limit=1), _List)
        if found.items:
            return
        for pod in sample_pods():
            await client.create(PODS, msgspec.json.encode(pod), namespace=NAMESPACE)
    except ApiError as error:
        logger.warning("sample pods could not be created: %s", error)
