"""Put a node together."""

import asyncio
from collections.abc import Callable

from podstatus.agent.run import CannotRunError, Surroundings
from podstatus.web.health import HealthListener, healthy


class _HealthOnly:
    """A node of which there is only its health yet."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._settings = surroundings.settings

    async def run(self, serving: Callable[[str], None]) -> None:
        host, port = self._settings.healthz_bind_address, self._settings.healthz_port or 0
        listener = HealthListener(host, port, lambda: {"ping": healthy})
        try:
            port = await listener.start()
        except OSError as error:
            raise CannotRunError(f"cannot listen on {host} port {port}: {error}") from error
        try:
            serving(f"http://{host}:{port}")
            await asyncio.Event().wait()
        finally:
            await listener.stop()


def build_node(surroundings: Surroundings) -> _HealthOnly:
    """The node, not started yet."""
    return _HealthOnly(surroundings)
