"""Collect and print what is known about the agent of a root directory for `podstatus status`."""

import os
from pathlib import Path

import msgspec

from podstatus.agent.daemon.endpoints_file import AgentEndpoints, RootDirError, read_endpoints
from podstatus.agent.daemon.restarts_file import read_restarts
from podstatus.cli.actions.external_node import end_command, is_external_node
from podstatus.cli.client.https_client import AgentClient
from podstatus.cli.client.query_api_client import QueryClient
from podstatus.cli.client.request_errors import NoAnswerError, RequestError
from podstatus.cli.client.root_dir_holder import find_holder
from podstatus.cli.client.running_agent import find_root_dir, no_agent_error
from podstatus.cli.client.server_objects import current_time
from podstatus.cli.document_output import write_json, write_yaml
from podstatus.cli.program import suggested_command
from podstatus.cli.render.status_page import AgentState, SuggestedCommands, status_page
from podstatus.cli.start_command import is_supervised
from podstatus.cli.terminal import write
from podstatus.runtime.process.state.running_pods import running_pods
from podstatus.web.v1.wire import StatusResponse
from podstatus.workers.shutdown.progress import OFF

_MAX_RESTARTS = 3


def print_status(root_dir: Path | None, output: str | None) -> bool:
    """Print the state of the agent; True if it runs and is healthy. Raises RequestError."""
    state = read_status(find_root_dir(root_dir, os.environ, stopped=True))
    match output:
        case "json":
            write_json(state)
        case "yaml":
            write_yaml(state)
        case _:
            write(status_page(state, current_time(), _commands(state)))
    return state.is_healthy


def _commands(state: AgentState) -> SuggestedCommands:
    folder = Path(state.root_dir)
    return SuggestedCommands(
        end=end_command(folder, is_external=is_external_node(folder)),
        cancel_drain=suggested_command("drain --cancel"),
    )


def read_status(folder: Path) -> AgentState:
    """Return the state of the agent in a root directory. Raises RequestError."""
    holder = find_holder(folder)
    try:
        endpoints = None if holder is None else read_endpoints(folder)
        restarts = read_restarts(folder, _MAX_RESTARTS)
    except RootDirError as error:
        raise RequestError(str(error)) from error
    if holder is None:
        left = tuple(running_pods(folder / "runtime"))
        problem = str(no_agent_error(folder, os.environ))
        return AgentState(
            root_dir=str(folder), problem=problem, restarts=restarts, left_running=left
        )
    state = AgentState(
        root_dir=str(folder), running=True, pid=holder.pid, since=holder.since, restarts=restarts
    )
    if endpoints is None:
        return msgspec.structs.replace(state, problem="it is starting: it has no endpoints yet")
    return _ask(state, endpoints)


def _ask(state: AgentState, endpoints: AgentEndpoints) -> AgentState:
    """Add what the agent answers, as far as it does."""
    agent = AgentClient(endpoints)
    known = msgspec.structs.replace(
        state,
        node_name=endpoints.node,
        observes=endpoints.observes,
        api_server=endpoints.apiserver,
        embedded=endpoints.embeds_api_server,
    )
    try:
        query = QueryClient(agent)
        return msgspec.structs.replace(
            known,
            checks=agent.health_checks(),
            status=query.get("/v1/status", {}, StatusResponse),
            nodes=query.nodes().nodes,
            drain=OFF if agent.is_observer else agent.drain_progress().state,
        )
    except RequestError as error:
        problem = str(error)
        if isinstance(error, NoAnswerError) and is_supervised(Path(state.root_dir)):
            problem += "; its supervisor replaces an agent that hangs"
        return msgspec.structs.replace(known, problem=problem)
