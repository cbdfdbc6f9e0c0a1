"""Print the logs of a container for `podstatus logs`, by default of the container kubectl chooses.

Upstream: logsForObjectWithClient, polymorphichelpers/logsforobject.go, and podcmd.go,
kubectl v0.36.4.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from podstatus.cli.client.https_client import find_agent
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.program import describe_pod_command
from podstatus.cli.terminal import exit_with_reader, write, write_bytes
from podstatus.kube.objects.pod import Pod

_WAITING = "is waiting to start"
"""In the message of the kubelet about a container that has no log yet."""
_RUN_ERROR, _START_ERROR = "RunContainerError", "StartError"
"""Reasons of a container that waits, and of its last attempt, if its program could not start."""
DEFAULT_CONTAINER_ANNOTATION = "kubectl.kubernetes.io/default-container"


def print_logs(
    root_dir: Path | None, namespace: str, pod: str, container: str | None, query: dict[str, str]
) -> None:
    """Print the log as it arrives. Raises RequestError."""
    node = find_agent(root_dir, os.environ)
    found = node.get_pod(namespace, pod)
    choice = choose_container(found, container)
    for note in choice.notes:
        write(f"{note}\n", err=True)
    exit_with_reader()
    log = _CountedLog(node.logs(namespace, pod, choice.name, query))
    try:
        write_bytes(log)
        if not log.size and "previous" not in query:
            _raise_if_not_started(found, choice.name)
    except RequestError as error:
        if _WAITING not in str(error):
            raise
        describe = describe_pod_command(namespace, pod)
        raise RequestError(f"{error}; to see why: {describe}") from error


class _CountedLog:
    """The chunks of a log, and their size so far."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            yield chunk


def _raise_if_not_started(pod: Pod, container: str) -> None:
    """Raise RequestError if the container waits because its program could not be started.

    The kubelet answers with the log of that attempt, which is empty.
    """
    status = pod.status
    for it in (*(status.container_statuses or ()), *(status.init_container_statuses or ())):
        waiting, last = it.state.waiting, it.last_state.terminated
        if it.name != container or waiting is None:
            continue
        if waiting.reason == _RUN_ERROR or (last is not None and last.reason == _START_ERROR):
            where = f'container "{container}" in pod "{pod.metadata.name}"'
            raise RequestError(f"{where} {_WAITING}: {waiting.reason}")


class ContainerChoice(msgspec.Struct, frozen=True):
    """A container, and notes about the choice to print to standard error."""

    name: str
    notes: tuple[str, ...] = ()


def choose_container(pod: Pod, requested: str | None = None) -> ContainerChoice:
    """Return the requested container, that of the annotation, or the first one.

    Raises RequestError.
    """
    first, *others = _names(pod) or [("", "")]
    names = container_names(pod)
    listing = ", ".join(f"{name}{kind}" for name, kind in (first, *others))
    if requested:
        if requested not in names:
            raise RequestError(
                f"container {requested} is not valid for pod {pod.name} out of: {listing}"
            )
        return ContainerChoice(requested)
    notes: tuple[str, ...] = ()
    if annotated := (pod.metadata.annotations or {}).get(DEFAULT_CONTAINER_ANNOTATION):
        if annotated in names:
            return ContainerChoice(annotated)
        notes = (f'Default container name "{annotated}" not found in pod {pod.name}',)
    if others:
        notes += (f'Defaulted container "{first[0]}" out of: {listing}',)
    return ContainerChoice(first[0], notes)


def container_names(pod: Pod) -> list[str]:
    """Return the names of all containers of a pod, regular ones first."""
    return [name for name, _ in _names(pod)]


def _names(pod: Pod) -> list[tuple[str, str]]:
    """Container names with the suffix of their kind, regular containers first."""
    spec = pod.spec
    return [
        *((container.name, "") for container in spec.containers or ()),
        *((container.name, " (ephem)") for container in spec.ephemeral_containers or ()),
        *((container.name, " (init)") for container in spec.init_containers or ()),
    ]
