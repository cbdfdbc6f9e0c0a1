"""Take a node down for `podstatus down`: pods, containers, agent, embedded API server.

A running agent is asked to end its pods. Then, and if it was stopped or killed before, what is left
is ended without it, under the lock of the root directory.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import typer

from podstatus.agent.compose.runtime import leftover_cgroups
from podstatus.agent.daemon.apiserver_process import (
    ApiServerStartError,
    EmbeddedApiServer,
    NodeTrust,
)
from podstatus.agent.daemon.endpoints_file import AgentEndpoints, RootDirError, read_endpoints
from podstatus.agent.daemon.remove_root_dir import remove_root_dir
from podstatus.apiserver.pki.certificates import CA_CERTIFICATE
from podstatus.apiserver.state_dir import LOCK_FILE, StateDir, StateDirError
from podstatus.apiserver.storage.sqlite_file import DATABASE
from podstatus.base.system_clock import SystemClock
from podstatus.cli.actions.delete_pods import MIRROR_ANNOTATION
from podstatus.cli.actions.drain_node import wait_drained
from podstatus.cli.actions.external_node import is_external_node
from podstatus.cli.actions.stop_agent import local_remedy, terminate_agent
from podstatus.cli.client.https_client import AgentClient
from podstatus.cli.client.open_server import open_server
from podstatus.cli.client.request_errors import NotFoundError, RequestError
from podstatus.cli.client.root_dir_holder import DOWN, find_holder
from podstatus.cli.client.running_agent import find_root_dir, no_agent_error
from podstatus.cli.client.server_objects import POD_KIND, Document, ServerObjects
from podstatus.cli.errors import usage_error, warn
from podstatus.cli.program import suggested_command
from podstatus.cli.render.wrap import wrap_text
from podstatus.cli.start_command import start_command
from podstatus.cli.terminal import terminal_width, write
from podstatus.client.token_client import TokenClient
from podstatus.kube.unstructured import nested_str, nested_value
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups
from podstatus.runtime.process.leftovers import cgroup_files, end_pods
from podstatus.runtime.process.state.running_pods import running_pods

_DEFAULT_GRACE_SECONDS = 30
"""Of a pod, which the records of its containers do not have."""
_EXTRA_SECONDS = 10.0
"""For a terminated pod to be gone from the API server."""
_KILL_SECONDS = 60.0
"""An agent whose pods have ended stops in less than 5 s; one that hangs is killed."""
_CONNECT_SECONDS = 3.0
_POLL_SECONDS = 0.2
_MAX_NAMES = 5


class DownOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to take a node down."""

    grace_seconds: int | None
    """None: the grace period of each pod."""
    remove_files: bool
    assume_yes: bool


def take_down(root_dir: Path | None, options: DownOptions) -> None:
    """End pods, containers, agent and API server; print the progress. Raises RequestError."""
    folder = find_root_dir(root_dir, os.environ)
    is_running = find_holder(folder) is not None
    try:
        endpoints = read_endpoints(folder) if is_running else None
    except RootDirError as error:
        raise RequestError(str(error)) from error
    if not (folder / LOCK_FILE).exists():
        raise no_agent_error(
            folder,
            os.environ,
            remedy="pass the --root-dir of the node to take down",
            local_remedy=local_remedy(),
        )
    _refuse_foreign_pods(folder, endpoints)
    is_external = endpoints is None and is_external_node(folder)
    if is_external:
        _refuse_external_node(folder, options, is_running=is_running)
    if is_external and not options.remove_files:
        # Records of containers that have ended belong to pods that the cluster still has.
        write(f"no containers are running; the files of the node are in {folder}\n")
        return
    _confirm(folder, options, is_running=is_running, is_external=is_external)
    if endpoints is not None:
        _end_pods_by_agent(folder, endpoints, options)
    if is_running and (stopped := terminate_agent(folder, _KILL_SECONDS, kill=True)) is not None:
        write(f"stopped {stopped.name} (pid {stopped.pid})\n")
    _take_down_leftovers(folder, options)


