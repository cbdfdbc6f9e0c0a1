"""Pods of the size that those of a Deployment have on a real cluster, with their status."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec

from podstatus.client import ApiClient
from podstatus.client.rest.request import MERGE
from podstatus.client.rest.resources import PODS

Document = dict[str, Any]

_AT = "2026-11-16T02:48:00Z"
_AT_ONCE = 8


def pod(number: int, *, nodes: int = 20, per_deployment: int = 10) -> Document:
    """One of a Deployment's pods, bound to a node."""
    deployment, replica = divmod(number, per_deployment)
    name, digest = f"shop-{deployment:04}", f"{deployment * 7919 % 0xFFFFFFFF:08x}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{digest}-{replica:05}",
            "labels": {
                "app.kubernetes.io/name": name,
                "app.kubernetes.io/instance": "production",
                "app.kubernetes.io/managed-by": "Helm",
                "pod-template-hash": digest,
            },
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9102",
                "checksum/config": f"{number:064x}",
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{name}-{digest}",
                    "uid": f"00000000-0000-4000-8000-{deployment:012x}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeName": f"worker-{number % nodes:03}",
            "containers": [
                _container(name, "app", "registry.example.com/shop/app:1.42.0", "250m", "256Mi"),
                _container(name, "proxy", "registry.example.com/mesh/proxy:2.9.1", "50m", "64Mi"),
            ],
            "volumes": [
                {"name": "config", "configMap": {"name": f"{name}-config"}},
                {"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}},
            ],
            "tolerations": [
                {"key": "dedicated", "operator": "Equal", "value": "shop", "effect": "NoSchedule"}
            ],
            "terminationGracePeriodSeconds": 30,
        },
    }


def _container(name: str, what: str, image: str, cpu: str, memory: str) -> Document:
    return {
        "name": what,
        "image": image,
        "args": ["--config=/etc/app/config.yaml", "--listen=:8080", "--log-format=json"],
        "env": [
            {"name": "SERVICE", "value": name},
            {"name": "REGION", "value": "eu-central-1"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {
                "name": "DATABASE",
                "valueFrom": {"secretKeyRef": {"name": f"{name}-db", "key": "url"}},
            },
        ],
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 1}],
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app", "readOnly": True},
            {"name": "cache", "mountPath": "/var/cache/app"},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/livez", "port": 8080}, "periodSeconds": 10},
    }


def status(number: int, *, restarts: int = 0) -> Document:
    """Its status as a kubelet writes it, once it runs."""
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ip = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return {
        "phase": "Running",
        "conditions": [{"type": t, "status": "True", "lastTransitionTime": _AT} for t in types],
        "hostIP": "192.0.2.17",
        "hostIPs": [{"ip": "192.0.2.17"}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": _AT,
        "qosClass": "Burstable",
        "containerStatuses": [
            {
                "name": what,
                "image": f"registry.example.com/{what}",
                "imageID": f"registry.example.com/{what}@sha256:{0xA11CE:064x}",
                "containerID": f"containerd://{number:056x}{at:08x}",
                "ready": True,
                "started": True,
                "restartCount": restarts,
                "state": {"running": {"startedAt": _AT}},
                "lastState": {},
            }
            for at, what in enumerate(("app", "proxy"))
        ],
    }


async def create(client: ApiClient, namespace: str, numbers: Iterable[int]) -> None:
    """Create pods, each with its status, a few at once."""
    left = iter(numbers)

    async def make() -> None:
        for number in left:
            body = pod(number)
            name = body["metadata"]["name"]
            told = msgspec.json.encode({"status": status(number)})
            await client.create(PODS, msgspec.json.encode(body), namespace=namespace)
            await client.patch(
                PODS, name, told, namespace=namespace, subresource="status", content_type=MERGE
            )

    await asyncio.gather(*(make() for _ in range(_AT_ONCE)))
