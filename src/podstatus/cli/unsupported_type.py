"""The error for a type of object that `get`, `describe` and `delete` do not support."""

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from podstatus.apiserver.resources import RESOURCES
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.client.running_agent import kubectl_command, running_endpoints
from podstatus.cli.errors import usage_error
from podstatus.cli.program import suggested_command

_OTHER_TYPES = frozenset(
    (
        *("clusterroles", "clusterrolebindings", "roles", "rolebindings", "networkpolicies"),
        *("cronjobs", "daemonsets", "deployments", "jobs", "replicasets", "statefulsets"),
        *("customresourcedefinitions", "horizontalpodautoscalers", "ingresses", "endpoints"),
        *("persistentvolumeclaims", "persistentvolumes", "storageclasses", "endpointslices"),
        *("limitranges", "poddisruptionbudgets", "priorityclasses", "resourcequotas"),
    )
)
"""Plurals of common types of Kubernetes that the embedded API server does not have."""
_OTHER_SHORT_NAMES = frozenset(
    (
        *("cj", "crd", "deploy", "ds", "ep", "hpa", "ing"),
        *("netpol", "pdb", "pv", "pvc", "rs", "sc", "sts"),
    )
)


def refuse_type(
    verb: str,
    name: str,
    names: Sequence[str] = (),
    *,
    supported: str,
    root_dir: Path | None,
    kubeconfig: Path | None = None,
) -> NoReturn:
    """Exit with code 2, and with commands that work for what the user may have meant."""

    def kubectl(*words: str) -> str:
        return kubectl_command(shlex.join(words), root_dir, os.environ, kubeconfig)

    parts = [f"unsupported type {name!r}"]
    is_known = any(
        name.lower() in (it.plural, it.singular, *it.short_names, *it.categories)
        for it in RESOURCES
    )
    if not is_known and _is_other_type(name.lower()):
        parts.append(f"supported types: {supported}")
    elif not is_known:
        pod = suggested_command(f"{verb} pod {shlex.quote(name)}")
        parts.append(f"to {verb} the pod: {pod}; supported types: {supported}")
    else:
        parts.append(f"use {supported}")
    if not is_known and kubeconfig is None and _is_embedded(root_dir):
        parts.append(f"for the types of the embedded API server: {kubectl('api-resources')}")
    else:
        parts.append(f"for other types: {kubectl(verb, name, *names)}")
    usage_error("; ".join(parts))


def _is_other_type(name: str) -> bool:
    forms = (name, f"{name}s", f"{name}es", f"{name.removesuffix('y')}ies")
    return name in _OTHER_SHORT_NAMES or any(form in _OTHER_TYPES for form in forms)


def _is_embedded(root_dir: Path | None) -> bool:
    """True if an agent runs there whose API server is the embedded one."""
    with suppress(RequestError):
        return running_endpoints(root_dir, os.environ).embeds_api_server
    return False
