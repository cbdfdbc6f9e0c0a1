"""Open the HTTPS port of an agent or an observer, for as long as it runs."""

from contextlib import AsyncExitStack

from podstatus.agent.compose.kubelet_server import NodePort
from podstatus.agent.compose.serving_certificate import CannotServeNodeError
from podstatus.agent.daemon.run import CannotRunError


async def open_port(port: NodePort | None, stack: AsyncExitStack) -> str:
    """Open it; where, empty if there is none. Raises CannotRunError."""
    if port is None:
        return ""
    try:
        await port.start()
    except CannotServeNodeError as error:
        raise CannotRunError(str(error)) from error
    stack.push_async_callback(port.stop)
    return port.url
