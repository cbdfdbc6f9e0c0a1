"""Delete pods for `podstatus delete`, and wait until they are gone.

Upstream: DeleteOptions, pkg/cmd/delete/delete.go, kubectl v0.36.4.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import typer

from podstatus.cli.actions.await_deletion import DeletedPod, await_deletion
from podstatus.cli.client.open_server import open_server
from podstatus.cli.client.request_errors import NotFoundError, RequestError
from podstatus.cli.client.running_agent import running_endpoints
from podstatus.cli.client.server_objects import POD_KIND, Selectors, ServerObjects
from podstatus.cli.errors import warn
from podstatus.cli.options import ClusterOptions
from podstatus.cli.terminal import write
from podstatus.kube.unstructured import nested_list, nested_str, nested_value

PodName = tuple[str, str]
"""The namespace and the name of a pod."""
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_IMMEDIATE_WARNING = (
    "Warning: Immediate deletion does not wait for confirmation that the running resource has been "
    "terminated. The resource may continue to run on the cluster indefinitely.\n"
)


class PodsToDelete(msgspec.Struct, frozen=True, kw_only=True):
    """Pods by name, by selector, or of files."""

    names: Sequence[str] = ()
    selector: str | None = None
    """Label selector, empty for all pods; None: use the names and files."""
    all_namespaces: bool = False
    files: Sequence[str] = ()


def delete_pods(
    pods: PodsToDelete, options: ClusterOptions, grace_seconds: int | None, *, wait: bool
) -> None:
    """Delete pods; `grace_seconds` None: their own grace period. Raises RequestError.

    One that does not exist is reported, and the others are deleted.
    """
    if options.kubeconfig is None:
        _refuse_observer(options.root_dir)
    if grace_seconds == 0:
        write(_IMMEDIATE_WARNING, err=True)
    with open_server(options.root_dir, options.kubeconfig, os.environ) as server:
        where = options.namespace or server.namespace
        targets = [*_targets(pods, where, server)]
        deleted = [it for name in targets if (it := _delete(server, name, grace_seconds))]
        if not targets:
            write("No resources found\n")
        if wait:
            await_deletion(server, deleted)
    if len(deleted) < len(targets):
        raise typer.Exit(1)


def _refuse_observer(root_dir: Path | None) -> None:
    """Raise RequestError if the agent is an observer: it only reads from its cluster."""
    if running_endpoints(root_dir, os.environ, alternative=", or a --kubeconfig").observes:
        raise RequestError(
            "a cluster observer deletes nothing; use kubectl delete pod, or name the cluster with "
            "--kubeconfig"
        )


def _targets(pods: PodsToDelete, namespace: str, server: ServerObjects) -> Iterator[PodName]:
    if pods.selector is not None:
        where = None if pods.all_namespaces else namespace
        selected = server.list(POD_KIND, where, Selectors(labels=pods.selector))
        for document in selected.items:
            yield nested_str(document, "metadata", "namespace"), _name(document)
    yield from ((namespace, name) for name in pods.names)
    for file in pods.files:
        yield from _pods_of_file(file, namespace)


def _delete(server: ServerObjects, pod: PodName, grace_seconds: int | None) -> DeletedPod | None:
    """Delete a pod and return it; None if it does not exist."""
    namespace, name = pod
    try:
        document = server.delete_pod(namespace, name, grace_seconds)
    except NotFoundError as error:
        warn(str(error))
        return None
    how = "force deleted" if grace_seconds == 0 else "deleted"
    write(f'pod "{name}" {how} from {namespace} namespace\n')
    if nested_value(document, "metadata", "annotations", MIRROR_ANNOTATION) is not None:
        warn(f"pod {name} is static: remove its manifest, or it returns")
    uid = nested_str(document, "metadata", "uid")
    seconds = nested_value(document, "metadata", "deletionGracePeriodSeconds") or 0
    return DeletedPod(namespace, name, uid, seconds)


def _pods_of_file(file: str, namespace: str) -> Iterator[PodName]:
    from podstatus.sources.manifest.yaml_documents import (
        DocumentError,
        read_document,
        split_documents,
    )

    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        documents = [read_document(it) for it in split_documents(content.decode())]
    except OSError as error:
        raise RequestError(
            f"cannot read {file}: {(error.strerror or str(error)).lower()}"
        ) from error
    except (DocumentError, UnicodeDecodeError) as error:
        raise RequestError(f"{file} is not YAML: {error}") from error
    for document in _objects(documents):
        if nested_str(document, "kind") != "Pod" or not _name(document):
            kind = nested_str(document, "kind") or "<none>"
            raise RequestError(
                f"{file} has an object of kind {kind}; for objects other than pods use kubectl "
                "delete"
            )
        yield nested_str(document, "metadata", "namespace") or namespace, _name(document)


def _objects(documents: Sequence[Any]) -> Iterator[Any]:
    """The objects of a file: its documents, and the items of lists."""
    for document in documents:
        if nested_str(document, "kind").endswith("List"):
            yield from nested_list(document, "items")
        elif document is not None:
            yield document


def _name(document: Any) -> str:
    return nested_str(document, "metadata", "name")
