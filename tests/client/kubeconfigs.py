"""Kubeconfigs for tests: a good one, and what is changed in it."""

import base64
import json
from pathlib import Path
from typing import Any

Document = dict[str, Any]

SERVER = "https://127.0.0.1:6443"


def document(*, cluster: Document | None = None, user: Document | None = None) -> Document:
    """Return a kubeconfig with one context, `dev`, and these cluster and user fields."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kind", "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": "me", "user": user or {}}],
        "contexts": [{"name": "dev", "context": {"cluster": "kind", "user": "me"}}],
        "current-context": "dev",
    }


def write(path: Path, config: Document | None = None, **fields: Document) -> Path:
    """Write a kubeconfig to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(**fields) if config is None else config))
    return path


def data(content: bytes) -> str:
    """Encode the content of a `-data` field."""
    return base64.b64encode(content).decode()
