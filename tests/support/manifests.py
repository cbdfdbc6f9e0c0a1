"""Texts of manifests, and how to read them."""

from podstatus.kube.scalars.time import Time
from podstatus.sources.manifest.decode import Manifest, read_manifest
from podstatus.sources.manifest.static_pods import ManifestOrigin

SEEN = Time.parse("2026-01-01T00:00:00Z")
FILE = ManifestOrigin(source="file", location="/m/a.yaml", node_name="node-1")
URL = ManifestOrigin(source="http", location="http://h/a", node_name="node-1")

WEB = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: a
    image: busybox
"""


def named(name: str, **more: str) -> str:
    """A manifest of one pod; `more` are lines of its spec."""
    lines = "".join(f"  {key}: {value}\n" for key, value in more.items())
    return WEB.replace("web", name) + lines


def read(text: str | bytes, origin: ManifestOrigin = FILE) -> Manifest:
    return read_manifest(text.encode() if isinstance(text, str) else text, origin, SEEN)
