"""Drain the node of the running agent for `podstatus drain`, and wait for it."""

import os
import time
from pathlib import Path

from podstatus.agent.compose.drain_progress import count_pods, describe_progress, describe_remaining
from podstatus.cli.client.https_client import AgentClient, find_agent
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.program import suggested_command
from podstatus.cli.terminal import write, write_message
from podstatus.workers.shutdown.progress import DRAINED, OFF

_POLL_SECONDS = 0.2


def drain_node(root_dir: Path | None, seconds: float) -> None:
    """Drain the node and wait at most `seconds`, 0 for no limit. Raises RequestError."""
    agent = find_agent(root_dir, os.environ)
    agent.begin_drain()
    write(f"draining node {agent.node}\n")
    wait_drained(agent, seconds)
    write_message(
        f"node {agent.node} is drained: it is not Ready and rejects pods until the agent is "
        f"restarted or the drain is cancelled: {suggested_command('drain --cancel')}"
    )


def cancel_drain(root_dir: Path | None) -> None:
    """Let the node accept pods again. Raises RequestError."""
    agent = find_agent(root_dir, os.environ)
    if agent.drain_progress().state == OFF:
        write(f"node {agent.node} accepts pods; no drain was in progress\n")
        return
    progress = agent.cancel_drain()
    parts = [f"{count_pods(len(progress.left))} still running"] if progress.left else []
    parts += [f"{count_pods(progress.ending)} still terminating"] if progress.ending else []
    remaining = ", ".join(parts) or "all pods had terminated"
    write(f"node {agent.node} accepts pods again; {remaining}\n")


def wait_drained(agent: AgentClient, seconds: float) -> None:
    """Print the progress until the node is drained. Raises RequestError."""
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
                f"node {agent.node} is not drained within {seconds:g} s: "
                f"{describe_remaining(progress.left)}; the drain continues; to wait again: "
                f"{suggested_command('drain')}; to cancel it: {suggested_command('drain --cancel')}"
            )
        time.sleep(_POLL_SECONDS)
