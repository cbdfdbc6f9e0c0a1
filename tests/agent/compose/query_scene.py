"""Pods and questions for tests of the query API."""

import asyncio
from typing import Any

from podstatus.testing.apiserver import ApiServerThread

PODS = "/api/v1/namespaces/default/pods"


PARTITION = ({"verb": "watch", "action": "stall"}, {"action": "drop"})


def a_pod(name: str, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}, "annotations": annotations},
        "spec": {
            "nodeName": "node",
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}},
                }
            ],
        },
    }


async def ask(server: ApiServerThread, method: str, path: str, body: object = None) -> None:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    code, response = await asyncio.to_thread(server.request, method, path, body, kind)
    assert code < 300, response
