"""Recorded strategic merge patches, played over HTTP.

A recording holds any pod, any patch and the merged document; a server holds valid pods. So each
recorded status is given a home: a pod of its own, with a spec that has what the status refers to
(the names of the containers, resource claims), and labels and annotations as recorded. Fields of
the recorded status that the server refuses in that home are left out, one after the other. Then
the patch is sent, to `/status` or to the pod itself.
"""

import gzip
import json
import re
from pathlib import Path

import msgspec

from podstatus.kube.encoding.codec import from_document, to_document
from podstatus.kube.objects.pod_status import PodStatus
from tests.support.processes.api_servers import Client, Document, Server

FILE = Path(__file__).parents[2] / "conformance" / "vectors.jsonl.gz"
CLAIMS = ("gpu", "nic")
MIRROR = "kubernetes.io/config.mirror"
_RESOURCES: dict[str, Document] = {
    "Burstable": {"requests": {"cpu": "1m"}},
    "Guaranteed": {"limits": {"cpu": "1", "memory": "1Gi"}},
}
_MADE_UP = ("creationTimestamp", "managedFields", "namespace", "resourceVersion", "uid")


class Vector(msgspec.Struct, frozen=True):
    """A recorded call of StrategicMergePatch."""

    number: int
    original: Document
    patch: Document
    result: Document | None
    """None if it failed."""


class Played(msgspec.Struct, frozen=True):
    """What became of one on a server."""

    left_out: list[str]
    """Of the original status, since the server refused it."""
    before: Document
    """The status that was stored."""
    code: int
    told: Document
    """The stored pod without what servers make up, or why not."""


def vectors() -> list[Vector]:
    """All that were recorded."""
    records = map(json.loads, gzip.decompress(FILE.read_bytes()).splitlines())
    chosen = [record for record in records if record["fn"] == "StrategicMergePatch"]
    return [
        Vector(number, r["args"]["original"], r["args"]["patch"], r["result"].get("result"))
        for number, r in enumerate(chosen)
    ]


def play(vector: Vector, server: Server, namespace: str, subresource: str) -> Played:
    """Play one in a pod of its own; the subresource is "" or "/status"."""
    client = server.client
    pods = f"/api/v1/namespaces/{namespace}/pods"
    name = f"pod-{vector.number}{subresource.replace('/', '-')}"
    code, pod = client.create(pods, home(vector, name))
    assert code == 201, (vector.number, pod)
    left_out, before = _store_status(
        client, f"{pods}/{name}/status", pod, vector.original["status"]
    )
    patch = _with_uid(vector, pod["metadata"]["uid"])
    code, answer = client.patch(f"{pods}/{name}{subresource}", patch)
    if code != 200:
        return Played(left_out, before, code, _reasons(answer))
    stored = client.get(f"{pods}/{name}")[1]
    assert stored == answer
    return Played(left_out, before, code, _without_made_up(stored))


def touched(patch: Document) -> set[str]:
    """The fields of the status that a patch speaks of."""
    return {key.rpartition("/")[2] for key in patch.get("status", {})}


def recorded_status(vector: Vector, before: Document) -> Document:
    """The status that was recorded, in place of this one, with what servers add to it.

    What the patch does not touch stays; the recorded rest may have found no home.
    """
    assert vector.result is not None
    result = to_document(from_document(vector.result["status"], PodStatus))
    patched = touched(vector.patch)
    kept = {} if "$patch" in patched else {k: v for k, v in before.items() if k not in patched}
    status = kept | {k: v for k, v in result.items() if k not in kept and k in {*patched, "phase"}}
    for name in ("qosClass", "observedGeneration"):
        if name in before:
            status.setdefault(name, before[name])
    if "podIP" in status and not status.get("podIPs"):
        status["podIPs"] = [{"ip": status["podIP"]}]
    for condition in status.get("conditions", []):
        told = [c for c in before["conditions"] if c["type"] == condition["type"]]
        if told and "observedGeneration" in told[0]:
            condition.setdefault("observedGeneration", told[0]["observedGeneration"])
    return status


def home(vector: Vector, name: str) -> Document:
    """A valid pod that the status can belong to."""
    recorded = vector.original
    qos_class = (vector.result or recorded)["status"].get("qosClass", "")
    spec: Document = {
        "containers": _containers(recorded["spec"]["containers"], qos_class),
        "initContainers": _containers(recorded["spec"].get("initContainers", []), qos_class),
        "nodeName": "node-1",
    }
    if MIRROR not in recorded["metadata"].get("annotations", {}):
        # Static pods may have none.
        spec["resourceClaims"] = [{"name": c, "resourceClaimName": c} for c in CLAIMS]
    for kept in ("restartPolicy", "hostNetwork"):
        if kept in recorded["spec"]:
            spec[kept] = recorded["spec"][kept]
    labelled = {k: recorded["metadata"].get(k, {}) for k in ("labels", "annotations")}
    metadata = {"name": name, **labelled}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _containers(recorded: list[Document], qos_class: str) -> list[Document]:
    names = [container["name"].lower() for container in recorded]
    made = {"image": "registry.example.com/image:v1", "resources": _RESOURCES.get(qos_class, {})}
    return [{"name": name, **made} for name in dict.fromkeys(names)]


def _store_status(
    client: Client, path: str, pod: Document, status: Document
) -> tuple[list[str], Document]:
    """Store a status, without what is refused; the names of that, and what was stored."""
    left_out: list[str] = []
    # The server's own: the class follows from the spec.
    status = status | {"qosClass": pod["status"]["qosClass"]}
    while True:
        code, answer = client.replace(path, pod | {"status": status})
        if code == 200:
            return sorted(left_out), answer["status"]
        assert code == 422, answer
        refused = {_field(cause) for cause in answer["details"]["causes"]} & status.keys()
        assert refused, answer
        left_out += refused
        status = {name: value for name, value in status.items() if name not in refused}


def _field(cause: Document) -> str:
    """The field of the status that a cause is about."""
    return re.split(r"[.\[]", cause["field"].removeprefix("status."))[0]


def _with_uid(vector: Vector, uid: str) -> Document:
    """The patch, for a pod with another UID than the recorded one."""
    recorded = json.dumps(vector.original["metadata"]["uid"])
    patch: Document = json.loads(json.dumps(vector.patch).replace(recorded, json.dumps(uid)))
    return patch


def _without_made_up(pod: Document) -> Document:
    metadata = {k: v for k, v in pod["metadata"].items() if k not in _MADE_UP}
    return pod | {"metadata": metadata}


def _reasons(status: Document) -> Document:
    causes = (status.get("details") or {}).get("causes") or []
    return {
        "reason": status.get("reason"),
        "causes": sorted({(cause["reason"], cause["field"]) for cause in causes}),
    }