def _take_down_leftovers(folder: Path, options: DownOptions) -> None:
    """End what no agent has ended, remove the files if asked to; print what is left.

    Raises RequestError.
    """
    try:
        lock = StateDir(folder, used_by="agent or observer", command=DOWN)
    except StateDirError as error:
        raise RequestError(str(error)) from error
    try:
        _end_leftovers(folder, options)
        if options.remove_files:
            remaining = remove_root_dir(folder)
    except (OSError, RuntimeDownError) as error:
        raise RequestError(f"{error}; to try again: {suggested_command('down')}") from error
    finally:
        lock.close()
    if not options.remove_files:
        write(f"all containers have stopped; the files of the node are in {folder}\n")
    elif remaining:
        write(f"all containers have stopped; not removed: {', '.join(remaining)}\n")
    else:
        write(f"all containers have stopped; {folder} is removed\n")


def _refuse_foreign_pods(folder: Path, endpoints: AgentEndpoints | None) -> None:
    """Raise RequestError if the pods belong to a cluster that this node only joined."""
    if endpoints is not None and endpoints.observes:
        raise RequestError(
            f"an observer has no pods to end; to stop it: {suggested_command('stop')}"
        )
    if endpoints is not None and not endpoints.embeds_api_server:
        raise RequestError(
            f"node {endpoints.node} belongs to the cluster at {endpoints.apiserver}, which owns "
            f"its pods; to terminate them: {suggested_command('drain')}; then, to stop the agent: "
            f"{suggested_command('stop')}"
        )
    if endpoints is None and not (folder / "runtime").is_dir():
        raise RequestError(f"{folder} has the files of an observer, which has no pods to end")


def _refuse_external_node(folder: Path, options: DownOptions, *, is_running: bool) -> None:
    """Raise RequestError if a stopped node of another cluster still has something to lose.

    `is_running`: its agent is starting.
    """
    start = f"start its agent again: {start_command(folder)}"
    if is_running or running_pods(folder / "runtime"):
        raise RequestError(
            f"the node in {folder} belongs to another cluster, which owns its pods; {start}; "
            f"then, to terminate the pods: {suggested_command('drain')}; to stop it: "
            f"{suggested_command('stop')}"
        )
    if options.remove_files and any((folder / "outbox").glob("*.json")):
        raise RequestError(
            f"{folder} has final statuses of pods that their cluster has not received; to send "
            f"them, {start}; or call down without --remove-files"
        )


def _confirm(folder: Path, options: DownOptions, *, is_running: bool, is_external: bool) -> None:
    if options.assume_yes:
        return
    if not sys.stdin.isatty():
        usage_error("cannot ask for confirmation without a terminal; pass --yes")
    if is_running:
        effect = (
            f"This deletes all pods in the API server of the node in {folder}, terminates their "
            "containers and stops the agent and its API server."
        )
    elif is_external:
        effect = f"No agent runs in {folder}, and no containers are running."
    else:
        effect = (
            f"No agent runs in {folder}. This deletes all pods of the node and terminates their "
            "containers."
        )
    text = f"{effect} The files are {'removed' if options.remove_files else 'kept'}."
    write("".join(f"{line}\n" for line in wrap_text(text, terminal_width())))
    try:
        is_confirmed = typer.confirm("Continue?")
    except typer.Abort as abort:
        write("\n")
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        is_confirmed = False
    if not is_confirmed:
        raise RequestError("nothing was changed")


def _end_pods_by_agent(folder: Path, endpoints: AgentEndpoints, options: DownOptions) -> None:
    """Let the agent end its pods: those of the API server first, then static ones.

    What it cannot end is left to the caller, which ends it without the agent.
    """
    try:
        with open_server(folder, None, os.environ) as server:
            _delete_and_wait(server, options.grace_seconds)
        agent = AgentClient(endpoints)
        agent.begin_drain()
        wait_drained(agent, 0)
    except RequestError as error:
        warn(f"{error}; terminating the containers without the agent")


