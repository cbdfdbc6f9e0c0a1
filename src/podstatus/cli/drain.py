"""`podstatus drain`: end all pods of the running agent by priority, and wait for it."""

import os
import time
from typing import Annotated

import typer

from podstatus.agent.compose.drain_progress import count_pods, describe_progress, describe_remaining
from podstatus.cli.client.agent_client import AgentClient, find_agent
from podstatus.cli.client.api_server import RequestError
from podstatus.cli.get import RootDirOption, report_errors, usage_error
from podstatus.cli.terminal import write
from podstatus.kube.scalars.duration import DurationError, parse_duration
from podstatus.workers.shutdown.manager import DRAINED, OFF

_POLL_SECONDS = 0.2
TimeoutOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION", help="How long to wait, such as 5m; the node goes on. 0: until all end."
    ),
]
CancelOption = Annotated[
    bool, typer.Option("--cancel", help="Have a drained node, or one that drains, take pods again.")
]


def drain(
    *, root_dir: RootDirOption = None, timeout: TimeoutOption = "0", cancel: CancelOption = False
) -> None:
    """End all pods of this node by priority, and take no others until --cancel or a restart."""
    seconds = _parse_timeout(timeout)
    with report_errors():
        node = find_agent(root_dir, os.environ)
        if cancel:
            _cancel(node)
            return
        node.begin_drain()
        _wait(node, seconds)
    write(
        "the node is drained: it is not Ready and takes no pods until podstatus drain --cancel, or "
        "until the agent is started again\n"
    )


def _cancel(agent: AgentClient) -> None:
    if agent.drain_progress().state == OFF:
        write("the node takes pods: it was not drained, nor asked to be\n")
        return
    after = agent.cancel_drain()
    stay, end = len(after.left), after.ending
    parts = [f"{count_pods(stay)} stay{_verb_suffix(stay)}"] if stay else []
    parts += [f"{count_pods(end)} still end{_verb_suffix(end)}"] if end else []
    write(f"the node takes pods again; {', '.join(parts) or 'all that it had have ended'}\n")


def _verb_suffix(count: int) -> str:
    return "s" if count == 1 else ""


def _wait(agent: AgentClient, seconds: float) -> None:
    deadline = time.monotonic() + seconds if seconds else None
    told = ""
    while (progress := agent.drain_progress()).state != DRAINED:
        if progress.state == OFF:
            raise RequestError("the drain was cancelled, or the agent was started again")
        line = describe_progress(progress)
        if line and line != told:
            write(f"{line}\n")
        told = line or told
        if deadline is not None and time.monotonic() > deadline:
            raise RequestError(
                f"not drained within {seconds:g} s: {describe_remaining(progress.left)}; "
                "the node goes "
                "on with it, see again with podstatus drain, or have it take pods with --cancel"
            )
        time.sleep(_POLL_SECONDS)


def _parse_timeout(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        usage_error(f"--timeout: {error}")
    if seconds < 0:
        usage_error("--timeout must be 0 or more, such as 5m")
    return seconds
