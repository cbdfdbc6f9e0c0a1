"""`podstatus drain`: terminate all pods of the running agent by priority, and wait for it."""

import os
import time
from typing import Annotated

import typer

from podstatus.agent.compose.drain_progress import count_pods, describe_progress, describe_remaining
from podstatus.cli.client.https_client import AgentClient, find_agent
from podstatus.cli.client.running_agent import RequestError
from podstatus.cli.errors import report_errors, usage_error
from podstatus.cli.options import RootDirOption
from podstatus.cli.terminal import write
from podstatus.kube.scalars.duration import DurationError, parse_duration
from podstatus.workers.shutdown.manager import DRAINED, OFF

_POLL_SECONDS = 0.2
TimeoutOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="Maximum time that the command waits for the drain to complete, such as 5m; 0 means "
        "no limit. The drain continues after a timeout.",
    ),
]
CancelOption = Annotated[
    bool, typer.Option("--cancel", help="Cancel the drain, so that the node accepts pods again.")
]


def drain(
    *, root_dir: RootDirOption = None, timeout: TimeoutOption = "0", cancel: CancelOption = False
) -> None:
    """Terminate all pods on this node and reject new ones.

    Critical pods are terminated after the others. The node accepts pods again when the drain is
    cancelled with --cancel or the agent is restarted.
    """
    seconds = _parse_timeout(timeout)
    with report_errors():
        node = find_agent(root_dir, os.environ)
        if cancel:
            _cancel(node)
            return
        node.begin_drain()
        _wait(node, seconds)
    write(
        "the node is drained: it is not Ready and rejects pods until you run podstatus drain "
        "--cancel or restart the agent\n"
    )


def _cancel(agent: AgentClient) -> None:
    if agent.drain_progress().state == OFF:
        write("the node accepts pods; no drain was in progress\n")
        return
    progress = agent.cancel_drain()
    parts = [f"{count_pods(len(progress.left))} still running"] if progress.left else []
    parts += [f"{count_pods(progress.ending)} still terminating"] if progress.ending else []
    write(f"the node accepts pods again; {', '.join(parts) or 'all pods had terminated'}\n")


def _wait(agent: AgentClient, seconds: float) -> None:
    deadline = time.monotonic() + seconds if seconds else None
    last_line = ""
    while (progress := agent.drain_progress()).state != DRAINED:
        if progress.state == OFF:
            raise RequestError("the drain was cancelled, or the agent was restarted")
        line = describe_progress(progress)
        if line and line != last_line:
            write(f"{line}\n")
        last_line = line or last_line
        if deadline is not None and time.monotonic() > deadline:
            raise RequestError(
                f"not drained within {seconds:g} s: {describe_remaining(progress.left)}; the drain "
                "continues, wait again with podstatus drain, or cancel it with --cancel"
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
