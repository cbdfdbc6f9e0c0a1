"""Open the HTTPS port of an agent or an observer, for as long as it runs."""

from contextlib import AsyncExitStack

from podstatus.agent.compose.kubelet_server import KubeletServer
from podstatus.agent.compose.serving_certificate import KubeletServerError
from podstatus.agent.daemon.run import AgentError


async def start_server(server: KubeletServer | None, stack: AsyncExitStack) -> str:
    """Open it; where, empty if there is none. Raises CannotRunError."""
    if server is None:
        return ""
    try:
        await server.start()
    except KubeletServerError as error:
        raise AgentError(str(error)) from error
    stack.push_async_callback(server.stop)
    return server.url
