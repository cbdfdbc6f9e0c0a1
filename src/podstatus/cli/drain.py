"""`podstatus drain`: end all pods of the running agent by priority, and wait for it."""

import os
import time
from typing import Annotated

import typer

from podstatus.agent.compose.drain_progress import describe_left, describe_progress, pods
from podstatus.cli.client.agent_client import NodePort, find_node
from podstatus.cli.client.api_server import CannotAskError
from podstatus.cli.get import RootDir, complaining, mistaken
from podstatus.cli.terminal import show
from podstatus.kube.scalars.duration import DurationError, parse_duration
from podstatus.workers.shutdown.manager import DRAINED, OFF

_LOOK_SECONDS = 0.2
Timeout = Annotated[
    str,
    typer.Option(
        metavar="DURATION", help="How long to wait, such as 5m; the node goes on. 0: until all end."
    ),
]
Cancel = Annotated[
    bool, typer.Option("--cancel", help="Have a drained node, or one that drains, take pods again.")
]


def drain(*, root_dir: RootDir = None, timeout: Timeout = "0", cancel: Cancel = False) -> None:
    """End all pods of this node by priority, and take no others until --cancel or a restart."""
    seconds = _seconds(timeout)
    with complaining():
        node = find_node(root_dir, os.environ)
        if cancel:
            _cancel(node)
            return
        node.begin_drain()
        _wait(node, seconds)
    show(
        "the node is drained: it is not Ready and takes no pods until podstatus drain --cancel, or "
        "until the agent is started again\n"
    )


def _cancel(node: NodePort) -> None:
    if node.drain_progress().state == OFF:
        show("the node takes pods: it was not drained, nor asked to be\n")
        return
    after = node.cancel_drain()
    stay, end = len(after.left), after.ending
    parts = [f"{pods(stay)} stay{_s(stay)}"] if stay else []
    parts += [f"{pods(end)} still end{_s(end)}"] if end else []
    show(f"the node takes pods again; {', '.join(parts) or 'all that it had have ended'}\n")


def _s(count: int) -> str:
    return "s" if count == 1 else ""


def _wait(node: NodePort, seconds: float) -> None:
    deadline = time.monotonic() + seconds if seconds else None
    told = ""
    while (progress := node.drain_progress()).state != DRAINED:
        if progress.state == OFF:
            raise CannotAskError("the drain was cancelled, or the agent was started again")
        line = describe_progress(progress)
        if line and line != told:
            show(f"{line}\n")
        told = line or told
        if deadline is not None and time.monotonic() > deadline:
            raise CannotAskError(
                f"not drained within {seconds:g} s: {describe_left(progress.left)}; the node goes "
                "on with it, see again with podstatus drain, or have it take pods with --cancel"
            )
        time.sleep(_LOOK_SECONDS)


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        mistaken(f"--timeout: {error}")
    if seconds < 0:
        mistaken("--timeout must be 0 or more, such as 5m")
    return seconds
