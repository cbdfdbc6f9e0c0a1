"""Start the HTTPS server of an agent or an observer."""

from contextlib import AsyncExitStack

from podstatus.agent.compose.kubelet_server import KubeletServer
from podstatus.agent.compose.serving_certificate import KubeletServerError
from podstatus.agent.daemon.run_agent import AgentError
from podstatus.web.handlers import HandlerDependencies


async def start_server(
    server: KubeletServer, dependencies: HandlerDependencies, stack: AsyncExitStack
) -> str:
    """Start the server and return its URL; `stack` stops it. Raises AgentError."""
    try:
        await server.start(dependencies)
    except KubeletServerError as error:
        raise AgentError(str(error)) from error
    stack.push_async_callback(server.stop)
    return server.url