def _delete_and_wait(server: ServerObjects, grace_seconds: int | None) -> None:
    deleted = [
        server.delete_pod(*_full_name(pod), grace_seconds)
        for pod in _pods(server)
        if nested_value(pod, "metadata", "annotations", MIRROR_ANNOTATION) is None
    ]
    if not deleted:
        return
    longest = max(
        nested_value(pod, "metadata", "deletionGracePeriodSeconds") or 0 for pod in deleted
    )
    write(f"terminating {_describe(deleted)}; {describe_limit(longest)}\n")
    deadline = time.monotonic() + longest + _EXTRA_SECONDS
    uids = {nested_str(pod, "metadata", "uid") for pod in deleted}
    left = len(deleted)
    while remaining := [it for it in _pods(server) if nested_str(it, "metadata", "uid") in uids]:
        if len(remaining) < left:
            left = len(remaining)
            write(f"waiting for {_describe(remaining)}\n")
        if time.monotonic() > deadline:
            raise RequestError(
                f"not terminated within {longest + _EXTRA_SECONDS:g} s: {_describe(remaining)}"
            )
        time.sleep(_POLL_SECONDS)


def describe_limit(seconds: int) -> str:
    """Return how long pods may take to end; with 0, running containers are killed at once."""
    return f"at most {seconds} s" if seconds else "without a grace period"


def _pods(server: ServerObjects) -> list[Document]:
    return server.list(POD_KIND, None).items


def _full_name(pod: Document) -> tuple[str, str]:
    return nested_str(pod, "metadata", "namespace"), nested_str(pod, "metadata", "name")


def _describe(pods: Sequence[Document]) -> str:
    return describe_names(["/".join(_full_name(pod)) for pod in pods])


def describe_names(names: Sequence[str]) -> str:
    """Return the number of pods, and at most five of their names."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    count = "1 pod" if len(names) == 1 else f"{len(names)} pods"
    return f"{count}: {', '.join(names[:_MAX_NAMES])}{more}"


def _end_leftovers(folder: Path, options: DownOptions) -> None:
    """End what no agent has ended; the caller holds the lock. Raises RuntimeDownError."""
    runtime = folder / "runtime"
    if runtime.is_dir():
        grace = options.grace_seconds
        cgroups = leftover_cgroups(folder, cgroup_files(runtime))
        seconds = _DEFAULT_GRACE_SECONDS if grace is None else grace
        asyncio.run(_end_containers(runtime, cgroups, seconds))
    if not options.remove_files and (folder / "apiserver" / DATABASE).exists():
        asyncio.run(_delete_objects(folder))


async def _end_containers(runtime: Path, cgroups: Cgroups, seconds: int) -> None:
    """End all pods, and print which are waited for. Raises RuntimeDownError."""
    names = running_pods(runtime)
    if names:
        write(f"terminating the containers of {describe_names(names)}; {describe_limit(seconds)}\n")
    ending = asyncio.create_task(end_pods(runtime, cgroups, SystemClock(), grace_seconds=seconds))
    left = len(names)
    while not (await asyncio.wait({ending}, timeout=_POLL_SECONDS))[0]:
        remaining = await asyncio.to_thread(running_pods, runtime)
        if 0 < len(remaining) < left:
            left = len(remaining)
            write(f"waiting for {describe_names(remaining)}\n")
    await ending


async def _delete_objects(folder: Path) -> None:
    """Delete pods that the API server still has: without an agent, nothing else does.

    Otherwise the next agent would start them again.
    """
    trust = NodeTrust(authority=folder / "pki" / "agent.crt", address="127.0.0.1")
    log, clock = folder / "apiserver.log", SystemClock()
    async with EmbeddedApiServer(
        folder / "apiserver", log, port=0, clock=clock, node_trust=trust
    ) as child:
        try:
            access = await child.start()
        except ApiServerStartError as error:
            raise RequestError(f"cannot delete the pods: {error}") from error
        with TokenClient(
            access.url,
            token=access.token,
            authority=folder / "apiserver" / CA_CERTIFICATE,
            connect_seconds=_CONNECT_SECONDS,
        ) as client:
            await asyncio.to_thread(_force_delete, ServerObjects(client, namespace="default"))


def _force_delete(server: ServerObjects) -> None:
    for pod in _pods(server):
        try:
            server.delete_pod(*_full_name(pod), 0)
        except NotFoundError:
            continue
