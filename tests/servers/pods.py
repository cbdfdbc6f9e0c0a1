"""Pods and config maps for cases, and where they are."""

from tests.support.processes.api_servers import Client, Document

IMAGE = "registry.example.com/image:v1"


def pods(namespace: str, name: str = "", subresource: str = "") -> str:
    """The path of pods, of one, or of a part of it."""
    parts = ["/api/v1/namespaces", namespace, "pods", name, subresource]
    return "/".join(filter(None, parts))


def maps(namespace: str, name: str = "") -> str:
    """The path of config maps, or of one."""
    return "/".join(filter(None, ["/api/v1/namespaces", namespace, "configmaps", name]))


def pod(name: str, *, node: str = "node-1", **metadata: object) -> Document:
    """A pod of one container."""
    spec: Document = {"containers": [{"name": "app", "image": IMAGE}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def created(client: Client, path: str, body: Document) -> Document:
    """What was created."""
    code, answer = client.create(path, body)
    assert code == 201, answer
    document: Document = answer
    return document


def config_map(name: str, **labels: str) -> Document:
    """A config map with labels."""
    return {"metadata": {"name": name, "labels": labels}}


def refusal(answer: tuple[int, Document]) -> tuple[int, str]:
    """Code and reason of an answer that is none."""
    code, status = answer
    assert status["kind"] == "Status", status
    return code, status.get("reason", "")


def causes(answer: tuple[int, Document]) -> list[str]:
    """The fields for which an object was refused."""
    code, status = answer
    assert code == 422, status
    # Some rules of the real server speak twice.
    return sorted({cause["field"] for cause in status["details"]["causes"]})
