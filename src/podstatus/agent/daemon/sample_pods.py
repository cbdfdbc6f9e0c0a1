"""Two sample pods, created in an embedded API server that has none."""

import logging

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.client import PODS, ApiClient
from podstatus.kube.api_errors import ApiError
from podstatus.runtime.simulated.model.script import CONTAINER_PREFIX

logger = logging.getLogger(__name__)

NAMESPACE = "default"


class _List(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


def sample_pods() -> list[dict[str, object]]:
    """Return the manifests: a server with a start delay, and a worker with a sidecar.

    They have commands for the process runtime, and scripts for the simulated one.
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
    """A command that prints a line every 5 s and exits on SIGTERM."""
    script = f'trap "exit 0" TERM; n=0; while n=$((n+1)); do echo "{text}"; sleep 5 & wait $!; done'
    return ["sh", "-c", script]


async def create_sample_pods(client: ApiClient) -> None:
    """Create the sample pods unless the cluster has pods. Errors are logged."""
    try:
        pods = decode_json(await client.list(PODS, limit=1), _List)
        if pods.items:
            return
        for pod in sample_pods():
            await client.create(PODS, msgspec.json.encode(pod), namespace=NAMESPACE)
    except ApiError as error:
        logger.warning("cannot create sample pods: error=%s", error)
