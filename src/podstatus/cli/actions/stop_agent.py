"""Stop the agent of a root directory for `podstatus stop` and `podstatus down`.

The signal goes only to the process that has the lock file open: a file that names a process proves
nothing, and its number may have been reused.
"""

import os
import select
import signal
from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.agent.daemon.endpoints_file import AgentEndpoints, RootDirError, read_endpoints
from podstatus.agent.settings.default_root_dir import LOCAL_ROOT_DIR
from podstatus.apiserver.state_dir import LOCK_FILE
from podstatus.cli.actions.external_node import end_command, is_external_node
from podstatus.cli.client.private_dir import is_private
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.client.root_dir_holder import find_holder
from podstatus.cli.client.running_agent import find_root_dir, no_agent_error
from podstatus.cli.program import suggested_command
from podstatus.cli.start_command import start_command
from podstatus.cli.terminal import write, write_message
from podstatus.runtime.process.state.running_pods import running_pods

_PATIENCE_SECONDS = 5.0
"""A stop without a drain takes less; after it, say what is waited for."""


class StoppedAgent(msgspec.Struct, frozen=True):
    """An agent or observer that was stopped."""

    pid: int
    name: str
    """`the agent of node n1`, `the observer`; without the node if the agent was starting."""


def stop_agent(root_dir: Path | None, seconds: float) -> None:
    """Stop the agent and print what keeps running; `seconds` 0: wait without limit.

    Raises RequestError.
    """
    folder = find_root_dir(root_dir, os.environ, stopped=True)
    stopped = terminate_agent(folder, seconds)
    if stopped is None:
        raise no_agent_error(
            folder,
            os.environ,
            remedy=_stopped_remedy(folder),
            local_remedy=local_remedy(),
        )
    # An observer has no runtime, and nothing is left of it.
    left = f"; {_describe_leftovers(folder)}" if (folder / "runtime").is_dir() else ""
    write_message(f"stopped {stopped.name} (pid {stopped.pid}){left}")


def _describe_leftovers(folder: Path) -> str:
    pods = running_pods(folder / "runtime")
    if not pods:
        return f"no containers are running; to start it again: {start_command(folder)}"
    count = "1 pod" if len(pods) == 1 else f"{len(pods)} pods"
    end = end_command(folder, is_external=is_external_node(folder))
    return (
        f"the containers of {count} keep running; to continue with them: "
        f"{start_command(folder)}; to end them: {end}"
    )


def _stopped_remedy(folder: Path) -> str:
    """What can be done with a node that is stopped, if there is one."""
    if not (folder / LOCK_FILE).exists() or not (folder / "runtime").is_dir():
        return "pass the --root-dir of the agent to stop"
    return f"the node is stopped; {_describe_leftovers(folder)}"


def local_remedy() -> str:
    """For a node of the current directory that is not used unless the user names it."""
    local = Path(LOCAL_ROOT_DIR).absolute()
    # What another user may have planted is not read.
    is_external = is_private(local) and is_external_node(local)
    return (
        f"to start the node in ./{LOCAL_ROOT_DIR} again: {start_command(local)}; to delete its "
        f"pods: {end_command(local, is_external=is_external)}"
    )


def terminate_agent(folder: Path, seconds: float, *, kill: bool = False) -> StoppedAgent | None:
    """Send SIGTERM to the agent and wait until it has ended; None if none runs.

    `kill`: kill one that does not end within `seconds`, 0 for no limit; otherwise it raises
    RequestError, as for a process that cannot be verified.
    """
    holder = find_holder(folder)
    try:
        endpoints = None if holder is None else read_endpoints(folder)
    except RootDirError as error:
        raise RequestError(str(error)) from error
    if holder is None:
        return None
    process = _open_holder(folder, holder.pid)
    try:
        _send(process, signal.SIGTERM)
        if not _wait_ended(process, holder.pid, seconds):
            message = f"the agent (pid {holder.pid}) has not ended within {seconds:g} s"
            if not kill:
                raise RequestError(f"{message}; to wait again: {suggested_command('stop')}")
            write(f"{message}; killing it\n")
            _send(process, signal.SIGKILL)
            _wait_ended(process, holder.pid, 0)
    finally:
        os.close(process)
    return StoppedAgent(holder.pid, _name(endpoints))


def _name(endpoints: AgentEndpoints | None) -> str:
    if endpoints is not None and endpoints.observes:
        return "the observer"
    return f"the agent of node {endpoints.node}" if endpoints is not None else "the agent"


def _send(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, number)


def _open_holder(folder: Path, pid: int) -> int:
    """Return a pidfd of the process, if it has the lock file open."""
    lock = folder / LOCK_FILE
    try:
        process = os.pidfd_open(pid) if pid > 0 else -1
    except (AttributeError, OSError):  # macOS has no pidfd
        process = -1
    if process >= 0:
        # In this order: the pidfd never refers to another process.
        if _has_open(pid, lock):
            return process
        os.close(process)
    raise RequestError(
        f"cannot verify which process holds {lock} (it names pid {pid}); stop the agent where it "
        "was started: with Ctrl-C, as its user, or inside its container"
    )


def _has_open(pid: int, path: Path) -> bool:
    try:
        wanted = path.stat()
        files = [*Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    for file in files:
        with suppress(OSError):
            if os.path.samestat(file.stat(), wanted):
                return True
    return False


def _wait_ended(process: int, pid: int, seconds: float) -> bool:
    """Return whether the process has ended within `seconds`, 0 for no limit."""
    poller = select.poll()
    poller.register(process, select.POLLIN)
    first = min(seconds or _PATIENCE_SECONDS, _PATIENCE_SECONDS)
    if poller.poll(first * 1000):
        return True
    if seconds and seconds <= first:
        return False
    write(f"waiting for pid {pid} to end; with --on-stop=drain it ends its pods first\n")
    return bool(poller.poll((seconds - first) * 1000 if seconds else None))
